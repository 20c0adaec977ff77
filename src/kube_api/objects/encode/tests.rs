//! Tests of request bodies.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    kube_api::objects::decode::Decoder,
    schedule::Zone,
    shard::{
        ActiveJob, CronJobIdentity, CronJobRecord, CronJobStatus, EventReason, ResourceVersion, ShardId, ShardTerm,
        Term, Uid,
    },
};

const UID: &str = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0";

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn cron_job(name: &str, job_template: &str) -> CronJobRecord {
    annotated_cron_job(name, "{}", job_template)
}

fn annotated_cron_job(name: &str, annotations: &str, job_template: &str) -> CronJobRecord {
    let text = format!(
        r#"{{"metadata":{{"name":{},"namespace":"shop","uid":"{UID}","resourceVersion":"4711",
        "creationTimestamp":"2026-01-02T03:04:05Z","labels":{{"of":"the CronJob"}},"annotations":{annotations}}},
        "spec":{{"schedule":"* * * * *","jobTemplate":{job_template}}}}}"#,
        json!(name)
    );
    let decoder = Decoder {
        default_zone: Zone::utc(),
        ..Decoder::default()
    };
    decoder.cron_job(&text).unwrap()
}

/// The Job of a CronJob with the annotations of its creator.
fn stamped_job(job_template: &str, stamp: Stamp) -> Value {
    let cron_job = cron_job("backup", job_template);
    let body = job_body(&order(&cron_job, "2026-04-12T11:20:00+02:00"), named(Some(stamp)));
    serde_json::from_slice(&body.unwrap()).unwrap()
}

const INSTALLATION: &str = "kube-system/cronwheel";

fn named(stamp: Option<Stamp>) -> Option<(Stamp, &'static str)> {
    stamp.map(|stamp| (stamp, INSTALLATION))
}

fn stamp() -> Stamp {
    Stamp {
        shard_term: ShardTerm {
            shard: ShardId(7),
            term: Term(3),
        },
        incarnation: 0xab,
        create_before: Some(time("2026-04-12T09:20:06Z")),
    }
}

#[test]
fn a_job_is_annotated_with_its_stamp() {
    let job = stamped_job(r#"{"metadata":{"annotations":{"x":"y"}}}"#, stamp());
    assert_eq!(
        job["metadata"]["annotations"],
        json!({
            "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-04-12T11:20:00+02:00",
            "cronwheel.dev/created-by": INSTALLATION,
            "cronwheel.dev/created-under": "7/3/00000000000000ab",
            "cronwheel.dev/create-before": "2026-04-12T09:20:06Z",
            "x": "y",
        })
    );
}

#[test]
fn a_backfilled_job_differs_from_that_of_the_controller_in_one_annotation() {
    let cron_job = cron_job(
        "backup",
        r#"{"metadata":{"annotations":{"x":"y"}},"spec":{"suspend":true}}"#,
    );
    let order = order(&cron_job, "2026-04-12T11:20:00+02:00");
    let body = String::from_utf8(backfilled_job_body(&order).unwrap()).unwrap();
    let mark = r#","cronwheel.dev/created-under":"backfill""#;
    assert_eq!(body.replacen(mark, "", 1).as_bytes(), job_body(&order, None).unwrap());
    let job: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        job["metadata"]["annotations"]["cronwheel.dev/created-under"],
        "backfill"
    );
}

#[test]
fn o_10_the_job_of_a_run_has_its_token_and_no_slot() {
    let text = format!(
        r#"{{"metadata":{{"name":"backup","namespace":"shop","uid":"{UID}","resourceVersion":"4711",
        "creationTimestamp":"2026-01-02T03:04:05Z","annotations":{{"cronwheel.dev/pass-scheduled-time":"true"}}}},
        "spec":{{"jobTemplate":{{"metadata":{{"annotations":{{"x":"y"}}}},"spec":{{"template":{{"spec":{{}}}}}}}}}}}}"#
    );
    let decoder = Decoder {
        default_zone: Zone::utc(),
        ..Decoder::default()
    };
    let cron_job = decoder.cron_job(&text).unwrap();
    let order = JobCreate {
        run_token: Some("t1".into()),
        ..order(&cron_job, "2026-04-12T11:20:00+02:00")
    };
    let job: Value = serde_json::from_slice(&job_body(&order, Some((stamp(), INSTALLATION))).unwrap()).unwrap();
    assert_eq!(
        job["metadata"]["annotations"],
        json!({
            "cronwheel.dev/run-now": "t1",
            "cronwheel.dev/created-by": INSTALLATION,
            "cronwheel.dev/created-under": "7/3/00000000000000ab",
            "cronwheel.dev/create-before": "2026-04-12T09:20:06Z",
            "x": "y",
        })
    );
    let of_pod = &job["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(of_pod, &json!({"batch.kubernetes.io/cronjob-scheduled-timestamp": ""}));
}

fn order(cron_job: &CronJobRecord, scheduled_timestamp: &str) -> JobCreate {
    JobCreate {
        run_token: None,
        cron_job: Arc::clone(&cron_job.identity),
        name: format!("{}-29600000", cron_job.identity.name).into(),
        slot: time("2026-04-12T09:20:00Z"),
        start: time("2026-04-12T09:20:00Z"),
        scheduled_timestamp: scheduled_timestamp.into(),
        template: Arc::clone(&cron_job.template),
        wanted_by: time("2026-04-12T09:21:00Z"),
        expires_at: None,
        store_by: None,
        n_attempts_before: 0,
        is_on_time: true,
        late_from: None,
    }
}

fn job_text(job_template: &str) -> String {
    let cron_job = cron_job("backup", job_template);
    String::from_utf8(job_body(&order(&cron_job, "2026-04-12T11:20:00+02:00"), None).unwrap()).unwrap()
}

const OWNER_REFERENCES: &str = r#""ownerReferences":[{"apiVersion":"batch/v1","kind":"CronJob","name":"backup","uid":"0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0","controller":true,"blockOwnerDeletion":true}]"#;

/// The body of a Job with these labels, annotations and spec, each with its leading comma.
fn expected_job(labels: &str, other_annotations: &str, spec: &str) -> String {
    format!(
        r#"{{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"backup-29600000","creationTimestamp":"2026-04-12T09:20:00Z"{labels},"annotations":{{"batch.kubernetes.io/cronjob-scheduled-timestamp":"2026-04-12T11:20:00+02:00"{other_annotations}}},{OWNER_REFERENCES}}}{spec}}}"#
    )
}

#[test]
fn b_11_2_b_11_4_a_job_is_built_from_its_template() {
    // B-11.1 to B-11.5
    fn check(job_template: &str, labels: &str, other_annotations: &str, spec: &str) {
        let text = job_text(job_template);
        assert_eq!(text, expected_job(labels, other_annotations, spec));
        let _: Value = serde_json::from_str(&text).unwrap();
    }
    check(r#"{"spec":{}}"#, "", "", r#","spec":{}"#);
    check("{}", "", "", "");
    check(r#"{"metadata":null,"spec":null}"#, "", "", "");
    check(
        r#"{"metadata":{"creationTimestamp":null},"spec":{}}"#,
        "",
        "",
        r#","spec":{}"#,
    );
    check(
        r#"{"metadata":{"labels":null,"annotations":null,"name":"mine","namespace":"theirs","finalizers":["f"]},"spec":{}}"#,
        "",
        "",
        r#","spec":{}"#,
    );
    check(
        r#"{"metadata":{"labels":{},"annotations":{ }},"spec":{}}"#,
        r#","labels":{}"#,
        "",
        r#","spec":{}"#,
    );
    check(
        r#"{"spec":{"parallelism":2},"metadata":{"annotations":{"a":"b", "c" : "d"},"labels":{"x": "y"}}}"#,
        r#","labels":{"x": "y"}"#,
        r#","a":"b","c":"d""#,
        r#","spec":{"parallelism":2}"#,
    );
}

#[test]
fn b_11_3_scheduled_timestamp_replaces_that_of_the_template() {
    // B-11.3
    for key in [
        "batch.kubernetes.io/cronjob-scheduled-timestamp",
        r"batch.kubernetes.io\/cronjob-scheduled-timestam\u0070",
    ] {
        let template = format!(r#"{{"metadata":{{"annotations":{{"a":"b","{key}":"never","c":"d"}}}},"spec":{{}}}}"#);
        assert_eq!(
            job_text(&template),
            expected_job("", r#","a":"b","c":"d""#, r#","spec":{}"#)
        );
    }
}

#[test]
fn b_11_5_unknown_fields_of_the_job_spec_are_copied_verbatim() {
    // B-11.5
    let spec = r#"{ "futureField" :{"deep":[1,  2,{"x":null}]},"huge":123456789012345678901234567890.0e+7,
        "template":{"spec":{"containers":[{"name":"c","command":["sh","-c","echo \"\\u00e9 é 漢字 \ud83d\ude00 \/\" <&>"],
        "futureContainerField":-0.0}]}},"managedBy":"acme.example/jobs" }"#;
    let text = job_text(&format!(r#"{{"spec":{spec}}}"#));
    assert_eq!(text, expected_job("", "", &format!(r#","spec":{spec}"#)));
}

#[test]
fn names_are_escaped_in_json() {
    let name = "a\"b\\c\u{1}\n\u{7f}é";
    let cron_job = cron_job(name, r#"{"spec":{}}"#);
    let body: Value = serde_json::from_slice(&job_body(&order(&cron_job, "\"Z\\"), None).unwrap()).unwrap();
    assert_eq!(body["metadata"]["name"], format!("{name}-29600000"));
    assert_eq!(body["metadata"]["ownerReferences"][0]["name"], name);
    assert_eq!(body["metadata"]["annotations"][SCHEDULED_TIMESTAMP_ANNOTATION], "\"Z\\");
    let write = StatusWrite {
        cron_job: Arc::clone(&cron_job.identity),
        resource_version: ResourceVersion(1),
        retained_metadata: Arc::clone(&cron_job.retained_metadata),
        status: CronJobStatus::default(),
        is_urgent: false,
    };
    let body: Value = serde_json::from_slice(&status_body(&write).unwrap()).unwrap();
    assert_eq!(body["metadata"]["name"], name);
}

#[test]
fn a_job_body_is_allocated_with_its_size() {
    let cron_job = cron_job("backup", r#"{"metadata":{"labels":{"a":"b"}},"spec":{}}"#);
    let order = order(&cron_job, "2026-04-12T11:20:00+02:00");
    for (stamp, n_spare_max) in [
        (None, TIME_AND_QUOTES_BYTES),
        (
            Some(stamp()),
            TIME_AND_QUOTES_BYTES + STAMP_MAX_BYTES + INSTALLATION.len(),
        ),
    ] {
        let body = job_body(&order, named(stamp)).unwrap();
        let template = order.template.body.as_str().unwrap();
        let variable = order.name.len() + order.scheduled_timestamp.len();
        // A body that outgrew its allocation would have another capacity.
        assert_eq!(
            body.capacity(),
            template.len() + variable + n_spare_max,
            "{}",
            body.len()
        );
    }
}

fn status_write(retained_members: &str, status: CronJobStatus) -> StatusWrite {
    StatusWrite {
        cron_job: Arc::new(CronJobIdentity {
            namespace: "shop".into(),
            name: "backup".into(),
            uid: Uid::new(UID),
        }),
        resource_version: ResourceVersion(4711),
        retained_metadata: Arc::new(retained_members.into()),
        status,
        is_urgent: false,
    }
}

fn status_text(retained_members: &str, status: CronJobStatus) -> String {
    String::from_utf8(status_body(&status_write(retained_members, status)).unwrap()).unwrap()
}

#[test]
fn b_13_4_a_status_body_has_status_and_retained_metadata() {
    // B-13.3, B-16.4
    let active = |name: &str, namespace: &str, resource_version: &str| ActiveJob {
        name: name.into(),
        namespace: namespace.into(),
        uid: Uid::new("u1"),
        resource_version: resource_version.into(),
    };
    assert_eq!(
        status_text(
            r#","labels":{"a": "b"},"annotations":{"x":"\u00e9"}"#,
            CronJobStatus {
                active: vec![active("backup-1", "shop", "77"), active("backup-2", "", "")],
                last_schedule_time: Some(time("2026-04-12T09:20:00.9Z")),
                last_successful_time: Some(time("2026-04-12T09:19:07Z")),
                unknown_members: Some(r#","next":1"#.into()),
                runs_done: None,
            }
        ),
        concat!(
            r#"{"apiVersion":"batch/v1","kind":"CronJob","metadata":{"name":"backup","namespace":"shop","#,
            r#""uid":"0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0","resourceVersion":"4711","#,
            r#""labels":{"a": "b"},"annotations":{"x":"\u00e9"}},"status":{"active":["#,
            r#"{"kind":"Job","namespace":"shop","name":"backup-1","uid":"u1","apiVersion":"batch/v1","resourceVersion":"77"},"#,
            r#"{"kind":"Job","name":"backup-2","uid":"u1","apiVersion":"batch/v1"}],"#,
            r#""lastScheduleTime":"2026-04-12T09:20:00Z","lastSuccessfulTime":"2026-04-12T09:19:07Z","next":1}}"#
        )
    );
}

#[test]
fn o_10_a_status_body_marks_the_token_of_a_run_as_answered() {
    for (members, expected) in [
        ("", r#","annotations":{"cronwheel.dev/run-now-done":"t2"}"#),
        (
            r#","labels":{"a": "b"}"#,
            r#","labels":{"a": "b"},"annotations":{"cronwheel.dev/run-now-done":"t2"}"#,
        ),
        (
            r#","annotations":{"x":"\u00e9","cronwheel.dev/run-now-done":"t1","cronwheel.dev/run-now":"t2"},"labels":{}"#,
            r#","labels":{},"annotations":{"cronwheel.dev/run-now":"t2","cronwheel.dev/run-now-done":"t2","x":"é"}"#,
        ),
    ] {
        let mut status = CronJobStatus::default();
        status.set_run_done("t2");
        let text = status_text(members, status);
        let found = text.strip_suffix(r#"},"status":{}}"#).unwrap();
        let (_, found) = found.split_once(r#""resourceVersion":"4711""#).unwrap();
        assert_eq!(found, expected, "{members}");
    }
}

#[test]
fn absent_status_fields_are_omitted() {
    fn check(status: CronJobStatus, expected: &str) {
        let text = status_text("", status);
        let (_, status) = text.split_once(r#""resourceVersion":"4711"},"status":"#).unwrap();
        assert_eq!(status, format!("{expected}}}"));
    }
    check(CronJobStatus::default(), "{}");
    check(
        CronJobStatus {
            last_successful_time: Some(time("2026-04-12T09:20:00Z")),
            ..CronJobStatus::default()
        },
        r#"{"lastSuccessfulTime":"2026-04-12T09:20:00Z"}"#,
    );
    check(
        CronJobStatus {
            unknown_members: Some(r#","a":1,"b":[]"#.into()),
            ..CronJobStatus::default()
        },
        r#"{"a":1,"b":[]}"#,
    );
}

#[test]
fn a_status_round_trips() {
    let status = r#"{"active":[{"kind":"Job","namespace":"shop","name":"backup-1","uid":"u1","apiVersion":"batch/v1","resourceVersion":"77"}],"lastScheduleTime":"2026-04-12T09:20:00Z","lastSuccessfulTime":"2026-04-12T09:19:07Z","next":{"a": 1}}"#;
    let text = format!(
        r#"{{"metadata":{{"name":"backup","namespace":"shop","uid":"{UID}","resourceVersion":"4711",
        "creationTimestamp":"2026-01-02T03:04:05Z"}},"spec":{{"jobTemplate":{{}}}},"status":{status}}}"#
    );
    let decoder = Decoder {
        default_zone: Zone::utc(),
        ..Decoder::default()
    };
    let written = status_text("", decoder.cron_job(&text).unwrap().status);
    assert!(written.ends_with(&format!(r#","status":{status}}}"#)), "{written}");
}

#[test]
fn b_4_4_a_delete_has_a_uid_precondition_and_background_propagation() {
    // B-4.4
    let delete = JobDelete {
        cron_job: status_write("", CronJobStatus::default()).cron_job,
        namespace: "shop".into(),
        name: "backup-1".into(),
        uid: Uid::new(UID),
        is_for_replace: false,
    };
    let body: Value = serde_json::from_slice(&delete_body(&delete)).unwrap();
    assert_eq!(
        body,
        json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": {"uid": UID}})
    );
}

#[test]
fn an_event_has_cronjob_controller_as_its_source() {
    // B-14
    let event = CronJobEvent {
        cron_job: status_write("", CronJobStatus::default()).cron_job,
        resource_version: ResourceVersion(4711),
        reason: EventReason::FailedCreate,
        message: "Error creating job: jobs.batch \"x\" is forbidden".into(),
    };
    let times = EventTimes {
        first: time("2026-04-12T09:20:00.5Z"),
        last: time("2026-04-12T09:21:00.5Z"),
        count: 3,
    };
    let body: Value = serde_json::from_slice(&event_body(&event, "backup.18ad", &event.message, times)).unwrap();
    assert_eq!(
        body,
        json!({
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "backup.18ad", "namespace": "shop"},
            "involvedObject": {"kind": "CronJob", "namespace": "shop", "name": "backup", "uid": UID,
                "apiVersion": "batch/v1", "resourceVersion": "4711"},
            "reason": "FailedCreate",
            "message": "Error creating job: jobs.batch \"x\" is forbidden",
            "source": {"component": "cronjob-controller"},
            "firstTimestamp": "2026-04-12T09:20:00Z",
            "lastTimestamp": "2026-04-12T09:21:00Z",
            "count": 3,
            "type": "Warning",
            "reportingComponent": "cronjob-controller",
            "reportingInstance": "",
        })
    );
    let patch: Value = serde_json::from_slice(&event_patch("m", times)).unwrap();
    assert_eq!(
        patch,
        json!({"message": "m", "lastTimestamp": "2026-04-12T09:21:00Z", "count": 3})
    );
}

#[test]
fn with_pass_scheduled_time_the_pods_have_the_annotation_of_the_job() {
    const TIME: &str = "2026-04-12T11:20:00+02:00";
    let spec = |template: &str| format!(r#"{{"spec":{{"parallelism": 2,"template":{template},"future":1e3}}}}"#);
    for (template, expected) in [
        (
            r#"{"spec":{}}"#,
            json!({"spec": {}, "metadata": {"annotations": {SCHEDULED_TIMESTAMP_ANNOTATION: TIME}}}),
        ),
        (
            r#"{"metadata":{"labels":{"a":"b"},"annotations":null}}"#,
            json!({"metadata": {"labels": {"a": "b"}, "annotations": {SCHEDULED_TIMESTAMP_ANNOTATION: TIME}}}),
        ),
        (
            r#"{"metadata":{"annotations":{"a\"b":"c","batch.kubernetes.io/cronjob-scheduled-timestamp":"own"}}}"#,
            json!({"metadata": {"annotations": {"a\"b": "c", SCHEDULED_TIMESTAMP_ANNOTATION: TIME}}}),
        ),
        // The API server refuses these, with its own message.
        ("7", json!(7)),
        (r#"{"metadata":[]}"#, json!({"metadata": []})),
    ] {
        let annotations = r#"{"cronwheel.dev/pass-scheduled-time":"true"}"#;
        let cron_job = annotated_cron_job("backup", annotations, &spec(template));
        let body = job_body(&order(&cron_job, TIME), named(Some(stamp()))).unwrap();
        let job: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(
            job["spec"],
            json!({"parallelism": 2, "template": expected, "future": 1e3}),
            "{template}"
        );
        assert_eq!(job["metadata"]["annotations"][SCHEDULED_TIMESTAMP_ANNOTATION], TIME);
    }
}
