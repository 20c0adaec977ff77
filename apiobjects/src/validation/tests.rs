//! B-16.2: errors with the messages of the real server.

use serde_json::{Value, json};

use super::{Checks, create, create_warnings, update, update_status, update_warnings};
use crate::{
    Resource,
    decoding::{self, FieldValidation},
    defaulting,
};

const CHECKS: Checks = Checks {
    schedule: |schedule| match schedule {
        "x" => Err("expected exactly 5 fields, found 1: [x]".to_owned()),
        _ => Ok(()),
    },
    time_zone: |zone| zone == "Europe/Berlin",
    admission: |_, _| Ok(()),
};

/// Decodes and defaults an object for validation.
fn prepared(resource: Resource, body: &Value) -> Value {
    let decoded = decoding::parse(resource, body.to_string().as_bytes(), FieldValidation::Strict);
    let mut object = decoded.unwrap().object;
    object["metadata"]["uid"] = "u".into();
    if resource.is_namespaced() {
        object["metadata"]["namespace"] = "default".into();
    }
    defaulting::prepare_for_create(resource, &mut object);
    defaulting::apply(resource, &mut object);
    object
}

fn pod() -> Value {
    json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}})
}

fn cron_job(name: &str, changes: &Value) -> Value {
    let mut spec = json!({"schedule": "0 0 * * *", "jobTemplate": {"spec": pod()}});
    for (member, value) in changes.as_object().unwrap() {
        spec[member] = value.clone();
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn job(changes: &Value) -> Value {
    let mut spec = pod();
    for (member, value) in changes.as_object().unwrap() {
        spec[member] = value.clone();
    }
    json!({"metadata": {"name": "a"}, "spec": spec})
}

/// Checks the errors for a new object, each as `field: message`.
#[track_caller]
fn check(resource: Resource, body: &Value, expected: &[&str]) {
    let errors = create(resource, &prepared(resource, body), &CHECKS);
    let texts: Vec<_> = errors
        .iter()
        .map(|error| format!("{}: {}", error.field, error.message))
        .collect();
    assert_eq!(texts, expected, "{body}");
}

#[test]
fn b_16_2_cron_job_name_has_at_most_52_characters() {
    let name = "a".repeat(53);
    let expected = format!("metadata.name: Invalid value: {name:?}: must be no more than 52 characters");
    check(Resource::CronJob, &cron_job(&name, &json!({})), &[&expected]);
    check(Resource::CronJob, &cron_job(&name[1..], &json!({})), &[]);
    let old = prepared(Resource::CronJob, &cron_job("a", &json!({})));
    let with = |name: &str| {
        let mut object = old.clone();
        object["metadata"]["name"] = name.into();
        object["metadata"]["resourceVersion"] = "1".into();
        object
    };
    assert_eq!(
        update(Resource::CronJob, &with(&name), &with(&name), &CHECKS),
        [],
        "an existing long name is accepted"
    );
}

#[test]
fn b_16_2_rules_of_schedule_and_zone() {
    let cases: &[(Value, &[&str])] = &[
        (json!({"schedule": ""}), &["spec.schedule: Required value"]),
        (
            json!({"schedule": "x"}),
            &["spec.schedule: Invalid value: \"x\": expected exactly 5 fields, found 1: [x]"],
        ),
        (
            json!({"schedule": "TZ=UTC * * * * *"}),
            &[
                "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone \
               field instead",
            ],
        ),
        (json!({"timeZone": "Europe/Berlin"}), &[]),
        (
            json!({"timeZone": ""}),
            &["spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string"],
        ),
        (
            json!({"timeZone": "A/../B"}),
            &["spec.timeZone: Invalid value: \"A/../B\": unknown time zone A/../B"],
        ),
        (
            json!({"timeZone": "A//B"}),
            &["spec.timeZone: Invalid value: \"A//B\": unknown time zone A//B"],
        ),
        (
            json!({"timeZone": "europe/berlin"}),
            &["spec.timeZone: Invalid value: \"europe/berlin\": unknown time zone europe/berlin"],
        ),
        (
            json!({"timeZone": "Local"}),
            &[
                "spec.timeZone: Invalid value: \"Local\": timeZone must be an explicit time zone as defined in \
               https://www.iana.org/time-zones",
            ],
        ),
        (
            json!({"timeZone": "local"}),
            &[
                "spec.timeZone: Invalid value: \"local\": timeZone must be an explicit time zone as defined in \
                 https://www.iana.org/time-zones",
                "spec.timeZone: Invalid value: \"local\": unknown time zone local",
            ],
        ),
    ];
    for (changes, expected) in cases {
        check(Resource::CronJob, &cron_job("a", changes), expected);
    }
}

#[test]
fn b_16_2_rules_of_numbers_policies_and_template() {
    let cases: &[(Value, &[&str])] = &[
        (
            json!({"startingDeadlineSeconds": -1, "successfulJobsHistoryLimit": -2, "failedJobsHistoryLimit": -3,
                "concurrencyPolicy": "x"}),
            &[
                "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
                "spec.concurrencyPolicy: Unsupported value: \"x\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
                "spec.successfulJobsHistoryLimit: Invalid value: -2: must be greater than or equal to 0",
                "spec.failedJobsHistoryLimit: Invalid value: -3: must be greater than or equal to 0",
            ],
        ),
        (
            json!({"startingDeadlineSeconds": 0, "successfulJobsHistoryLimit": 0}),
            &[],
        ),
        (
            json!({"jobTemplate": {}}),
            &[
                "spec.jobTemplate.spec.template.spec.containers: Required value",
                "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
            ],
        ),
        (
            json!({"jobTemplate": {"spec": {"selector": {"matchLabels": {"a": "b"}}, "manualSelector": true,
                "template": {"spec": {"restartPolicy": "X", "containers": [{"name": "A"}]}}}}}),
            &[
                "spec.jobTemplate.spec.template.spec.containers[0].name: Invalid value: \"A\": a lowercase RFC 1123 label \
                 must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric \
                 character (e.g. 'my-name',  or '123-abc', regex used for validation is \
                 '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
                "spec.jobTemplate.spec.template.spec.containers[0].image: Required value",
                "spec.jobTemplate.spec.template.spec.restartPolicy: Unsupported value: \"X\": supported values: \
                 \"Always\", \"OnFailure\", \"Never\"",
                "spec.jobTemplate.spec.template.spec.restartPolicy: Unsupported value: \"X\": supported values: \
                 \"OnFailure\", \"Never\"",
                "spec.jobTemplate.spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: `selector` will be \
                 auto-generated",
                "spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: \"nil\", \"false\"",
            ],
        ),
    ];
    for (changes, expected) in cases {
        check(Resource::CronJob, &cron_job("a", changes), expected);
    }
}

#[test]
fn b_16_2_stored_zone_in_the_schedule_is_tolerated_on_update() {
    let object = |schedule: &str, zone: Option<&str>| {
        let mut object = prepared(
            Resource::CronJob,
            &cron_job("a", &json!({"schedule": schedule, "timeZone": zone})),
        );
        object["metadata"]["resourceVersion"] = "1".into();
        object
    };
    let old = object("TZ=UTC 0 0 * * *", None);
    assert_eq!(
        update(Resource::CronJob, &object("TZ=UTC 1 1 * * *", None), &old, &CHECKS),
        []
    );
    let both = update(
        Resource::CronJob,
        &object("TZ=UTC 1 1 * * *", Some("Europe/Berlin")),
        &old,
        &CHECKS,
    );
    let expected = "Invalid value: \"TZ=UTC 1 1 * * *\": cannot use both timeZone field and TZ or CRON_TZ in schedule";
    assert_eq!(
        both.iter().map(|error| error.message.as_str()).collect::<Vec<_>>(),
        [expected]
    );
    let bad_zone = object("0 0 * * *", Some("No/Such"));
    assert_eq!(
        update(Resource::CronJob, &bad_zone, &bad_zone, &CHECKS),
        [],
        "an unchanged time zone is not checked"
    );
    assert_eq!(update_warnings(Resource::CronJob, &old).len(), 1);
    assert_eq!(update_warnings(Resource::CronJob, &bad_zone).len(), 0);
}

#[test]
fn job_selector_must_be_generated_by_the_server() {
    let labels = "{\"batch.kubernetes.io/controller-uid\":\"u\",\"batch.kubernetes.io/job-name\":\"a\",\
                  \"controller-uid\":\"u\",\"job-name\":\"a\"}";
    let no_match =
        format!("spec.template.metadata.labels: Invalid value: {labels}: `selector` does not match template `labels`");
    let cases: &[(Value, &[&str])] = &[
        (json!({}), &[]),
        (
            json!({"selector": {"matchLabels": {"x": "y"}}}),
            &[
                "spec.selector: Invalid value: {\"matchLabels\":{\"batch.kubernetes.io/controller-uid\":\"u\",\"x\":\"y\"}}: \
                 `selector` not auto-generated",
                &no_match,
            ],
        ),
        (
            json!({"manualSelector": true}),
            &[
                "spec.selector: Required value",
                "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
            ],
        ),
    ];
    for (changes, expected) in cases {
        check(Resource::Job, &job(changes), expected);
    }
}

/// A Job as it is stored.
fn stored_job(spec: &Value) -> Value {
    let mut object = prepared(Resource::Job, &job(spec));
    object["metadata"]["resourceVersion"] = "1".into();
    object
}

#[test]
fn immutable_fields_of_a_job_cannot_change() {
    let indexed = stored_job(&json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2}));
    let errors = |old: &Value, changes: Value| {
        let mut new = old.clone();
        for (member, value) in changes.as_object().unwrap() {
            new["spec"][member] = value.clone();
        }
        update(Resource::Job, &new, old, &CHECKS)
    };
    let check = |old: &Value, member: &str, value: Value| {
        let errors = errors(old, json!({member: value}));
        // Other rules may forbid the value as well.
        let immutable = errors
            .iter()
            .filter(|error| error.message.ends_with("field is immutable"));
        let fields: Vec<_> = immutable.map(|error| error.field.as_str()).collect();
        assert_eq!(fields, [format!("spec.{member}")], "{errors:?}");
    };
    check(&indexed, "completionMode", "NonIndexed".into());
    check(&indexed, "podFailurePolicy", json!({"rules": []}));
    check(&indexed, "backoffLimitPerIndex", 1.into());
    check(&indexed, "managedBy", "example.com/other".into());
    check(&indexed, "successPolicy", json!({"rules": [{"succeededCount": 1}]}));
    check(&indexed, "selector", json!({"matchLabels": {"x": "y"}}));
    check(&stored_job(&json!({})), "completions", 2.into());
    assert_eq!(errors(&indexed, json!({"completions": 3, "parallelism": 3})), []);
    let refused = errors(&indexed, json!({"completions": 3}));
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(
        refused[0].message,
        "Invalid value: 3: can only be modified in tandem with spec.parallelism"
    );
}

#[test]
fn template_of_a_running_job_is_immutable() {
    let with_node = |spec: &Value| {
        let mut object = stored_job(spec);
        object["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
        object
    };
    let (running, suspended) = (json!({}), json!({"suspend": true}));
    let errors = update(Resource::Job, &with_node(&running), &stored_job(&running), &CHECKS);
    assert_eq!(
        errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(),
        ["spec.template"]
    );
    let errors = update(Resource::Job, &with_node(&suspended), &stored_job(&suspended), &CHECKS);
    assert_eq!(errors, [], "the node selector of a suspended Job may change");
}

#[test]
fn job_status_only_moves_forward() {
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let status = |status: Value| {
        let mut object = prepared(Resource::Job, &job(&json!({})));
        object["metadata"]["resourceVersion"] = "1".into();
        object["status"] = status;
        object
    };
    let (start, end) = ("2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z");
    let complete = json!({"startTime": start, "completionTime": end, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]});
    let cases = [
        (json!({}), json!({"startTime": start, "active": 1}), ""),
        (json!({"startTime": start}), complete.clone(), ""),
        (
            json!({"startTime": start}),
            json!({"startTime": end}),
            "field is immutable for unsuspended job once set",
        ),
        (json!({}), json!({"active": -1}), "must be greater than or equal to 0"),
        (
            json!({}),
            json!({"completionTime": end}),
            "cannot set completionTime when there is no Complete=True condition",
        ),
        (
            json!({}),
            json!({"startTime": start, "conditions": [condition("Failed")]}),
            "cannot set Failed=True condition without the FailureTarget=true condition",
        ),
        (
            complete.clone(),
            json!({"startTime": start, "completionTime": end, "succeeded": 0, "conditions": complete["conditions"]}),
            "cannot decrease the succeeded counter",
        ),
    ];
    for (old, new, expected) in cases {
        let errors = update_status(Resource::Job, &status(new.clone()), &status(old));
        let last = errors.last().map(|error| error.message.as_str()).unwrap_or_default();
        assert!(
            last.ends_with(expected) && errors.is_empty() == expected.is_empty(),
            "{new}: {errors:?}"
        );
    }
}

#[test]
fn leases_events_namespaces_and_config_maps_are_validated() {
    let lease = json!({"metadata": {"name": "a"}, "spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}});
    let expected = [
        "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
        "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ];
    check(Resource::Lease, &lease, &expected);
    let event = json!({"metadata": {"name": "E_1"}, "involvedObject": {"namespace": "x"}});
    let expected = "involvedObject.namespace: Invalid value: \"x\": does not match event.namespace";
    check(Resource::Event, &event, &[expected]);
    check(
        Resource::Event,
        &json!({"metadata": {"name": "E_1"}, "involvedObject": {"namespace": "default"}}),
        &[],
    );
    let event = json!({"metadata": {"name": "a/b"}, "involvedObject": {"namespace": "default"}});
    check(
        Resource::Event,
        &event,
        &["metadata.name: Invalid value: \"a/b\": may not contain '/'"],
    );
    check(
        Resource::Namespace,
        &json!({"metadata": {"name": "a.b"}}),
        &["metadata.name: Invalid value: \"a.b\": must not contain dots"],
    );
    check(
        Resource::ConfigMap,
        &json!({"metadata": {"name": "a"}, "data": {"..": ""}}),
        &["data[..]: Invalid value: \"..\": must not be '..'"],
    );
}

#[test]
fn object_metadata_is_validated() {
    let metadata = json!({"name": "a", "labels": {"a": "b c"}, "annotations": {"B/c": ""}, "finalizers": ["x"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "A", "name": "", "uid": "u"}]});
    let expected = [
        "metadata.labels: Invalid value: \"b c\": a valid label must be an empty string or consist of alphanumeric \
         characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or \
         'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
        "metadata.finalizers[0]: Invalid value: \"x\": name is neither a standard finalizer name nor is it fully qualified",
    ];
    check(Resource::ConfigMap, &json!({"metadata": metadata}), &expected);
    check(
        Resource::ConfigMap,
        &json!({"metadata": {}}),
        &["metadata.name: Required value: name or generateName is required"],
    );
    check(
        Resource::ConfigMap,
        &json!({"metadata": {"name": "a-b", "generateName": "a-"}}),
        &[],
    );
}

#[test]
fn b_16_2_name_that_is_no_dns_label_gets_a_warning() {
    let warnings = create_warnings(Resource::CronJob, &cron_job("a.b", &json!({})));
    let expected = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
                    label is recommended: [must not contain dots]";
    assert_eq!(warnings, [expected]);
    assert_eq!(create_warnings(Resource::CronJob, &cron_job("a", &json!({}))).len(), 0);
}
