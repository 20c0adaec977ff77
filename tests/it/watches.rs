//! Watches of CronJobs and Jobs on the in-memory API server. A watch misses no change when it breaks, when versions are
//! compacted, and when it lists again, and it announces every version that it reaches.

mod current;

use std::{
    pin::pin,
    sync::{Arc, Mutex},
    time::Duration,
};

use apisim::{Api, Fault, Options, Resource, Rule, Verb, WallClock};
use cronwheel::{
    kube_api::{
        WatchItem,
        latest_value::LatestSender,
        watch::{self, current::current_versions},
    },
    shard::{Input, ResourceVersion, Scope, input::WatchStage},
};
use futures::{Stream, StreamExt};
use http::Request;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tower::Service as _;

/// Longer than one watch request.
const PATIENCE: Duration = Duration::from_mins(6);

struct Bench {
    api: Api,
    client: Client,
    relists: LatestSender<u64>,
    /// Two CronJobs, as controllers of Jobs. The API server deletes a Job whose owner does not exist.
    owners: Vec<Value>,
}

impl Bench {
    async fn new() -> Bench {
        let clock = WallClock::starting_at("2026-11-01T12:00:00Z".parse().unwrap());
        let api = Api::new(Options::default(), clock);
        let mut bench = Bench {
            client: Client::new(api.client("user"), "default"),
            api,
            relists: LatestSender::new(0),
            owners: Vec::new(),
        };
        for name in ["owner", "other"] {
            let owner = bench.create_cron_job(name).await["metadata"]["uid"].clone();
            bench.owners.push(controller("batch/v1", "CronJob", &owner));
        }
        bench
    }

    fn controller(&self) -> Client {
        Client::new(self.api.client("controller"), "default")
    }

    fn jobs(&self, client: Client) -> impl Stream<Item = WatchItem> + Send + use<> {
        watch::jobs_with_relists(client, Scope::Cluster, self.relists.subscribe())
    }

    /// A client of the controller, and the queries of its requests.
    fn recording(&self) -> (Client, Arc<Mutex<Vec<String>>>) {
        let service = self.api.client("controller");
        let queries: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = Arc::clone(&queries);
        let recording = tower::service_fn(move |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default().to_owned();
            recorded.lock().unwrap().push(query);
            service.clone().call(request)
        });
        (Client::new(recording, "default"), queries)
    }

    /// Makes the next requests for Jobs of the controller fail.
    fn fail_jobs(&self, verbs: Vec<Verb>, times_max: u32, fault: Fault) {
        self.api.faults().add(Rule {
            resource: Some(Resource::Job),
            client: Some("controller".to_owned()),
            times_max: Some(times_max),
            verbs,
            ..Rule::new(fault)
        });
    }

    async fn create_cron_job(&self, name: &str) -> Value {
        let container = json!({"name": "c", "image": "i"});
        let cron_job = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [container],
            }}}}},
        });
        self.send("cronjobs", "POST", "", Some(cron_job)).await
    }

    async fn send(&self, resource: &str, method: &str, name: &str, body: Option<Value>) -> Value {
        let path = format!("/apis/batch/v1/namespaces/default/{resource}/{name}");
        let content_type = match method {
            "PATCH" => "application/merge-patch+json",
            _ => "application/json",
        };
        let request = Request::builder()
            .method(method)
            .uri(path.trim_end_matches('/'))
            .header("content-type", content_type);
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        self.client.request(request.body(body).unwrap()).await.unwrap()
    }

    /// The resource version of a Job.
    async fn version(&self, job: &str) -> ResourceVersion {
        version_of(&self.send("jobs", "GET", job, None).await)
    }

    /// Creates a Job with this owner. Returns its version.
    async fn create(&self, name: &str, owner: Option<Value>) -> ResourceVersion {
        let container = json!({"name": "c", "image": "i"});
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "ownerReferences": owner.map(|owner| [owner])},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        });
        version_of(&self.send("jobs", "POST", "", Some(job)).await)
    }

    /// Creates a Job that a CronJob controls.
    async fn create_of_cron_job(&self, name: &str) -> ResourceVersion {
        self.create(name, Some(self.owners[0].clone())).await
    }
}

fn controller(version: &str, kind: &str, uid: &Value) -> Value {
    json!({"apiVersion": version, "kind": kind, "name": "owner", "uid": uid, "controller": true})
}

fn version_of(object: &Value) -> ResourceVersion {
    ResourceVersion::read(object["metadata"]["resourceVersion"].as_str().unwrap())
}

async fn next(items: &mut (impl Stream<Item = WatchItem> + Unpin)) -> WatchItem {
    let item = tokio::time::timeout(PATIENCE, items.next()).await;
    item.expect("an item within the limit").expect("an endless watch")
}

/// The step of the list or watch, if the item is one.
fn stage(item: &WatchItem) -> Option<WatchStage> {
    if let WatchItem::Input(Input::WatchUpdated(update)) = item {
        Some(update.stage)
    } else {
        None
    }
}

/// The name of the Job that the item applies, if it does.
fn applied(item: &WatchItem) -> Option<String> {
    if let WatchItem::Input(Input::JobApplied(job) | Input::JobModified(job)) = item {
        Some(job.name.to_string())
    } else {
        None
    }
}

/// Returns the names of the applied Jobs until the watch is open.
async fn until_watching(items: &mut (impl Stream<Item = WatchItem> + Unpin)) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let item = next(items).await;
        if matches!(stage(&item), Some(WatchStage::Watching(_))) {
            return seen;
        }
        seen.extend(applied(&item));
    }
}

/// Returns the name of the next applied Job.
async fn next_job(items: &mut (impl Stream<Item = WatchItem> + Unpin)) -> String {
    loop {
        if let Some(name) = applied(&next(items).await) {
            return name;
        }
    }
}

/// The network may lose the packets of a connection without an error.
#[tokio::test(start_paused = true)]
async fn fence_reopens_a_silent_watch() {
    let bench = Bench::new().await;
    let n_fences = LatestSender::new(0);
    let client = watch::ended_by_fences(bench.controller(), n_fences.subscribe());
    let mut items = pin!(bench.jobs(client));
    until_watching(&mut items).await;
    bench.api.faults().add(Rule {
        client: Some("controller".to_owned()),
        ..Rule::new(Fault::StallWatch)
    });
    assert!(tokio::time::timeout(PATIENCE, items.next()).await.is_err());
    n_fences.set(1);
    assert_eq!(stage(&next(&mut items).await), Some(WatchStage::Interrupted));
    until_watching(&mut items).await;
}

#[tokio::test(start_paused = true)]
async fn broken_or_expired_watch_resumes_without_a_gap() {
    for fault in [
        Fault::CloseWatch,
        Fault::Expired,
        Fault::InternalError,
        Fault::Throttle { retry_after_seconds: 1 },
        Fault::DropBefore,
    ] {
        let bench = Bench::new().await;
        let mut items = pin!(bench.jobs(bench.controller()));
        until_watching(&mut items).await;
        bench.fail_jobs(vec![], 2, fault.clone());
        bench.relists.set(1);
        bench.create_of_cron_job("meanwhile").await;
        bench.create_of_cron_job("too").await;
        let mut seen = until_watching(&mut items).await;
        while seen.len() < 2 {
            let next = next_job(&mut items).await;
            if !seen.contains(&next) {
                seen.push(next);
            }
        }
        seen.sort();
        assert_eq!(seen, ["meanwhile", "too"], "{fault:?}");
    }
}

/// A takeover that waits too long for a watch lets it list again.
#[tokio::test(start_paused = true)]
async fn watch_that_is_told_to_lists_again() {
    let bench = Bench::new().await;
    let (client, queries) = bench.recording();
    let mut items = pin!(bench.jobs(client));
    until_watching(&mut items).await;
    bench.fail_jobs(vec![], 1, Fault::StallWatch);
    let version = bench.create_of_cron_job("unseen").await;
    assert!(
        tokio::time::timeout(Duration::from_secs(30), items.next())
            .await
            .is_err()
    );
    bench.relists.set(1);
    assert_eq!(stage(&next(&mut items).await), Some(WatchStage::ListBegun));
    assert_eq!(applied(&next(&mut items).await).as_deref(), Some("unseen"));
    assert_eq!(stage(&next(&mut items).await), Some(WatchStage::ListDone));
    assert_eq!(stage(&next(&mut items).await), Some(WatchStage::Watching(version)));
    let queries = queries.lock().unwrap();
    let n_lists = queries.iter().filter(|query| !query.contains("watch=true")).count();
    assert_eq!(n_lists, 2, "{queries:?}");
}

/// The order may arrive during the list that another order caused.
#[tokio::test(start_paused = true)]
async fn order_to_list_again_during_a_list_is_not_lost() {
    let bench = Bench::new().await;
    let mut items = pin!(bench.jobs(bench.controller()));
    until_watching(&mut items).await;
    bench.relists.set(1);
    assert_eq!(stage(&next(&mut items).await), Some(WatchStage::ListBegun));
    bench.relists.set(2);
    until_watching(&mut items).await;
    assert_eq!(stage(&next(&mut items).await), Some(WatchStage::ListBegun));
    until_watching(&mut items).await;
}

/// A Job of no CronJob takes no memory. Its version proves how far the watch has come.
#[tokio::test(start_paused = true)]
async fn job_of_no_cron_job_yields_only_its_version() {
    let bench = Bench::new().await;
    let foreign = || Some(controller("argoproj.io/v1alpha1", "Workflow", &json!("uid-w")));
    bench.create("listed", None).await;
    bench.create("listed-of-another", foreign()).await;
    let mut items = pin!(bench.jobs(bench.controller()));
    assert_eq!(until_watching(&mut items).await, Vec::<String>::new());
    for (name, owner) in [("plain", None), ("of-another", foreign())] {
        let version = bench.create(name, owner).await;
        assert_eq!(stage(&next(&mut items).await), Some(WatchStage::Reached(version)));
        bench.send("jobs", "DELETE", name, None).await;
        let deleted_at = current_versions(&bench.controller(), &Scope::Cluster)
            .await
            .unwrap()
            .jobs;
        assert!(deleted_at > version);
        // The deletion may begin with a change.
        loop {
            let item = next(&mut items).await;
            match stage(&item) {
                Some(WatchStage::Reached(version)) if version == deleted_at => break,
                Some(WatchStage::Reached(_)) => {}
                _ => assert!(matches!(item, WatchItem::Input(Input::JobReleased(_))), "{item:?}"),
            }
        }
    }
}

/// The former controller of a changed Job is unknown to the watch.
#[tokio::test(start_paused = true)]
async fn changed_controller_of_a_job_is_announced() {
    let bench = Bench::new().await;
    bench.create_of_cron_job("job").await;
    let mut items = pin!(bench.jobs(bench.controller()));
    assert_eq!(until_watching(&mut items).await, ["job"]);
    let other = &bench.owners[1];
    let change = json!({"metadata": {"ownerReferences": [other]}});
    bench.send("jobs", "PATCH", "job", Some(change)).await;
    let item = next(&mut items).await;
    let WatchItem::Input(Input::JobModified(job)) = &item else {
        panic!("{item:?}");
    };
    assert_eq!(
        job.controller.as_ref().unwrap().to_string(),
        other["uid"].as_str().unwrap()
    );
    let none = json!({"metadata": {"ownerReferences": null}});
    bench.send("jobs", "PATCH", "job", Some(none)).await;
    let item = next(&mut items).await;
    assert!(matches!(item, WatchItem::Input(Input::JobReleased(_))), "{item:?}");
    let version = bench.version("job").await;
    assert_eq!(stage(&next(&mut items).await), Some(WatchStage::Reached(version)));
}
