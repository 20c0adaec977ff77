//! Jobs to runs.

use super::*;
use crate::{
    observe::{
        facts::{Creator, Hindrance, Run, RunResult},
        watch::job::JobContent,
    },
    shard::Uid,
};

/// 2026-11-27T10:00:00Z in minutes.
const MINUTES: i64 = 29_929_560;

fn job() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "namespace": "shop", "name": format!("backup-{MINUTES}"), "uid": "job-1", "resourceVersion": "7",
            "creationTimestamp": "2026-11-27T10:00:02Z",
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-11-27T11:00:00+01:00"},
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": "backup", "uid": "cron-job-1", "controller": true,
            }],
            "finalizers": [],
            "managedFields": [
                {"manager": "kube-controller-manager", "operation": "Update", "time": "2026-11-27T10:00:02Z",
                 "fieldsV1": {"f:spec": {"f:template": {}}}},
                {"manager": "kube-controller-manager", "operation": "Update", "time": "2026-11-27T10:00:40Z",
                 "subresource": "status", "fieldsV1": {"f:status": {}}},
            ],
        },
        "spec": {"suspend": false},
        "status": {
            "startTime": "2026-11-27T10:00:03Z", "completionTime": "2026-11-27T10:00:40Z",
            "conditions": [
                {"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": "2026-11-27T10:00:39Z"},
                {"type": "Complete", "status": "True", "lastTransitionTime": "2026-11-27T10:00:41Z"},
            ],
        },
    })
}

fn run_of(job: &Value) -> Run {
    let slim: Slim<JobContent> = received(job);
    slim.content.content.unwrap().expect("a Job of a CronJob").0
}

#[test]
fn complete_job_becomes_a_run() {
    let expected = Run {
        job_uid: Uid::new("job-1"),
        job_name: format!("backup-{MINUTES}").into(),
        cron_job: Uid::new("cron-job-1"),
        slot: Some(at("2026-11-27T10:00:00Z")),
        created: at("2026-11-27T10:00:02Z"),
        started: Some(at("2026-11-27T10:00:03Z")),
        finished: Some(at("2026-11-27T10:00:40Z")),
        result: RunResult::Succeeded,
        creator: Creator::BuiltIn,
        hindrance: None,
    };
    assert_eq!(run_of(&job()), expected);
}

#[test]
fn the_job_of_a_run_that_was_asked_for_has_no_slot_and_is_not_of_a_controller() {
    let mut job = job();
    job["metadata"]["name"] = json!("backup-run-222222");
    job["metadata"]["annotations"] =
        json!({"cronwheel.dev/run-now": "t1", "cronwheel.dev/created-by": "cronwheel/cronwheel"});
    job["metadata"]["managedFields"] = json!([{"manager": "cronwheel", "operation": "Update"}]);
    let run = run_of(&job);
    assert_eq!(run.slot, None);
    assert_eq!(run.creator, Creator::Other("cronwheel trigger".into()));
}

#[test]
fn no_member_of_a_job_stops_the_list() {
    assert_lenient::<JobContent>(&job());
}

#[test]
fn jobs_without_a_cron_job_as_controller_are_dropped() {
    let owner = "/metadata/ownerReferences";
    for (pointer, value) in [
        (owner, json!([])),
        (owner, json!(null)),
        ("/metadata/ownerReferences/0/controller", json!(false)),
        ("/metadata/ownerReferences/0/controller", json!(null)),
        ("/metadata/ownerReferences/0/kind", json!("Workflow")),
        ("/metadata/ownerReferences/0/apiVersion", json!("example.com/v1")),
        ("/metadata/ownerReferences/0/uid", json!("")),
    ] {
        let slim: Slim<JobContent> = received(&with(job(), pointer, value.clone()));
        assert_eq!(slim.content.content, Ok(None), "{pointer} {value}");
        assert_eq!(
            slim.uid,
            Some(Uid::new("job-1")),
            "a Job that was of a CronJob before is removed by its uid"
        );
    }
}

#[test]
fn slot_comes_from_the_annotation_or_the_name() {
    let annotation = "/metadata/annotations/batch.kubernetes.io~1cronjob-scheduled-timestamp";
    let slot_of = |name: &str, scheduled: Value| {
        let mut job = with(job(), "/metadata/name", json!(name));
        *job.pointer_mut(annotation).unwrap() = scheduled;
        run_of(&job).slot.map(|slot| slot.to_string())
    };
    let ten = Some("2026-11-27T10:00:00Z".to_owned());
    let name = format!("backup-{MINUTES}");
    for (name, scheduled, expected) in [
        ("anything", json!("2026-11-27T10:00:00Z"), ten.clone()),
        (&name, json!("no time"), ten.clone()),
        (&name, json!(7), ten.clone()),
        (&name, json!(null), ten.clone()),
        (
            &format!("{name}-15"),
            json!(null),
            Some("2026-11-27T10:00:15Z".to_owned()),
        ),
        (&format!("{name}-5"), json!(null), None),
        (&format!("{name}-60"), json!(null), None),
        (&format!("{name}-9223372036854775807"), json!(null), None),
        ("backup-by-hand", json!(null), None),
        ("backup", json!(null), None),
        ("backup-", json!(null), None),
        // A date at the end of a name of `kubectl create job` is no slot.
        ("backup-2026", json!(null), None),
        ("backup-20261127", json!(null), None),
        ("backup-99999999999999999999", json!(null), None),
        ("backup-9223372036854775807", json!(null), None),
        (&format!("other-{MINUTES}"), json!(null), None),
        (&format!("backup-0{MINUTES}"), json!(null), None),
        (&format!("backup-+{MINUTES}"), json!(null), None),
    ] {
        assert_eq!(slot_of(name, scheduled.clone()), expected, "{name} {scheduled}");
    }
}

#[test]
fn condition_decides_the_end() {
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "BackoffLimitExceeded",
               "lastTransitionTime": "2026-11-27T10:00:50Z"})
    };
    let failed = RunResult::Failed("BackoffLimitExceeded".into());
    for (conditions, expected, finished) in [
        (
            json!([condition("Complete", "True")]),
            RunResult::Succeeded,
            Some("2026-11-27T10:00:40Z"),
        ),
        (
            json!([condition("Failed", "True")]),
            failed.clone(),
            Some("2026-11-27T10:00:50Z"),
        ),
        (json!([condition("FailureTarget", "True")]), RunResult::Running, None),
        (
            json!([condition("Complete", "False"), condition("Failed", "True")]),
            failed,
            Some("2026-11-27T10:00:50Z"),
        ),
        (
            json!([{"type": "Failed", "status": "True"}]),
            RunResult::Failed("".into()),
            Some("2026-11-27T10:00:40Z"),
        ),
        (json!(["Complete", {"type": 5}]), RunResult::Running, None),
        (json!(null), RunResult::Running, None),
    ] {
        let run = run_of(&with(job(), "/status/conditions", conditions.clone()));
        assert_eq!((run.result, run.finished), (expected, finished.map(at)), "{conditions}");
    }
}

#[test]
fn hindrance_is_that_of_a_job_that_has_not_ended() {
    let deleted = json!("2026-11-27T10:00:30Z");
    let held = Hindrance::HeldByFinalizers("example.com/a, foregroundDeletion".into());
    let finalizers = json!(["example.com/a", 5, "foregroundDeletion"]);
    for (suspend, deleted, finalizers, expected) in [
        (false, json!(null), json!([]), None),
        (true, json!(null), json!([]), Some(Hindrance::Suspended)),
        (true, deleted.clone(), json!([]), Some(Hindrance::Terminating)),
        (false, deleted.clone(), finalizers.clone(), Some(held)),
        (false, json!(null), finalizers.clone(), None),
    ] {
        let job = with(job(), "/spec/suspend", json!(suspend));
        let job = with(job, "/metadata/deletionTimestamp", deleted);
        let job = with(job, "/metadata/finalizers", finalizers);
        assert_eq!(run_of(&job).hindrance, None, "the Job has ended");
        let job = with(job, "/status/conditions", json!([]));
        assert_eq!(run_of(&job).hindrance, expected, "{job}");
    }
}

#[test]
fn creator_is_the_owner_of_the_pod_template() {
    let entry = |manager: &str, time: &str, fields: Value| json!({"manager": manager, "time": format!("2026-11-27T{time}Z"), "fieldsV1": fields});
    let template = json!({"f:spec": {"f:template": {}}});
    let status = json!({"manager": "kube-controller-manager", "subresource": "status", "time": "2026-11-27T10:00:00Z"});
    let mark = json!({"cronwheel.dev/created-by": "kube-system/cronwheel"});
    let old_mark = json!({"cronwheel.dev/created-under": "shard 5"});
    for (entries, annotations, expected) in [
        (
            json!([status, entry("kubectl-create", "10:00:02", template.clone())]),
            json!({}),
            Creator::Other("kubectl-create".into()),
        ),
        (
            json!([
                entry("kubectl-annotate", "10:00:01", json!({})),
                entry("kube-controller-manager", "10:00:05", template.clone())
            ]),
            json!({}),
            Creator::BuiltIn,
        ),
        (
            json!([entry("cronwheel", "10:00:02", template.clone())]),
            json!({}),
            Creator::Cronwheel,
        ),
        (
            json!([entry("admission", "10:00:02", template.clone())]),
            mark.clone(),
            Creator::Cronwheel,
        ),
        (json!([]), old_mark, Creator::Cronwheel),
        (
            json!([entry("cronwheel", "10:00:02", template.clone())]),
            json!({"cronwheel.dev/created-under": "backfill"}),
            Creator::backfill(),
        ),
        // The built-in controller copies the annotations of a template.
        (
            json!([entry("kube-controller-manager", "10:00:02", template)]),
            mark,
            Creator::BuiltIn,
        ),
        (
            json!([
                entry("second", "10:00:03", json!({})),
                entry("first", "10:00:02", json!(5))
            ]),
            json!({}),
            Creator::Other("first".into()),
        ),
        (json!(null), json!({}), Creator::Other("unknown".into())),
    ] {
        let job = with(job(), "/metadata/managedFields", entries.clone());
        let job = with(job, "/metadata/annotations", annotations);
        assert_eq!(run_of(&job).creator, expected, "{entries}");
    }
}

#[test]
fn job_without_metadata_cannot_be_decoded() {
    for member in ["namespace", "name", "uid", "creationTimestamp"] {
        let pointer = format!("/metadata/{member}");
        let slim: Slim<JobContent> = received(&with(job(), &pointer, json!({})));
        let problem = slim.content.content.clone().unwrap_err();
        assert_eq!(&*problem.field, format!("metadata.{member}"), "{slim:?}");
        assert_eq!(fields(&slim), [format!("metadata.{member}")]);
    }
}
