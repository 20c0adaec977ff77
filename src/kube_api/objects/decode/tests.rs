//! Tests of valid, unusual and malformed objects.

mod jobs;

use std::fmt::Write as _;

use self::jobs::{OWNER, job_text};
use super::*;
use crate::shard::{ActiveJob, ConcurrencyPolicy, CronJobRecord, CronJobStatus, Threshold, TroubleThresholds};

const UID: &str = "0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0";

fn decoder() -> Decoder {
    Decoder {
        default_zone: Zone::utc(),
        ..Decoder::default()
    }
}

/// A CronJob with these members of `metadata` (with a leading comma), `spec` and `status`.
fn cron_job_text(metadata: &str, spec: &str, status: &str) -> String {
    format!(
        r#"{{"apiVersion":"batch/v1","kind":"CronJob","metadata":{{"name":"backup","namespace":"shop","uid":"{UID}",
        "resourceVersion":"4711","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z"{metadata}}},
        "spec":{{{spec}}},"status":{{{status}}}}}"#
    )
}

const TEMPLATE: &str = r#""jobTemplate":{"metadata":{"creationTimestamp":null},"spec":{"template":{}}}"#;

fn cron_job(text: &str) -> Result<CronJobRecord, DecodeError> {
    decoder().cron_job(text).map_err(|undecodable| undecodable.error)
}

fn with_spec(spec: &str) -> CronJobRecord {
    cron_job(&cron_job_text("", &format!("{spec},{TEMPLATE}"), "")).unwrap()
}

fn with_status(status: &str) -> CronJobStatus {
    let spec = format!(r#""schedule":"* * * * *",{TEMPLATE}"#);
    cron_job(&cron_job_text("", &spec, status)).unwrap().status
}

fn time(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

#[test]
fn the_last_of_two_equal_members_identifies_a_cron_job() {
    let text = cron_job_text(
        r#","name":"other""#,
        &format!(r#""schedule":"* * * * *",{TEMPLATE}"#),
        "",
    );
    let received: ReceivedCronJob = serde_json::from_str(&text).unwrap();
    let record = cron_job(&text).unwrap();
    assert_eq!(&*record.identity.name, "other");
    assert_eq!(received.uid(), Some(&record.identity.uid));
    assert_eq!(received.resource_version(), Some(record.resource_version));
}

#[test]
fn a_cron_job_is_decoded() {
    let spec = r#""schedule":"*/5 * * * *","timeZone":"Europe/Berlin","startingDeadlineSeconds":30,
        "concurrencyPolicy":"Forbid","suspend":true,"successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":0"#;
    let status = r#""lastScheduleTime":"2026-03-01T00:05:00Z","lastSuccessfulTime":"2026-03-01T00:05:09Z""#;
    let text = cron_job_text(
        r#","deletionTimestamp":"2026-03-01T00:06:00Z""#,
        &format!("{spec},{TEMPLATE}"),
        status,
    );
    let record = cron_job(&text).unwrap();
    assert_eq!(
        *record.identity,
        CronJobIdentity {
            namespace: "shop".into(),
            name: "backup".into(),
            uid: Uid::new(UID),
        }
    );
    assert_eq!(record.resource_version, ResourceVersion(4711));
    assert_eq!(record.created, time("2026-01-02T03:04:05Z"));
    assert!(record.is_deleting);
    assert_eq!(&*record.schedule.text, "*/5 * * * *");
    assert_eq!(record.schedule.time_zone.as_deref(), Some("Europe/Berlin"));
    assert_eq!(record.starting_deadline_seconds, Some(30));
    assert_eq!(record.concurrency_policy, ConcurrencyPolicy::Forbid);
    assert!(record.is_suspended);
    assert_eq!(record.successful_jobs_history_limit, Some(3));
    assert_eq!(record.failed_jobs_history_limit, Some(0));
    assert_eq!(record.status.last_schedule_time, Some(time("2026-03-01T00:05:00Z")));
    assert_eq!(record.status.last_successful_time, Some(time("2026-03-01T00:05:09Z")));
    assert_eq!(record.status.unknown_members, None);
}

#[test]
fn nulls_are_absent_and_unknown_fields_are_ignored() {
    let record = with_spec(
        r#""schedule":null,"timeZone":null,"startingDeadlineSeconds":null,"concurrencyPolicy":null,"suspend":null,
        "successfulJobsHistoryLimit":null,"failedJobsHistoryLimit":null,"future":{"a":[1]}"#,
    );
    assert_eq!(&*record.schedule.text, "");
    assert_eq!(record.starting_deadline_seconds, None);
    assert_eq!(record.concurrency_policy, ConcurrencyPolicy::Allow);
    assert!(!record.is_suspended && !record.is_deleting);
    assert_eq!(record.successful_jobs_history_limit, None);
    assert_eq!(record.failed_jobs_history_limit, None);
    assert_eq!(record.status, CronJobStatus::default());
    let record = with_spec(r#""concurrencyPolicy":"Queue","startingDeadlineSeconds":-5,"failedJobsHistoryLimit":-1"#);
    assert_eq!(record.concurrency_policy, ConcurrencyPolicy::Allow);
    assert_eq!(record.starting_deadline_seconds, Some(0));
    assert_eq!(record.failed_jobs_history_limit, None, "nothing is deleted");
    let without_status = cron_job_text("", TEMPLATE, "").replace(r#","status":{}"#, "");
    assert_eq!(cron_job(&without_status).unwrap().status, CronJobStatus::default());
    let null_status = cron_job_text("", TEMPLATE, "").replace(r#""status":{}"#, r#""status":null"#);
    assert_eq!(cron_job(&null_status).unwrap().status, CronJobStatus::default());
}

#[test]
fn a_decode_error_names_its_field_and_keeps_the_identity() {
    fn check(text: &str, field: &str, problem: &str) {
        let UndecodableCronJob { error, cron_job } = decoder().cron_job(text).unwrap_err();
        assert_eq!((&*error.field, &*error.problem), (field, problem), "{text}");
        assert_eq!((&*error.namespace, &*error.name), ("shop", "backup"));
        let (identity, version) = cron_job.unwrap();
        assert_eq!((&identity.uid, version.0), (&Uid::new(UID), 4711));
    }
    fn check_spec(spec: &str, field: &str, problem: &str) {
        check(&cron_job_text("", &format!("{spec},{TEMPLATE}"), ""), field, problem);
    }
    fn check_status(status: &str, field: &str, problem: &str) {
        check(&cron_job_text("", TEMPLATE, status), field, problem);
    }
    check_spec(
        r#""schedule":5"#,
        "spec.schedule",
        "invalid type: integer `5`, expected a string",
    );
    check_spec(
        r#""suspend":"yes""#,
        "spec.suspend",
        r#"invalid type: string "yes", expected a boolean"#,
    );
    check_spec(
        r#""startingDeadlineSeconds":1.5"#,
        "spec.startingDeadlineSeconds",
        "invalid type: floating point `1.5`, expected i64",
    );
    check_spec(
        r#""successfulJobsHistoryLimit":18446744073709551615"#,
        "spec.successfulJobsHistoryLimit",
        "invalid value: integer `18446744073709551615`, expected i64",
    );
    check(
        &cron_job_text("", r#""schedule":"""#, ""),
        "spec.jobTemplate",
        "missing",
    );
    check(
        &cron_job_text("", r#""jobTemplate":"job""#, ""),
        "spec.jobTemplate",
        r#"invalid type: string "job", expected an object"#,
    );
    check_status(
        r#""lastScheduleTime":"yesterday""#,
        "status.lastScheduleTime",
        "failed to parse four digit integer as year: invalid digit, expected 0-9 but got y",
    );
    check_status(
        r#""active":7"#,
        "status.active",
        "invalid type: integer `7`, expected a sequence",
    );
    check_status(
        r#""active":[{},{"uid":7}]"#,
        "status.active[1].uid",
        "invalid type: integer `7`, expected a string",
    );
    let text = cron_job_text("", TEMPLATE, "");
    check(
        &text.replace(r#""2026-01-02T03:04:05Z""#, "null"),
        "metadata.creationTimestamp",
        "missing",
    );
    check(
        &text.replace(r#""spec":{"#, r#""spec":[],"later":{"#),
        "spec",
        "invalid length 0, expected an object",
    );
}

#[test]
fn f_18_an_object_on_which_the_decoder_panics_is_undecodable() {
    let text = cron_job_text("", TEMPLATE, "");
    let UndecodableCronJob { error, cron_job } = cron_job::contained(&text, || panic!("a fault")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "CronJob shop/backup cannot be decoded: unknown field: cronwheel panicked, which is a fault of cronwheel: a fault"
    );
    let (identity, version) = cron_job.unwrap();
    assert_eq!((&identity.uid, version.0), (&Uid::new(UID), 4711));
    let error = job::contained(|| panic!("a fault")).unwrap_err();
    assert!(error.problem.ends_with("a fault"), "{error:?}");
}

/// A value whose decoding panics.
struct Faulty;

impl<'de> Deserialize<'de> for Faulty {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Faulty, D::Error> {
        panic!("a fault")
    }
}

#[test]
fn f_18_a_panic_on_a_value_leaves_the_rest_of_the_list_intact() {
    let list: Vec<field::Field<Faulty>> = serde_json::from_str(r#"["a", 1, null, true]"#).unwrap();
    let problems = list.into_iter().map(|value| {
        value
            .at("f")
            .map(|value| value.is_some())
            .map_err(|error| error.problem)
    });
    let problems: Vec<Result<bool, Box<str>>> = problems.collect();
    assert_eq!(problems.len(), 4);
    assert_eq!(problems[2], Ok(false));
    for problem in [0, 1, 3].map(|place| problems[place].clone().unwrap_err()) {
        assert!(problem.ends_with("a fault"), "{problem}");
    }
}

#[test]
fn invalid_metadata_is_a_decode_error_without_an_identity() {
    fn check(from: &str, to: &str, field: &str) {
        let text = cron_job_text("", TEMPLATE, "").replace(from, to);
        let UndecodableCronJob { error, cron_job } = decoder().cron_job(&text).unwrap_err();
        assert_eq!((&*error.field, cron_job), (field, None), "{text}");
    }
    check(r#""4711""#, r#""x1""#, "metadata.resourceVersion");
    check(r#""4711""#, "4711", "metadata.resourceVersion");
    check(UID, "", "metadata.uid");
    check(r#""uid""#, r#""uuid""#, "metadata.uid");
    check(r#""namespace":"shop""#, r#""namespace":null"#, "metadata.namespace");
    check(r#""metadata":{"#, r#""metadata":[],"later":{"#, "metadata");
    assert_eq!(&*cron_job("{}").unwrap_err().field, "metadata.namespace");
}

#[test]
fn a_received_cron_job_has_its_uid_and_version_regardless_of_other_fields() {
    for (text, uid, version) in [
        (&*cron_job_text("", TEMPLATE, ""), Some(UID), Some("4711")),
        (
            r#"{"spec":{"schedule":3},"metadata":{"uid":"u-2","resourceVersion":"8"}}"#,
            Some("u-2"),
            Some("8"),
        ),
        (r#"{"metadata":{"uid":7}}"#, None, None),
        (r#"{"metadata":null}"#, None, None),
        ("{}", None, None),
        ("[]", None, None),
    ] {
        let received: ReceivedCronJob = serde_json::from_str(text).unwrap();
        assert_eq!(received.uid(), uid.map(Uid::new).as_ref(), "{text}");
        assert_eq!(
            received.resource_version(),
            version.map(ResourceVersion::read),
            "{text}"
        );
        assert_eq!(received.text(), text);
    }
}

#[test]
fn text_that_cannot_be_parsed_is_undecodable() {
    let text = cron_job_text("", &format!(r#""timeZone":"\ud800",{TEMPLATE}"#), "");
    assert!(serde_json::from_str::<ReceivedCronJob>(&text).is_ok());
    assert_eq!(&*cron_job(&text).unwrap_err().field, "spec.timeZone");
}

#[test]
fn the_text_of_a_decode_error_is_bounded() {
    let spec = format!(r#""suspend":"{}""#, "é".repeat(5000));
    let error = cron_job(&cron_job_text("", &spec, "")).unwrap_err();
    assert_eq!(&*error.field, "spec.suspend");
    assert!(error.problem.len() <= 256, "{}", error.problem.len());
}

#[test]
fn invalid_entries_of_the_active_list_are_skipped() {
    let status = with_status(
        r#""active":[{"kind":"Job","namespace":"shop","name":"backup-1","uid":"u1","apiVersion":"batch/v1","resourceVersion":"9"},
        {},{"name":"backup-2"},{"uid":"u3"},{"name":null,"uid":"u4"},{"name":"backup-5","uid":"u5","fieldPath":"x"}]"#,
    );
    let active = |name: &str, namespace: &str, uid: &str, resource_version: &str| ActiveJob {
        name: name.into(),
        namespace: namespace.into(),
        uid: Uid::new(uid),
        resource_version: resource_version.into(),
    };
    assert_eq!(
        status.active,
        [active("backup-1", "shop", "u1", "9"), active("backup-5", "", "u5", "")]
    );
    assert_eq!(with_status(r#""active":null"#).active, []);
    for (n_bytes, is_kept) in [(0, false), (1, true), (253, true), (254, false)] {
        let name = "n".repeat(n_bytes);
        let status = with_status(&format!(r#""active":[{{"name":"{name}","uid":"u1"}}]"#));
        assert_eq!(status.active.len(), usize::from(is_kept), "{n_bytes}");
    }
}

#[test]
fn unknown_status_fields_are_kept_verbatim() {
    let status = with_status(
        r#""nextScheduleTime": "2026-03-01T00:10:00Z","active":[],"conditions":[ {"a" : "\u00e9"} ],"lastScheduleTime":null"#,
    );
    assert_eq!(
        status.unknown_members.as_deref(),
        Some(r#","nextScheduleTime":"2026-03-01T00:10:00Z","conditions":[ {"a" : "\u00e9"} ]"#)
    );
}

#[test]
fn writable_metadata_is_retained_for_status_writes() {
    let metadata = r#","generateName":"backup-","labels":{"a":"b"},"annotations":{ "x": "\"q\"" },"finalizers":["f"],
        "ownerReferences":[{"uid":"o","future":1}],"managedFields":[{"manager":"kubectl"}],"selfLink":"s",
        "deletionGracePeriodSeconds":5,"future":null"#;
    let record = cron_job(&cron_job_text(metadata, TEMPLATE, "")).unwrap();
    assert_eq!(
        record.retained_metadata.as_str().unwrap(),
        r#","generateName":"backup-","labels":{"a":"b"},"annotations":{ "x": "\"q\"" },"finalizers":["f"],"ownerReferences":[{"uid":"o","future":1}]"#
    );
    assert_eq!(with_spec(r#""suspend":false"#).retained_metadata.as_str(), Some(""));
}

#[test]
fn o_10_the_token_of_a_run_and_that_of_the_answered_one_are_read_from_annotations() {
    let annotations = r#","annotations":{"cronwheel.dev/run-now":"t2","cronwheel.dev/run-now-done":"t1"}"#;
    let record = cron_job(&cron_job_text(annotations, TEMPLATE, "")).unwrap();
    assert_eq!(record.schedule.options().run_now.as_deref(), Some("t2"));
    assert_eq!(record.status.runs_done(), Some("t1"));
    // Longer than the tokens that are remembered: it answers none, and is not held in memory.
    let long = format!(
        r#","annotations":{{"cronwheel.dev/run-now-done":"{}"}}"#,
        "x".repeat(641)
    );
    let record = cron_job(&cron_job_text(&long, TEMPLATE, "")).unwrap();
    assert_eq!(record.status.runs_done(), None);
}

#[test]
fn thresholds_of_trouble_are_read_from_annotations() {
    let read = |annotations: &str| {
        let metadata = format!(r#","annotations":{annotations}"#);
        cron_job(&cron_job_text(&metadata, TEMPLATE, "")).unwrap()
    };
    let expected = |values: &[(Threshold, &str)]| {
        let mut thresholds = TroubleThresholds::default();
        for (threshold, value) in values {
            thresholds.set(*threshold, value);
        }
        thresholds
    };
    for (annotations, values) in [
        ("{}", &[][..]),
        ("null", &[]),
        (
            r#"{"late-after-seconds":"5","cronwheel.dev/failing-after-seconds":"5"}"#,
            &[],
        ),
        (
            r#"{"a":"b","cronwheel.dev/late-after-seconds":"90"}"#,
            &[(Threshold::Late, "90")],
        ),
        (
            r#"{"cronwheel.dev/blocked-after-seconds":"1","cronwheel.dev/no-success-after-seconds":"2"}"#,
            &[(Threshold::Blocked, "1"), (Threshold::NoSuccess, "2")],
        ),
        (
            r#"{"cronwheel.dev/late-after-seconds":"soon"}"#,
            &[(Threshold::Late, "soon")],
        ),
        (
            r#"{"cronwheel.dev/late-after-seconds":90,"cronwheel.dev/blocked-after-seconds":"1"}"#,
            &[(Threshold::Blocked, "1")],
        ),
    ] {
        let record = read(annotations);
        assert_eq!(record.trouble_thresholds, expected(values), "{annotations}");
        let is_kept = annotations == "null" || record.retained_metadata.as_str().unwrap().contains(annotations);
        assert!(is_kept, "a status write sends them back: {annotations}");
    }
    let mut without_alerts = TroubleThresholds::default();
    without_alerts.set_alerts("none");
    let record = read(r#"{"cronwheel.dev/alerts":"none"}"#);
    assert_eq!(record.trouble_thresholds, without_alerts);
    let record = read(r#"{"cronwheel.dev/alerts":"all"}"#);
    assert_eq!(record.trouble_thresholds, TroubleThresholds::default());
}

#[test]
fn the_owner_is_the_value_of_one_label() {
    let read = |label: Option<&str>, labels: &str| {
        let decoder = Decoder {
            owner_label: label.map(Into::into),
            ..decoder()
        };
        let metadata = format!(r#","labels":{labels}"#);
        let record = decoder.cron_job(&cron_job_text(&metadata, TEMPLATE, "")).unwrap();
        record.owner.map(|owner| owner.0.into_string())
    };
    let long = format!(r#"{{"team": "{}"}}"#, "x".repeat(64));
    for (label, labels, owner) in [
        (Some("team"), r#"{"app": "a", "team": "billing"}"#, Some("billing")),
        (Some("team"), r#"{"app": "team"}"#, None),
        (Some("team"), r#"{"team": ""}"#, None),
        (Some("team"), "null", None),
        (Some("team"), r#"{"team": 7}"#, None),
        (Some("team"), &long, None),
        (None, r#"{"team": "billing"}"#, None),
    ] {
        assert_eq!(read(label, labels).as_deref(), owner, "{labels}");
    }
}

#[test]
fn reserved_annotations_of_the_template_are_removed() {
    let annotations = r#"{"cronwheel.dev/create-before":"2090-01-01T00:00:00Z","cronwheel.dev/x":"y","team":"a",
        "batch.kubernetes.io/cronjob-scheduled-timestamp":"2090-01-01T00:00:00Z"}"#;
    let template =
        format!(r#""schedule":"* * * * *","jobTemplate":{{"metadata":{{"annotations":{annotations}}},"spec":{{}}}}"#);
    let record = cron_job(&cron_job_text("", &template, "")).unwrap();
    assert!(record.template.had_reserved_annotations);
    let body = record.template.body.as_str().unwrap();
    assert!(body.contains(r#""team":"a""#), "{body}");
    for text in ["cronwheel.dev", "2090"] {
        assert!(!body.contains(text), "{body}");
    }
    assert!(!with_spec(r#""schedule":"* * * * *""#).template.had_reserved_annotations);
}

#[test]
fn an_invalid_ttl_is_ignored() {
    fn check(spec: &str, expected: Option<i64>) {
        let record = cron_job(&cron_job_text("", &format!(r#""jobTemplate":{spec}"#), "")).unwrap();
        assert_eq!(record.template.ttl_seconds_after_finished, expected, "{spec}");
    }
    check(r#"{"spec":{"ttlSecondsAfterFinished":30}}"#, Some(30));
    check(r#"{"spec":{"ttlSecondsAfterFinished":null}}"#, None);
    check(r#"{"spec":{"ttlSecondsAfterFinished":"x"}}"#, None);
    check(r#"{"spec":{}}"#, None);
    check(r#"{"spec":null}"#, None);
    check("{}", None);
}

#[test]
fn decoding_corrupted_objects_does_not_panic() {
    // Truncations and byte flips of a valid object: the JSON is malformed, or decoding succeeds or returns an error.
    let annotations = r#"{"a\n":"b","batch.kubernetes.io/cronjob-scheduled-timestamp":"2026-03-01T01:05:00Z"}"#;
    let mut good = cron_job_text(
        r#","labels":{"ä":"\u00e4"}"#,
        &format!(r#""schedule":"0 0 * * *",{TEMPLATE}"#),
        "",
    );
    write!(
        good,
        "\n{}",
        job_text(
            OWNER,
            annotations,
            r#"{"conditions":[{"type":"Failed","status":"True"}]}"#
        )
    )
    .unwrap();
    for text in good.split('\n').flat_map(|text| {
        (0..text.len()).flat_map(move |position| {
            let mut flipped = text.as_bytes().to_vec();
            flipped[position] ^= 1 << (position % 7);
            [
                String::from_utf8_lossy(&flipped).into_owned(),
                text[..text.floor_char_boundary(position)].to_owned(),
            ]
        })
    }) {
        let _ = decoder().cron_job(&text);
        if let Ok(received) = serde_json::from_str::<ReceivedJob>(&text) {
            let _ = received.into_record();
        }
    }
}

#[test]
fn the_last_status_write_of_another_field_manager_is_noted() {
    let entry = |manager: &str, subresource: &str, time: &str| {
        format!(
            r#"{{"manager":"{manager}","operation":"Update","time":"{time}","fieldsV1":{{"f:status":{{}}}}{subresource}}}"#
        )
    };
    let (status, nothing) = (r#","subresource":"status""#, "");
    let fields = [
        entry("kube-controller-manager", status, "2026-03-01T10:00:00Z"),
        entry("k3s", status, "2026-03-01T09:00:00Z"),
        entry("cronwheel", status, "2026-03-01T10:02:00Z"),
        entry("helm", nothing, "2026-03-01T10:03:00Z"),
    ];
    let others = OtherControllers::default();
    others.begin(time("2026-03-01T00:00:00Z"), "kube-system/cronwheel".into());
    let decoder = Decoder {
        other_controllers: others.clone(),
        ..decoder()
    };
    let spec = format!(r#""schedule":"* * * * *",{TEMPLATE}"#);
    let note = |fields: &str| {
        let text = cron_job_text(&format!(r#","managedFields":{fields}"#), &spec, "");
        let record = decoder.cron_job(&text).unwrap();
        (others.active(time("2026-03-01T10:03:00Z")), record.has_status_of_other)
    };
    for (nothing, is_of_other) in [note("[]"), note("null")] {
        assert!(nothing.is_empty() && !is_of_other);
    }
    // Others have written the object since.
    let (active, is_of_other) = note(&format!("[{}]", fields.join(",")));
    assert!(!is_of_other);
    assert!(note(&format!("[{},{}]", fields[0], fields[1])).1);
    assert_eq!(active.len(), 1);
    let text = active[0].to_string();
    assert!(
        text.contains("CronJob shop/backup: field manager kube-controller-manager, at 2026-03-01T10:00:00Z"),
        "{text}"
    );
}
