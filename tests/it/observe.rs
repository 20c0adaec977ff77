//! The read-only view against the in-memory API server: lists, events, broken watches, and permissions that come and go.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use apisim::{Api, Fault, Options, Resource, Rule, WallClock};
use cronwheel::{
    observe::{
        facts::{Record, Run, RunResult},
        fleet::{Fleet, FleetConfig},
        observer::{Keeper, NoHistory, ObserveError, Observed, Observer, Settings},
        slot::{SkipCause, SlotOutcome},
        view::{CronJobName, Filter, Next},
    },
    schedule::Zone,
    shard::Scope,
};
use http::Request;
use jiff::{SignedDuration, Timestamp};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tower::Service as _;

const BEGUN: &str = "2026-11-27T10:00:30Z";

/// Longer than a watch request and the pauses after failures.
const PATIENCE: Duration = Duration::from_mins(10);

/// The client of the view, for faults.
const PAGE: &str = "page";

/// Keeps the records in memory.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<Record>>>);

impl Keeper for Kept {
    fn keep(&mut self, records: Vec<Record>, _: Timestamp) {
        self.0.lock().unwrap().extend(records);
    }

    fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}

impl Kept {
    /// The last form of the Job with this name.
    fn run(&self, job: &str) -> Option<Run> {
        let records = self.0.lock().unwrap();
        let runs = records.iter().rev().filter_map(|record| match record {
            Record::Run { run, .. } => Some(run),
            Record::Change(_) | Record::Freeze(_) | Record::Observation(_) => None,
        });
        let mut runs = runs.filter(|run| &*run.job_name == job);
        runs.next().cloned()
    }
}

struct Bench {
    api: Api,
    clock: WallClock,
    user: Client,
    observed: Observed,
}

impl Bench {
    fn new() -> Bench {
        let clock = WallClock::starting_at(BEGUN.parse().unwrap());
        let mut options = Options::default();
        options.namespaces.extend(["a", "b", "c"].map(str::to_owned));
        let api = Api::new(options, clock.clone());
        let fleet = Fleet::new(FleetConfig::of_slots(50), clock.now());
        Bench {
            user: Client::new(api.client("user"), "default"),
            observed: Observed::new(fleet),
            api,
            clock,
        }
    }

    fn observer<K: Keeper>(
        &self,
        client: Client,
        namespaces: &[&str],
        keeper: K,
    ) -> Observer<impl Fn() -> Timestamp + use<K>, K> {
        let mut scopes: Vec<Scope> = namespaces.iter().map(|name| Scope::Namespace((*name).into())).collect();
        if scopes.is_empty() {
            scopes.push(Scope::Cluster);
        }
        let clock = self.clock.clone();
        let settings = Settings {
            client,
            scopes,
            default_zone: Zone::utc(),
            now: move || clock.now(),
        };
        Observer::new(settings, self.observed.clone(), keeper)
    }

    fn page(&self) -> Client {
        Client::new(self.api.client(PAGE), "default")
    }

    /// Observes until the test ends.
    fn start(&self, namespaces: &[&str]) -> JoinHandle<Result<(), ObserveError>> {
        let observer = self.observer(self.page(), namespaces, NoHistory);
        tokio::spawn(observer.run(std::future::pending()))
    }

    fn fault(&self, fault: Fault, namespace: Option<&str>) -> apisim::RuleId {
        self.api.faults().add(Rule {
            client: Some(PAGE.to_owned()),
            namespace: namespace.map(str::to_owned),
            ..Rule::new(fault)
        })
    }

    /// Waits until the view meets a condition.
    async fn until(&self, what: &str, is_met: impl Fn(&Bench) -> bool) {
        let mut version = self.observed.version();
        let met = async {
            while !is_met(self) {
                version.changed().await;
                version.see();
            }
        };
        let met = tokio::time::timeout(PATIENCE, met).await;
        assert!(met.is_ok(), "{what}: {:?}, {:?}", self.names(), self.observed.source());
    }

    async fn until_listed(&self, n_cron_jobs: usize) {
        self.until("listed", |bench| {
            bench.observed.source().is_listed && bench.names().len() == n_cron_jobs
        })
        .await;
    }

    /// The CronJobs of the view.
    fn names(&self) -> Vec<String> {
        let filter = Filter {
            limit: 100,
            ..Filter::default()
        };
        let rows = self.observed.fleet().rows(&filter, self.clock.now());
        let names = rows.rows.into_iter().map(|row| row.cron_job);
        names.map(|name| format!("{}/{}", name.namespace, name.name)).collect()
    }

    /// The result of the Job of a CronJob at a slot.
    fn result(&self, cron_job: &str, slot: &str) -> Option<RunResult> {
        let (namespace, name) = cron_job.split_once('/').unwrap();
        let name = CronJobName {
            namespace: namespace.into(),
            name: name.into(),
        };
        let slot: Timestamp = slot.parse().unwrap();
        let detail = self.observed.fleet().detail(&name, self.clock.now())?;
        let slot = detail.slots.into_iter().find(|one| one.at == slot)?;
        if let SlotOutcome::Started { result, .. } = slot.outcome {
            Some(result)
        } else {
            None
        }
    }

    async fn send(&self, method: &str, path: &str, body: Value) -> Value {
        self.send_to(method, &format!("/apis/batch/v1/namespaces/{path}"), body)
            .await
    }

    async fn send_to(&self, method: &str, path: &str, body: Value) -> Value {
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder().method(method).uri(path);
        let request = request
            .header("content-type", content_type)
            .body(body.to_string().into_bytes());
        self.user.request(request.unwrap()).await.unwrap()
    }

    /// Creates a CronJob that is due in every minute. Returns its uid.
    async fn create_cron_job(&self, namespace: &str, name: &str) -> Value {
        let container = json!({"name": "c", "image": "i"});
        let cron_job = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [container],
            }}}}},
        });
        let created = self.send("POST", &format!("{namespace}/cronjobs"), cron_job).await;
        created["metadata"]["uid"].clone()
    }

    /// Creates the Job of a slot.
    async fn create_job(&self, namespace: &str, name: &str, owner: (&str, &Value), slot: &str) {
        let container = json!({"name": "c", "image": "i"});
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": name,
                "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "CronJob", "name": owner.0, "uid": owner.1, "controller": true}],
            },
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        });
        self.send("POST", &format!("{namespace}/jobs"), job).await;
    }

    async fn delete(&self, path: &str) {
        self.send("DELETE", path, json!({})).await;
    }
}

const SLOT: &str = "2026-11-27T10:00:00Z";

#[tokio::test(start_paused = true)]
async fn objects_of_the_lists_and_of_later_events_are_seen() {
    let bench = Bench::new();
    let hello = bench.create_cron_job("a", "hello").await;
    bench.create_job("a", "hello-1", ("hello", &hello), SLOT).await;
    let _observer = bench.start(&[]);
    bench.until_listed(1).await;
    assert_eq!(bench.result("a/hello", SLOT), Some(RunResult::Running));

    let later = bench.create_cron_job("b", "later").await;
    bench.create_job("b", "later-1", ("later", &later), SLOT).await;
    bench
        .until("a new CronJob with its Job", |bench| {
            bench.result("b/later", SLOT) == Some(RunResult::Running)
        })
        .await;
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "DeadlineExceeded",
            "lastTransitionTime": "2026-11-27T10:00:40Z"})
    };
    let conditions = json!([condition("FailureTarget"), condition("Failed")]);
    let status = json!({"status": {"startTime": "2026-11-27T10:00:31Z", "conditions": conditions}});
    bench.send("PATCH", "b/jobs/later-1/status", status).await;
    let failed = Some(RunResult::Failed("DeadlineExceeded".into()));
    bench
        .until("the end of the Job", |bench| bench.result("b/later", SLOT) == failed)
        .await;
    bench.delete("a/cronjobs/hello").await;
    bench.until("the deletion", |bench| bench.names() == ["b/later"]).await;
}

#[tokio::test(start_paused = true)]
async fn only_the_given_namespaces_are_seen() {
    let bench = Bench::new();
    for namespace in ["a", "b", "c"] {
        bench.create_cron_job(namespace, "hello").await;
    }
    let _observer = bench.start(&["a", "b"]);
    bench.until_listed(2).await;
    bench.create_cron_job("c", "other").await;
    bench.create_cron_job("b", "other").await;
    bench
        .until("the new one", |bench| {
            bench.names() == ["a/hello", "b/hello", "b/other"]
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn expired_watch_lists_again_and_forgets_what_is_gone() {
    let bench = Bench::new();
    let hello = bench.create_cron_job("a", "hello").await;
    bench.create_cron_job("a", "gone").await;
    bench.create_job("a", "hello-1", ("hello", &hello), SLOT).await;
    let _observer = bench.start(&[]);
    bench.until_listed(2).await;
    let outage = bench.fault(Fault::Outage, None);
    bench
        .until("not live", |bench| bench.observed.source().not_live.is_some())
        .await;
    assert_eq!(bench.names(), ["a/gone", "a/hello"], "what was seen stays");
    bench.delete("a/cronjobs/gone").await;
    bench.create_cron_job("a", "meanwhile").await;
    bench.api.compact();
    bench.api.faults().remove(outage);
    bench
        .until("live again", |bench| bench.observed.source().not_live.is_none())
        .await;
    bench
        .until("current", |bench| bench.names() == ["a/hello", "a/meanwhile"])
        .await;
    assert_eq!(bench.result("a/hello", SLOT), Some(RunResult::Running));
}

/// The watch continues without an event, which only the client of the watch can notice.
#[tokio::test(start_paused = true)]
async fn view_of_a_quiet_cluster_is_live_again_after_an_outage() {
    let bench = Bench::new();
    bench.create_cron_job("a", "hello").await;
    let _observer = bench.start(&[]);
    bench.until_listed(1).await;
    let begun = bench.clock.now();
    let outage = bench.fault(Fault::Outage, None);
    bench
        .until("not live", |bench| bench.observed.source().not_live.is_some())
        .await;
    let not_live = bench.observed.source().not_live.unwrap();
    assert!(
        not_live.since.duration_since(begun) <= SignedDuration::from_secs(1),
        "{not_live:?}"
    );
    assert!(!not_live.problem.is_empty());
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(bench.observed.source().not_live.unwrap().since, not_live.since);
    bench.api.faults().remove(outage);
    let removed = bench.clock.now();
    bench
        .until("live", |bench| bench.observed.source().not_live.is_none())
        .await;
    let delay = bench.clock.now().duration_since(removed);
    assert!(delay <= SignedDuration::from_secs(11), "{delay}");
}

#[tokio::test(start_paused = true)]
async fn namespace_with_revoked_permission_is_named_and_returns() {
    let bench = Bench::new();
    let first = bench.create_cron_job("a", "first").await;
    bench.create_cron_job("b", "second").await;
    let observer = bench.start(&["a", "b"]);
    bench.until_listed(2).await;
    let revoked = bench.fault(Fault::NotPermitted, Some("b"));
    // A watch that is open goes on until it ends.
    bench.until("left out", |bench| bench.names() == ["a/first"]).await;
    let source = bench.observed.source();
    assert_eq!(source.unreadable.len(), 1);
    assert_eq!(&*source.unreadable[0].namespace, "b");
    assert!(source.unreadable[0].problem.contains("forbidden"), "{source:?}");
    assert_eq!(source.not_live, None);
    bench.create_job("a", "first-1", ("first", &first), SLOT).await;
    bench
        .until("the others", |bench| bench.result("a/first", SLOT).is_some())
        .await;
    bench.create_cron_job("b", "third").await;
    bench.api.faults().remove(revoked);
    bench
        .until("back", |bench| bench.names() == ["a/first", "b/second", "b/third"])
        .await;
    assert!(bench.observed.source().unreadable.is_empty());
    assert!(!observer.is_finished());
}

#[tokio::test(start_paused = true)]
async fn refused_list_of_all_namespaces_ends_with_the_remedy() {
    let bench = Bench::new();
    bench.fault(Fault::NotPermitted, None);
    let error = bench.start(&[]).await.unwrap().unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ObserveError::Forbidden(_)), "{text}");
    assert!(
        text.contains("at the cluster scope") && text.contains("-n NAME"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn one_list_is_complete_or_an_error() {
    let bench = Bench::new();
    bench.create_cron_job("a", "hello").await;
    bench.create_cron_job("b", "hello").await;
    bench.fault(Fault::NotPermitted, Some("b"));
    bench
        .observer(bench.page(), &["a", "b"], NoHistory)
        .list()
        .await
        .unwrap();
    assert_eq!(bench.names(), ["a/hello"]);
    assert_eq!(bench.observed.source().unreadable.len(), 1);

    let error = bench
        .observer(bench.page(), &["b"], NoHistory)
        .list()
        .await
        .unwrap_err();
    assert!(matches!(&error, ObserveError::NothingReadable(_)), "{error}");
    bench.fault(Fault::Unavailable, None);
    let error = bench.observer(bench.page(), &[], NoHistory).list().await.unwrap_err();
    assert!(matches!(&error, ObserveError::Failed(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn requests_are_lists_and_watches_of_three_kinds() {
    let bench = Bench::new();
    bench.create_cron_job("a", "hello").await;
    let requests: Arc<Mutex<Vec<String>>> = Arc::default();
    let (service, recorded) = (bench.api.client(PAGE), Arc::clone(&requests));
    let client = tower::service_fn(move |request: Request<Body>| {
        let watch = if request.uri().query().unwrap_or_default().contains("watch=true") {
            " watch"
        } else {
            ""
        };
        let line = format!("{} {}{watch}", request.method(), request.uri().path());
        recorded.lock().unwrap().push(line);
        service.clone().call(request)
    });
    let observer = bench.observer(Client::new(client, "default"), &[], NoHistory);
    let _observer = tokio::spawn(observer.run(std::future::pending()));
    bench.until_listed(1).await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    let mut requests = requests.lock().unwrap().clone();
    let n_requests = requests.len();
    requests.sort();
    requests.dedup();
    let of_batch =
        ["cronjobs", "cronjobs watch", "jobs", "jobs watch"].map(|what| format!("GET /apis/batch/v1/{what}"));
    let of_core = ["namespaces", "namespaces watch"].map(|what| format!("GET /api/v1/{what}"));
    assert_eq!(
        requests,
        [&of_core[..], &of_batch].concat(),
        "no calendars, which no CronJob names"
    );
    assert!(n_requests < 30, "{n_requests} requests in half an hour");
}

/// The account may read neither namespaces nor calendars at first.
#[tokio::test(start_paused = true)]
async fn freezes_and_calendars_are_read_once_the_account_may() {
    for scopes in [&[][..], &["a"]] {
        let bench = Bench::new();
        bench.create_cron_job("a", "hello").await;
        let annotate = |name: &str, value: &str| json!({"metadata": {"annotations": {name: value}}});
        let not_on = annotate("cronwheel.dev/not-on", "holidays");
        bench.send("PATCH", "a/cronjobs/hello", not_on).await;
        let refused = [Resource::Namespace, Resource::ConfigMap].map(|resource| {
            bench.api.faults().add(Rule {
                client: Some(PAGE.to_owned()),
                resource: Some(resource),
                ..Rule::new(Fault::NotPermitted)
            })
        });
        let _observer = bench.start(scopes);
        bench.until_listed(1).await;
        bench
            .until("both notes", |bench| {
                let notes = bench.observed.source().notes.concat();
                notes.contains("on namespaces") && notes.contains("on configmaps")
            })
            .await;
        for rule in refused {
            bench.api.faults().remove(rule);
        }
        let freeze = annotate("cronwheel.dev/freeze-until", "2026-12-27T06:00:00Z");
        bench.send_to("PATCH", "/api/v1/namespaces/a", freeze).await;
        let calendar = json!({
            "metadata": {"name": "holidays", "labels": {"cronwheel.dev/calendar": "true"}},
            "data": {"days": "2026-11-27 today"},
        });
        bench.send_to("POST", "/api/v1/namespaces/a/configmaps", calendar).await;
        let detail = |bench: &Bench| {
            let name = CronJobName {
                namespace: "a".into(),
                name: "hello".into(),
            };
            bench.observed.fleet().detail(&name, bench.clock.now()).unwrap()
        };
        bench
            .until("the freeze and the calendar", |bench| {
                let is_frozen = matches!(detail(bench).row.next, Next::Frozen(_));
                let is_excluded = detail(bench).option_warnings.is_empty()
                    && detail(bench)
                        .options
                        .iter()
                        .any(|text| text.ends_with("the ConfigMap holidays"));
                is_frozen && is_excluded && bench.observed.source().notes.is_empty()
            })
            .await;
        tokio::time::sleep(Duration::from_mins(2)).await;
        let slots = detail(&bench).slots;
        let last = &slots.last().unwrap().outcome;
        assert!(
            matches!(last, SlotOutcome::Skipped(SkipCause::Excluded { .. })),
            "{last:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn history_receives_what_happened_within_seconds_and_at_the_end() {
    let bench = Bench::new();
    let hello = bench.create_cron_job("a", "hello").await;
    let kept = Kept::default();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let observer = bench.observer(bench.page(), &[], kept.clone());
    let observer = tokio::spawn(observer.run(async { drop(ended.await) }));
    bench.until_listed(1).await;
    bench.create_job("a", "hello-1", ("hello", &hello), SLOT).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(kept.run("hello-1").map(|run| run.result), Some(RunResult::Running));
    bench
        .create_job("a", "hello-2", ("hello", &hello), "2026-11-27T10:01:00Z")
        .await;
    bench
        .until("the Job", |bench| {
            bench.result("a/hello", "2026-11-27T10:01:00Z").is_some()
        })
        .await;
    end.send(()).unwrap();
    observer.await.unwrap().unwrap();
    assert!(
        kept.run("hello-2").is_some(),
        "what is not stored yet is stored at the end"
    );
}

/// The process or its machine was stopped: what happened meanwhile was not seen, and connections may be dead.
#[tokio::test(start_paused = true)]
async fn stopped_process_lists_again() {
    let bench = Bench::new();
    bench.create_cron_job("a", "hello").await;
    let ahead = Arc::new(Mutex::new(SignedDuration::ZERO));
    let (clock, offset) = (bench.clock.clone(), Arc::clone(&ahead));
    let settings = Settings {
        client: bench.page(),
        scopes: vec![Scope::Cluster],
        default_zone: Zone::utc(),
        now: move || clock.now() + *offset.lock().unwrap(),
    };
    let observer = Observer::new(settings, bench.observed.clone(), NoHistory);
    let _observer = tokio::spawn(observer.run(std::future::pending()));
    bench.until_listed(1).await;
    // The watches are silent, as after a long sleep.
    bench.fault(Fault::StallWatch, None);
    bench.create_cron_job("a", "unseen").await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(bench.names(), ["a/hello"]);
    *ahead.lock().unwrap() = SignedDuration::from_hours(8);
    bench
        .until("seen by the next list", |bench| {
            bench.names() == ["a/hello", "a/unseen"]
        })
        .await;
}
