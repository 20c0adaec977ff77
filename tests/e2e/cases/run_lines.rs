//! The lines of the log about runs: those that were lost, and those that started.

use std::fs::{self, File};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::refusals::{allow_no_jobs, at_most, hanging};
use crate::{controller::Controller, kubernetes::Namespace};

/// A slot that the API server refuses is lost to the next one, three seconds later. A slot starts after the quota is raised.
pub(super) async fn lost_runs_and_jobs_have_their_lines(namespace: Namespace) {
    allow_no_jobs(&namespace).await;
    let changes = json!({"spec": {"schedule": "@every 3s"}});
    namespace.create_cron_job(hanging(), changes).await;
    let secs = SignedDuration::from_secs;
    let last = namespace.minute(0);
    namespace.set_last_run("hello", last - secs(6)).await;
    let path = std::env::temp_dir().join(format!("{}.log", namespace.name));
    let lease_namespace = format!("--lease-namespace={}", namespace.name);
    let arguments = [
        &*lease_namespace,
        "--log-runs=all",
        "--log-format=json",
        "--log-level=info",
    ];
    let log = File::create(&path).expect("a file");
    let controller = Controller::start_replica_with_log(&namespace, 0, &arguments, log);
    let refused = [("outcome", "refused")];
    controller
        .wait_for_metric("cronwheel_instant_outcomes_total", &refused, |n| n >= 1)
        .await;
    namespace.patch("ResourceQuota", "jobs", at_most("5")).await;
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    controller.terminate().await;

    let text = fs::read_to_string(&path).expect("the log");
    fs::remove_file(&path).expect("a removal");
    let lines: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let with = |message: &str| lines.iter().find(|line| line["message"] == message);
    let lost_line = with("a run was lost").unwrap_or_else(|| panic!("no lost run in {text}"));
    // On a busy machine, the first slot of the controller is a later one.
    let instant = |field: &str| {
        lost_line[field]
            .as_str()
            .and_then(|text| text.parse::<Timestamp>().ok())
    };
    let (slot, next) = (instant("slot").expect("a slot"), instant("next").expect("a next slot"));
    assert_eq!(slot.duration_since(last).as_secs() % 3, 0, "{lost_line}");
    assert_eq!(next.duration_since(slot), secs(3), "{lost_line}");
    for (field, expected) in [
        ("namespace", &*namespace.name),
        ("cronjob", "hello"),
        ("outcome", "refused"),
        ("level", "WARN"),
    ] {
        assert_eq!(lost_line[field], expected, "{lost_line}");
    }
    let error = lost_line["error"].as_str().unwrap_or_default();
    assert!(error.contains("exceeded quota: jobs"), "{lost_line}");
    assert!(
        lost_line["shard"].is_u64() && lost_line["term"].as_u64() >= Some(1),
        "{lost_line}"
    );

    let started: Vec<&Value> = lines.iter().filter(|line| line["message"] == "a run started").collect();
    assert_eq!(started.len(), 1, "{text}");
    let job = namespace.job_name(0);
    assert_eq!(started[0]["job"], *job, "{}", started[0]);
    assert_eq!(started[0]["outcome"], "created", "{}", started[0]);
}
