//! Tests of the evidence of the built-in controller.

use serde_json::{Value, json};

use super::{at, cron_job, job, line};
use crate::{
    cli::check::{
        built_in::{Evidence, HeldLease, identity},
        finding::Unread,
    },
    kube_api::JsonError,
};

const NONE: &str = "! built-in controller: no CronJob and no Job shows a controller that runs CronJobs -> create a \
                    CronJob that runs every minute and repeat the check after a minute";

fn managed(manager: &str, subresource: Value, field: &str, time: &str) -> Value {
    let time = at(time).to_string();
    json!({"metadata": {"managedFields": [
        {"manager": manager, "subresource": subresource, "time": time, "fieldsV1": {field: {}}},
    ]}})
}

fn finding(evidence: &Evidence) -> String {
    line(&evidence.finding(&Ok(None), at("10:00:00")))
}

#[test]
fn status_writes_and_created_jobs_show_the_controller() {
    let now = at("10:00:00");
    let mut evidence = Evidence::default();
    let status = |manager: &str, time: &str| cron_job(managed(manager, json!("status"), "f:status", time));
    evidence.add_cron_job(&status("cronwheel", "09:59:00"), now);
    evidence.add_cron_job(&status("kubectl-edit", "09:59:00"), now);
    evidence.add_cron_job(&cron_job(managed("helm", Value::Null, "f:spec", "09:59:00")), now);
    // Nobody writes at a time that has not come.
    evidence.add_cron_job(&status("forger", "11:00:00"), now);
    assert_eq!(finding(&evidence), NONE);
    evidence.add_cron_job(&status("kube-controller-manager", "09:00:01"), now);
    assert_eq!(
        finding(&evidence),
        "✓ built-in controller: not seen in the last 10 minutes: kube-controller-manager wrote the status of CronJob \
         shop/report 59m 59s ago"
    );
    let created = |minutes, time| job(minutes, managed("kube-controller-manager", Value::Null, "f:spec", time));
    evidence.add_job(&created(29_632_919, "09:59:01"), now);
    evidence.add_job(&created(29_632_918, "09:58:01"), now);
    let expected = "✓ built-in controller: at work: kube-controller-manager created Job shop/report-29632919 59s ago";
    assert_eq!(finding(&evidence), expected);
    let lease = json!({"spec": {"holderIdentity": "master-1_7c2e", "renewTime": "2026-05-05T09:59:58.000000Z"}});
    assert_eq!(
        line(&evidence.finding(&Ok(HeldLease::read(&lease)), now)),
        format!("{expected}; Lease kube-system/kube-controller-manager of master-1, renewed 2s ago")
    );
}

#[test]
fn jobs_that_no_controller_created_are_no_evidence() {
    let mut evidence = Evidence::default();
    let by = |field| managed("kube-controller-manager", Value::Null, field, "09:59:00");
    // The Job controller writes the status of every Job.
    evidence.add_job(&job(29_632_919, by("f:status")), at("10:00:00"));
    let manual = super::with(by("f:spec"), json!({"metadata": {"name": "by-hand"}}));
    evidence.add_job(&job(29_632_919, manual), at("10:00:00"));
    let unowned = super::with(by("f:spec"), json!({"metadata": {"ownerReferences": []}}));
    evidence.add_job(&job(29_632_919, unowned), at("10:00:00"));
    assert_eq!(finding(&evidence), NONE);
    let event = |manager: &str, member: &str, time: &str| {
        let by = managed(manager, Value::Null, "f:reason", "09:40:00");
        super::with(
            by,
            json!({"source": {"component": "cronjob-controller"}, member: format!("2026-05-05T{time}Z")}),
        )
    };
    // cronwheel names the same component.
    evidence.add_event(&event("cronwheel", "lastTimestamp", "09:55:00"), at("10:00:00"));
    assert_eq!(finding(&evidence), NONE);
    evidence.add_event(
        &event("kube-controller-manager", "lastTimestamp", "09:50:00"),
        at("10:00:00"),
    );
    evidence.add_event(
        &event("kube-controller-manager", "eventTime", "09:40:00.123456"),
        at("10:00:00"),
    );
    assert_eq!(finding(&evidence), "✓ built-in controller: emitted an Event 10m ago");
}

#[test]
fn unread_evidence_is_named() {
    let error = JsonError::Refused {
        code: 403,
        message: "no".to_owned(),
    };
    let unread = Unread::new("list jobs in all namespaces", &error);
    let mut evidence = Evidence::default();
    evidence.unread.push(unread.clone());
    let text = finding(&evidence);
    assert!(
        text.starts_with("! built-in controller: not checked: the account may not list jobs"),
        "{text}"
    );
    assert!(line(&identity(&Err(unread))).starts_with("! built-in identity: not checked"));
    assert!(line(&identity(&Ok(true))).contains("system:serviceaccount:kube-system:cronjob-controller"));
    assert!(line(&identity(&Ok(false))).contains("probably system:kube-controller-manager"));
}
