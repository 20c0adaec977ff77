//! Table tests of the judgements: facts in, findings out.

mod annotations;
mod built_in;
mod canary;
mod cluster;
mod freezes;
mod installation;
mod options;
mod policy;
mod switch;

use serde_json::{Value, json};

use super::finding::Finding;

/// Formats a finding as in the report, with its remedy after an arrow.
fn line(finding: &Finding) -> String {
    let Finding {
        severity,
        title,
        reason,
        mend,
    } = finding;
    let mend = mend.as_ref().map(|mend| format!(" -> {mend}")).unwrap_or_default();
    format!("{} {title}: {reason}{mend}", severity.sign())
}

fn at(time: &str) -> jiff::Timestamp {
    format!("2026-05-05T{time}Z").parse().unwrap()
}

/// Merges objects member by member, as a merge patch does.
fn with(mut object: Value, changes: Value) -> Value {
    match (&mut object, changes) {
        (Value::Object(members), Value::Object(changes)) => {
            for (name, change) in changes {
                let before = members.remove(&name).unwrap_or(Value::Null);
                members.insert(name, with(before, change));
            }
            object
        }
        (_, changes) => changes,
    }
}

/// The CronJob `shop/report`, which runs every hour and ran last at 09:00.
fn cron_job(changes: Value) -> Value {
    let object = json!({
        "metadata": {
            "name": "report", "namespace": "shop", "uid": "aaaaaaaa-0000-0000-0000-000000000001",
            "resourceVersion": "7", "creationTimestamp": "2026-05-01T00:00:00Z",
        },
        "spec": {
            "schedule": "0 * * * *", "timeZone": "Etc/UTC", "concurrencyPolicy": "Allow", "suspend": false,
            "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}],
            }}}},
        },
        "status": {"lastScheduleTime": "2026-05-05T09:00:00Z"},
    });
    with(object, changes)
}

/// The running Job of a slot of `shop/report`, in minutes since the epoch; 09:00 is 29632860.
fn job(minutes: i64, changes: Value) -> Value {
    let slot = jiff::Timestamp::from_second(minutes * 60).unwrap().to_string();
    let object = json!({
        "metadata": {
            "name": format!("report-{minutes}"), "namespace": "shop", "uid": format!("job-{minutes}"),
            "resourceVersion": "20", "creationTimestamp": slot,
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "report", "controller": true,
                "uid": "aaaaaaaa-0000-0000-0000-000000000001",
            }],
        },
        "spec": {},
        "status": {"startTime": slot},
    });
    with(object, changes)
}
