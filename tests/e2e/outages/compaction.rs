//! A watch from a resource version that etcd has compacted. It gets 410, and the controller relists.

use jiff::SignedDuration;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use testbed::Testbed;

use super::Namespace;
use crate::{controller::Controller, exchange, kubernetes::job_name};

pub(super) async fn changes_during_an_outage_are_seen_after_the_watch_expired(
    testbed: &mut Testbed,
    namespace: Namespace,
) {
    for name in ["changed", "gone"] {
        namespace
            .create_cron_job(
                json!({}),
                json!({"metadata": {"name": name}, "spec": {"suspend": true}}),
            )
            .await;
        namespace.set_last_run(name, namespace.minute(-1)).await;
    }
    let just_after = namespace.minute(0) + SignedDuration::from_secs(1);
    let controller = Controller::start_at(&namespace, just_after, &[]);
    controller.wait_until_ready().await;
    controller.wait_for_metric("cronwheel_cron_jobs", &[], |n| n == 2).await;

    let resumed = changed(&namespace).await;
    testbed.kill_api_server().expect("a kill");
    for object in &resumed {
        let name = object["metadata"]["name"].as_str().expect("a name");
        let value = ByteString(object.to_string().into_bytes());
        post_to_etcd(
            &namespace,
            "/v3/kv/put",
            &json!({"key": key(&namespace, name), "value": value}),
        )
        .await;
    }
    let deleted = post_to_etcd(
        &namespace,
        "/v3/kv/deleterange",
        &json!({"key": key(&namespace, "gone")}),
    )
    .await;
    assert_eq!(deleted["deleted"], "1");
    let compaction = json!({"revision": deleted["header"]["revision"], "physical": true});
    post_to_etcd(&namespace, "/v3/kv/compaction", &compaction).await;
    testbed.start_api_server().expect("an API server");

    for resource in ["cronjobs", "jobs"] {
        controller
            .wait_for_metric("cronwheel_relists_total", &[("resource", resource)], |n| n >= 2)
            .await;
    }
    controller.wait_for_account(&[("created", 2)]).await;
    controller.wait_for_metric("cronwheel_cron_jobs", &[], |n| n == 2).await;
    let jobs = ["changed", "new"].map(|name| job_name(name, namespace.minute(0)));
    namespace.wait_for_jobs(&jobs).await;
    controller.terminate().await;
}

/// Changes that are stored while no watch is open: one CronJob is resumed, and one is new.
async fn changed(namespace: &Namespace) -> [Value; 2] {
    let mut changed = namespace.find("CronJob", "changed").await.expect("it");
    changed["spec"]["suspend"] = json!(false);
    let mut new = changed.clone();
    new["metadata"]["name"] = json!("new");
    new["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000001");
    [changed, new]
}

async fn post_to_etcd(namespace: &Namespace, path: &str, body: &Value) -> Value {
    let address = namespace.control_plane.etcd_url.trim_start_matches("http://");
    let answer = exchange::post(address, path, body).await;
    let answer = answer.unwrap_or_else(|| panic!("{path} is refused"));
    serde_json::from_str(&answer).expect("JSON")
}

fn key(namespace: &Namespace, name: &str) -> ByteString {
    ByteString(format!("/registry/cronjobs/{}/{name}", namespace.name).into_bytes())
}
