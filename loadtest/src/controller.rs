//! The controller under test: cronwheel as a child process, or the built-in one.

use std::{
    fs::{self, File},
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, bail};
use testbed::{Component, ReferenceLimits};

use crate::{
    exposition::Exposition,
    own_figures::{self, MetricNames},
    target::{ACCOUNT, Target},
};

/// Maximum wait for a controller to see all CronJobs.
const READY_WAIT_MAX: Duration = Duration::from_mins(1);
const READY_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Timeout of one request to the admin endpoint.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum wait for a controller to stop. It flushes status updates and releases its Leases in this time.
const STOP_WAIT_MAX: Duration = Duration::from_secs(10);

/// The namespace of the Role that allows cronwheel to write Leases.
const LEASE_NAMESPACE: &str = "kube-system";

/// The built-in controller's service account, when each controller uses its own.
pub(crate) const REFERENCE_USER: &str = "system:serviceaccount:kube-system:cronjob-controller";

/// The controller to run.
#[derive(Clone, Debug)]
pub(crate) enum Candidate {
    /// This executable, with these arguments appended to our own.
    Cronwheel { program: PathBuf, arguments: Vec<String> },
    /// The built-in controller of kube-controller-manager.
    Reference(ReferenceLimits),
}

impl Candidate {
    /// The executable of cronwheel. `None` for the built-in controller.
    pub(crate) fn program(&self) -> Option<&Path> {
        match self {
            Candidate::Cronwheel { program, .. } => Some(program),
            Candidate::Reference(_) => None,
        }
    }
}

/// A running controller, which is stopped on drop.
#[derive(Debug)]
pub(crate) enum Controller {
    Cronwheel { child: Child, port: u16, log: PathBuf },
    Reference,
}

impl Controller {
    /// Starts the controller and waits until it is ready.
    pub(crate) async fn start(
        candidate: &Candidate,
        target: &mut Target,
        scratch: &Path,
    ) -> anyhow::Result<Controller> {
        Controller::start_as(ACCOUNT, candidate, target, scratch).await
    }

    /// The same with the service account of a release of this name.
    pub(crate) async fn start_as(
        account: &str,
        candidate: &Candidate,
        target: &mut Target,
        scratch: &Path,
    ) -> anyhow::Result<Controller> {
        match candidate {
            Candidate::Cronwheel { program, arguments } => {
                let kubeconfig = target.account_kubeconfig(account, scratch)?;
                let mut controller = start_cronwheel(program, arguments, &kubeconfig, scratch)?;
                controller.wait_until_ready().await?;
                Ok(controller)
            }
            Candidate::Reference(limits) => {
                let testbed = target
                    .testbed_mut()
                    .context("the built-in controller runs on our own API server only")?;
                testbed.start_reference(*limits)?;
                Ok(Controller::Reference)
            }
        }
    }

    /// The user that the controller authenticates as.
    pub(crate) fn user(&self) -> String {
        match self {
            Controller::Cronwheel { .. } => Target::candidate_user(),
            Controller::Reference => REFERENCE_USER.to_owned(),
        }
    }

    pub(crate) fn metric_names(&self) -> &'static MetricNames {
        match self {
            Controller::Cronwheel { .. } => &own_figures::CRONWHEEL,
            Controller::Reference => &own_figures::REFERENCE,
        }
    }

    pub(crate) fn pid(&self, target: &Target) -> anyhow::Result<u32> {
        match self {
            Controller::Cronwheel { child, .. } => Ok(child.id()),
            Controller::Reference => target
                .testbed()
                .and_then(|testbed| testbed.pid(Component::Reference))
                .context("it has ended"),
        }
    }

    /// Reads the controller's metrics.
    pub(crate) fn metrics(&self, target: &Target) -> anyhow::Result<Exposition> {
        let text = match self {
            Controller::Cronwheel { port, .. } => get(*port, "/metrics").context("cannot read cronwheel's metrics")?,
            Controller::Reference => target
                .testbed()
                .context("no control plane of our own")?
                .reference_metrics()?,
        };
        Ok(Exposition::parse(&text))
    }

    /// Stops the controller gracefully, and waits until it has exited.
    pub(crate) async fn stop(mut self, target: &mut Target) -> anyhow::Result<()> {
        match &mut self {
            Controller::Cronwheel { child, log, .. } => {
                if child.try_wait()?.is_none() {
                    testbed::terminate(child)?;
                }
                let begin = Instant::now();
                while child.try_wait()?.is_none() {
                    if begin.elapsed() > STOP_WAIT_MAX {
                        bail!(
                            "cronwheel does not end within {} s of SIGTERM\n{}",
                            STOP_WAIT_MAX.as_secs(),
                            tail(log)
                        );
                    }
                    tokio::time::sleep(READY_POLL_INTERVAL).await;
                }
            }
            Controller::Reference => {
                if let Some(testbed) = target.testbed_mut() {
                    testbed.stop_reference()?;
                }
            }
        }
        Ok(())
    }

    /// Kills cronwheel as in a crash.
    pub(crate) fn kill(&mut self) {
        if let Controller::Cronwheel { child, .. } = self {
            // Both fail only if it has exited already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    async fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let Controller::Cronwheel { child, port, log } = self else {
            return Ok(());
        };
        let begin = Instant::now();
        while get(*port, "/readyz").is_err() {
            if let Some(status) = child.try_wait()? {
                bail!("cronwheel ended ({status}) before it was ready\n{}", tail(log));
            }
            if begin.elapsed() > READY_WAIT_MAX {
                bail!(
                    "cronwheel is not ready after {} s\n{}",
                    READY_WAIT_MAX.as_secs(),
                    tail(log)
                );
            }
            tokio::time::sleep(READY_POLL_INTERVAL).await;
        }
        Ok(())
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start_cronwheel(
    program: &Path,
    arguments: &[String],
    kubeconfig: &Path,
    scratch: &Path,
) -> anyhow::Result<Controller> {
    let port = free_port()?;
    let log = scratch.join("cronwheel.log");
    let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let child = Command::new(program)
        .arg("run")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(["--listen", &format!("127.0.0.1:{port}")])
        .args(arguments)
        // The Role for Leases is in this namespace, and the kubeconfig does not set one.
        .env("POD_NAMESPACE", LEASE_NAMESPACE)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    Ok(Controller::Cronwheel { child, port, log })
}

/// Returns a free port of the loopback interface.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// Returns the body of a 200 response over plain HTTP.
pub(crate) fn get(port: u16, path: &str) -> anyhow::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(EXCHANGE_TIMEOUT))?;
    // With HTTP/1.0, the response is not chunked and ends with the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("not an HTTP answer")?;
    let status = head.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        bail!("{path} answers {status}");
    }
    Ok(body.to_owned())
}

/// Returns the last lines of its log.
fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
