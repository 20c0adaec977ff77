//! Runs that users ask for by `cronwheel trigger`, and Jobs that `kubectl create job` creates.

use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::{Value, json};

use super::options::run;
use crate::{
    controller::Controller,
    kubernetes::{Namespace, merge},
};

/// A CronJob whose next slot is far away.
async fn create(namespace: &Namespace, name: &str, life: Value, changes: Value) {
    let mut object = json!({"metadata": {"name": name}, "spec": {"schedule": "0 0 29 2 *"}});
    merge(&mut object, changes);
    namespace.create_cron_job(life, object).await;
}

/// Runs `cronwheel trigger` on a CronJob of the namespace. Returns its output, or its error.
async fn trigger(namespace: &Namespace, arguments: &[&str]) -> Result<String, String> {
    let all = [&["trigger"], arguments, &["-n", &namespace.name]].concat();
    run(namespace, true, &all).await
}

/// The name of the Job in the first line of the output.
fn job_of(output: &str) -> String {
    let first = output.lines().next().unwrap_or_default();
    let (_, job) = first.split_once(": job ").unwrap_or_else(|| panic!("{output}"));
    job.to_owned()
}

/// The latest token of the CronJob that is answered.
fn latest_answered(cron_job: &Value) -> &str {
    let answered = cron_job["metadata"]["annotations"]["cronwheel.dev/run-now-done"].as_str();
    answered.and_then(|tokens| tokens.split(',').next()).unwrap_or_default()
}

pub(super) async fn a_run_that_is_asked_for_starts_once_also_after_a_restart(namespace: Namespace) {
    let life = json!({"outcome": "complete", "run-for": "1s"});
    create(&namespace, "hello", life, json!({"spec": {"suspend": true}})).await;
    let not_taken_up = trigger(&namespace, &["hello"]).await.unwrap_err();
    assert!(
        not_taken_up.contains("no controller took the run up") && not_taken_up.contains("cronwheel.dev/run-now-"),
        "{not_taken_up}"
    );
    let controller = Controller::start(&namespace, 0, &[]);
    // The run of the first call starts when a controller comes.
    controller
        .wait_for_metric("cronwheel_runs_asked_for_total", &[("result", "created")], |n| n == 1)
        .await;
    let text = trigger(&namespace, &["hello", "--wait"]).await.expect("a run");
    let name = job_of(&text);
    assert!(
        text.contains(&format!("job {name} was created\njob {name} is complete")),
        "{text}"
    );
    let job = namespace.find("Job", &name).await.expect("the Job");
    let annotations = &job["metadata"]["annotations"];
    let token = annotations["cronwheel.dev/run-now"]
        .as_str()
        .expect("the token")
        .to_owned();
    assert_eq!(
        annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"],
        Value::Null
    );
    let cron_job = namespace.cron_job().await;
    assert_eq!(cron_job["metadata"]["annotations"]["cronwheel.dev/run-now"], token);
    assert_eq!(latest_answered(&cron_job), token);
    let ended = |status: &Value| status["lastSuccessfulTime"].is_string() && status["active"].is_null();
    namespace.wait_for_status("the end is stored", ended).await;
    assert_eq!(namespace.status().await["lastScheduleTime"], Value::Null);
    // The status write after the end has kept the token.
    assert_eq!(latest_answered(&namespace.cron_job().await), token);

    for job in namespace.job_names().await {
        namespace.delete_job(&job).await;
    }
    controller.kill();
    let controller = Controller::start(&namespace, 1, &[]);
    controller.wait_until_leading().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(namespace.job_names().await, Vec::<String>::new());
    controller.terminate().await;
}

pub(super) async fn runs_that_are_asked_for_obey_forbid_and_replace(namespace: Namespace) {
    let hanging = || json!({"outcome": "hang", "run-for": "0s"});
    let policy = |policy: &str| json!({"spec": {"concurrencyPolicy": policy}});
    create(&namespace, "forbid", hanging(), policy("Forbid")).await;
    create(&namespace, "replace", hanging(), policy("Replace")).await;
    let mut counting = policy("Forbid");
    merge(
        &mut counting,
        json!({"metadata": {"annotations": {"cronwheel.dev/manual-jobs": "count"}}}),
    );
    create(&namespace, "counting", hanging(), counting).await;
    let controller = Controller::start(&namespace, 0, &[]);
    let first = job_of(&trigger(&namespace, &["forbid"]).await.expect("a run"));
    let refused = trigger(&namespace, &["forbid"]).await.unwrap_err();
    let expected = format!("job {first} is running and concurrency policy is Forbid");
    assert!(
        refused.contains("the run did not start: ") && refused.contains(&expected),
        "{refused}"
    );
    let message = namespace.wait_for_event_on("forbid", "RunNowRefused").await;
    assert!(message.contains(&expected), "{message}");

    let replaced = job_of(&trigger(&namespace, &["replace"]).await.expect("a run"));
    let second = job_of(&trigger(&namespace, &["replace"]).await.expect("a run"));
    namespace.wait_until_gone("Job", &replaced).await;

    // kubectl sets the CronJob as the controller of the Job.
    let by_hand = ["create", "job", "by-hand", "--from=cronjob/counting"];
    namespace.kubectl(&by_hand).await;
    let is_active = |status: &Value| status["active"][0]["name"] == "by-hand";
    namespace
        .wait_for_status_of("counting", "the Job of kubectl is active", is_active)
        .await;
    let refused = trigger(&namespace, &["counting"]).await.unwrap_err();
    assert!(refused.contains("job by-hand is running"), "{refused}");
    let mut expected = vec!["by-hand".to_owned(), first, second];
    expected.sort();
    let mut names = namespace.job_names().await;
    names.sort();
    assert_eq!(names, expected);
    namespace
        .delete("CronJob", "counting", DeleteParams::background())
        .await;
    controller.terminate().await;
}
