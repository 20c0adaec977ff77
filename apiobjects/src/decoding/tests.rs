//! Decoding errors with the messages of the real server, and the stored form of objects.

use serde_json::json;

use super::*;

fn decoded(resource: Resource, body: &Value, validation: FieldValidation) -> Result<Decoded, DecodeError> {
    parse(resource, body.to_string().as_bytes(), validation)
}

/// Checks the error for a body.
#[track_caller]
fn check(resource: Resource, body: &str, expected: &str) {
    let error = parse(resource, body.as_bytes(), FieldValidation::Warn).expect_err("a refusal");
    let beginning = format!("{0} in version \"v1\" cannot be handled as a {0}: ", resource.kind());
    let text = error.to_string();
    assert_eq!(text.strip_prefix(&beginning).unwrap_or(&text), expected, "{body}");
}

/// Bodies, the JSON type that each contains, and the place of the error.
const WRONG_TYPES: &[(&str, &str, &str)] = &[
    (
        r#"{"metadata":"x"}"#,
        "string",
        "CronJob.metadata of type v1.ObjectMeta",
    ),
    (
        r#"{"metadata":{"labels":{"a":1}}}"#,
        "number",
        "ObjectMeta.metadata.labels of type string",
    ),
    (
        r#"{"metadata":{"labels":[]}}"#,
        "array",
        "ObjectMeta.metadata.labels of type map[string]string",
    ),
    (
        r#"{"metadata":{"uid":5}}"#,
        "number",
        "ObjectMeta.metadata.uid of type types.UID",
    ),
    (
        r#"{"metadata":{"creationTimestamp":5}}"#,
        "number",
        "ObjectMeta.metadata.creationTimestamp of type string",
    ),
    (
        r#"{"metadata":{"ownerReferences":[{"controller":"x"}]}}"#,
        "string",
        "OwnerReference.metadata.ownerReferences.controller of type bool",
    ),
    (
        r#"{"spec":{"schedule":1}}"#,
        "number",
        "CronJobSpec.spec.schedule of type string",
    ),
    (
        r#"{"spec":{"suspend":{}}}"#,
        "object",
        "CronJobSpec.spec.suspend of type bool",
    ),
    (
        r#"{"spec":{"concurrencyPolicy":7}}"#,
        "number",
        "CronJobSpec.spec.concurrencyPolicy of type v1.ConcurrencyPolicy",
    ),
    (
        r#"{"spec":{"failedJobsHistoryLimit":true}}"#,
        "bool",
        "CronJobSpec.spec.failedJobsHistoryLimit of type int32",
    ),
    (
        r#"{"spec":{"failedJobsHistoryLimit":3000000000}}"#,
        "number 3000000000",
        "CronJobSpec.spec.failedJobsHistoryLimit of type int32",
    ),
    (
        r#"{"spec":{"jobTemplate":{"spec":{"parallelism":1.5}}}}"#,
        "number 1.5",
        "JobSpec.spec.jobTemplate.spec.parallelism of type int32",
    ),
    (
        r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":{"a":1}}}}}}}"#,
        "object",
        "PodSpec.spec.jobTemplate.spec.template.spec.containers of type []v1.Container",
    ),
    (
        r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[1]}}}}}}"#,
        "number",
        "PodSpec.spec.jobTemplate.spec.template.spec.containers of type v1.Container",
    ),
];

#[test]
fn type_errors_have_the_wording_of_the_go_decoder() {
    for (body, found, place) in WRONG_TYPES {
        check(
            Resource::CronJob,
            body,
            &format!("json: cannot unmarshal {found} into Go struct field {place}"),
        );
    }
}

#[test]
fn only_the_first_of_several_type_errors_is_reported() {
    let body = r#"{"spec":{"jobTemplate":[],"schedule":1}}"#;
    let expected =
        "json: cannot unmarshal array into Go struct field CronJobSpec.spec.jobTemplate of type v1.JobTemplateSpec";
    check(Resource::CronJob, body, expected);
}

#[test]
fn unparseable_values_are_reported() {
    let quantity = r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[
        {"resources":{"limits":{"cpu":"x"}}}]}}}}}}"#;
    let expected = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    check(Resource::CronJob, quantity, expected);
    check(
        Resource::ConfigMap,
        r#"{"binaryData":{"a":"%"}}"#,
        "illegal base64 data at input byte 0",
    );
    let seconds = [
        ("x", "cannot parse \"x\" as \"2006\""),
        ("", "cannot parse \"\" as \"2006\""),
        ("2024-01-01T00:00:00", "cannot parse \"\" as \"Z07:00\""),
    ];
    for (time, expected) in seconds {
        let body = json!({"metadata": {"creationTimestamp": time}}).to_string();
        let expected = format!("parsing time {time:?} as \"2006-01-02T15:04:05Z07:00\": {expected}");
        check(Resource::CronJob, &body, &expected);
    }
    let body = r#"{"metadata":{"creationTimestamp":"2024-01-01T00:00:00Zx"}}"#;
    check(
        Resource::CronJob,
        body,
        "parsing time \"2024-01-01T00:00:00Zx\": extra text: \"x\"",
    );
    let microseconds = [
        ("2024", "cannot parse \"\" as \"-\""),
        ("2024-01-01T00:00:00Z", "cannot parse \"Z\" as \".000000\""),
        ("2024-01-01T00:00:00.1Z", "cannot parse \".1Z\" as \".000000\""),
        ("2024-01-01T00:00:00.1234567Z", "cannot parse \"7Z\" as \"Z07:00\""),
    ];
    for (time, expected) in microseconds {
        let body = json!({"spec": {"renewTime": time}}).to_string();
        let expected = format!("parsing time {time:?} as \"2006-01-02T15:04:05.000000Z07:00\": {expected}");
        check(Resource::Lease, &body, &expected);
    }
    let body = r#"{"spec":{"renewTime":"2024-02-31T00:00:00.123456Z"}}"#;
    check(
        Resource::Lease,
        body,
        "parsing time \"2024-02-31T00:00:00.123456Z\": day out of range",
    );
}

#[test]
fn body_that_is_not_an_object_of_the_kind_is_refused() {
    let unrecognized = "the object provided is unrecognized (must be of type CronJob): couldn't get version/kind; \
                        json parse error: ";
    check(
        Resource::CronJob,
        "{\n",
        &format!("{unrecognized}unexpected end of JSON input ({{\n)"),
    );
    check(
        Resource::CronJob,
        "\n",
        &format!("{unrecognized}unexpected end of JSON input (0a)"),
    );
    let go_type =
        r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
    let expected = format!("{unrecognized}json: cannot unmarshal array into Go value of type {go_type} (5b5d0a)");
    check(Resource::CronJob, "[]\n", &expected);
    let other = r#"{"kind":"Job","apiVersion":"batch/v1"}"#;
    let expected = "Job in version \"v1\" cannot be handled as a CronJob: converting (v1.Job) to (batch.CronJob): \
                    unknown conversion";
    check(Resource::CronJob, other, expected);
    let newer = r#"{"kind":"CronJob","apiVersion":"batch/v2"}"#;
    let expected = "CronJob in version \"v2\" cannot be handled as a CronJob: no kind \"CronJob\" is registered for \
                    version \"batch/v2\" in scheme \"pkg/runtime/scheme.go:111\"";
    check(Resource::CronJob, newer, expected);
}

#[test]
fn field_validation_controls_reports_of_unknown_fields() {
    let body = json!({"spec": {"foo": 1, "jobTemplate": {"spec": {"template": {"spec": {
        "containers": [{"name": "a", "bla": []}]}}}}}, "status": {}});
    let expected_warnings = [
        "unknown field \"spec.foo\"",
        "unknown field \"spec.jobTemplate.spec.template.spec.containers[0].bla\"",
    ];
    let warned = decoded(Resource::CronJob, &body, FieldValidation::Warn).unwrap();
    assert_eq!(warned.warnings, expected_warnings);
    assert_eq!(warned.object.pointer("/spec/foo"), None);
    let ignored = decoded(Resource::CronJob, &body, FieldValidation::Ignore).unwrap();
    assert_eq!((ignored.warnings.len(), &ignored.object), (0, &warned.object));
    let refused = decoded(Resource::CronJob, &body, FieldValidation::Strict).unwrap_err();
    let expected = format!(
        "CronJob in version \"v1\" cannot be handled as a CronJob: strict decoding error: {}",
        expected_warnings.join(", ")
    );
    assert_eq!(refused.to_string(), expected);
}

#[test]
fn decoded_object_has_the_form_of_a_real_server() {
    let body = json!({
        "metadata": {"name": "a", "labels": {}, "annotations": null, "creationTimestamp": "2024-01-01T02:00:00+02:00"},
        "spec": {"schedule": "@daily", "startingDeadlineSeconds": 0, "timeZone": null, "concurrencyPolicy": "",
            "jobTemplate": {"spec": {"template": {"spec": {"hostNetwork": false, "hostUsers": false,
                "containers": [{"name": "a", "args": [], "env": [{"name": "A", "value": ""}]}]}}}}},
    });
    let expected = json!({
        "kind": "CronJob",
        "apiVersion": "batch/v1",
        "metadata": {"name": "a", "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"schedule": "@daily", "startingDeadlineSeconds": 0,
            "jobTemplate": {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": {"hostUsers": false,
                "containers": [{"name": "a", "env": [{"name": "A"}], "resources": {}}]}}}}},
        "status": {},
    });
    assert_eq!(
        decoded(Resource::CronJob, &body, FieldValidation::Strict)
            .unwrap()
            .object,
        expected
    );
}

#[test]
fn times_of_leases_have_microseconds() {
    let body = json!({"spec": {"renewTime": "2024-02-01T00:00:00.123456+02:00"}});
    let lease = decoded(Resource::Lease, &body, FieldValidation::Strict).unwrap().object;
    assert_eq!(lease["spec"]["renewTime"], "2024-01-31T22:00:00.123456Z");
}

#[test]
fn all_problems_are_returned_by_field() {
    let body = json!({"metadata": {"labels": {"a": 1}}, "spec": {"suspend": "yes", "backoffLimit": 2, "jobTemplate": {"spec":
        {"parallelism": 3_000_000_000_i64, "template": {"spec": {"containers": [{"env": [{"name": "A", "value": 30}]}]}}}}}});
    let Value::Object(members) = body else { unreachable!() };
    let problems = problems(Resource::CronJob, members);
    let fields: Vec<&str> = problems.iter().map(|problem| &*problem.field).collect();
    assert_eq!(
        fields,
        [
            "metadata.labels[a]",
            "spec.backoffLimit",
            "spec.jobTemplate.spec.parallelism",
            "spec.jobTemplate.spec.template.spec.containers[0].env[0].value",
            "spec.suspend",
        ]
    );
    let expected = ProblemKind::Type {
        expected: ValueType::Int32,
        found: 3_000_000_000_i64.into(),
    };
    assert_eq!(problems[2].kind, expected);
    assert_eq!(places(Resource::CronJob, "backoffLimit"), ["spec.jobTemplate.spec"]);
    let nearest = |field| places(Resource::CronJob, field).into_iter().next();
    assert_eq!(
        nearest("restartPolicy").as_deref(),
        Some("spec.jobTemplate.spec.template.spec")
    );
    assert_eq!(
        nearest("image").as_deref(),
        Some("spec.jobTemplate.spec.template.spec.containers[]")
    );
    assert_eq!(nearest("nothing"), None);
}
