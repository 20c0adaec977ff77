//! The API server is overloaded: API priority and fairness rejects most of our requests with 429.

use futures::future::join_all;
use jiff::SignedDuration;
use kube::api::DeleteParams;
use serde_json::json;
use testbed::Testbed;

use super::{Audit, Fleet, Namespace};
use crate::kubernetes::{connect_without_retries, refusal_of_list, wait};

const REQUESTS: &str = "cronwheel_api_requests_total";
const THROTTLED_CREATES: [(&str, &str); 3] = [("verb", "create"), ("resource", "jobs"), ("code", "429")];

/// The name of our account's flow schema and of its priority level.
const SQUEEZED: &str = "squeezed";

pub(super) async fn storm_of_429_responses_loses_no_run(_: &mut Testbed, namespace: Namespace) {
    let fleet = Fleet::create(namespace, 120).await;
    squeeze(&fleet.namespace).await;
    let controller = fleet.start_controller().await;
    // Several rounds, each of which lets a few requests through.
    let is_underway = wait(async || controller.n_started().await >= 6).await;
    assert!(is_underway, "{} went through", controller.n_started().await);
    controller
        .wait_for_metric(REQUESTS, &THROTTLED_CREATES, |n| n >= 10)
        .await;
    assert!(controller.n_started().await < fleet.len(), "the storm was none");
    release(&fleet.namespace).await;
    fleet.assert_each_started_once(controller).await;
    assert_pauses(&Audit::read(&fleet.namespace).await);
}

/// Asserts that no request arrives within a second after a 429 with the same verb and resource, except those already in
/// flight. The API server requests this pause.
fn assert_pauses(audit: &Audit) {
    let (in_flight, pause) = (SignedDuration::from_millis(300), SignedDuration::from_millis(900));
    for lane in [["create", "jobs"], ["update", "cronjobs"], ["create", "events"]] {
        let (received, refused) = audit.received_and_refused(lane);
        for refused in refused {
            let too_early = received
                .iter()
                .find(|arrival| **arrival > refused + in_flight && **arrival < refused + pause);
            assert_eq!(too_early, None, "{lane:?} after the refusal at {refused}");
        }
    }
}

/// Gives our account 429 for all but one request at a time. One request is always admitted. Leases have a priority level
/// of their own, as in an installation.
async fn squeeze(namespace: &Namespace) {
    namespace
        .create(json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "PriorityLevelConfiguration",
            "metadata": {"name": SQUEEZED},
            "spec": {"type": "Limited", "limited": {
                "nominalConcurrencyShares": 0,
                "lendablePercent": 0,
                "borrowingLimitPercent": 0,
                "limitResponse": {"type": "Reject"},
            }},
        }))
        .await;
    let (all, groups) = (json!(["*"]), json!(["", "batch"]));
    namespace
        .create(json!({
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": {"name": SQUEEZED},
            "spec": {
                "priorityLevelConfiguration": {"name": SQUEEZED},
                "matchingPrecedence": 2,
                "rules": [{
                    "subjects": [{
                        "kind": "ServiceAccount",
                        "serviceAccount": {"namespace": "kube-system", "name": "cronwheel"},
                    }],
                    "resourceRules": [{
                        "verbs": all, "apiGroups": groups, "resources": all, "namespaces": all, "clusterScope": true,
                    }],
                    "nonResourceRules": [{"verbs": all, "nonResourceURLs": all}],
                }],
            },
        }))
        .await;
    let client = connect_without_retries(&namespace.control_plane.controller_kubeconfig).await;
    // An API server whose storage is not ready returns 429 too, with another message.
    let is_squeezed = wait(async || {
        let refusals = join_all((0..8).map(|_| refusal_of_list(&client, namespace))).await;
        let mut refusals = refusals.into_iter().flatten();
        refusals.any(|status| status.code == 429 && status.message.starts_with("Too many requests"))
    });
    assert!(is_squeezed.await, "the squeeze is not in force");
}

async fn release(namespace: &Namespace) {
    for kind in ["FlowSchema", "PriorityLevelConfiguration"] {
        namespace.delete(kind, SQUEEZED, DeleteParams::default()).await;
    }
}
