//! The API server, the namespaces of its tenants, and the controller.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use apisim::{Api, Fault, JobRunner, JobRunnerOptions, Options, Rule, RuleId, WallClock};
use cronwheel::{
    controller::{
        Connections, Controller,
        clock::{Clock, SimulatedWall},
        event_task::EventBudget,
        settings::{CronJobMetrics, LogRuns, Membership, RunSettings},
    },
    coordination::{PROTOCOL_VERSION, Timing},
    kube_api::{ApiClient, WriteConnections},
    schedule::Zone,
    shard::{Scope, ShardCount, TemplateMemory},
    telemetry::metrics::Metrics,
};
use jiff::Timestamp;
use kube::Client;
use serde_json::Value;
use tokio::time::sleep;

/// The namespace of the offender.
pub(super) const OFFENDER: &str = "offender";

/// The namespaces of the innocent tenants.
pub(super) const INNOCENT: [&str; 3] = ["innocent-a", "innocent-b", "innocent-c"];

/// The client name of the controller, for faults.
const CONTROLLER: &str = "controller";

/// The duration of every request. It is constant, because random durations would differ between runs with different
/// numbers of requests.
const REQUEST_TIME: Duration = Duration::from_millis(5);

/// The membership of the only replica.
fn membership() -> Membership {
    Membership {
        installation: cronwheel::coordination::InstallationName::default(),
        namespace: "default".into(),
        pod_name: "replica".into(),
        pod_uid: "uid-replica".into(),
        owner: None,
        revision: "1".into(),
        shard_count: ShardCount::new(16).unwrap(),
        protocol: PROTOCOL_VERSION,
        timing: Timing::DEFAULT,
        incarnations: Arc::new(|| 1),
    }
}

pub(super) struct Cluster {
    pub(super) api: Api,
    pub(super) start: Timestamp,
    clock: WallClock,
    user: Client,
    seed: u64,
}

impl Cluster {
    pub(super) fn new(seed: u64) -> Cluster {
        let start: Timestamp = "2026-05-05T12:00:30Z".parse().unwrap();
        let clock = WallClock::starting_at(start);
        let namespaces = INNOCENT.into_iter().chain([OFFENDER, "default"]);
        let options = Options {
            seed,
            namespaces: namespaces.map(ToOwned::to_owned).collect(),
            ..Options::default()
        };
        let api = Api::new(options, clock.clone());
        api.faults().add(Rule::new(Fault::Delay {
            shortest: REQUEST_TIME,
            longest: REQUEST_TIME,
        }));
        Cluster {
            user: Client::new(api.client("user"), "default"),
            api,
            start,
            clock,
            seed,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Waits until an instant.
    pub(super) async fn until(&self, instant: Timestamp) {
        let remaining = instant.duration_since(self.now());
        sleep(remaining.try_into().unwrap_or_default()).await;
    }

    /// Adds a fault that affects only requests of the controller in the namespace of the offender.
    pub(super) fn add_offender_fault(&self, rule: Rule) -> RuleId {
        self.api.faults().add(Rule {
            client: Some(CONTROLLER.to_owned()),
            namespace: Some(OFFENDER.to_owned()),
            ..rule
        })
    }

    /// Sends a request as a user. Panics if it is refused.
    pub(super) async fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder().method(method).uri(path);
        let request = request.header("content-type", content_type);
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let response = self.user.request(request.body(body).unwrap()).await;
        response.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    pub(super) async fn create_cron_job(&self, namespace: &str, cron_job: &Value) -> Value {
        let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
        self.request("POST", &path, cron_job).await
    }

    pub(super) async fn create_job(&self, namespace: &str, job: &Value) -> Value {
        let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs");
        self.request("POST", &path, job).await
    }

    /// Returns the Events of a namespace as reason and message, sorted.
    pub(super) async fn events(&self, namespace: &str, kind: &str) -> Vec<(String, String)> {
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let list = self.request("GET", &path, &Value::Null).await;
        let events = list["items"].as_array().unwrap().iter();
        let text = |event: &Value, member: &str| event[member].as_str().unwrap_or_default().to_owned();
        let mut events: Vec<_> = events
            .filter(|event| event["type"] == *kind)
            .map(|event| (text(event, "reason"), text(event, "message")))
            .collect();
        events.sort();
        events
    }

    /// Runs Jobs according to their annotations, forever.
    pub(super) fn run_jobs(&self) -> impl Future<Output = ()> + use<> {
        let options = JobRunnerOptions {
            seed: self.seed,
            ..JobRunnerOptions::default()
        };
        JobRunner::new(self.api.clone(), options).run()
    }

    /// Runs one controller, forever.
    pub(super) async fn run_controller(&self, configure: fn(&mut RunSettings), metrics: Metrics) -> Infallible {
        let client = || Client::new(self.api.client(CONTROLLER), "default");
        let connections = Connections {
            writes: ApiClient::new(WriteConnections::from_clients(vec![client()])),
            events: ApiClient::new(WriteConnections::from_clients(vec![client()])),
            leases: client(),
            watches: client(),
            api_server: None,
        };
        let clock = Clock::of_simulated(SimulatedWall::starting_at(self.now()));
        let mut settings = RunSettings {
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
            membership: membership(),
        };
        configure(&mut settings);
        let controller = Controller {
            settings,
            clock,
            connections,
            metrics,
        };
        let ended = controller.run(None, Vec::new(), async || pending().await).await;
        unreachable!("the controller ended without a signal: {ended:?}")
    }
}
