//! The fleet: the API server with its CronJobs, the Pods, and the terms of the oracle.

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
    books::Books,
    ledger,
    load::Plan,
    oracle::{self, AFTERMATH, Terms},
    pod::{N_FRONT_ENDS, NAMESPACE, Pod},
};
use crate::random::Random;

/// The start time of every fleet: half a minute before 12:01.
const BEGINNING: &str = "2026-05-05T12:00:30Z";

/// The maximum delay of a request when nothing is wrong.
pub(super) const DELAY_MAX: Duration = Duration::from_millis(20);

/// The interval of the check for shards with two leaders.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

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
    books: Arc<Mutex<Books>>,
    n_processes: u64,
    terms: Terms,
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
            books: Arc::new(Mutex::new(Books::new(shard_count))),
            n_processes: 0,
            terms: Terms {
                late: Vec::new(),
                skipped: Vec::new(),
                troubles: BTreeSet::new(),
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
        let created = self.ask("POST", &path, &plan.object()).await.unwrap();
        let (uid, now) = (created["metadata"]["uid"].as_str().unwrap(), self.now());
        self.books().enter(plan, uid, now);
    }

    /// Sends a request from a client that meets no faults.
    pub(super) async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
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

    /// Evaluates the fence policy of `deploy/manifests` for every create from now on.
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

    pub(super) fn record_ledger(&self) -> impl Future<Output = Infallible> + use<> {
        ledger::keep(
            self.api.clone(),
            self.clock.clone(),
            Arc::clone(&self.books),
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

    /// Checks continuously whether two processes would act for one shard.
    pub(super) fn watch_leaders(&self) -> impl Future<Output = Infallible> + use<> {
        let (pods, books, clock) = (Rc::clone(&self.pods), Arc::clone(&self.books), self.clock.clone());
        let (is_shown, mut shown) = (std::env::var("CRONWHEEL_FLEET_SHOW").is_ok(), Vec::new());
        async move {
            loop {
                sleep(LOOK_INTERVAL).await;
                let mut leaders: BTreeMap<u16, String> = BTreeMap::new();
                let mut shares = Vec::new();
                for pod in pods.borrow().values() {
                    let Some(process) = &pod.process else { continue };
                    let led = process.acts_on();
                    shares.push((pod.name.clone(), led.len()));
                    for shard in led {
                        if let Some(other) = leaders.insert(shard, pod.name.clone()) {
                            let twice = format!("shard {shard}: led by {other} and {} at {}", pod.name, clock.now());
                            books.lock().unwrap().led_twice.push(twice);
                        }
                    }
                }
                if is_shown && shares != shown {
                    eprintln!("{} {shares:?}", clock.now());
                    shown = shares;
                }
            }
        }
    }

    pub(super) fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
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
        self.terms.late.push((from, until));
    }

    /// Allows runs that are due in this window, and due again in it, to have no Job.
    pub(super) fn allow_skipped(&mut self, from: Timestamp, until: Timestamp) {
        self.terms.skipped.push((from, until));
        self.terms.late.push((from, until));
    }

    /// Records that a fault has ended. It began at `began`; `went_on` is whether it may have lasted until now.
    pub(super) fn trouble_ended(&mut self, began: Timestamp, went_on: bool) {
        let ended = self.now();
        self.allow_skipped(began - SignedDuration::from_secs(1), ended + AFTERMATH);
        if went_on {
            self.terms.troubles.insert((began, ended));
        }
    }

    /// Ends the scenario. Instants from now on are not judged.
    pub(super) async fn end(&mut self) {
        sleep(Duration::from_secs(2)).await;
        self.terms.end = self.now();
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
        let books = self.books();
        let problems = oracle::problems(&books, &self.terms);
        if !problems.is_empty() {
            let shown = problems.len().min(40);
            panic!(
                "seed {}: {} problems\n{}",
                self.seed,
                problems.len(),
                problems[..shown].join("\n")
            );
        }
        assert!(!books.jobs.is_empty(), "nothing ran");
        let moves: usize = books.moves_since(self.start).values().sum();
        eprintln!(
            "seed {}: {} runs, {moves} moves, {} Lease writes, {} creates met a Job, {} writes came after the Lease had gone",
            self.seed,
            books.jobs.len(),
            books.n_lease_writes,
            books.n_exists,
            oracle::writes_of_former_holders(&books).len(),
        );
    }
}
