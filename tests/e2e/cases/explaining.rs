//! `explain` on a cluster predicts the actions of the controller.

use std::{path::Path, process::Command};

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{controller::Controller, kubernetes::Namespace};

pub(super) async fn explain_predicts_the_actions_of_the_controller(namespace: Namespace) {
    let forbid = json!({"spec": {"timeZone": "Asia/Tokyo", "concurrencyPolicy": "Forbid"}});
    namespace
        .create_cron_job(json!({"outcome": "hang", "run-for": "0s"}), forbid)
        .await;
    let before = json!({"lastScheduleTime": namespace.minute(-1).to_string()});
    namespace.patch_status(before).await;
    let version = namespace.cron_job().await["metadata"]["resourceVersion"].clone();

    let predicted = explain_at(&namespace, namespace.minute(0));
    assert_eq!(predicted["decision"], "fire", "{predicted}");
    assert_eq!(
        namespace.cron_job().await["metadata"]["resourceVersion"],
        version,
        "nothing is written"
    );
    assert!(namespace.jobs().await.is_empty());

    let controller = Controller::start_before(&namespace, 0);
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    let is_stored = |status: &Value| status["active"].is_array();
    namespace.wait_for_status("the run is recorded", is_stored).await;
    controller.terminate().await;
    assert_job(&predicted["job"], &namespace.jobs().await[0]);
    let mut status = namespace.status().await;
    for unpredictable in ["uid", "resourceVersion"] {
        status["active"][0][unpredictable] = Value::Null;
    }
    let mut predicted_status = predicted["status"].clone();
    predicted_status["active"][0]["resourceVersion"] = Value::Null;
    assert_eq!(predicted_status, status);

    let predicted = explain_at(&namespace, namespace.minute(1));
    assert_eq!(predicted["reason"], "Forbidden", "{predicted}");
    assert_eq!(predicted["status"], Value::Null);
}

/// Checks that the Job contains all predicted fields. The server adds others.
fn assert_job(predicted: &Value, job: &Value) {
    let mut metadata = job["metadata"].clone();
    let annotations = metadata["annotations"].as_object_mut().expect("annotations");
    // Nobody knows in advance which replica creates the Job.
    annotations.retain(|name, _| !name.starts_with("cronwheel.dev/"));
    for member in ["name", "ownerReferences", "annotations"] {
        assert_eq!(predicted["metadata"][member], metadata[member], "{member}");
    }
    let pod = "/spec/template/spec/containers/0/image";
    assert_eq!(predicted.pointer(pod), job.pointer(pod));
}

pub(super) async fn explain_names_a_missing_cron_job(namespace: Namespace) {
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    let output = explain(
        &namespace.control_plane.controller_kubeconfig,
        &["absent", "-n", &namespace.name],
    );
    let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(
        output_text.contains(&format!("CronJob {}/absent is not in the cluster", namespace.name)),
        "{output_text}"
    );
    let output = explain(
        &namespace.control_plane.controller_kubeconfig,
        &["hello", "-n", &namespace.name],
    );
    let output_text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && output_text.contains("every minute"),
        "{output_text}"
    );
}

/// The JSON output of `explain` for an instant.
fn explain_at(namespace: &Namespace, now: Timestamp) -> Value {
    let now = now.to_string();
    let arguments = ["hello", "-n", &namespace.name, "--now", &now, "-o", "json"];
    let output = explain(&namespace.control_plane.controller_kubeconfig, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn explain(kubeconfig: &Path, arguments: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .arg("explain")
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments)
        .output()
        .expect("a process")
}
