//! The fleet: the API server with its CronJobs, the Pods, and the allowances for the oracle.

mod pods;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    rc::Rc,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use apisim::{Api, Fault, JobRunner, JobRunnerOptions, Options, Resource, Rule, Verb, WallClock};
use cronwheel::{kube_api::objects::encode::CREATE_BEFORE_ANNOTATION, shard::ShardCount};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::Value;
use tokio::time::sleep;

use super::{
    load::Plan,
    oracle::{self, AFTERMATH, Allowances},
    pod::{N_FRONT_ENDS, NAMESPACE, Pod},
    recorder,
    records::Records,
};
use crate::random::Random;

/// The start time of every fleet.
const BEGINNING: &str = "2026-05-05T12:00:30Z";

/// The maximum delay of a request without faults.
pub(super) const DELAY_MAX: Duration = Duration::from_millis(20);

/// The interval of the check for shards with two leaders.
const LEADER_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The size of a fleet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) n_cron_jobs: usize,
    pub(super) n_shards: u16,
}

impl Default for Size {
    fn default() -> Size {
        Size {
            n_cron_jobs: 60,
            n_shards: 32,
        }
    }
}

type Pods = Rc<RefCell<BTreeMap<String, Pod>>>;

pub(super) struct Fleet {
    pub(super) seed: u64,
    pub(super) random: Random,
    pub(super) api: Api,
    pub(super) clock: WallClock,
    pub(super) start: Timestamp,
    pub(super) user: Client,
    pub(super) shard_count: ShardCount,
    pods: Pods,
    records: Arc<Mutex<Records>>,
    n_processes: u64,
    allowances: Allowances,
}

impl Fleet {
    pub(super) async fn new(seed: u64, size: Size) -> Fleet {
        let start: Timestamp = BEGINNING.parse().unwrap();
        let clock = WallClock::starting_at(start);
        let options = Options {
            seed,
            n_front_ends: N_FRONT_ENDS,
            ..Options::default()
        };
        let api = Api::new(options, clock.clone());
        api.faults().add(Rule::new(Fault::Delay {
            shortest: Duration::ZERO,
            longest: DELAY_MAX,
        }));
        let shard_count = ShardCount::new(size.n_shards.into()).unwrap();
        let mut fleet = Fleet {
            seed,
            random: Random::new(seed),
            user: Client::new(api.client("user"), NAMESPACE),
            api,
            clock,
            start,
            shard_count,
            pods: Pods::default(),
            records: Arc::new(Mutex::new(Records::new(shard_count))),
            n_processes: 0,
            allowances: Allowances {
                late: Vec::new(),
                skipped: Vec::new(),
                disruptions: BTreeSet::new(),
                judged_from: start,
                end: start,
            },
        };
        let plans = Plan::draw_all(&mut fleet.random, size.n_cron_jobs);
        join_all(plans.into_iter().map(|plan| fleet.create_cron_job(plan))).await;
        fleet
    }

    pub(super) async fn create_cron_job(&self, plan: Plan) {
        let path = format!("/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs");
        let created = self.request("POST", &path, &plan.object()).await.unwrap();
        let (uid, now) = (created["metadata"]["uid"].as_str().unwrap(), self.now());
        self.records().add_cron_job(plan, uid, now);
    }

    /// Sends a request as a user, without faults.
    pub(super) async fn request(&self, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
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
        self.user.request(request.body(body).unwrap()).await
    }

    /// Adds the fence policy of `deploy/manifests`. The API server evaluates it for every create from now on.
    pub(super) fn add_fence_policy(&self) {
        let fault = Fault::DenyLate {
            policy: "cronwheel-fence".to_owned(),
            annotation: CREATE_BEFORE_ANNOTATION.to_owned(),
        };
        self.api.faults().add(Rule {
            resource: Some(Resource::Job),
            verbs: vec![Verb::Create],
            ..Rule::new(fault)
        });
    }

    pub(super) fn run_recorder(&self) -> impl Future<Output = Infallible> + use<> {
        recorder::run(
            self.api.clone(),
            self.clock.clone(),
            Arc::clone(&self.records),
            self.api.version(),
        )
    }

    pub(super) fn run_jobs(&self) -> impl Future<Output = ()> + use<> {
        let options = JobRunnerOptions {
            seed: self.seed,
            ..JobRunnerOptions::default()
        };
        JobRunner::new(self.api.clone(), options).run()
    }

    /// Checks continuously that no two processes act for one shard.
    pub(super) fn check_leaders(&self) -> impl Future<Output = Infallible> + use<> {
        let (pods, records, clock) = (Rc::clone(&self.pods), Arc::clone(&self.records), self.clock.clone());
        let (is_verbose, mut printed) = (std::env::var("CRONWHEEL_FLEET_SHOW").is_ok(), Vec::new());
        async move {
            loop {
                sleep(LEADER_CHECK_INTERVAL).await;
                let mut leaders: BTreeMap<u16, String> = BTreeMap::new();
                let mut shares = Vec::new();
                for pod in pods.borrow().values() {
                    let Some(process) = &pod.process else { continue };
                    let led = process.acts_on();
                    shares.push((pod.name.clone(), led.len()));
                    for shard in led {
                        if let Some(other) = leaders.insert(shard, pod.name.clone()) {
                            let problem = format!("shard {shard}: led by {other} and {} at {}", pod.name, clock.now());
                            records.lock().unwrap().led_twice.push(problem);
                        }
                    }
                }
                if is_verbose && shares != printed {
                    eprintln!("{} {shares:?}", clock.now());
                    printed = shares;
                }
            }
        }
    }

    pub(super) fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap()
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the instant this many minutes and seconds after 12:00.
    pub(super) fn instant(&self, minutes: i64, seconds: f64) -> Timestamp {
        let since = SignedDuration::from_mins(minutes) + SignedDuration::from_secs_f64(seconds);
        self.start - SignedDuration::from_secs(30) + since
    }

    /// Waits until an instant.
    pub(super) async fn until(&self, instant: Timestamp) {
        let remaining = instant.duration_since(self.now());
        sleep(remaining.try_into().unwrap_or_default()).await;
    }

    /// Waits until this many minutes and seconds after 12:00.
    pub(super) async fn at(&self, minutes: i64, seconds: f64) {
        self.until(self.instant(minutes, seconds)).await;
    }

    /// Allows runs that are due in this window to be as late as its end.
    pub(super) fn allow_late(&mut self, from: Timestamp, seconds: f64) {
        let until = from + SignedDuration::from_secs_f64(seconds);
        self.allowances.late.push((from, until));
    }

    /// Allows runs that are due in this window, and due again in it, to have no Job.
    pub(super) fn allow_skipped(&mut self, from: Timestamp, until: Timestamp) {
        self.allowances.skipped.push((from, until));
        self.allowances.late.push((from, until));
    }

    /// Records the end of a disruption that began at `began`. `went_on` is whether it may have lasted until now.
    pub(super) fn disruption_ended(&mut self, began: Timestamp, went_on: bool) {
        let ended = self.now();
        self.allow_skipped(began - SignedDuration::from_secs(1), ended + AFTERMATH);
        if went_on {
            self.allowances.disruptions.insert((began, ended));
        }
    }

    /// Ends the scenario. Instants from now on are not judged.
    pub(super) async fn end(&mut self) {
        sleep(Duration::from_secs(2)).await;
        self.allowances.end = self.now();
        let names: Vec<String> = self.pods.borrow().keys().cloned().collect();
        for name in names {
            let process = self.pods.borrow_mut().get_mut(&name).unwrap().process.take();
            if let Some(process) = process {
                assert!(!process.has_ended(), "{name} has ended: {:?}", process.ended().await);
                process.kill().await;
            }
        }
    }

    /// Panics if the oracle finds a problem.
    pub(super) fn judge(&self) {
        let records = self.records();
        let problems = oracle::problems(&records, &self.allowances);
        if !problems.is_empty() {
            let n_printed = problems.len().min(40);
            panic!(
                "seed {}: {} problems\n{}",
                self.seed,
                problems.len(),
                problems[..n_printed].join("\n")
            );
        }
        assert!(!records.jobs.is_empty(), "no Job was created");
        let moves: usize = records.moves_since(self.start).values().sum();
        eprintln!(
            "seed {}: {} runs, {moves} moves, {} Lease writes, {} creates met a Job, {} writes came after the Lease had gone",
            self.seed,
            records.jobs.len(),
            records.n_lease_writes,
            records.n_exists,
            oracle::writes_of_former_holders(&records).len(),
        );
    }
}
