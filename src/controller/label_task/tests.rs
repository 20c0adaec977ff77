//! Tests of the label task against the in-memory API, on a simulated clock.

use apisim::{Api, Options, WallClock};
use http::Request;
use serde_json::{Value, json};

use super::*;
use crate::{coordination::Timing, kube_api::WriteConnections, shard::Term, telemetry::metrics::Metrics};

const BEGUN: &str = "2026-11-01T12:00:00Z";

const CRON_JOBS: &str = "/apis/batch/v1/namespaces/default/cronjobs";

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

struct Bench {
    api: Api,
    clock: Clock,
    metrics: Metrics,
    leadership: watch::Sender<Leadership>,
}

impl Bench {
    /// Starts the task of the replica that leads the labelling shard.
    async fn start() -> Bench {
        let bench = Bench {
            api: Api::new(Options::default(), WallClock::starting_at(BEGUN.parse().unwrap())),
            clock: Clock::simulated(BEGUN.parse().unwrap()),
            metrics: Metrics::register(),
            leadership: watch::Sender::default(),
        };
        bench.lead(Duration::from_hours(1));
        let task = LabelTask {
            client: bench.client(),
            api: ApiClient::new(WriteConnections::from_clients(vec![bench.client()])),
            scopes: vec![Scope::Cluster],
            count: ShardCount::default(),
            leadership: bench.leadership.subscribe(),
            clock: bench.clock.clone(),
            api_metrics: bench.metrics.election.api.clone(),
            proofs: OrderedSender::new(None),
            latest_proof: LatestProof {
                received: OrderedSender::new(None).subscribe(),
                clock: bench.clock.clone(),
            },
            other_controllers: OtherControllers::default(),
            labelled: bench.metrics.election.labelled.clone(),
            overflows: bench.metrics.election.label_overflows.clone(),
        };
        tokio::spawn(task.run());
        tokio::time::sleep(Duration::from_millis(100)).await;
        bench
    }

    fn client(&self) -> kube::Client {
        kube::Client::new(self.api.client("replica"), "default")
    }

    /// Leads the labelling shard for a time.
    fn lead(&self, time: Duration) {
        let until = self.clock.boot() + time;
        let mut leadership = Leadership::of_none_until(until, 1, Timing::DEFAULT);
        leadership.begin(ShardTerm {
            shard: LABELLING_SHARD,
            term: Term(1),
        });
        self.leadership.send_replace(leadership);
    }

    async fn create(&self, path: &str, object: &Value) -> Value {
        let request = Request::post(path).header("content-type", "application/json");
        let request = request.body(object.to_string().into_bytes()).unwrap();
        self.client().request(request).await.unwrap()
    }

    /// Creates a CronJob, and a Job of it without the label of its shard. Both have this name.
    async fn create_job(&self, name: &str) {
        let job_spec = json!({"template": {"spec": {
            "containers": [{"name": "main", "image": "busybox"}],
            "restartPolicy": "Never",
        }}});
        let spec = json!({"schedule": "@yearly", "jobTemplate": {"spec": job_spec}});
        let cron_job = json!({"metadata": {"name": name}, "spec": spec});
        let cron_job = self.create(CRON_JOBS, &cron_job).await;
        let owner = json!({
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "name": name,
            "uid": cron_job["metadata"]["uid"],
            "controller": true,
        });
        let job = json!({"metadata": {"name": name, "ownerReferences": [owner]}, "spec": job_spec});
        self.create(JOBS, &job).await;
    }

    async fn is_labelled(&self, name: &str) -> bool {
        let request = Request::get(format!("{JOBS}/{name}")).body(Vec::new()).unwrap();
        let job: Value = self.client().request(request).await.unwrap();
        !job["metadata"]["labels"][ShardCount::default().label_key()].is_null()
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_arrives_without_leadership_is_labelled_when_it_returns() {
    let bench = Bench::start().await;
    bench.create_job("first").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(bench.is_labelled("first").await);
    // Shorter than the interval at which the task looks.
    bench.lead(Duration::ZERO);
    bench.create_job("second").await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!bench.is_labelled("second").await);
    bench.lead(Duration::from_hours(1));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(bench.is_labelled("second").await);
    assert_eq!(bench.metrics.election.labelled.get(), 2);
}
