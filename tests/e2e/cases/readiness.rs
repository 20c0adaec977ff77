//! `check --pre` on a cluster: it reads everything, and says what the switch would do. And `check --canary`, interrupted.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::kubernetes::{Namespace, wait};

pub(super) async fn pre_names_what_would_start_at_once(namespace: Namespace) {
    let cron_job = json!({"spec": {"timeZone": "Asia/Tokyo", "failedJobsHistoryLimit": 0}});
    namespace.create_cron_job(json!({"run-for": "1s"}), cron_job).await;
    let missed = json!({"lastScheduleTime": namespace.minute(-2).to_string()});
    namespace.patch_status(missed).await;
    let version = namespace.cron_job().await["metadata"]["resourceVersion"].clone();

    let report = pre(&namespace, &namespace.control_plane.admin_kubeconfig);
    assert_eq!(report["failed"], 0, "{report:#}");
    for (title, severity, text) in [
        ("server version", "fine", "at least v1.30"),
        ("clock", "fine", "agrees"),
        ("admission policies", "fine", "is served"),
        ("priority and fairness", "fine", "is served"),
        ("rights to grant", "fine", "22 rights"),
        ("rights to install", "fine", "rights to install the chart"),
        ("CronJobs", "fine", "1 CronJob"),
        ("starts at once", "warning", "/hello (due "),
        ("short-lived Jobs", "warning", "/hello"),
        ("can run", "fine", "every CronJob"),
    ] {
        let found = finding(&report, title);
        assert_eq!(found["severity"], severity, "{report:#}");
        assert!(found["reason"].as_str().expect("a text").contains(text), "{found}");
    }
    assert_eq!(
        namespace.cron_job().await["metadata"]["resourceVersion"],
        version,
        "nothing is written"
    );
    assert!(namespace.jobs().await.is_empty());
    // The account of an installation may not install one.
    let report = pre(&namespace, &namespace.control_plane.controller_kubeconfig);
    assert_eq!(
        finding(&report, "rights to install")["severity"],
        "warning",
        "{report:#}"
    );
    assert_eq!(finding(&report, "starts at once")["severity"], "warning", "{report:#}");
}

fn finding<'a>(report: &'a Value, title: &str) -> &'a Value {
    let checks = report["checks"].as_array().expect("checks");
    let mut found = checks.iter().filter(|check| check["title"] == title);
    found.next().unwrap_or_else(|| panic!("no check {title} in {report:#}"))
}

fn pre(namespace: &Namespace, kubeconfig: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .args(["check", "--pre", "-o", "json", "-n", &namespace.name, "--kubeconfig"])
        .arg(kubeconfig)
        .output()
        .expect("a process");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

pub(super) async fn interrupted_canary_is_removed(namespace: Namespace) {
    let canary = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .args(["check", "--canary", "-o", "json", "--kubeconfig"])
        .arg(&namespace.control_plane.admin_kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process");
    let n_left = async |kind: &str| {
        let arguments = ["get", kind, "-A", "-l", "cronwheel.dev/canary", "-o", "name"];
        namespace.kubectl(&arguments).await.lines().count()
    };
    assert!(wait(async || n_left("cronjobs").await == 2).await, "no canary");
    let process = rustix::process::Pid::from_child(&canary);
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("it runs");
    let output = canary.wait_with_output().expect("an end");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // It showed nothing, so a script must not go on.
    assert_eq!(output.status.code(), Some(1), "{report:#}");
    assert_eq!(finding(&report, "canary")["severity"], "failed", "{report:#}");
    assert_eq!(finding(&report, "removed")["severity"], "fine", "{report:#}");
    assert!(
        wait(async || n_left("namespaces").await == 0).await,
        "namespaces are left"
    );
}
