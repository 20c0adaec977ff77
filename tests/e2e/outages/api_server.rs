//! The API server crashes and restarts with the same port and data.

use testbed::Testbed;

use super::{Fleet, Namespace};

pub(super) async fn api_server_outage_at_a_slot_starts_each_run_once(testbed: &mut Testbed, namespace: Namespace) {
    let fleet = Fleet::create(namespace, 20).await;
    let controller = fleet.start_controller().await;
    testbed.kill_api_server().expect("a kill");
    fleet.wait_until_due(&controller).await;
    let unanswered = [("resource", "jobs"), ("code", "none")];
    controller
        .wait_for_metric("cronwheel_api_requests_total", &unanswered, |n| n >= 1)
        .await;
    testbed.start_api_server().expect("an API server");
    fleet.assert_each_started_once(controller).await;
}

/// Some creates succeed without a response, others are lost. The controller cannot distinguish them.
pub(super) async fn api_server_kill_in_a_burst_starts_each_run_once(testbed: &mut Testbed, namespace: Namespace) {
    let fleet = Fleet::create(namespace, 300).await;
    let controller = fleet.start_controller().await;
    while controller.n_started().await == 0 {
        tokio::task::yield_now().await;
    }
    testbed.kill_api_server().expect("a kill");
    let n_started = controller.n_started().await;
    assert!(n_started < fleet.len(), "the burst was over before the kill");
    testbed.start_api_server().expect("an API server");
    fleet.assert_each_started_once(controller).await;
}
