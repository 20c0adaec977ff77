//! The API server, the namespaces, the installations, and what is observed of them.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

use apisim::{Api, Fault, JobRunner, JobRunnerOptions, Options, Rule, WallClock};
use cronwheel::{
    controller::{
        Connections, Controller,
        clock::{Clock, SimulatedWall},
        event_task::EventBudget,
        settings::{CronJobMetrics, LogRuns, Membership, RunSettings},
        shutdown::phases,
    },
    coordination::{InstallationName, PROTOCOL_VERSION, Timing},
    kube_api::{ApiClient, WriteConnections},
    schedule::Zone,
    shard::{Scope, ShardCount, TemplateMemory},
    telemetry::{admin::Admin, metrics::Metrics},
};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{
    task::{JoinHandle, LocalSet},
    time::sleep,
};
use tower::ServiceExt as _;

/// The values of the label by which each installation selects, and the names of the installations.
pub(super) const TEAMS: [&str; 2] = ["red", "blue"];

/// The namespaces with CronJobs.
pub(super) const NAMESPACES: [&str; 3] = ["shop", "bank", "press"];

/// The CronJobs of each namespace, of which each has a Job for every minute.
pub(super) const CRON_JOBS: [&str; 3] = ["allow", "replace", "short"];

/// Runs a test in virtual time.
pub(super) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test);
}

/// Lets virtual time pass.
pub(super) async fn pass(duration: Duration) {
    sleep(duration).await;
}

/// A write of an installation.
#[derive(Clone, Debug)]
pub(super) struct Write {
    /// The instant at which it was sent.
    pub(super) at: Timestamp,
    pub(super) team: &'static str,
    pub(super) resource: String,
    pub(super) namespace: String,
    #[expect(dead_code, reason = "for the message of a failed test")]
    method: Method,
}

/// The uids of each Job that was ever seen, by namespace and name.
pub(super) type Seen = BTreeMap<(String, String), BTreeSet<String>>;

/// A change of a label: the instants before and after it, the namespace, and the new owner.
type Move = (Timestamp, Timestamp, &'static str, Option<&'static str>);

#[derive(Clone)]
pub(super) struct Cluster(Rc<Shared>);

struct Shared {
    api: Api,
    clock: WallClock,
    user: Client,
    writes: Arc<Mutex<Vec<Write>>>,
    moves: Mutex<Vec<Move>>,
}

/// A running replica.
pub(super) struct Replica {
    metrics: Metrics,
    clock: Clock,
    run: JoinHandle<()>,
}

/// Collects all Jobs.
pub(super) struct Watcher {
    seen: Rc<Mutex<Seen>>,
    _run: JoinHandle<()>,
}

impl Cluster {
    pub(super) fn new(seed: u64) -> Cluster {
        let clock = WallClock::starting_at("2026-05-05T12:00:30Z".parse().unwrap());
        let namespaces = NAMESPACES.into_iter().chain(["default"]);
        let options = Options {
            seed,
            namespaces: namespaces.map(ToOwned::to_owned).collect(),
            ..Options::default()
        };
        let api = Api::new(options, clock.clone());
        let delay = Duration::from_millis(5);
        api.faults().add(Rule::new(Fault::Delay {
            shortest: delay,
            longest: delay,
        }));
        let options = JobRunnerOptions {
            seed,
            run_for: Duration::from_secs(2)..Duration::from_secs(100),
            ..JobRunnerOptions::default()
        };
        tokio::task::spawn_local(JobRunner::new(api.clone(), options).run());
        Cluster(Rc::new(Shared {
            user: Client::new(api.client("user"), "default"),
            api,
            clock,
            writes: Arc::default(),
            moves: Mutex::default(),
        }))
    }

    pub(super) fn api(&self) -> &Api {
        &self.0.api
    }

    pub(super) fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    async fn request(&self, method: &str, path: &str, body: &Value) -> Value {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path);
        let request = request.header("content-type", content_type);
        let body = if body.is_null() {
            Vec::new()
        } else {
            body.to_string().into_bytes()
        };
        let answer = self.0.user.request(request.body(body).unwrap()).await;
        answer.unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// Creates the CronJobs.
    pub(super) async fn fill(&self) {
        let template = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}});
        for namespace in NAMESPACES {
            for (name, spec) in [
                ("allow", json!({})),
                ("replace", json!({"concurrencyPolicy": "Replace"})),
                (
                    "short",
                    json!({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}),
                ),
                ("forbid", json!({"concurrencyPolicy": "Forbid"})),
            ] {
                let mut spec = spec;
                spec["schedule"] = "* * * * *".into();
                spec["jobTemplate"] = json!({"spec": {"template": template}});
                let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs");
                let cron_job = json!({"metadata": {"name": name}, "spec": spec});
                self.request("POST", &path, &cron_job).await;
            }
        }
    }

    /// Labels a namespace, so that it belongs to one installation or to none.
    pub(super) async fn label(&self, namespace: &'static str, team: Option<&'static str>) {
        let before = self.now();
        let path = format!("/api/v1/namespaces/{namespace}");
        let labels = json!({"metadata": {"labels": {"team": team}}});
        self.request("PATCH", &path, &labels).await;
        let moved = (before, self.now(), namespace, team);
        self.0.moves.lock().unwrap().push(moved);
    }

    pub(super) fn moves(&self) -> Vec<Move> {
        self.0.moves.lock().unwrap().clone()
    }

    /// The times from which, and until which, a namespace belonged to an owner.
    fn periods(&self, namespace: &str) -> Vec<(Timestamp, Timestamp, Option<&'static str>)> {
        let moves: Vec<Move> = self
            .moves()
            .into_iter()
            .filter(|(.., moved, _)| *moved == namespace)
            .collect();
        let ends = moves
            .iter()
            .skip(1)
            .map(|(_, after, ..)| *after)
            .chain([Timestamp::MAX]);
        let periods = moves.iter().zip(ends);
        periods.map(|((before, .., team), end)| (*before, end, *team)).collect()
    }

    /// Whether a namespace belonged to an installation at an instant, or until shortly before.
    pub(super) fn was_of(&self, namespace: &str, team: &str, at: Timestamp, patience: SignedDuration) -> bool {
        let mut periods = self.periods(namespace).into_iter();
        periods.any(|(from, until, owner)| {
            owner == Some(team) && from <= at && (until == Timestamp::MAX || at <= until + patience)
        })
    }

    /// The installation to which a namespace belonged from some time before an instant until some time after it.
    pub(super) fn owner_around(&self, namespace: &str, at: Timestamp, margin: SignedDuration) -> Option<&'static str> {
        let mut periods = self.periods(namespace).into_iter();
        let (.., owner) = periods.find(|(from, until, _)| *from + margin <= at && at + margin <= *until)?;
        owner
    }

    /// The writes in namespaces with CronJobs that were sent from this instant on.
    pub(super) fn writes(&self, from: Timestamp) -> Vec<Write> {
        let writes = self.0.writes.lock().unwrap();
        writes.iter().filter(|write| write.at >= from).cloned().collect()
    }

    /// Collects all Jobs every second. Each exists for longer.
    pub(super) fn collect_jobs(&self) -> Watcher {
        let seen = Rc::new(Mutex::new(Seen::new()));
        let (cluster, all) = (self.clone(), Rc::clone(&seen));
        let run = tokio::task::spawn_local(async move {
            loop {
                let jobs = cluster.request("GET", "/apis/batch/v1/jobs", &Value::Null).await;
                for job in jobs["items"].as_array().unwrap() {
                    let text = |member: &str| job["metadata"][member].as_str().unwrap().to_owned();
                    let key = (text("namespace"), text("name"));
                    all.lock().unwrap().entry(key).or_default().insert(text("uid"));
                }
                sleep(Duration::from_secs(1)).await;
            }
        });
        Watcher { seen, _run: run }
    }

    /// Starts a replica of the installation of a team.
    pub(super) fn start(&self, team: &'static str, number: usize) -> Replica {
        let metrics = Metrics::register();
        let clock = Clock::of_simulated(SimulatedWall::starting_at(self.now()));
        let client = || self.recorded(team);
        let controller = Controller {
            settings: settings(team, number),
            clock: clock.clone(),
            connections: Connections {
                writes: ApiClient::new(WriteConnections::from_clients(vec![client()])),
                events: ApiClient::new(WriteConnections::from_clients(vec![client()])),
                leases: client(),
                watches: client(),
                api_server: None,
            },
            metrics: metrics.clone(),
        };
        let run = tokio::task::spawn_local(async move {
            let ended = controller.run(None, Vec::new(), async || pending().await).await;
            panic!("the controller ended without a signal: {ended:?}");
        });
        Replica { metrics, clock, run }
    }

    /// A client that records the writes in namespaces with CronJobs.
    fn recorded(&self, team: &'static str) -> Client {
        let client = Client::new(self.0.api.client(team), "default");
        let (writes, clock) = (Arc::clone(&self.0.writes), self.0.clock.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let path: Vec<&str> = request.uri().path().split('/').collect();
            if let Some(position) = path.iter().position(|part| *part == "namespaces")
                && let [namespace, resource, ..] = path[position + 1..]
                && NAMESPACES.contains(&namespace)
                && request.method() != Method::GET
            {
                writes.lock().unwrap().push(Write {
                    at: clock.now(),
                    team,
                    resource: resource.to_owned(),
                    namespace: namespace.to_owned(),
                    method: request.method().clone(),
                });
            }
            let client = client.clone();
            async move { client.send(request).await }
        });
        Client::new(service, "default")
    }
}

impl Watcher {
    pub(super) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }
}

impl Replica {
    pub(super) fn is_running(&self) -> bool {
        !self.run.is_finished()
    }

    pub(super) fn metrics(&self) -> String {
        self.metrics.render(self.clock.now()).unwrap()
    }

    /// The other controllers that it reports.
    pub(super) fn other_controllers(&self) -> Vec<String> {
        let active = self.metrics.other_controllers.active(self.clock.now());
        active.iter().map(ToString::to_string).collect()
    }

    pub(super) async fn readyz(&self) -> (u16, String) {
        let admin = Admin {
            metrics: self.metrics.clone(),
            clock: self.clock.clone(),
            phase: phases().subscribe(),
        };
        let request = Request::get("/readyz").body(axum::body::Body::empty()).unwrap();
        let answer = admin.router().oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }
}

fn settings(team: &'static str, number: usize) -> RunSettings {
    let membership = Membership {
        installation: InstallationName::new(team).unwrap(),
        namespace: "default".into(),
        pod_name: format!("{team}-{number}").into(),
        pod_uid: format!("uid-{team}-{number}").into(),
        owner: None,
        revision: "1".into(),
        shard_count: ShardCount::new(16).unwrap(),
        protocol: PROTOCOL_VERSION,
        timing: Timing::DEFAULT,
        incarnations: Arc::new(|| 1),
    };
    RunSettings {
        scopes: vec![Scope::Cluster],
        namespace_selector: Some(format!("team={team}").parse().unwrap()),
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
    }
}
