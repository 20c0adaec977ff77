//! The controller's core and its adapters against the in-memory API, in virtual time.

use std::{sync::Arc, time::Duration};

use apisim::{Api, JobRunner, JobRunnerOptions, Options, Resource, WallClock};
use cronwheel::{
    kube_api::{Answer, ApiClient, Decoder, WatchItem, WriteConnections, watch},
    schedule::Zone,
    shard::{Effect, OrderAnswer, Scope, ShardConfig, ShardState},
};
use futures::StreamExt as _;
use http::Request;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

const BEGUN: &str = "2026-01-02T03:04:30Z";

async fn request(client: &Client, method: &str, path: &str, body: &Value) -> Value {
    let builder = Request::builder().method(method).uri(path);
    let builder = builder.header("content-type", "application/json");
    client
        .request(builder.body(serde_json::to_vec(body).unwrap()).unwrap())
        .await
        .unwrap()
}

/// Executes an effect. Returns the resulting input of the shard. The test ignores Events and expects no look-up.
async fn execute(api: &ApiClient, effect: Effect) -> Option<OrderAnswer> {
    fn outcome<T: std::fmt::Debug>(answer: Answer<T>) -> T {
        match answer {
            Answer::Outcome(outcome) => outcome,
            other @ (Answer::Throttled { .. } | Answer::Unavailable { .. }) => panic!("{other:?}"),
        }
    }
    match effect {
        Effect::CreateJob(order) => Some(OrderAnswer::Create {
            cron_job: order.cron_job.uid.clone(),
            slot: order.slot,
            answer: outcome(api.create_job(&order).await.answer),
        }),
        Effect::WriteStatus(write) => Some(OrderAnswer::Status {
            cron_job: write.cron_job.uid.clone(),
            sent: Box::new(write.status.clone()),
            answer: outcome(api.write_status(&write).await.answer),
        }),
        Effect::DeleteJob(delete) => Some(OrderAnswer::Delete {
            answer: outcome(api.delete_job(&delete).await.answer),
            delete,
        }),
        // Every create completes at once, so no create waits to be sent.
        Effect::EmitEvent(_) | Effect::Withdraw(_) => None,
        Effect::LookUpJob(look_up) => panic!("{look_up:?}"),
    }
}

async fn control(client: Client, clock: WallClock) {
    let api = ApiClient::new(WriteConnections::from_clients(vec![client.clone()]));
    let decoder = Arc::new(Decoder {
        default_zone: Zone::utc(),
        ..Decoder::default()
    });
    let cron_jobs = watch::cron_jobs(client.clone(), Scope::Cluster, decoder).boxed();
    let mut inputs = futures::stream::select(cron_jobs, watch::jobs(client, Scope::Cluster).boxed());
    let config = ShardConfig {
        clock_skew_max: SignedDuration::from_secs(2),
        scopes: vec![Scope::Cluster],
    };
    let mut shard = ShardState::new(config, clock.now());
    shard.lead(clock.now());
    loop {
        while let Some(effect) = shard.poll_effect() {
            if let Some(answer) = execute(&api, effect).await {
                shard.handle_answer(answer, clock.now());
            }
        }
        let wakeup = shard.next_wakeup().unwrap_or(Timestamp::MAX);
        let wait = Duration::try_from(wakeup.duration_since(clock.now())).unwrap_or_default();
        match timeout(wait.min(Duration::from_hours(1)), inputs.next()).await {
            Ok(Some(WatchItem::Input(input))) => shard.handle(input, clock.now()),
            Ok(other) => panic!("{other:?}"),
            Err(_) => shard.handle_timeout(clock.now()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn minutely_cron_job_runs_for_an_hour() {
    let clock = WallClock::starting_at(BEGUN.parse().unwrap());
    let api = Api::new(Options::default(), clock.clone());
    let user = Client::new(api.client("user"), "default");
    let template = json!({"metadata": {"annotations": {"run-for": "20s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}});
    let cron_job = json!({"metadata": {"name": "hello"}, "spec": {"schedule": "* * * * *", "successfulJobsHistoryLimit": 3,
        "jobTemplate": {"spec": {"template": template}}}});
    let path = "/apis/batch/v1/namespaces/default/cronjobs";
    request(&user, "POST", path, &cron_job).await;
    tokio::spawn(JobRunner::new(api.clone(), JobRunnerOptions::default()).run());
    let controller = tokio::spawn(control(Client::new(api.client("controller"), "default"), clock));
    sleep(Duration::from_hours(1)).await;
    assert!(!controller.is_finished());
    let stored = request(&user, "GET", &format!("{path}/hello"), &Value::Null).await;
    // The last slot is 04:04. Its Job completed after 20 of the 30 seconds since.
    assert_eq!(stored["status"]["lastScheduleTime"], "2026-01-02T04:04:00Z");
    assert_eq!(stored["status"]["lastSuccessfulTime"], "2026-01-02T04:04:20Z");
    assert_eq!(stored["status"]["active"], Value::Null);
    assert_eq!(api.count(Resource::Job), 3);
    request(&user, "DELETE", &format!("{path}/hello"), &json!({})).await;
    assert_eq!(api.count(Resource::Job), 0, "the Jobs are deleted with their owner");
}
