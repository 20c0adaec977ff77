//! Tests of the reads of policies, against an API server that has the objects that a test names.

use std::sync::{Arc, Mutex};

use serde_json::json;

use super::*;
use crate::{
    controller::tests::fake_server::{self, Response},
    telemetry::metrics::Metrics,
};

const POLICY: &str = "validatingadmissionpolicies/writes";
const BINDING: &str = "validatingadmissionpolicybindings/writes";

/// Starts the task for the policy `writes`. The API server has these objects, or refuses every read.
fn start(objects: &Arc<Mutex<Option<Vec<&'static str>>>>) -> (Metrics, Clock) {
    let (metrics, clock) = (
        Metrics::register(),
        Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap()),
    );
    metrics.other_controllers.begin(clock.now(), "kube-system/a".into());
    let objects = Arc::clone(objects);
    let api = fake_server::client(&clock, 1, move |received| {
        let path = received.path();
        let binding = json!({"spec": {"validationActions": ["Deny"]}});
        std::future::ready(match &*objects.lock().unwrap() {
            None => Response::status(403, "Forbidden", "no"),
            Some(present) if present.iter().any(|object| path.ends_with(&format!("/{object}"))) => {
                Response::Object(binding)
            }
            Some(_) => Response::not_found(),
        })
    });
    let task = PolicyTask {
        api,
        policies: vec!["writes".into()],
        clock: clock.clone(),
        api_metrics: metrics.events.api.clone(),
        other_controllers: metrics.other_controllers.clone(),
    };
    tokio::spawn(task.run());
    (metrics, clock)
}

/// Whether the metric says after so many seconds that the policy is missing.
async fn is_missing_after(seconds: u64, (metrics, clock): &(Metrics, Clock)) -> bool {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let text = metrics.render(clock.now()).unwrap();
    text.contains("cronwheel_other_controller_active{evidence=\"policy\"} 1\n")
}

#[tokio::test(start_paused = true)]
async fn a_policy_without_its_binding_is_missing_until_both_are_there() {
    let objects = Arc::new(Mutex::new(Some(vec![POLICY, BINDING])));
    let replica = start(&objects);
    assert!(!is_missing_after(20, &replica).await);
    for left in [POLICY, BINDING] {
        *objects.lock().unwrap() = Some(vec![left]);
        assert!(is_missing_after(15, &replica).await, "only {left}");
        *objects.lock().unwrap() = Some(vec![POLICY, BINDING]);
        assert!(!is_missing_after(15, &replica).await);
    }
}

/// A replica without the right to read, or without an API server, does not know more than before.
#[tokio::test(start_paused = true)]
async fn what_was_known_stays_while_nothing_can_be_read() {
    let objects = Arc::new(Mutex::new(None));
    let replica = start(&objects);
    assert!(!is_missing_after(40, &replica).await);
    *objects.lock().unwrap() = Some(vec![POLICY]);
    assert!(is_missing_after(15, &replica).await);
    *objects.lock().unwrap() = None;
    assert!(is_missing_after(60, &replica).await);
}
