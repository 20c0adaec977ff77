//! Tests of the list task against the in-memory API, on a simulated clock.

use std::{sync::Mutex, time::Duration};

use apisim::{Api, Options, WallClock};
use http::Request;
use jiff::Timestamp;
use kube::client::Body;
use serde_json::json;
use tower::{Service as _, ServiceExt as _};

use super::*;
use crate::{
    kube_api::watch::{self, WatchedShards, cron_job_cache::CACHE_BYTES_MAX},
    telemetry::metrics::Metrics,
};

/// The query of a watch that checks whether CronJobs have changed.
const SHORT_WATCH: &str = "timeoutSeconds=3";

/// A list task with a cache of all CronJobs, in a cluster in which no CronJob changes.
struct Bench {
    api: Api,
    clock: Clock,
    delivered: DeliveredVersions,
    next_eviction: OrderedSender<Option<BootInstant>>,
    queries: Arc<Mutex<Vec<String>>>,
    orders: mpsc::Sender<ListRequest>,
    progress: mpsc::Receiver<ListProgress>,
}

impl Bench {
    async fn new() -> Bench {
        let begun: Timestamp = "2026-11-01T12:00:00Z".parse().unwrap();
        let (clock, count) = (Clock::simulated(begun), ShardCount::default());
        let api = Api::new(Options::default(), WallClock::starting_at(begun));
        let queries: Arc<Mutex<Vec<String>>> = Arc::default();
        let (recorded, server) = (Arc::clone(&queries), api.client("replica"));
        let recording = tower::service_fn(move |request: Request<Body>| {
            recorded.lock().unwrap().push(request.uri().to_string());
            server.clone().call(request)
        });
        let client = kube::Client::new(recording, "default");
        let delivered = DeliveredVersions::new(Scope::Cluster, count, CACHE_BYTES_MAX);
        let shards = WatchedShards {
            wanted: OrderedSender::new(ShardSet::EMPTY).subscribe(),
            delivered: delivered.clone(),
        };
        let watch = watch::cron_jobs(client.clone(), Scope::Cluster, Arc::default(), Some(shards));
        tokio::spawn(watch.for_each(|_| async {}));
        let next_eviction = OrderedSender::new(None);
        let (orders, wanted) = mpsc::channel(1);
        let (progress_in, progress) = mpsc::channel(8);
        let metrics = Metrics::register();
        let task = ListTask {
            client,
            decoder: Arc::default(),
            delivered: vec![delivered.clone()],
            count,
            latest_proof: LatestProof {
                received: OrderedSender::new(None).subscribe(),
                clock: clock.clone(),
            },
            proofs: OrderedSender::new(None),
            next_eviction: next_eviction.subscribe(),
            progress: progress_in,
            selection: metrics.selection.clone(),
            failures: FailureLog::default(),
            clock: clock.clone(),
        };
        tokio::spawn(task.run(wanted));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(delivered.cache.version().is_some());
        Bench {
            api,
            clock,
            delivered,
            next_eviction,
            queries,
            orders,
            progress,
        }
    }

    /// Announces the eviction of a member in some milliseconds.
    fn evict_in(&self, millis: u64) {
        let at = self.clock.boot() + Duration::from_millis(millis);
        self.next_eviction.set(Some(at));
    }

    fn n_short_watches(&self) -> usize {
        let queries = self.queries.lock().unwrap();
        queries.iter().filter(|query| query.contains(SHORT_WATCH)).count()
    }

    /// Writes a Job, so that the current version is later than that of every CronJob. Returns that version.
    async fn write_job(&self, name: &str) -> ResourceVersion {
        let job = json!({
            "metadata": {"name": name},
            "spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "c", "image": "i"}],
            }}},
        });
        let request =
            Request::post("/apis/batch/v1/namespaces/default/jobs").header("content-type", "application/json");
        let request = request.body(Body::from(job.to_string().into_bytes())).unwrap();
        let answer = self.api.client("user").oneshot(request).await.unwrap();
        assert!(answer.status().is_success());
        let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap();
        let job: serde_json::Value = serde_json::from_slice(&body.to_bytes()).unwrap();
        ResourceVersion::read(job["metadata"]["resourceVersion"].as_str().unwrap())
    }

    fn cached(&self) -> ResourceVersion {
        self.delivered.cache.version().unwrap()
    }
}

async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn one_short_watch_begins_half_a_second_before_an_eviction() {
    let bench = Bench::new().await;
    bench.evict_in(10_000);
    pass(9_400).await;
    bench.evict_in(10_000);
    pass(9_400).await;
    assert_eq!(bench.n_short_watches(), 0, "the member renewed its Lease");
    let current = bench.write_job("a").await;
    pass(150).await;
    assert_eq!(bench.n_short_watches(), 1);
    assert!(bench.cached() < current);
    pass(2_500).await;
    assert!(bench.cached() >= current, "the bookmark advances the cache");
    pass(60_000).await;
    assert_eq!(bench.n_short_watches(), 1, "one watch for each eviction");
}

#[tokio::test(start_paused = true)]
async fn takeover_after_an_early_bookmark_still_waits_for_the_current_version() {
    let mut bench = Bench::new().await;
    bench.evict_in(600);
    pass(3_000).await;
    let early = bench.cached();
    let current = bench.write_job("a").await;
    assert!(early < current);
    let shards = ShardSet::all(ShardCount::default());
    let order = ListRequest {
        shards,
        is_consistent: true,
    };
    bench.orders.send(order).await.unwrap();
    let versions = loop {
        match bench.progress.recv().await.unwrap() {
            ListProgress::Complete(versions) => break versions,
            ListProgress::Found(_) => {}
            progress @ (ListProgress::Restarted | ListProgress::ScopeSkipped(_)) => panic!("{progress:?}"),
        }
    };
    assert!(versions.cron_jobs >= current, "{versions:?}");
}
