//! Watches of selected shards on the in-memory API server. A watch misses no change when a shard is added, when a watch
//! breaks, and when versions are compacted.

mod cron_jobs;
mod unchanged;

use std::{
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use apisim::{Api, Fault, Options, Resource, Rule, WallClock};
use cronwheel::{
    kube_api::{
        WatchItem,
        ordered_watch::OrderedSender,
        watch::{self, WatchedShards, cron_job_cache::CACHE_BYTES_MAX, delivered_versions::DeliveredVersions},
    },
    shard::{Input, ResourceVersion, Scope, ShardCount, ShardId, ShardSet, Uid, input::WatchStage},
};
use futures::{Stream, StreamExt};
use http::Request;
use http_body_util::BodyExt as _;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tower::Service as _;

/// Longer than one watch request.
const PATIENCE: Duration = Duration::from_mins(6);

struct Bench {
    api: Api,
    client: Client,
    count: ShardCount,
    wanted: OrderedSender<ShardSet>,
    delivered: DeliveredVersions,
}

fn shards(numbers: &[u16]) -> ShardSet {
    numbers.iter().copied().map(ShardId).collect()
}

impl Bench {
    fn new() -> Bench {
        Bench::with(Options::default())
    }

    fn with(options: Options) -> Bench {
        let clock = WallClock::starting_at("2026-11-01T12:00:00Z".parse().unwrap());
        let api = Api::new(options, clock);
        let count = ShardCount::new(16).unwrap();
        Bench {
            client: Client::new(api.client("user"), "default"),
            api,
            count,
            wanted: OrderedSender::new(ShardSet::EMPTY),
            delivered: DeliveredVersions::new(Scope::Cluster, count, CACHE_BYTES_MAX),
        }
    }

    fn watch(&self) -> impl Stream<Item = WatchItem> + Send + use<> {
        let client = Client::new(self.api.client("controller"), "default");
        self.jobs(client)
    }

    fn jobs(&self, client: Client) -> impl Stream<Item = WatchItem> + Send + use<> {
        watch::jobs(client, Scope::Cluster, Some(self.shards(&self.delivered)))
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

    fn shards(&self, delivered: &DeliveredVersions) -> WatchedShards {
        WatchedShards {
            wanted: self.wanted.subscribe(),
            delivered: delivered.clone(),
        }
    }

    async fn send(&self, method: &str, name: &str, body: Option<Value>) {
        self.send_to("jobs", method, name, body).await;
    }

    async fn create_cron_job(&self, name: &str) -> Uid {
        let container = json!({"name": "c", "image": "i"});
        let cron_job = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
            "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [container],
            }}}}},
        });
        let made = self.send_to("cronjobs", "POST", "", Some(cron_job)).await;
        Uid::new(made["metadata"]["uid"].as_str().unwrap())
    }

    async fn send_to(&self, resource: &str, method: &str, name: &str, body: Option<Value>) -> Value {
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
        let job = self.send_to("jobs", "GET", job, None).await;
        ResourceVersion::read(job["metadata"]["resourceVersion"].as_str().unwrap())
    }

    /// Creates a Job with the label of a shard, or without a label.
    async fn create(&self, name: &str, shard: Option<u16>) {
        let labels = shard.map(|shard| json!({"cronwheel.dev/shard-16": shard.to_string()}));
        let container = json!({"name": "c", "image": "i"});
        let job = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": name, "labels": labels},
            "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
        });
        self.send("POST", "", Some(job)).await;
    }
}

/// Returns the names of the applied Jobs until the watch is open for these shards.
async fn until_watching(items: &mut (impl Stream<Item = WatchItem> + Unpin), wanted: &ShardSet) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let item = tokio::time::timeout(PATIENCE, items.next())
            .await
            .expect("an item within the limit");
        match item.expect("an endless watch") {
            WatchItem::Input(Input::WatchUpdated(update)) => {
                if matches!(update.stage, WatchStage::Watching(_)) && update.shards == *wanted {
                    return seen;
                }
            }
            WatchItem::Input(Input::JobApplied(job)) => seen.push(job.name.to_string()),
            WatchItem::Input(_)
            | WatchItem::Undecodable { .. }
            | WatchItem::Listed(_)
            | WatchItem::PassedOver
            | WatchItem::CacheFull
            | WatchItem::HistoryWentBack { .. }
            | WatchItem::Error { .. } => {}
        }
    }
}

/// Returns the name of the next applied Job, or "gone" for a deselected Job.
async fn next_job(items: &mut (impl Stream<Item = WatchItem> + Unpin)) -> String {
    loop {
        let item = tokio::time::timeout(PATIENCE, items.next())
            .await
            .expect("an item within the limit");
        match item.expect("an endless watch") {
            WatchItem::Input(Input::JobApplied(job)) => return job.name.to_string(),
            WatchItem::Input(Input::JobUnselected(_)) => return "gone".to_owned(),
            WatchItem::Input(_)
            | WatchItem::Undecodable { .. }
            | WatchItem::Listed(_)
            | WatchItem::PassedOver
            | WatchItem::CacheFull
            | WatchItem::HistoryWentBack { .. }
            | WatchItem::Error { .. } => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn watch_yields_only_jobs_of_wanted_shards() {
    let bench = Bench::new();
    bench.wanted.set(shards(&[1, 2]));
    bench.create("before", Some(1)).await;
    bench.create("others", Some(3)).await;
    bench.create("unlabelled", None).await;
    let mut items = pin!(bench.watch());
    assert_eq!(until_watching(&mut items, &shards(&[1, 2])).await, ["before"]);
    bench.create("others-later", Some(3)).await;
    bench.create("later", Some(2)).await;
    assert_eq!(next_job(&mut items).await, "later");
    bench.send("DELETE", "later", None).await;
    let mut next = next_job(&mut items).await;
    while next == "later" {
        next = next_job(&mut items).await;
    }
    assert_eq!(next, "gone");
}

#[tokio::test(start_paused = true)]
async fn request_for_the_version_selects_no_labels() {
    let bench = Bench::new();
    bench.wanted.set(shards(&[1]));
    let (client, queries) = bench.recording();
    let mut items = pin!(bench.jobs(client));
    until_watching(&mut items, &shards(&[1])).await;
    // A server that reads from etcd would read all Jobs to find none with a label that no Job has.
    assert_eq!(queries.lock().unwrap()[0], "&limit=1");
}

/// A replica that starts has no shards. With a label that no Job has, the server would compare the labels of all Jobs.
#[tokio::test(start_paused = true)]
async fn jobs_of_no_shards_are_not_listed() {
    let bench = Bench::new();
    let (client, queries) = bench.recording();
    let mut items = pin!(bench.jobs(client));
    assert_eq!(until_watching(&mut items, &ShardSet::EMPTY).await, Vec::<String>::new());
    assert!(bench.delivered.jobs.get().is_some());
    let queries = queries.lock().unwrap();
    assert_eq!(queries.len(), 2, "{queries:?}");
    assert_eq!(queries[0], "&limit=1");
    assert!(queries[1].contains("watch=true"), "{queries:?}");
}

/// The first request shows the version, and the second one opens the watch.
#[tokio::test(start_paused = true)]
async fn first_shard_that_is_added_during_a_request_is_complete() {
    for adds_at in [0, 1] {
        let bench = Arc::new(Bench::new());
        let (service, adding) = (bench.api.client("controller"), Arc::clone(&bench));
        let n_requests = Arc::new(AtomicUsize::new(0));
        let counting = tower::service_fn(move |request: Request<Body>| {
            let (mut service, bench) = (service.clone(), Arc::clone(&adding));
            let number = n_requests.fetch_add(1, Ordering::SeqCst);
            async move {
                if number == adds_at {
                    bench.wanted.set(shards(&[1]));
                    bench.create("since", Some(1)).await;
                }
                service.call(request).await
            }
        });
        let mut items = pin!(bench.jobs(Client::new(counting, "default")));
        let listed = until_watching(&mut items, &shards(&[1])).await;
        if adds_at == 0 {
            assert_eq!(listed, ["since"]);
        } else {
            assert_eq!(listed, Vec::<String>::new());
            assert_eq!(next_job(&mut items).await, "since");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn watch_yields_changes_since_a_shard_was_added() {
    let bench = Bench::new();
    let mut items = pin!(bench.watch());
    until_watching(&mut items, &ShardSet::EMPTY).await;
    bench.wanted.set(shards(&[4]));
    // The watch has not noticed the change yet.
    bench.create("since", Some(4)).await;
    assert_eq!(until_watching(&mut items, &shards(&[4])).await, Vec::<String>::new());
    assert_eq!(next_job(&mut items).await, "since");
    bench.wanted.set(shards(&[4, 5]));
    bench.create("four", Some(4)).await;
    bench.create("five", Some(5)).await;
    until_watching(&mut items, &shards(&[4, 5])).await;
    assert_eq!(
        [next_job(&mut items).await, next_job(&mut items).await],
        ["four", "five"]
    );
}

#[tokio::test(start_paused = true)]
async fn unwanted_shard_leaves_the_watch() {
    let bench = Bench::new();
    bench.wanted.set(shards(&[4, 5]));
    let mut items = pin!(bench.watch());
    until_watching(&mut items, &shards(&[4, 5])).await;
    bench.wanted.set(shards(&[4]));
    until_watching(&mut items, &shards(&[4])).await;
    bench.create("five", Some(5)).await;
    bench.create("four", Some(4)).await;
    assert_eq!(next_job(&mut items).await, "four");
}

/// The network may lose the packets of a connection without an error.
#[tokio::test(start_paused = true)]
async fn fence_reopens_a_silent_watch() {
    let bench = Bench::new();
    let n_fences = OrderedSender::new(0);
    let client = Client::new(bench.api.client("controller"), "default");
    let client = watch::ended_by_fences(client, n_fences.subscribe());
    let mut items = pin!(bench.jobs(client));
    until_watching(&mut items, &ShardSet::EMPTY).await;
    bench.api.faults().add(Rule {
        client: Some("controller".to_owned()),
        ..Rule::new(Fault::StallWatch)
    });
    assert!(tokio::time::timeout(PATIENCE, items.next()).await.is_err());
    n_fences.set(1);
    let stage = |item: Option<WatchItem>| match item {
        Some(WatchItem::Input(Input::WatchUpdated(update))) => Some(update.stage),
        _ => None,
    };
    assert_eq!(stage(items.next().await), Some(WatchStage::Interrupted));
    until_watching(&mut items, &ShardSet::EMPTY).await;
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
        let bench = Bench::new();
        bench.wanted.set(shards(&[1]));
        let mut items = pin!(bench.watch());
        until_watching(&mut items, &shards(&[1])).await;
        bench.api.faults().add(Rule {
            resource: Some(Resource::Job),
            client: Some("controller".to_owned()),
            times_max: Some(2),
            ..Rule::new(fault.clone())
        });
        bench.wanted.set(shards(&[1, 2]));
        bench.create("meanwhile", Some(2)).await;
        bench.create("too", Some(1)).await;
        let mut seen = until_watching(&mut items, &shards(&[1, 2])).await;
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

#[tokio::test(start_paused = true)]
async fn watch_reports_the_version_it_has_delivered() {
    let bench = Bench::new();
    bench.wanted.set(shards(&[1]));
    bench.create("before", Some(1)).await;
    let listed = bench.version("before").await;
    let mut items = pin!(bench.watch());
    assert_eq!(bench.delivered.jobs.get(), None);
    until_watching(&mut items, &shards(&[1])).await;
    assert_eq!(bench.delivered.jobs.get(), Some(listed));
    bench.create("later", Some(1)).await;
    assert_eq!(next_job(&mut items).await, "later");
    assert_eq!(bench.delivered.jobs.get(), Some(bench.version("later").await));
    // The watch must continue from a later version than this one, which it does not know yet.
    bench.api.faults().add(Rule {
        resource: Some(Resource::Job),
        client: Some("controller".to_owned()),
        times_max: Some(2),
        ..Rule::new(Fault::Expired)
    });
    bench.wanted.set(shards(&[1, 2]));
    while !matches!(items.next().await, Some(WatchItem::Error { .. })) {}
    while !matches!(items.next().await, Some(WatchItem::Error { .. })) {}
    assert_eq!(bench.delivered.jobs.get(), None);
    bench.create("meanwhile", Some(1)).await;
    until_watching(&mut items, &shards(&[1, 2])).await;
    assert_eq!(bench.delivered.jobs.get(), Some(bench.version("meanwhile").await));
}

/// A task that adds a shard reads the position of the watch and lists the shard at that version. The watch may be
/// processing a later event of another shard at this time. The watch must not reopen after that event.
#[tokio::test(start_paused = true)]
async fn event_that_races_with_an_added_shard_is_not_skipped() {
    let bench = Bench::new();
    bench.wanted.set(shards(&[1]));
    let adding = bench.wanted.clone();
    let service = bench.api.client("controller");
    // The shard is added between the check for added shards and the event.
    let adding_service = tower::service_fn(move |request: Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let (mut service, adding) = (service.clone(), adding.clone());
        async move {
            let (parts, body) = service.call(request).await?.into_parts();
            let body = body.map_err(tower::BoxError::from).map_frame(move |frame| {
                if is_watch {
                    adding.set(shards(&[1, 2]));
                }
                frame
            });
            Ok::<_, tower::BoxError>(http::Response::from_parts(parts, body.boxed_unsync()))
        }
    });
    let mut items = pin!(bench.jobs(Client::new(adding_service, "default")));
    until_watching(&mut items, &shards(&[1])).await;
    let listed_at = bench.delivered.jobs.get().unwrap();
    bench.create("two", Some(2)).await;
    bench.create("one", Some(1)).await;
    assert_eq!(until_watching(&mut items, &shards(&[1, 2])).await, ["one"]);
    // A list at this version does not contain the Job `two`.
    assert!(listed_at < bench.version("two").await);
    assert_eq!([next_job(&mut items).await, next_job(&mut items).await], ["two", "one"]);
}
