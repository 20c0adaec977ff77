//! Tests of Jobs.

use serde_json::{Value, json};

use super::*;
use crate::{
    kube_api::objects::encode::SCHEDULED_TIMESTAMP_ANNOTATION,
    shard::{Finish, JobCreator, JobRecord},
};

/// A Job with these owner references, annotations and `status`.
pub(super) fn job_text(owner_references: &str, annotations: &str, status: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"backup-29","namespace":"shop","uid":"{UID}","resourceVersion":"12",
        "creationTimestamp":"2026-01-02T03:04:05Z","annotations":{annotations},"ownerReferences":{owner_references},
        "managedFields":[{{"manager":"x"}}]}},"spec":{{"parallelism":"none of our business"}},"status":{status}}}"#
    )
}

fn job(text: &str) -> Result<JobRecord, DecodeError> {
    serde_json::from_str::<ReceivedJob>(text).unwrap().into_record()
}

pub(super) const OWNER: &str =
    r#"[{"apiVersion":"batch/v1","kind":"CronJob","name":"backup","uid":"c1","controller":true}]"#;

#[test]
fn a_job_is_decoded() {
    let text = job_text(
        OWNER,
        r#"{"a":"b","batch.kubernetes.io/cronjob-scheduled-timestamp":"2026-03-01T01:05:00+01:00",
            "cronwheel.dev/created-under":"3/7/1","cronwheel.dev/created-by":"team/cronwheel"}"#,
        r#"{"startTime":"2026-03-01T00:05:01Z","completionTime":"2026-03-01T00:05:09Z","conditions":[
            {"type":"SuccessCriteriaMet","status":"True"},{"type":"Complete","status":"True"}],"ready":0}"#,
    );
    assert_eq!(
        job(&text).unwrap(),
        JobRecord {
            uid: Uid::new(UID),
            namespace: "shop".into(),
            name: "backup-29".into(),
            resource_version: ResourceVersion(12),
            controller: Some(Uid::new("c1")),
            scheduled: Some(time("2026-03-01T00:05:00Z")),
            finish: Some(Finish::Complete),
            started: Some(time("2026-03-01T00:05:01Z")),
            completed: Some(time("2026-03-01T00:05:09Z")),
            creator: JobCreator::Installation("team/cronwheel".into()),
            run_token: None,
        }
    );
}

#[test]
fn o_10_a_job_carries_the_token_of_its_run() {
    for (owner, annotation, expected) in [
        (OWNER, "t1", Some("t1")),
        (OWNER, "no token", None),
        (OWNER, "", None),
        ("null", "t1", None),
    ] {
        let annotations = format!(r#"{{"cronwheel.dev/run-now":"{annotation}"}}"#);
        let record = job(&job_text(owner, &annotations, "{}")).unwrap();
        assert_eq!(record.run_token.as_deref(), expected, "{owner} {annotation}");
    }
}

#[test]
fn b_5_1_completion_time_needs_a_true_complete_condition() {
    let completed = |conditions: &str| {
        let status = format!(r#"{{"completionTime":"2026-03-01T00:05:09Z","conditions":[{conditions}]}}"#);
        let record = job(&job_text(OWNER, "null", &status)).unwrap();
        (record.finish, record.completed.is_some())
    };
    let (complete, failed) = (
        r#"{"type":"Complete","status":"True"}"#,
        r#"{"type":"Failed","status":"True"}"#,
    );
    assert_eq!(completed(complete), (Some(Finish::Complete), true));
    assert_eq!(completed(&format!("{failed},{complete}")), (Some(Finish::Failed), true));
    assert_eq!(completed(failed), (Some(Finish::Failed), false));
    assert_eq!(completed(""), (None, false));
}

#[test]
fn b_5_5_a_job_in_foreground_deletion_is_running() {
    let deleting = job_text(OWNER, "null", r#"{"startTime":"2026-03-01T00:05:01Z"}"#).replacen(
        r#""metadata":{"#,
        r#""metadata":{"deletionTimestamp":"2026-03-01T00:06:00Z","deletionGracePeriodSeconds":0,"finalizers":["foregroundDeletion"],"#,
        1,
    );
    assert!(deleting.contains("foregroundDeletion"));
    let record = job(&deleting).unwrap();
    assert_eq!(
        (record.finish, record.started),
        (None, Some(time("2026-03-01T00:05:01Z")))
    );
}

#[test]
fn b_2_1_only_a_controller_reference_of_kind_cron_job_counts() {
    fn check(owner_references: &str, expected: Option<&str>) {
        let record = job(&job_text(owner_references, "null", "null")).unwrap();
        assert_eq!(record.controller, expected.map(Uid::new), "{owner_references}");
    }
    check("null", None);
    check("[]", None);
    check(r#"[{"kind":"CronJob","uid":"a"}]"#, None);
    check(r#"[{"kind":"CronJob","uid":"a","controller":false}]"#, None);
    check(r#"[{"kind":"CronJob","uid":"a","controller":null}]"#, None);
    check(r#"[{"kind":"cronjob","uid":"a","controller":true}]"#, None);
    check(r#"[{"kind":"Workflow","uid":"a","controller":true}]"#, None);
    check(
        r#"[{"kind":"CronJob","uid":"a"},{"kind":"CronJob","uid":"b","controller":true,"future":{}}]"#,
        Some("b"),
    );
}

#[test]
fn b_4_2_the_first_true_condition_decides_how_a_job_finished() {
    // B-4.2
    fn check(conditions: &str, expected: Option<Finish>) {
        let record = job(&job_text(OWNER, "{}", &format!(r#"{{"conditions":{conditions}}}"#))).unwrap();
        assert_eq!(record.finish, expected, "{conditions}");
    }
    check("null", None);
    check("[]", None);
    check(r#"[{"type":"Complete","status":"False"}]"#, None);
    check(
        r#"[{"type":"Complete","status":"Unknown"},{"type":"Failed","status":"True"}]"#,
        Some(Finish::Failed),
    );
    check(
        r#"[{"type":"Failed","status":"True"},{"type":"Complete","status":"True"}]"#,
        Some(Finish::Failed),
    );
    check(
        r#"[{"type":"Complete","status":"True"},{"type":"Failed","status":"True"}]"#,
        Some(Finish::Complete),
    );
    check(r#"[{"type":"FailureTarget","status":"True"}]"#, None);
    check(r#"[{},{"type":"Suspended","status":"True"}]"#, None);
}

#[test]
fn an_invalid_scheduled_timestamp_is_ignored() {
    for annotation in ["soon", "", "2026-03-01T01:05:00"] {
        let annotations = format!(r#"{{"{SCHEDULED_TIMESTAMP_ANNOTATION}":"{annotation}"}}"#);
        assert_eq!(job(&job_text(OWNER, &annotations, "{}")).unwrap().scheduled, None);
    }
}

#[test]
fn the_status_of_a_job_without_a_cron_job_is_not_decoded() {
    let record = job(&job_text("[]", "{}", r#"{"startTime":5,"conditions":7}"#)).unwrap();
    assert_eq!((record.controller, record.started), (None, None));
}

#[test]
fn an_undecodable_job_keeps_its_uid() {
    let received: ReceivedJob = serde_json::from_str(&job_text(OWNER, "{}", r#"{"startTime":5}"#)).unwrap();
    assert_eq!(received.uid(), Some(&Uid::new(UID)));
    let error = received.into_record().unwrap_err();
    assert_eq!(
        error.to_string(),
        "Job shop/backup-29 cannot be decoded: status.startTime: invalid type: integer `5`, expected a timestamp string"
    );
}

#[test]
fn a_value_of_a_wrong_type_in_a_job_fails_no_list() {
    let status = r#"{"startTime":null,"completionTime":null,"conditions":[{"type":"Failed","status":"True"}]}"#;
    let text = job_text(OWNER, r#"{"cronwheel.dev/created-under":"3/7/1"}"#, status);
    let good: Value = serde_json::from_str(&text).unwrap();
    let wrong = [
        json!(-7),
        json!(1.5),
        json!(true),
        json!("x"),
        json!([{"a": [1]}, 2]),
        json!({"a": {"b": []}}),
    ];
    let in_metadata = [
        "",
        "/uid",
        "/annotations",
        "/ownerReferences",
        "/ownerReferences/0",
        "/ownerReferences/0/uid",
    ];
    let in_status = ["", "/startTime", "/conditions", "/conditions/0", "/conditions/0/type"];
    let in_metadata = in_metadata.map(|place| format!("/metadata{place}"));
    let in_status = in_status.map(|place| format!("/status{place}"));
    for place in [String::new()].iter().chain(&in_metadata).chain(&in_status) {
        for value in &wrong {
            let mut changed = good.clone();
            changed.pointer_mut(place).unwrap().clone_from(value);
            let list = json!([changed, good]).to_string();
            let jobs: Vec<ReceivedJob> = serde_json::from_str(&list).unwrap();
            assert!(jobs[1].clone().into_record().unwrap().finish.is_some(), "{list}");
        }
    }
}
