//! B-16.1 and B-16.3: objects as the real server returns them.

use serde_json::{Value, json};

use super::{apply, prepare_for_create, prepare_for_status_update, prepare_for_update};
use crate::{
    Resource,
    decoding::{FieldValidation, parse},
};

/// The object after decoding and defaulting.
fn defaulted(resource: Resource, body: &Value) -> Value {
    let mut object = parse(resource, body.to_string().as_bytes(), FieldValidation::Strict)
        .unwrap()
        .object;
    apply_twice(resource, &mut object);
    object
}

fn apply_twice(resource: Resource, object: &mut Value) {
    apply(resource, object);
    let once = object.clone();
    apply(resource, object);
    assert_eq!(*object, once, "defaulting is idempotent");
}

fn created(resource: Resource, body: &Value) -> Value {
    let mut object = parse(resource, body.to_string().as_bytes(), FieldValidation::Strict)
        .unwrap()
        .object;
    prepare_for_create(resource, &mut object);
    apply_twice(resource, &mut object);
    object
}

fn pod() -> Value {
    json!({"template": {"spec": {"restartPolicy": "OnFailure", "containers": [{"name": "a", "image": "busybox"}]}}})
}

/// The pod spec of [`pod`] with defaults.
fn defaulted_pod() -> Value {
    json!({
        "containers": [{
            "image": "busybox",
            "imagePullPolicy": "Always",
            "name": "a",
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "OnFailure",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    })
}

#[test]
fn b_16_1_a_cron_job_gets_the_defaults_of_the_real_server() {
    let body = json!({"metadata": {"name": "a"}, "spec": {
        "schedule": "* * * * *", "failedJobsHistoryLimit": null, "jobTemplate": {"spec": pod()}}});
    let expected = json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "a", "generation": 1},
        "spec": {
            "concurrencyPolicy": "Allow",
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {
                "metadata": {},
                "spec": {"template": {"metadata": {}, "spec": defaulted_pod()}},
            },
            "schedule": "* * * * *",
            "successfulJobsHistoryLimit": 3,
            "suspend": false,
        },
        "status": {},
    });
    assert_eq!(created(Resource::CronJob, &body), expected);
}

#[test]
fn b_16_3_create_ignores_status_and_generation_of_the_client() {
    let body = json!({"metadata": {"generation": 7}, "spec": {"jobTemplate": {}},
        "status": {"lastScheduleTime": "2024-01-01T00:00:00Z"}});
    let object = created(Resource::CronJob, &body);
    assert_eq!(
        (&object["metadata"]["generation"], &object["status"]),
        (&json!(1), &json!({}))
    );
}

#[test]
fn b_11_2_a_job_without_labels_gets_those_of_its_pods() {
    let labels = json!({
        "batch.kubernetes.io/controller-uid": "u",
        "batch.kubernetes.io/job-name": "a",
        "controller-uid": "u",
        "job-name": "a",
    });
    let body = json!({"metadata": {"name": "a", "uid": "u"}, "spec": pod()});
    let expected = json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "a", "uid": "u", "generation": 1, "labels": labels},
        "spec": {
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "completions": 1,
            "manualSelector": false,
            "parallelism": 1,
            "podReplacementPolicy": "TerminatingOrFailed",
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}},
            "suspend": false,
            "template": {"metadata": {"labels": labels}, "spec": defaulted_pod()},
        },
        "status": {},
    });
    assert_eq!(created(Resource::Job, &body), expected);
}

#[test]
fn b_11_2_job_with_labels_gets_no_others() {
    let body = json!({"metadata": {"name": "a", "uid": "u", "labels": {"own": "1"}}, "spec": pod()});
    assert_eq!(created(Resource::Job, &body)["metadata"]["labels"], json!({"own": "1"}));
}

#[test]
fn defaults_of_a_job_depend_on_each_other() {
    let cases = [
        (
            json!({"completions": 2}),
            json!({"completions": 2, "parallelism": 1, "backoffLimit": 6}),
        ),
        (
            json!({"parallelism": 2}),
            json!({"completions": null, "parallelism": 2}),
        ),
        (json!({"backoffLimitPerIndex": 1}), json!({"backoffLimit": i32::MAX})),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "x"}]}]}}),
            json!({"podReplacementPolicy": "Failed"}),
        ),
    ];
    for (spec, expected) in cases {
        let object = defaulted(Resource::Job, &json!({"spec": spec}));
        for (member, value) in expected.as_object().unwrap() {
            assert_eq!(&object["spec"][member], value, "{member} of {spec}");
        }
    }
    let rules = json!({"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "x"}]}]}});
    let object = defaulted(Resource::Job, &json!({"spec": rules}));
    assert_eq!(
        object.pointer("/spec/podFailurePolicy/rules/0/onPodConditions/0/status"),
        Some(&json!("True"))
    );
}

#[test]
fn a_manual_selector_is_left_alone() {
    let spec = json!({"manualSelector": true, "selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}}});
    let object = created(
        Resource::Job,
        &json!({"metadata": {"name": "a", "uid": "u"}, "spec": spec}),
    );
    assert_eq!(object["spec"]["selector"], json!({"matchLabels": {"a": "b"}}));
    assert_eq!(object["metadata"]["labels"], json!({"a": "b"}));
}

#[test]
fn pod_template_gets_all_its_defaults() {
    let template = json!({"template": {"spec": {
        "serviceAccountName": "robot",
        "containers": [{
            "name": "a",
            "image": "tool:1",
            "ports": [{"containerPort": 80}],
            "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "livenessProbe": {"httpGet": {"port": 80}},
            "lifecycle": {"preStop": {"httpGet": {"port": "web"}}},
        }],
        "volumes": [
            {"name": "a"},
            {"name": "b", "secret": {"secretName": "s"}},
            {"name": "c", "hostPath": {"path": "/"}},
            {"name": "d", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
        ],
    }}});
    let object = defaulted(Resource::Job, &json!({"spec": template}));
    let pod = &object["spec"]["template"]["spec"];
    assert_eq!(
        (&pod["serviceAccount"], &pod["restartPolicy"]),
        (&json!("robot"), &json!("Always"))
    );
    let container = &pod["containers"][0];
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert_eq!(container["ports"], json!([{"containerPort": 80, "protocol": "TCP"}]));
    assert_eq!(container["env"][0]["valueFrom"]["fieldRef"]["apiVersion"], "v1");
    let probe = json!({"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10,
        "successThreshold": 1, "failureThreshold": 3});
    assert_eq!(container["livenessProbe"], probe);
    assert_eq!(
        container["lifecycle"]["preStop"]["httpGet"],
        json!({"path": "/", "port": "web", "scheme": "HTTP"})
    );
    let volumes = json!([
        {"name": "a", "emptyDir": {}},
        {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
        {"name": "c", "hostPath": {"path": "/", "type": ""}},
        {"name": "d", "projected": {"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]}},
    ]);
    assert_eq!(pod["volumes"], volumes);
}

#[test]
fn namespace_gets_defaults_and_a_label_with_its_name() {
    let object = created(Resource::Namespace, &json!({"metadata": {"name": "a"}}));
    let expected = json!({
        "kind": "Namespace",
        "apiVersion": "v1",
        "metadata": {"name": "a", "labels": {"kubernetes.io/metadata.name": "a"}},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    });
    assert_eq!(object, expected);
}

#[test]
fn b_16_3_update_keeps_the_status_and_counts_spec_changes() {
    let old = json!({"metadata": {"uid": "u", "generation": 3, "creationTimestamp": "2024-01-01T00:00:00Z"},
        "spec": {"schedule": "a"}, "status": {"lastScheduleTime": "2024-01-01T00:00:00Z"}});
    let cases = [("a", 3), ("b", 4)];
    for (schedule, generation) in cases {
        let mut new = json!({"metadata": {"generation": 9, "labels": {"a": "b"}}, "spec": {"schedule": schedule}});
        prepare_for_update(Resource::CronJob, &mut new, &old);
        let expected = json!({"uid": "u", "generation": generation, "creationTimestamp": "2024-01-01T00:00:00Z",
            "labels": {"a": "b"}});
        assert_eq!(
            (&new["metadata"], &new["status"]),
            (&expected, &old["status"]),
            "{schedule}"
        );
    }
}

#[test]
fn b_16_4_a_status_update_keeps_the_spec_and_takes_metadata() {
    let old = json!({"metadata": {"uid": "u", "generation": 3, "labels": {"a": "b"}}, "spec": {"schedule": "a"}});
    let mut new = json!({"metadata": {"labels": {"c": "d"}}, "spec": {"schedule": "b"}, "status": {"active": []}});
    prepare_for_status_update(&mut new, &old);
    let expected = json!({"metadata": {"uid": "u", "generation": 3, "labels": {"c": "d"}}, "spec": {"schedule": "a"},
        "status": {"active": []}});
    assert_eq!(new, expected);
}
