//! Tests of the watch task, in virtual time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use super::*;
use crate::{
    controller::{
        clock::Clock,
        event_task::{EventBudget, EventChannels, EventTask},
        shutdown::phases,
        tests::fake_server::{self, Response},
    },
    coordination::Leadership,
    kube_api::ApiClient,
    shard::{Scope, Uid, held_shards::WHOLE},
    telemetry::metrics::Metrics,
};

/// Records the Events that are sent.
#[derive(Clone, Default)]
struct FakeApi(Arc<Mutex<Vec<serde_json::Value>>>);

impl FakeApi {
    fn client(&self) -> ApiClient {
        let events = Arc::clone(&self.0);
        fake_server::client(&clock(), 1, move |received| {
            events.lock().unwrap().push(received.body);
            std::future::ready(Response::stored(1))
        })
    }
}

fn clock() -> Clock {
    Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_undecodable_cron_job_gets_an_event_and_is_counted() {
    let metrics = Metrics::register();
    let (phases, burst, api) = (phases(), LatestSender::new(false), FakeApi::default());
    let event_links = EventChannels {
        leadership: LatestSender::new(Leadership::of_one(WHOLE)).subscribe(),
        budget: EventBudget::default(),
        namespaces: ManagedNamespaces::default(),
        phase: phases.subscribe(),
        burst: burst.subscribe(),
    };
    let (events, task) = EventTask::new(api.client(), clock(), event_links, metrics.events.clone());
    tokio::spawn(task.run());
    let (inputs, mut received) = mpsc::channel(8);
    let channels = WatchChannels {
        inputs,
        went_back: LatestSender::new(false),
        events,
        other_controllers: OtherControllers::default(),
        namespaces: ManagedNamespaces::default(),
        metrics: metrics.cron_job_watch.clone(),
        health: metrics.watch_health.begin("cronjobs", Scope::Cluster, clock()),
    };
    let identity = CronJobIdentity {
        namespace: "shop".into(),
        name: "backup".into(),
        uid: Uid::new("c1"),
    };
    let error = DecodeError {
        kind: "CronJob",
        namespace: "shop".into(),
        name: "backup".into(),
        field: "spec.suspend".into(),
        problem: "expected a boolean, found a string".into(),
    };
    let item = WatchItem::Undecodable {
        error,
        cron_job: Some((Arc::new(identity), ResourceVersion(7))),
        input: Some(Input::CronJobUndecodable(Uid::new("c1"))),
    };
    channels.run(futures::stream::iter([item])).await;
    let input = received.try_recv().unwrap();
    assert!(
        matches!(&input, Input::CronJobUndecodable(uid) if *uid == Uid::new("c1")),
        "{input:?}"
    );
    assert_eq!(metrics.cron_job_watch.undecodable.get(), 1);
    assert_eq!(
        metrics.cron_job_watch.cron_jobs_undecodable.get(),
        0,
        "the watch has ended"
    );
    tokio::time::sleep(Duration::from_secs(1)).await;
    let posted = api.0.lock().unwrap();
    assert_eq!(posted.len(), 1);
    assert_eq!(
        (&posted[0]["reason"], &posted[0]["type"]),
        (&"UndecodableCronJob".into(), &"Warning".into())
    );
    assert_eq!(
        posted[0]["message"],
        "CronJob shop/backup cannot be decoded: spec.suspend: expected a boolean, found a string"
    );
    assert_eq!(posted[0]["involvedObject"]["uid"], "c1");
}
