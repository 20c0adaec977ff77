//! The built-in controller runs at the same time as cronwheel, and cronwheel detects it.

use std::time::Duration;

use jiff::Timestamp;
use libtest_mimic::Trial;
use serde_json::json;
use testbed::ReferenceLimits;

use crate::{
    block_on,
    control_plane::{Purpose, take},
    controller::Controller,
    kubernetes::{ControlPlane, Namespace, wait},
};

const NAME: &str = "beside::the_built_in_controller_is_noticed";

const DURATION_MAX: Duration = Duration::from_mins(4);

const METRIC: &str = "cronwheel_other_controller_active";

/// The built-in controller works in all namespaces, so no other case runs at the same time. Unit tests cover the end of
/// the notice, because evidence counts for minutes.
pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let noticed = Trial::test(NAME, || {
        take(Purpose::Beside, |testbed, access| {
            testbed.start_reference(ReferenceLimits::default()).expect("a start");
            block_on(DURATION_MAX, async {
                let namespace = Namespace::create_for(NAME, ControlPlane::connect(access).await).await;
                is_noticed(&namespace).await;
            });
            testbed.stop_reference().expect("an end");
        });
        Ok(())
    });
    std::iter::once(noticed)
}

async fn is_noticed(namespace: &Namespace) {
    // Evidence has timestamps of the API server, so this controller's clock is not ahead.
    let controller = Controller::start_at(namespace, Timestamp::now(), &[]);
    controller.wait_until_ready().await;
    assert_eq!(controller.metric(METRIC, &[]).await, Some(0));
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    let mut readiness = String::new();
    for _ in 0..8 {
        let is_reported = wait(async || {
            readiness = controller.readiness().await;
            readiness.contains("another controller")
        });
        if is_reported.await {
            break;
        }
    }
    let expected = format!(
        "ok\nanother controller wrote the status of CronJob {}/hello: field manager kube-controller-manager, at ",
        namespace.name
    );
    assert!(readiness.contains(&expected), "{readiness}");
    assert_eq!(
        controller.metric(METRIC, &[("evidence", "status_write")]).await,
        Some(1)
    );
    controller.terminate().await;
}
