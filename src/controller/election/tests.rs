//! Tests of the election task against the in-memory API, on a simulated clock.

use std::{sync::Arc, time::Duration};

use apisim::{Api, Options, WallClock};
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    controller::shutdown::phases,
    coordination::{Installation, MemberSettings, PROTOCOL_VERSION, Timing},
    kube_api::WriteConnections,
    shard::{Scope, ShardCount},
    telemetry::metrics::Metrics,
};

fn config() -> ElectionConfig {
    ElectionConfig {
        pod_name: "pod".into(),
        pod_uid: "uid".into(),
        incarnation: Incarnation(1),
        revision: "one".into(),
        protocol: PROTOCOL_VERSION,
        installation: Installation::of(ShardCount::default()),
        settings: MemberSettings::of(&[Scope::Cluster], "UTC"),
        timing: Timing::DEFAULT,
    }
}

/// While the clock is wrong from the start, the shard task reads no commands. Its channel must not fill up.
#[tokio::test(start_paused = true)]
async fn renewals_send_no_commands_to_the_shards() {
    let begun: Timestamp = "2026-11-01T12:00:00Z".parse().unwrap();
    let clock = Clock::simulated(begun);
    let server = Api::new(
        Options::default(),
        WallClock::starting_at(begun + SignedDuration::from_hours(1)),
    );
    let client = kube::Client::new(server.client("replica"), "default");
    let metrics = Metrics::register();
    let (commands, received) = mpsc::channel(8);
    let (_reports, reports) = mpsc::channel(8);
    let leadership = LatestSender::new(Leadership::of_none_until(clock.boot(), 0, Timing::DEFAULT));
    let phases = phases();
    let channels = ElectionChannels {
        commands,
        reports,
        leadership: leadership.clone(),
        n_fences: LatestSender::new(0),
        went_back: LatestSender::new(false),
        writes: ApiClient::new(WriteConnections::from_clients(vec![client.clone()])),
        missing_permissions: metrics.permissions.subscribe(),
        phase: phases.subscribe(),
        snapshot: metrics.election_snapshot.clone(),
        metrics: metrics.election.clone(),
    };
    let api = LeaseApi::new(client, "default", ShardCount::default(), None);
    let task = ElectionTask::new(config(), Arc::new(|| 2), api, clock.clone(), channels);
    let running = tokio::spawn(task.run());
    tokio::time::sleep(Duration::from_mins(1)).await;
    let until = leadership.borrow().until();
    assert!(until > clock.boot(), "the member Lease is renewed");
    assert!(!running.is_finished() && received.is_empty());
}
