//! Restores of etcd from a snapshot, with and without `--bump-revision`, on the in-memory API in virtual time. The
//! controller ends, and its next process relists all objects.

use std::{
    collections::BTreeSet,
    future::pending,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use apisim::{Api, Fault, Options, Rule, WallClock};
use cronwheel::{
    controller::{
        Connections, Controller, RuntimeError,
        clock::{Clock, SimulatedWall},
        event_task::EventBudget,
        settings::{CronJobMetrics, LogRuns, Membership, RunSettings},
    },
    coordination::{InstallationName, PROTOCOL_VERSION, Timing},
    kube_api::{ApiClient, WriteConnections},
    schedule::Zone,
    shard::{Scope, ShardCount, TemplateMemory},
    telemetry::metrics::Metrics,
};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};
use tokio::{
    task::{JoinHandle, LocalSet},
    time::sleep,
};

const BEGINNING: &str = "2026-05-05T12:00:30Z";

const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

struct Cluster {
    api: Api,
    clock: WallClock,
    user: Client,
    n_incarnations: Arc<AtomicU64>,
}

struct Replica {
    n_processes: Arc<AtomicU64>,
    run: JoinHandle<()>,
}

impl Cluster {
    fn new() -> Cluster {
        let clock = WallClock::starting_at(BEGINNING.parse().unwrap());
        let api = Api::new(Options::default(), clock.clone());
        let delay = Duration::from_millis(5);
        api.faults().add(Rule::new(Fault::Delay {
            shortest: delay,
            longest: delay,
        }));
        Cluster {
            user: Client::new(api.client("user"), "default"),
            api,
            clock,
            n_incarnations: Arc::default(),
        }
    }

    async fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let builder = http::Request::builder().method(method).uri(path);
        let builder = builder.header("content-type", content_type);
        let response = self.user.request(builder.body(body.to_string().into_bytes()).unwrap());
        response
            .await
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    async fn create(&self, name: &str, schedule: &str, policy: &str) {
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}});
        let spec =
            json!({"schedule": schedule, "concurrencyPolicy": policy, "jobTemplate": {"spec": {"template": template}}});
        self.request("POST", CRON_JOBS, &json!({"metadata": {"name": name}, "spec": spec}))
            .await;
    }

    /// Returns the slots of the Jobs of a CronJob as hours and minutes. Asserts that no slot has two Jobs.
    async fn runs(&self, name: &str) -> Vec<String> {
        let jobs = self
            .request("GET", "/apis/batch/v1/namespaces/default/jobs", &Value::Null)
            .await;
        let slot = "batch.kubernetes.io/cronjob-scheduled-timestamp";
        let of_cron_job = jobs["items"].as_array().unwrap().iter().filter_map(|job| {
            let owner = &job["metadata"]["ownerReferences"][0]["name"];
            let slot = job["metadata"]["annotations"][slot].as_str()?;
            (owner == name).then(|| slot[11..16].to_owned())
        });
        let runs: Vec<String> = of_cron_job.collect();
        let distinct: BTreeSet<&String> = runs.iter().collect();
        assert_eq!(distinct.len(), runs.len(), "{name}: {runs:?}");
        runs
    }

    async fn assert_ran_at(&self, name: &str, minutes: &[&str]) {
        let runs = self.runs(name).await;
        for minute in minutes {
            assert!(runs.iter().any(|run| run == minute), "{name} at {minute}: {runs:?}");
        }
    }

    async fn until(&self, instant: &str) {
        let instant: Timestamp = format!("2026-05-05T{instant}Z").parse().unwrap();
        let remaining = instant.duration_since(self.clock.now());
        sleep(remaining.try_into().unwrap()).await;
    }

    /// Starts a replica. Its process is restarted when the history of the API server goes back.
    fn start(self: &Rc<Self>, name: &'static str) -> Replica {
        let n_processes = Arc::<AtomicU64>::default();
        let (cluster, counted) = (Rc::clone(self), Arc::clone(&n_processes));
        let run = tokio::task::spawn_local(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                let controller = cluster.controller(name);
                let ended = controller.run(None, Vec::new(), async || pending().await).await;
                let restarts = matches!(&ended, Err(RuntimeError::HistoryWentBack));
                assert!(restarts, "the controller ended without a signal: {ended:?}");
                sleep(Duration::from_secs(1)).await;
            }
        });
        Replica { n_processes, run }
    }

    fn controller(&self, name: &str) -> Controller {
        let client = || Client::new(self.api.client(name), "default");
        let connections = Connections {
            writes: ApiClient::new(WriteConnections::from_clients(vec![client()])),
            events: ApiClient::new(WriteConnections::from_clients(vec![client()])),
            leases: client(),
            watches: client(),
            api_server: None,
        };
        let n_incarnations = Arc::clone(&self.n_incarnations);
        let membership = Membership {
            installation: InstallationName::default(),
            namespace: "default".into(),
            pod_name: name.into(),
            pod_uid: format!("uid-{name}").into(),
            owner: None,
            revision: "1".into(),
            shard_count: ShardCount::new(16).unwrap(),
            protocol: PROTOCOL_VERSION,
            timing: Timing::DEFAULT,
            incarnations: Arc::new(move || n_incarnations.fetch_add(1, Ordering::Relaxed)),
        };
        let settings = RunSettings {
            scopes: vec![Scope::Cluster],
            namespace_selector: None,
            default_zone: Zone::utc(),
            status_flush_interval: Duration::from_secs(1),
            in_flight_max: 64,
            template_memory_mib: TemplateMemory::MIB_DEFAULT,
            missed_runs_per_second: 5,
            freeze: None,
            reads_calendars: false,
            built_in_policies: Vec::new(),
            events: EventBudget::default(),
            cron_job_metrics: CronJobMetrics::default(),
            trouble_label: None,
            log_runs: LogRuns::default(),
            membership,
        };
        Controller {
            settings,
            clock: Clock::of_simulated(SimulatedWall::starting_at(self.clock.now())),
            connections,
            metrics: Metrics::register(),
        }
    }
}

/// Restores a snapshot, which reverts ten minutes of history, and runs for five more minutes. Returns for each replica
/// how often it restarted.
fn restore(replicas: &[&'static str], bump: u64) -> Vec<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let tasks = LocalSet::new();
    tasks.block_on(&runtime, async {
        let cluster = Rc::new(Cluster::new());
        cluster.create("kept", "* * * * *", "Allow").await;
        cluster.create("deleted-since", "* * * * *", "Allow").await;
        cluster.create("suspended-since", "* * * * *", "Allow").await;
        cluster.create("held-back-since", "5,16 * * * *", "Forbid").await;
        let begun: Vec<Replica> = replicas.iter().map(|name| cluster.start(name)).collect();
        cluster.until("12:03:30").await;
        let snapshot = cluster.api.snapshot();
        cluster.create("created-since", "* * * * *", "Allow").await;
        let deleted = format!("{CRON_JOBS}/deleted-since");
        cluster.request("DELETE", &deleted, &json!({})).await;
        let (path, suspend) = (
            format!("{CRON_JOBS}/suspended-since"),
            json!({"spec": {"suspend": true}}),
        );
        cluster.request("PATCH", &path, &suspend).await;
        cluster.until("12:13:30").await;
        cluster.assert_ran_at("created-since", &["12:04", "12:13"]).await;
        cluster.assert_ran_at("held-back-since", &["12:05"]).await;
        let outage = cluster.api.faults().add(Rule::new(Fault::Outage));
        sleep(Duration::from_secs(2)).await;
        cluster.api.restore(&snapshot, bump);
        cluster.api.faults().remove(outage);
        assert!(cluster.runs("held-back-since").await.is_empty());
        cluster.until("12:18:30").await;
        for name in ["kept", "deleted-since", "suspended-since"] {
            let minutes = ["12:03", "12:15", "12:16", "12:17", "12:18"];
            cluster.assert_ran_at(name, &minutes).await;
            let cron_job = cluster
                .request("GET", &format!("{CRON_JOBS}/{name}"), &Value::Null)
                .await;
            assert_eq!(cron_job["status"]["lastScheduleTime"], "2026-05-05T12:18:00Z", "{name}");
        }
        // The restore reverted this run and the stored cursor, so the run starts once more.
        cluster.assert_ran_at("held-back-since", &["12:05"]).await;
        assert!(cluster.runs("created-since").await.is_empty());
        for replica in &begun {
            assert!(!replica.run.is_finished());
        }
        let n_processes = begun.iter().map(|replica| replica.n_processes.load(Ordering::Relaxed));
        n_processes.map(|n| n - 1).collect()
    })
}

#[test]
fn single_replica_restarts_after_a_restore_with_older_versions() {
    assert_eq!(restore(&["single"], 0), [1]);
}

#[test]
fn every_replica_restarts_after_a_restore_with_older_versions() {
    assert_eq!(restore(&["a", "b", "c"], 0), [1, 1, 1]);
}

#[test]
fn single_replica_restarts_after_a_restore_with_bumped_versions() {
    assert_eq!(restore(&["single"], 1_000_000), [1]);
}

#[test]
fn every_replica_restarts_after_a_restore_with_bumped_versions() {
    assert_eq!(restore(&["a", "b", "c"], 1_000_000), [1, 1, 1]);
}
