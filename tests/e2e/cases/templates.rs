//! Fields that pass through the controller unparsed and must not be lost.

use serde_json::{Value, json};

use crate::{controller::Controller, kubernetes::Namespace};

/// `hostnameOverride` was added in Kubernetes 1.34. Our bindings are those of 1.33.
pub(super) async fn unknown_template_field_reaches_the_job(namespace: Namespace) {
    let newer = json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"hostnameOverride": "brand-new"}}}}}});
    namespace.create_cron_job(json!({"run-for": "1s"}), newer).await;
    let stored = namespace.cron_job().await;
    let pod = "/spec/jobTemplate/spec/template/spec/hostnameOverride";
    assert_eq!(
        stored.pointer(pod),
        Some(&json!("brand-new")),
        "the API server knows the field"
    );
    let controller = Controller::start_before(&namespace, 0);
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    let job = namespace.jobs().await.remove(0);
    assert_eq!(
        job.pointer("/spec/template/spec/hostnameOverride"),
        Some(&json!("brand-new"))
    );
    controller.terminate().await;
}

pub(super) async fn metadata_survives_status_writes(namespace: Namespace) {
    let metadata = json!({
        "labels": {"team": "a"},
        "annotations": {"note": "say \"hi\"\n"},
        "finalizers": ["example.com/hold"],
    });
    namespace
        .create_cron_job(json!({"run-for": "1s"}), json!({"metadata": metadata}))
        .await;
    let before = namespace.cron_job().await;
    let controller = Controller::start_before(&namespace, 0);
    let slot = namespace.minute(0).to_string();
    let is_recorded = |status: &Value| status["lastScheduleTime"] == *slot && status["lastSuccessfulTime"].is_string();
    namespace.wait_for_status("the run is recorded", is_recorded).await;
    let after = namespace.cron_job().await;
    for member in ["labels", "annotations", "finalizers"] {
        assert_eq!(after["metadata"][member], before["metadata"][member], "{member}");
    }
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"]);
    controller.terminate().await;
    namespace
        .patch_cron_job(json!({"metadata": {"finalizers": null}}))
        .await;
}
