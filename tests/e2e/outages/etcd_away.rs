//! etcd freezes, crashes and restarts with its data. The results of creates in this time are unknown.

use std::time::Duration;

use testbed::{Component, Testbed};
use tokio::time::{Instant, sleep_until};

use super::{Fleet, Namespace};

const REQUESTS: &str = "cronwheel_api_requests_total";

pub(super) async fn etcd_outage_of_twenty_seconds_starts_each_run_once(testbed: &mut Testbed, namespace: Namespace) {
    let fleet = Fleet::create(namespace, 20).await;
    let controller = fleet.start_controller().await;
    let begun = Instant::now();
    testbed.freeze(Component::Etcd).expect("a freeze");
    fleet.wait_until_due(&controller).await;
    controller
        .wait_for_metric("cronwheel_dispatch_inflight", &[], |n| n >= fleet.len())
        .await;
    testbed.kill_etcd().expect("a kill");
    let lost = [("verb", "create"), ("resource", "jobs"), ("code", "500")];
    controller.wait_for_metric(REQUESTS, &lost, |n| n >= 1).await;
    sleep_until(begun + Duration::from_secs(20)).await;
    testbed.start_etcd().expect("etcd");
    let looked_up = [("verb", "get"), ("resource", "jobs")];
    controller.wait_for_metric(REQUESTS, &looked_up, |n| n >= 1).await;
    fleet.assert_each_started_once(controller).await;
}
