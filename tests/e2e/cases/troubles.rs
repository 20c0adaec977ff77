//! CronJobs in trouble, as reported by the metric `cronwheel_cron_job_trouble`.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::{
    controller::Controller,
    kubernetes::{Namespace, job_name, merge, wait},
};

const TROUBLE: &str = "cronwheel_cron_job_trouble";

/// More than the interval between two passes over the CronJobs, with the second until the next turn of the shard.
const LONGER_THAN_A_PASS: SignedDuration = SignedDuration::from_secs(14);

/// Stores a CronJob that cannot run, because its time zone is unknown. It is not due during the case.
async fn store_without_zone(namespace: &Namespace) {
    let spec = json!({"schedule": "0 0 1 1 *", "timeZone": "Mars/Olympus"});
    let metadata = json!({"name": "zoneless", "labels": {"team": "billing"}});
    let changes = json!({"metadata": metadata, "spec": spec});
    namespace.store_cron_job(json!({}), changes).await;
}

/// Creates a CronJob that is due at some minutes of each hour. Its cursor is before the first.
async fn create(namespace: &Namespace, name: &str, minutes: &[i64], life: Value, changes: Value) {
    let minutes: Vec<String> = minutes
        .iter()
        .map(|minute| namespace.minute(*minute).strftime("%-M").to_string())
        .collect();
    let mut object = json!({
        "metadata": {"name": name, "labels": {"team": "billing"}},
        "spec": {"schedule": format!("{} * * * *", minutes.join(","))},
    });
    merge(&mut object, changes);
    namespace.create_cron_job(life, object).await;
    namespace.set_last_run(name, namespace.minute(-1)).await;
}

/// Waits until the metric names exactly these CronJobs and kinds, with their owner.
async fn wait_for_troubles(namespace: &Namespace, controller: &Controller, expected: &[(&str, &str)]) {
    let series = |(cron_job, kind): &(&str, &str)| {
        format!(
            "{TROUBLE}{{cronjob=\"{cron_job}\",kind=\"{kind}\",namespace=\"{}\",owner=\"billing\"}} 1",
            namespace.name
        )
    };
    let expected: Vec<String> = expected.iter().map(series).collect();
    let mut seen = Vec::new();
    let is_reached = wait(async || {
        seen = controller.series(TROUBLE).await;
        seen == expected
    })
    .await;
    assert!(is_reached, "{seen:?}, not {expected:?}");
}

pub(super) async fn trouble_metric_names_a_cron_job_until_the_cause_is_gone(namespace: Namespace) {
    let hanging = json!({"outcome": "hang", "run-for": "0s"});
    let failing = json!({"outcome": "fail", "run-for": "0s"});
    let forbid = json!({
        "metadata": {"annotations": {"cronwheel.dev/blocked-after-seconds": "1"}},
        "spec": {"concurrencyPolicy": "Forbid"},
    });
    create(&namespace, "waiting", &[0, 1], hanging, forbid).await;
    create(&namespace, "wrong", &[0], failing, json!({})).await;
    store_without_zone(&namespace).await;
    let controller = Controller::start_before(&namespace, 0);
    controller.wait_for_account(&[("created", 2)]).await;
    let is_failed = async || {
        let job = namespace.find("Job", &job_name("wrong", namespace.minute(0))).await;
        job.is_some_and(|job| job["status"]["failed"] == 1)
    };
    assert!(wait(is_failed).await, "the Job does not fail");
    controller.terminate().await;

    // The next leader finds the troubles in the objects. At the second minute, Forbid holds a run back.
    let controller = Controller::start(&namespace, 1, &["--trouble-label=team"]);
    let all = [("waiting", "blocked"), ("wrong", "failing"), ("zoneless", "invalid")];
    wait_for_troubles(&namespace, &controller, &all).await;

    namespace.delete_job(&job_name("waiting", namespace.minute(0))).await;
    let succeeding =
        json!({"spec": {"jobTemplate": {"spec": {"template": {"metadata": {"annotations": {"outcome": null}}}}}}});
    namespace.patch("CronJob", "wrong", succeeding).await;
    namespace
        .kubectl(&["create", "job", "by-hand", "--from=cronjob/wrong"])
        .await;
    wait_for_troubles(&namespace, &controller, &all[2..]).await;
    namespace
        .patch("CronJob", "zoneless", json!({"spec": {"timeZone": "Etc/UTC"}}))
        .await;
    wait_for_troubles(&namespace, &controller, &[]).await;
    controller.terminate().await;
}

/// Two controllers, one after the other, find the same CronJob in trouble. Only the one with the metric names it.
pub(super) async fn trouble_metric_is_absent_with_cron_job_metrics_none(namespace: Namespace) {
    store_without_zone(&namespace).await;
    let hanging = json!({"outcome": "hang", "run-for": "0s"});
    create(&namespace, "hello", &[0, 1], hanging, json!({})).await;
    for (minute, metrics, expected) in [(0, "trouble", 1), (1, "none", 0)] {
        // The run comes after a pass over the CronJobs.
        let begin = namespace.minute(minute) - LONGER_THAN_A_PASS;
        let argument = format!("--cron-job-metrics={metrics}");
        let controller = Controller::start_at(&namespace, begin, &[&argument]);
        controller.wait_for_account(&[("created", 1)]).await;
        assert_eq!(controller.series(TROUBLE).await.len(), expected, "{metrics}");
        controller.terminate().await;
    }
}
