//! Rows as the real server prints them.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{IncludeObject, render, render_with};
use crate::Resource;

const CREATED: &str = "2024-01-01T00:00:00Z";

fn now() -> Timestamp {
    "2024-01-01T00:05:30.9Z".parse().unwrap()
}

/// Checks the cells of an object, and that there is one per column.
#[track_caller]
fn check(resource: Resource, mut object: Value, expected: &Value) {
    object["metadata"] = json!({"name": "a", "creationTimestamp": CREATED, "deletionTimestamp": object["metadata"]["deletionTimestamp"]});
    let table = render(resource, [&object], now());
    assert_eq!(&table["rows"][0]["cells"], expected, "{object}");
    assert_eq!(
        table["columnDefinitions"].as_array().unwrap().len(),
        expected.as_array().unwrap().len()
    );
}

#[test]
fn cron_job_row_has_schedule_zone_suspend_active_and_last_schedule() {
    let pod = json!({"spec": {"containers": [{"name": "a", "image": "b"}, {"name": "c", "image": "d"}]}});
    let object = json!({"spec": {"schedule": "@daily", "suspend": false, "jobTemplate": {"spec": {"template": pod}}}});
    let expected = json!([
        "a", "@daily", "<none>", "False", 0, "<none>", "5m30s", "a,c", "b,d", "<none>"
    ]);
    check(Resource::CronJob, object.clone(), &expected);
    let mut object = object;
    object["spec"]["timeZone"] = "UTC".into();
    object["spec"]["suspend"] = true.into();
    object["status"] = json!({"active": [{}, {}], "lastScheduleTime": "2024-01-01T00:05:00Z"});
    let expected = json!(["a", "@daily", "UTC", "True", 2, "30s", "5m30s", "a,c", "b,d", "<none>"]);
    check(Resource::CronJob, object, &expected);
}

#[test]
fn job_row_has_status_completions_and_duration() {
    let condition = |kind: &str| json!([{"type": kind, "status": "True"}]);
    let start = "2024-01-01T00:00:10Z";
    let cases = [
        (json!({"completions": 1}), json!({}), ["Running", "0/1", ""]),
        (
            json!({"completions": 2}),
            json!({"startTime": start, "succeeded": 1}),
            ["Running", "1/2", "5m20s"],
        ),
        (json!({"parallelism": 3}), json!({}), ["Running", "0/1 of 3", ""]),
        (json!({"parallelism": 1}), json!({}), ["Running", "0/1", ""]),
        (
            json!({"completions": 1}),
            json!({"startTime": start, "completionTime": "2024-01-01T00:00:15Z", "succeeded": 1,
                "conditions": condition("Complete")}),
            ["Complete", "1/1", "5s"],
        ),
        (
            json!({"completions": 1}),
            json!({"conditions": condition("Failed")}),
            ["Failed", "0/1", ""],
        ),
        (
            json!({"completions": 1}),
            json!({"conditions": condition("Suspended")}),
            ["Suspended", "0/1", ""],
        ),
        (
            json!({"completions": 1}),
            json!({"conditions": condition("FailureTarget")}),
            ["FailureTarget", "0/1", ""],
        ),
    ];
    for (mut spec, status, [phase, completions, duration]) in cases {
        spec["selector"] = json!({"matchLabels": {"b": "c", "a": "b"}, "matchExpressions": [
            {"key": "x", "operator": "In", "values": ["2", "1"]}, {"key": "y", "operator": "DoesNotExist"}]});
        let expected = json!([
            "a",
            phase,
            completions,
            duration,
            "5m30s",
            "",
            "",
            "a=b,b=c,x in (1,2),!y"
        ]);
        check(Resource::Job, json!({"spec": spec, "status": status}), &expected);
    }
    let deleting = json!({"metadata": {"deletionTimestamp": CREATED}, "spec": {"completions": 1}});
    check(
        Resource::Job,
        deleting,
        &json!(["a", "Terminating", "0/1", "", "5m30s", "", "", "<none>"]),
    );
}

#[test]
fn event_row_has_times_reason_and_object() {
    let object = json!({"type": "Normal", "reason": "R", "message": " m\n", "count": 3, "source": {"component": "c"},
        "firstTimestamp": CREATED, "lastTimestamp": "2024-01-01T00:05:00Z",
        "involvedObject": {"kind": "CronJob", "name": "n"}});
    let expected = json!(["30s", "Normal", "R", "cronjob/n", "", "c", "m", "5m30s", 3, "a"]);
    check(Resource::Event, object, &expected);
    let object = json!({"eventTime": CREATED, "reportingComponent": "c", "reportingInstance": "i",
        "series": {"count": 7, "lastObservedTime": "2024-01-01T00:05:20.000000Z"}, "involvedObject": {"kind": "Pod"}});
    check(
        Resource::Event,
        object,
        &json!(["10s", "", "", "pod", "", "c, i", "", "5m30s", 7, "a"]),
    );
    check(
        Resource::Event,
        json!({}),
        &json!(["<unknown>", "", "", "", "", "", "", "<unknown>", 1, "a"]),
    );
}

#[test]
fn rows_of_other_kinds_have_few_cells() {
    check(
        Resource::Lease,
        json!({"spec": {"holderIdentity": "h"}}),
        &json!(["a", "h", "5m30s"]),
    );
    check(
        Resource::Namespace,
        json!({"status": {"phase": "Active"}}),
        &json!(["a", "Active", "5m30s"]),
    );
    check(
        Resource::ConfigMap,
        json!({"data": {"a": ""}, "binaryData": {"b": ""}}),
        &json!(["a", 2, "5m30s"]),
    );
}

#[test]
fn include_object_selects_the_object_in_a_row() {
    let object = json!({"kind": "Lease", "metadata": {"name": "a"}, "spec": {}});
    let partial = json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}});
    let cases = [
        ("", partial.clone()),
        ("Metadata", partial),
        ("Object", object.clone()),
        ("None", Value::Null),
    ];
    for (parameter, expected) in cases {
        let include = IncludeObject::parse(parameter).unwrap();
        let table = render_with(Resource::Lease, [&object], include, now());
        assert_eq!(table["rows"][0]["object"], expected, "{parameter}");
    }
    assert_eq!(IncludeObject::parse("x"), None);
}
