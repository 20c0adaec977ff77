//! The API server, its clock, its nodes and its clients. Only the controller is subject to faults.

mod disruptions;
mod gate;

use std::time::Duration;

use apisim::{Api, ApiService, Fault, JobRunner, JobRunnerOptions, Options, Rule, RuleId, Verb, WallClock};
use cronwheel::controller::clock::SimulatedWall;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use self::gate::Gate;
use super::scenario::Scenario;

pub(super) const NAMESPACE: &str = "default";

/// A namespace whose users are unrelated to the CronJobs.
pub(super) const STRANGERS_NAMESPACE: &str = "strangers";

/// The label of the namespaces that the controllers manage.
pub(super) const MANAGED: (&str, &str) = ("managed", "true");

/// The client name of the controller.
const CONTROLLER: &str = "controller";

/// The client name of the controller for Leases. Its requests have no faults: [`crate::fleet`] tests what those do.
const LEASES: &str = "leases";

/// The maximum delay of a request by the controller, without faults.
pub(super) const DELAY_MAX: Duration = Duration::from_millis(40);
/// The number of changes that the API server keeps: some twenty minutes, four times the longest silence of a watch. A
/// longer log would only use memory.
const LOG_CAPACITY: usize = 5_000;

/// The failure rate of Jobs, per million.
const FAILS_PER_MILLION: u32 = 150_000;

const WRITES: [Verb; 4] = [Verb::Create, Verb::Update, Verb::Patch, Verb::Delete];

pub(super) struct Cluster {
    pub(super) api: Api,
    clock: WallClock,
    /// The wall clock of the controller's machine.
    pub(super) controller_wall: SimulatedWall,
    user: Client,
    seed: u64,
    losses: Vec<RuleId>,
    /// A rule without effect that counts the controller's writes.
    writes: RuleId,
    violations: gate::Violations,
}

impl Cluster {
    pub(super) fn new(seed: u64, scenario: &Scenario) -> Cluster {
        let clock = WallClock::starting_at(scenario.start);
        let options = Options {
            seed,
            n_front_ends: 2,
            log_capacity: LOG_CAPACITY,
            ..Options::default()
        };
        let api = Api::new(options, clock.clone());
        let add = |fault: Fault, per_million: u32, verbs: &[Verb]| {
            api.faults().add(Rule {
                client: Some(CONTROLLER.to_owned()),
                per_million,
                verbs: verbs.to_vec(),
                ..Rule::new(fault)
            })
        };
        let nothing = Fault::Delay {
            shortest: Duration::ZERO,
            longest: Duration::ZERO,
        };
        let writes = add(nothing, 1_000_000, &WRITES);
        for (shortest, longest, per_million) in delays(scenario) {
            add(Fault::Delay { shortest, longest }, per_million, &[]);
        }
        let lost = [Fault::DropBefore, Fault::DropAfter];
        Cluster {
            losses: lost.map(|fault| add(fault, scenario.lost_per_million, &[])).to_vec(),
            writes,
            user: Client::new(api.client("user"), NAMESPACE),
            controller_wall: SimulatedWall::starting_at(scenario.start + scenario.clock_offset),
            api,
            clock,
            seed,
            violations: gate::Violations::default(),
        }
    }

    /// The number of lost messages so far.
    pub(super) fn n_lost(&self) -> u64 {
        self.losses.iter().map(|loss| self.api.faults().count(*loss)).sum()
    }

    /// The number of writes by controllers so far.
    pub(super) fn n_writes(&self) -> u64 {
        self.api.faults().count(self.writes)
    }

    /// The requests that controllers sent during the wait of a `Retry-After`.
    pub(super) fn violations(&self) -> Vec<String> {
        self.violations.lock().unwrap().clone()
    }

    /// Runs Jobs, forever.
    pub(super) async fn run_jobs(&self) {
        let options = JobRunnerOptions {
            seed: self.seed,
            fails_per_million: FAILS_PER_MILLION,
            ..JobRunnerOptions::default()
        };
        JobRunner::new(self.api.clone(), options).run().await;
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the clients of a controller for writes, Events, watches and Leases. Every second controller watches the
    /// second API server.
    pub(super) fn controller_clients(&self, number: usize) -> [Client; 4] {
        let service = self.api.client(CONTROLLER);
        let gate = Gate::new(service.clone(), self.clock.clone(), self.violations.clone());
        [
            Client::new(gate.clone(), NAMESPACE),
            Client::new(gate, NAMESPACE),
            Client::new(service.at_front_end(number % 2), NAMESPACE),
            Client::new(self.api.client(LEASES), NAMESPACE),
        ]
    }

    /// A client without delay and faults.
    pub(super) fn observer(&self) -> ApiService {
        self.api.client("observer")
    }

    /// Waits until an instant.
    pub(super) async fn stop_at(&self, instant: Timestamp) {
        let remaining = instant.duration_since(self.now());
        tokio::time::sleep(remaining.try_into().unwrap_or_default()).await;
    }

    pub(super) async fn list(&self, resource: &str) -> Vec<Value> {
        let list = self.send("GET", resource, "", None).await.unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Lists the Events of the last hour, which are all that exist.
    pub(super) async fn events(&self) -> Vec<Value> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/events");
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        let list: Value = self.user.request(request).await.unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Creates the namespace of the strangers. Both namespaces have the label that the controllers select.
    pub(super) async fn create_strangers_namespace(&self) {
        let (key, value) = MANAGED;
        let labels = json!({key: value});
        let strangers = json!({"metadata": {"name": STRANGERS_NAMESPACE, "labels": labels}});
        self.send_to("POST", "/api/v1/namespaces", Some(&strangers))
            .await
            .unwrap();
        let ours = json!({"metadata": {"labels": labels}});
        let path = format!("/api/v1/namespaces/{NAMESPACE}");
        self.send_to("PATCH", &path, Some(&ours)).await.unwrap();
    }

    /// Sends a request for CronJobs or Jobs as a user.
    pub(super) async fn send(
        &self,
        method: &str,
        resource: &str,
        name: &str,
        object: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        self.send_in(NAMESPACE, method, resource, name, object).await
    }

    /// Sends such a request in another namespace.
    pub(super) async fn send_in(
        &self,
        namespace: &str,
        method: &str,
        resource: &str,
        name: &str,
        object: Option<&Value>,
    ) -> Result<Value, kube::Error> {
        let path = format!("/apis/batch/v1/namespaces/{namespace}/{resource}/{name}");
        self.send_to(method, path.trim_end_matches('/'), object).await
    }

    /// Sends a request as a user.
    pub(super) async fn send_to(&self, method: &str, path: &str, object: Option<&Value>) -> Result<Value, kube::Error> {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content_type);
        let body = object.map(|object| object.to_string().into_bytes()).unwrap_or_default();
        self.user.request(request.body(body).unwrap()).await
    }
}

/// Fault rules for delays, which add up. Delays are either uniform up to the maximum, or whole steps of it, which make
/// responses coincide.
fn delays(scenario: &Scenario) -> Vec<(Duration, Duration, u32)> {
    if scenario.is_delay_in_steps {
        let steps = |n: u32| (DELAY_MAX * n / 5, DELAY_MAX * n / 5, 500_000);
        vec![steps(1), steps(2), steps(2)]
    } else {
        vec![(Duration::ZERO, DELAY_MAX, 1_000_000)]
    }
}
