//! CronJobs to facts.

use super::*;
use crate::{
    kube_api::objects::resumption::Resumption,
    observe::{facts::CronJobFacts, watch::cron_job::CronJobContent},
    schedule::{
        ConcurrencyPolicy, Zone,
        options::{CatchUp, OptionName, Options},
    },
    shard::{Uid, hash::even_hash},
};

fn cron_job() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {
            "namespace": "shop", "name": "backup", "uid": "cron-job-1", "resourceVersion": "7",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"app": "shop", "team": "a"},
            "managedFields": [
                {"manager": "helm", "time": "2026-02-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:schedule": {}}}},
                {"manager": "kubectl-edit", "time": "2026-03-01T00:00:00Z", "fieldsV1": {"f:spec": {"f:suspend": {}}}},
                {"manager": "cronwheel", "subresource": "status", "time": "2026-04-01T00:00:00Z", "fieldsV1": {"f:status": {}}},
                {"manager": "labels", "time": "2026-05-01T00:00:00Z", "fieldsV1": {"f:metadata": {}}},
                {"manager": "odd", "subresource": "x", "time": "2026-06-01T00:00:00Z", "fieldsV1": {"f:spec": {}}},
            ],
        },
        "spec": {
            "schedule": "0 2 * * *", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 60,
            "concurrencyPolicy": "Forbid", "suspend": true,
            "successfulJobsHistoryLimit": 7, "failedJobsHistoryLimit": 0,
            "jobTemplate": {"spec": {
                "activeDeadlineSeconds": 600, "ttlSecondsAfterFinished": 30,
                "template": {"spec": {"activeDeadlineSeconds": 500, "containers": [{"name": "c"}]}},
            }},
        },
        "status": {"lastScheduleTime": "2026-11-27T01:00:00Z", "lastSuccessfulTime": "2026-11-26T01:00:30Z", "active": []},
    })
}

fn facts_of(cron_job: &Value) -> CronJobFacts {
    let slim: Slim<CronJobContent> = received(cron_job);
    let content = slim.content.content.unwrap().expect("a CronJob");
    content.into_facts(&Zone::load("Asia/Tokyo").unwrap())
}

#[test]
fn options_are_read_from_the_annotations() {
    let mut cron_job = cron_job();
    assert!(!facts_of(&cron_job).schedule.has_options());
    cron_job["metadata"]["annotations"] = json!({
        "kubectl.kubernetes.io/last-applied-configuration": "{}",
        "cronwheel.dev/spread": "10m", "cronwheel.dev/missed-runs": "all 5", "cronwheel.dev/on-resume": "never",
        "cronwheel.dev/pass-scheduled-time": true, "cronwheel.dev/not-on": "holidays",
        "cronwheel.dev/manual-jobs": "count",
    });
    let facts = facts_of(&cron_job);
    let options = facts.schedule.options();
    assert_eq!(
        (options.spread_seconds, options.missed_runs),
        (Some(600), CatchUp::All(5))
    );
    let not_on = options.not_on.as_ref().map(|not_on| &*not_on.name);
    assert_eq!((not_on, options.counts_manual_jobs), (Some("holidays"), true));
    let invalid: Vec<_> = options.invalid.iter().map(|invalid| invalid.option).collect();
    assert_eq!(invalid, [OptionName::OnResume]);
    let hash = even_hash(facts.uid.to_string().as_bytes());
    assert_eq!(
        options.offset_seconds,
        Options::read(|_| Some("10m"), None, hash).offset_seconds
    );
}

#[test]
fn complete_cron_job_becomes_facts() {
    let facts = facts_of(&cron_job());
    assert_eq!(
        (&*facts.namespace, &*facts.name, facts.uid),
        ("shop", "backup", Uid::new("cron-job-1"))
    );
    let labels: Vec<_> = facts.labels.iter().collect();
    assert_eq!(labels, [("app", "shop"), ("team", "a")]);
    assert_eq!((facts.created, facts.is_deleting), (at("2026-01-02T03:04:05Z"), false));
    assert_eq!(
        (&*facts.schedule.text, facts.schedule.time_zone.as_deref()),
        ("0 2 * * *", Some("Europe/Berlin"))
    );
    assert!(facts.schedule.parsed.is_ok());
    assert_eq!(facts.starting_deadline_seconds, Some(60));
    assert_eq!(facts.concurrency_policy, ConcurrencyPolicy::Forbid);
    assert!(facts.is_suspended);
    assert_eq!(
        (facts.successful_jobs_history_limit, facts.failed_jobs_history_limit),
        (7, 0)
    );
    assert!(facts.has_active_deadline);
    assert_eq!(facts.ttl_seconds_after_finished, Some(30));
    assert_eq!(facts.last_schedule_time, Some(at("2026-11-27T01:00:00Z")));
    assert_eq!(facts.last_successful_time, Some(at("2026-11-26T01:00:30Z")));
    assert_eq!(
        facts.spec_changed,
        Some(at("2026-03-01T00:00:00Z")),
        "the last change of any field of the spec"
    );
}

#[test]
fn the_client_that_set_suspend_tells_of_the_resumption() {
    let mut resumed = cron_job();
    assert_eq!(facts_of(&resumed).resumption, None, "it is suspended");
    resumed["spec"]["suspend"] = false.into();
    resumed["metadata"]["managedFields"][1]["operation"] = "Update".into();
    let changed = at("2026-03-01T00:00:00Z");
    assert_eq!(facts_of(&resumed).resumption, Some(Resumption::At(changed)));
    for pointer in ["/f:spec/f:schedule", "/f:metadata"] {
        let mut several = resumed.clone();
        let fields = &mut several["metadata"]["managedFields"][1]["fieldsV1"];
        if pointer == "/f:metadata" {
            fields["f:metadata"] = json!({"f:annotations": {}});
        } else {
            fields["f:spec"]["f:schedule"] = json!({});
        }
        assert_eq!(
            facts_of(&several).resumption,
            Some(Resumption::Perhaps(changed)),
            "{pointer}"
        );
    }
}

#[test]
fn no_member_of_a_cron_job_stops_the_list() {
    assert_lenient::<CronJobContent>(&cron_job());
}

#[test]
fn absent_members_have_their_defaults() {
    let metadata =
        json!({"namespace": "shop", "name": "backup", "uid": "1", "creationTimestamp": "2026-01-02T03:04:05Z"});
    let facts = facts_of(&json!({"metadata": metadata}));
    assert!(facts.schedule.parsed.is_err(), "no schedule is an invalid one");
    assert_eq!(facts.schedule.default_zone.name(), "Asia/Tokyo");
    assert_eq!(facts.starting_deadline_seconds, None);
    assert_eq!(facts.concurrency_policy, ConcurrencyPolicy::Allow);
    assert!(!facts.is_suspended && !facts.is_deleting && !facts.has_active_deadline);
    assert_eq!(
        (facts.successful_jobs_history_limit, facts.failed_jobs_history_limit),
        (3, 1)
    );
    assert_eq!((facts.last_schedule_time, facts.spec_changed), (None, None));
}

#[test]
fn member_of_a_wrong_type_is_absent_and_noted() {
    let number = json!(5);
    for (pointer, field) in [
        ("/spec/schedule", "spec.schedule"),
        ("/spec/timeZone", "spec.timeZone"),
        ("/spec/suspend", "spec.suspend"),
        ("/spec/concurrencyPolicy", "spec.concurrencyPolicy"),
        ("/spec/jobTemplate", "spec.jobTemplate"),
        ("/spec/jobTemplate/spec", "spec.jobTemplate.spec"),
        ("/status/lastScheduleTime", "status.lastScheduleTime"),
        ("/status", "status"),
        ("/metadata/labels", "metadata.labels"),
        ("/metadata/labels/app", "metadata.labels"),
    ] {
        let slim: Slim<CronJobContent> = received(&with(cron_job(), pointer, number.clone()));
        assert_eq!(fields(&slim), [field], "{pointer}");
        assert!(matches!(slim.content.content, Ok(Some(_))), "{pointer}");
    }
    let far = with(cron_job(), "/spec/startingDeadlineSeconds", json!(1e300));
    assert_eq!(facts_of(&far).starting_deadline_seconds, None);
    let negative = with(cron_job(), "/spec/startingDeadlineSeconds", json!(-1));
    assert_eq!(facts_of(&negative).starting_deadline_seconds, Some(0));
    let limit = with(cron_job(), "/spec/failedJobsHistoryLimit", json!(-1));
    assert_eq!(facts_of(&limit).failed_jobs_history_limit, u32::MAX, "keeps all");
}

#[test]
fn deadline_of_the_job_or_of_its_pod_counts() {
    for (job, pod, expected) in [
        (json!(5), json!(null), true),
        (json!(null), json!(5), true),
        (json!(null), json!(null), false),
    ] {
        let template = "/spec/jobTemplate/spec";
        let cron_job = with(cron_job(), &format!("{template}/activeDeadlineSeconds"), job);
        let cron_job = with(
            cron_job,
            &format!("{template}/template/spec/activeDeadlineSeconds"),
            pod,
        );
        assert_eq!(facts_of(&cron_job).has_active_deadline, expected, "{cron_job}");
    }
}

#[test]
fn deletion_is_noticed() {
    let deleting = with(cron_job(), "/metadata/deletionTimestamp", json!("2026-11-27T10:00:00Z"));
    assert!(facts_of(&deleting).is_deleting);
}

#[test]
fn markup_is_only_text() {
    let name = "<img src=x onerror=alert(1)>";
    let facts = facts_of(&with(cron_job(), "/metadata/labels/app", json!(name)));
    assert_eq!(facts.labels.get("app"), Some(name));
}
