//! A controller as a process whose clock is set shortly before an instant of the case.

use std::{
    fs::File,
    net::TcpListener,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    exchange,
    kubernetes::{Namespace, wait},
};

/// How long before the instant the controller's clock starts: time to list and to take the shards. After a former
/// controller of the case, the proof that nothing was missed takes up to 2.3 s in a quiet namespace.
const LEAD: SignedDuration = SignedDuration::from_secs(8);

/// The number of shards of every installation.
const N_SHARDS: u64 = 256;

/// A running controller. Dropping it kills it.
pub(super) struct Controller {
    process: Child,
    /// The address of its endpoints.
    address: String,
}

impl Controller {
    /// Starts a controller whose clock soon reaches the given minute of the case.
    pub(super) fn start_before(namespace: &Namespace, minute: i64) -> Controller {
        Controller::start(namespace, minute, &[])
    }

    pub(super) fn start(namespace: &Namespace, minute: i64, arguments: &[&str]) -> Controller {
        Controller::start_at(namespace, namespace.minute(minute) - LEAD, arguments)
    }

    /// Starts a controller with an identity of its own, or with that of the arguments.
    pub(super) fn start_replica(namespace: &Namespace, minute: i64, arguments: &[&str]) -> Controller {
        Controller::spawn(namespace, namespace.minute(minute) - LEAD, arguments)
    }

    /// Starts a controller whose clock soon reaches the instant, in any year.
    pub(super) fn start_before_instant(namespace: &Namespace, instant: Timestamp) -> Controller {
        Controller::start_at(namespace, instant - LEAD, &[])
    }

    /// Starts a controller whose clock is set to the instant. It is the only replica of the case, and has the identity of
    /// the controllers that ran before it.
    pub(super) fn start_at(namespace: &Namespace, instant: Timestamp, arguments: &[&str]) -> Controller {
        let lease_namespace = format!("--lease-namespace={}", namespace.name);
        let identity = [&*lease_namespace, "--pod-uid=uid-single"];
        Controller::spawn(namespace, instant, &[&identity, arguments].concat())
    }

    /// Starts a replica with its log in a file.
    pub(super) fn start_replica_with_log(
        namespace: &Namespace,
        minute: i64,
        arguments: &[&str],
        log: File,
    ) -> Controller {
        let instant = namespace.minute(minute) - LEAD;
        Controller::spawn_with_log(namespace, instant, arguments, log.into())
    }

    fn spawn(namespace: &Namespace, instant: Timestamp, arguments: &[&str]) -> Controller {
        Controller::spawn_with_log(namespace, instant, arguments, Stdio::inherit())
    }

    fn spawn_with_log(namespace: &Namespace, instant: Timestamp, arguments: &[&str], log: Stdio) -> Controller {
        let address = format!("127.0.0.1:{}", free_port());
        let ahead = instant.as_millisecond() - Timestamp::now().as_millisecond();
        let selects = arguments
            .iter()
            .any(|argument| argument.starts_with("--namespace-selector"));
        let in_namespace: &[&str] = if selects {
            &[]
        } else {
            &["--namespace", &namespace.name]
        };
        let is_named = |argument: &&str| argument.starts_with("--log-level");
        let level: &[&str] = if arguments.iter().any(is_named) {
            &[]
        } else {
            &["--log-level=warn"]
        };
        let process = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
            .arg("run")
            .arg("--kubeconfig")
            .arg(&namespace.control_plane.controller_kubeconfig)
            .args(in_namespace)
            .arg(format!("--clock-offset={ahead}ms"))
            .arg(format!("--listen={address}"))
            .args(level)
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("a process");
        Controller { process, address }
    }

    /// The sum of a metric's samples with these labels. `None` before the endpoint responds.
    pub(super) async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Option<u64> {
        let text = exchange::get(&self.address, "/metrics").await?;
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        let samples = text.lines().filter_map(|line| {
            let (sample, value) = line.rsplit_once(' ')?;
            let is_it = sample.split('{').next() == Some(name) && labels.iter().all(|label| sample.contains(label));
            is_it.then(|| value.parse::<u64>().expect("a whole number"))
        });
        Some(samples.sum())
    }

    /// The series of a metric with their values, in the format of the endpoint. Empty before the endpoint responds.
    pub(super) async fn series(&self, name: &str) -> Vec<String> {
        let text = exchange::get(&self.address, "/metrics").await.unwrap_or_default();
        let is_it = |line: &&str| line.split(['{', ' ']).next() == Some(name);
        let mut series: Vec<String> = text.lines().filter(is_it).map(ToOwned::to_owned).collect();
        series.sort();
        series
    }

    pub(super) async fn wait_for_metric(&self, name: &str, labels: &[(&str, &str)], is_reached: impl Fn(u64) -> bool) {
        let mut seen = None;
        let reached = wait(async || {
            seen = self.metric(name, labels).await;
            seen.is_some_and(&is_reached)
        })
        .await;
        if !reached {
            let text = exchange::get(&self.address, "/metrics").await.unwrap_or_default();
            let series: Vec<&str> = text.lines().filter(|line| line.starts_with(name)).collect();
            let readiness = self.readiness_or_nothing().await;
            panic!("{name} {labels:?}: {seen:?}, of {series:?}; /readyz: {readiness}");
        }
    }

    /// The body of `/readyz`.
    pub(super) async fn readiness(&self) -> String {
        let (_, body) = exchange::send(&self.address, "GET /readyz HTTP/1.0\r\n\r\n")
            .await
            .expect("a response");
        body
    }

    /// The body of `/readyz`. Empty while the controller does not listen yet.
    pub(super) async fn readiness_or_nothing(&self) -> String {
        let response = exchange::send(&self.address, "GET /readyz HTTP/1.0\r\n\r\n").await;
        response.map(|(_, body)| body).unwrap_or_default()
    }

    /// Waits until the controller may start Jobs: both lists are complete and the clock is trusted.
    pub(super) async fn wait_until_ready(&self) {
        let is_ready = wait(async || exchange::get(&self.address, "/readyz").await.is_some()).await;
        assert!(is_ready, "the controller does not become ready");
    }

    /// Waits until the only replica of the case leads every shard.
    pub(super) async fn wait_until_leading(&self) {
        self.wait_for_metric("cronwheel_leader", &[], |n_led| n_led == N_SHARDS)
            .await;
    }

    /// Waits until as many instants as these outcomes have become due. Asserts that all of them have ended with these
    /// outcomes, and that no others became due.
    pub(super) async fn wait_for_account(&self, outcomes: &[(&str, u64)]) {
        let mut expected: Vec<(String, u64)> = outcomes.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        expected.sort();
        let n_due: u64 = expected.iter().map(|(_, n)| n).sum();
        let mut seen = Vec::new();
        let is_closed = async || {
            let due = self.metric("cronwheel_due_instants_total", &[]).await;
            let open = self.metric("cronwheel_instants_open", &[]).await;
            seen = self.outcomes().await;
            due >= Some(n_due) && open == Some(0)
        };
        let is_closed = wait(is_closed).await;
        assert!(is_closed && seen == expected, "outcomes {seen:?}, not {expected:?}");
    }

    /// Waits until this many instants have become due, and asserts that all of them have their Job: created, or found
    /// if the response to a create was lost.
    pub(super) async fn wait_until_started(&self, n_due: u64) {
        let mut seen = (None, None);
        let is_closed = async || {
            let due = self.metric("cronwheel_due_instants_total", &[]).await;
            let open = self.metric("cronwheel_instants_open", &[]).await;
            seen = (due, open);
            seen == (Some(n_due), Some(0))
        };
        assert!(wait(is_closed).await, "due and open {seen:?}, not {n_due} and none");
        assert_eq!(self.n_started().await, n_due, "{:?}", self.outcomes().await);
    }

    /// The number of instants that have their Job.
    pub(super) async fn n_started(&self) -> u64 {
        let outcomes = self.outcomes().await;
        let is_started = |name: &str| matches!(name, "created" | "adopted");
        outcomes
            .iter()
            .filter(|(name, _)| is_started(name))
            .map(|(_, n)| n)
            .sum()
    }

    /// The number of ended instants by outcome.
    async fn outcomes(&self) -> Vec<(String, u64)> {
        let text = exchange::get(&self.address, "/metrics").await.unwrap_or_default();
        let outcome = |line: &str| {
            let rest = line.strip_prefix("cronwheel_instant_outcomes_total{outcome=\"")?;
            let (name, count) = rest.split_once("\"} ")?;
            let count = count.parse().ok().filter(|count| *count > 0)?;
            Some((name.to_owned(), count))
        };
        let mut outcomes: Vec<_> = text.lines().filter_map(outcome).collect();
        outcomes.sort();
        outcomes
    }

    /// Kills the controller as in a crash.
    pub(super) fn kill(mut self) {
        self.process.kill().expect("a kill");
        self.process.wait().expect("an end");
    }

    /// Terminates the controller as a rollout does, and asserts that it exits successfully.
    pub(super) async fn terminate(self) {
        testbed::terminate(&self.process).expect("a signal");
        let status = self.wait_for_end().await;
        assert!(status.success(), "{status}");
    }

    /// Waits until the controller ends by itself.
    pub(super) async fn wait_for_end(mut self) -> ExitStatus {
        for _ in 0..150 {
            if let Some(status) = self.process.try_wait().expect("a status") {
                return status;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the controller does not end");
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
