//! Compares creates and updates: the errors of invalid objects, and the stored form of valid ones.

use apisim::{
    Failure, Resource,
    objects::{
        decoding::{self, FieldValidation},
        defaulting,
        validation::{self, Checks},
    },
};
use serde_json::{Value, json};

use crate::requests::{Response, Server, comparable, path};

/// Checks for the schedules and time zones of the cases.
pub(crate) const CHECKS: Checks = Checks {
    schedule: |schedule| match schedule {
        "x" => Err("expected exactly 5 fields, found 1: [x]".to_owned()),
        _ => Ok(()),
    },
    time_zone: |zone| matches!(zone, "UTC" | "Europe/Berlin" | "Etc/GMT+5"),
    admission: |_, _| Ok(()),
};

/// `Content-Type` and `Accept`.
const JSON: (&str, &str) = ("application/json", "application/json");
/// A uid for all objects. The comparison ignores uids.
const UID: &str = "00000000-0000-0000-0000-000000000000";

/// Runs every case on both.
pub(crate) async fn compare(server: &Server, findings: &mut Vec<String>) {
    for (resource, body) in creates() {
        let url = format!("{}?fieldValidation=Strict", path(resource));
        let real = server.send("POST", &url, JSON, &body).await;
        record(&body, &real, create(resource, &body), findings);
    }
    for (resource, object, change) in updates() {
        let name = object["metadata"]["name"].as_str().unwrap();
        let old = server.send("POST", &path(resource), JSON, &object.to_string()).await;
        assert_eq!(old.code, 201, "{}", old.body);
        let mut new = old.body.clone();
        merge(&mut new, &change);
        let real = server
            .send("PUT", &format!("{}/{name}", path(resource)), JSON, &new.to_string())
            .await;
        record(&change.to_string(), &real, update(resource, &new, &old.body), findings);
    }
    for (at, steps) in job_statuses().into_iter().enumerate() {
        let name = format!("status-{at}");
        let created = server
            .send("POST", &path(Resource::Job), JSON, &job(&name, json!({})).to_string())
            .await;
        let mut old = created.body;
        for status in steps {
            let mut new = old.clone();
            new["status"] = status.clone();
            let url = format!("{}/{name}/status", path(Resource::Job));
            let real = server.send("PUT", &url, JSON, &new.to_string()).await;
            record(&status.to_string(), &real, update_status(&new, &old), findings);
            if real.code == 200 {
                old = real.body;
            }
        }
    }
}

/// Records a case whose responses differ.
pub(crate) fn record(case: &str, real: &Response, ours: (u16, Value), findings: &mut Vec<String>) {
    let (real, ours) = ((real.code, comparable(real.body.clone())), (ours.0, comparable(ours.1)));
    if real != ours {
        findings.push(format!(
            "{case}\nreal {} {}\nours {} {}",
            real.0, real.1, ours.0, ours.1
        ));
    }
}

fn bad_request(message: &str) -> (u16, Value) {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
        "reason": "BadRequest", "code": 400});
    (400, status)
}

/// Processes a create with the functions. Returns the code and the body.
fn create(resource: Resource, body: &str) -> (u16, Value) {
    let mut object = match decoding::parse(resource, body.as_bytes(), FieldValidation::Strict) {
        Ok(decoded) => decoded.object,
        Err(error) => return bad_request(&error.to_string()),
    };
    object["metadata"]["uid"] = UID.into();
    if resource.is_namespaced() {
        object["metadata"]["namespace"] = "default".into();
    }
    defaulting::prepare_for_create(resource, &mut object);
    defaulting::apply(resource, &mut object);
    response(resource, &object, &validation::create(resource, &object, &CHECKS), 201)
}

/// Processes an update with the functions. Returns the code and the body.
fn update(resource: Resource, body: &Value, old: &Value) -> (u16, Value) {
    let mut new = match decoding::parse(resource, body.to_string().as_bytes(), FieldValidation::Strict) {
        Ok(decoded) => decoded.object,
        Err(error) => return bad_request(&error.to_string()),
    };
    defaulting::apply(resource, &mut new);
    defaulting::prepare_for_update(resource, &mut new, old);
    response(resource, &new, &validation::update(resource, &new, old, &CHECKS), 200)
}

/// Processes an update of a Job's status with the functions. Returns the code and the body.
fn update_status(body: &Value, old: &Value) -> (u16, Value) {
    let decoded = decoding::parse(Resource::Job, body.to_string().as_bytes(), FieldValidation::Strict);
    let mut new = decoded.unwrap().object;
    defaulting::apply(Resource::Job, &mut new);
    defaulting::prepare_for_status_update(&mut new, old);
    response(
        Resource::Job,
        &new,
        &validation::update_status(Resource::Job, &new, old),
        200,
    )
}

fn response(resource: Resource, object: &Value, errors: &[validation::FieldError], code: u16) -> (u16, Value) {
    if errors.is_empty() {
        return (code, object.clone());
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    (422, Failure::invalid(resource, name, errors).status())
}

/// Merges a change into a value: objects are merged, null removes a member, other values replace.
fn merge(target: &mut Value, change: &Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (name, value) in change {
                if value.is_null() {
                    target.remove(name);
                } else {
                    merge(target.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (target, change) => *target = change.clone(),
    }
}

fn pod() -> Value {
    json!({"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}})
}

fn job(name: &str, changes: Value) -> Value {
    let mut object = json!({"metadata": {"name": name}, "spec": pod()});
    merge(&mut object, &changes);
    object
}

/// A CronJob with these changes to its spec.
pub(crate) fn cron_job(name: &str, changes: Value) -> Value {
    let mut object =
        json!({"metadata": {"name": name}, "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": pod()}}});
    merge(&mut object["spec"], &changes);
    object
}

fn creates() -> Vec<(Resource, String)> {
    let mut cases: Vec<(Resource, String)> = Vec::new();
    let text = |resource| move |body: &str| (resource, body.to_owned());
    cases.extend(UNREADABLE.iter().copied().map(text(Resource::CronJob)));
    cases.extend(UNREADABLE_LEASES.iter().copied().map(text(Resource::Lease)));
    let value = |resource| move |body: Value| (resource, body.to_string());
    cases.extend(cron_jobs().into_iter().map(value(Resource::CronJob)));
    cases.extend(jobs().into_iter().map(value(Resource::Job)));
    cases.extend(leases().into_iter().map(value(Resource::Lease)));
    cases.extend(events().into_iter().map(value(Resource::Event)));
    cases.extend(namespaces().into_iter().map(value(Resource::Namespace)));
    cases.extend(config_maps().into_iter().map(value(Resource::ConfigMap)));
    cases
}

/// Bodies that cannot be decoded as CronJobs.
const UNREADABLE: &[&str] = &[
    "",
    "{",
    "[]",
    "\"x\"",
    r#"{"kind":"Job","apiVersion":"batch/v1"}"#,
    r#"{"kind":"CronJob","apiVersion":"batch/v2"}"#,
    r#"{"kind":"CronJob"}"#,
    r#"{"apiVersion":"batch/v1"}"#,
    r#"{"metadata":"x"}"#,
    r#"{"metadata":{"labels":{"a":1}}}"#,
    r#"{"metadata":{"labels":[]}}"#,
    r#"{"metadata":{"uid":5}}"#,
    r#"{"metadata":{"creationTimestamp":"x"}}"#,
    r#"{"metadata":{"creationTimestamp":5}}"#,
    r#"{"metadata":{"creationTimestamp":"2024-01-01T00:00:00"}}"#,
    r#"{"metadata":{"creationTimestamp":"2024-01-01T00:00:00Zx"}}"#,
    r#"{"metadata":{"creationTimestamp":""}}"#,
    r#"{"metadata":{"ownerReferences":[{"controller":"x"}]}}"#,
    r#"{"spec":{"suspend":"true"}}"#,
    r#"{"spec":{"suspend":{}}}"#,
    r#"{"spec":{"concurrencyPolicy":7}}"#,
    r#"{"spec":{"failedJobsHistoryLimit":3000000000}}"#,
    r#"{"spec":{"failedJobsHistoryLimit":true}}"#,
    r#"{"spec":{"jobTemplate":[],"schedule":1}}"#,
    r#"{"spec":{"jobTemplate":{"spec":{"parallelism":1.5}}}}"#,
    r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":{"a":1}}}}}}}"#,
    r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[1]}}}}}}"#,
    r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":"x"}}}]}}}}}}"#,
    r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"resources":{"limits":{"cpu":true}}}]}}}}}}"#,
    r#"{"spec":{"foo":1,"jobTemplate":{"spec":{"bar":1,"template":{"spec":{"containers":[{"name":"a","bla":[]}]}}}}}}"#,
];

const UNREADABLE_LEASES: &[&str] = &[
    r#"{"spec":{"renewTime":"2024"}}"#,
    r#"{"spec":{"renewTime":"2024-01-01T00:00:00Z"}}"#,
    r#"{"spec":{"renewTime":"2024-01-01T00:00:00.1Z"}}"#,
    r#"{"spec":{"renewTime":"2024-01-01T00:00:00.1234567Z"}}"#,
    r#"{"spec":{"renewTime":"2024-02-31T00:00:00.123456Z"}}"#,
    r#"{"spec":{"renewTime":"2024-02-01T00:00:00.123456"}}"#,
    r#"{"spec":{"renewTime":""}}"#,
];

fn cron_jobs() -> Vec<Value> {
    let spec = |changes: Value| cron_job("refused", changes);
    let template = |changes: Value| cron_job("refused", json!({"jobTemplate": {"spec": changes}}));
    vec![
        json!({"metadata": {"name": "A_b"}, "spec": {"schedule": "x"}}),
        cron_job(
            &"a".repeat(53),
            json!({"schedule": "TZ=UTC * * * * *", "timeZone": "Local",
            "startingDeadlineSeconds": -1, "concurrencyPolicy": "x"}),
        ),
        cron_job(&"a".repeat(254), json!({})),
        spec(json!({"timeZone": "A/B", "successfulJobsHistoryLimit": -1, "failedJobsHistoryLimit": -2})),
        spec(json!({"timeZone": "A/../B"})),
        spec(json!({"timeZone": "local"})),
        spec(json!({"timeZone": ""})),
        spec(json!({"timeZone": "europe/berlin"})),
        spec(json!({"schedule": "CRON_TZ=UTC * * * * *", "timeZone": "UTC"})),
        template(
            json!({"selector": {"matchLabels": {"a": "b"}}, "manualSelector": true, "parallelism": -1,
            "completionMode": "x", "podReplacementPolicy": "z"}),
        ),
        template(
            json!({"template": {"spec": {"restartPolicy": "X", "dnsPolicy": "y", "nodeSelector": {"a": " "},
            "serviceAccountName": "A", "hostname": "a.b", "activeDeadlineSeconds": 0,
            "volumes": [{"name": ""}, {"name": "V"}, {"name": "v"}, {"name": "v"}],
            "containers": [
                {"name": "A"},
                {"name": "b", "image": "c", "imagePullPolicy": "d", "terminationMessagePolicy": "e",
                    "env": [{"name": ""}, {"name": "a=b"}],
                    "ports": [{"containerPort": 0, "protocol": "x"}, {"containerPort": 70000, "name": "A--"}],
                    "volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "w", "mountPath": "/a"}, {"name": "v"}]},
                {"name": "b", "image": "d"},
            ],
            "initContainers": [{"name": "b", "image": "d", "livenessProbe": {"httpGet": {"port": 1}}}]}}}),
        ),
        template(json!({"template": {"spec": {"restartPolicy": "Always"}}})),
        template(json!({"template": {"spec": {"restartPolicy": null, "containers": []}}})),
        template(json!({"template": {"metadata": {"labels": {"-a": "b c"}, "annotations": {"B c": ""}}}})),
        template(json!({"backoffLimitPerIndex": 1, "maxFailedIndexes": 2, "ttlSecondsAfterFinished": -1})),
        cron_job("accepted-cj-1", json!({})),
        cron_job(
            "accepted-cj-2",
            json!({"timeZone": "Europe/Berlin", "startingDeadlineSeconds": 0, "suspend": true,
            "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": null, "concurrencyPolicy": "Forbid",
            "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": {"backoffLimit": 0}}}),
        ),
        json!({"metadata": {"name": "accepted-cj-3", "labels": {"a": "b"}, "annotations": {}, "finalizers": ["x.y/z"],
            "generation": 9, "resourceVersion": "", "ownerReferences": []},
            "spec": cron_job("", template_with_everything())["spec"],
            "status": {"lastScheduleTime": "2024-01-01T00:00:00Z"}}),
    ]
}

/// Changes to a CronJob's spec: a Pod template with every kind of field that has defaults.
fn template_with_everything() -> Value {
    let probe = json!({"httpGet": {"port": "web"}});
    json!({"jobTemplate": {"spec": {"template": {"spec": {
        "serviceAccountName": "robot",
        "hostNetwork": false,
        "hostUsers": true,
        "shareProcessNamespace": false,
        "tolerations": [{"operator": "Exists"}],
        "imagePullSecrets": [{"name": "s"}],
        "initContainers": [{"name": "init", "image": "registry.example:5000/a/b"}],
        "containers": [{
            "name": "a", "image": "b:1", "args": [], "command": ["x"], "stdin": false, "workingDir": "",
            "env": [
                {"name": "A", "value": ""},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "C", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
                {"name": "D", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ],
            "ports": [{"containerPort": 80, "name": "web"}],
            "resources": {"limits": {"cpu": "500m", "memory": "1024Mi"}, "requests": {"cpu": 0.1, "memory": "0.5Gi"}},
            "livenessProbe": probe,
            "readinessProbe": {"exec": {"command": ["x"]}, "periodSeconds": 3},
            "startupProbe": {"grpc": {"port": 1}},
            "lifecycle": {"preStop": {"httpGet": {"port": 1}}},
            "securityContext": {"runAsUser": 0, "privileged": false},
            "volumeMounts": [{"name": "v1", "mountPath": "/v1"}],
        }],
        "volumes": [
            {"name": "v1"},
            {"name": "v2", "secret": {"secretName": "s"}},
            {"name": "v3", "configMap": {"name": "c", "items": []}},
            {"name": "v4", "hostPath": {"path": "/x"}},
            {"name": "v5", "downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"name": "v6", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "v7", "emptyDir": {"sizeLimit": "1Gi"}},
            {"name": "v8", "image": {"reference": "b"}},
        ],
    }}}}})
}

fn jobs() -> Vec<Value> {
    let owner = json!({"apiVersion": "batch/v1", "kind": "CronJob", "name": "a", "uid": "", "controller": true});
    let other = json!({"apiVersion": "", "kind": "B", "name": "", "uid": "x", "controller": true});
    vec![
        job(
            "a.b",
            json!({"metadata": {"labels": {"-x": "b c"}, "annotations": {"B c": ""},
            "finalizers": ["x_"], "ownerReferences": [owner, other]}, "spec": {"completionMode": "Indexed"}}),
        ),
        job(
            "a.b",
            json!({"spec": {"completionMode": "Indexed", "completions": 2, "parallelism": 200_000}}),
        ),
        job(
            "a",
            json!({"metadata": {"finalizers": ["orphan", "foregroundDeletion"]}}),
        ),
        job("a", json!({"spec": {"selector": {"matchLabels": {"x": "y"}}}})),
        job(
            "a",
            json!({"spec": {"manualSelector": true, "selector": {"matchLabels": {"x": "y"}}}}),
        ),
        job("a", json!({"spec": {"manualSelector": true}})),
        job(
            "a",
            json!({"spec": {"template": {"metadata": {"labels": {"job-name": "z"}}}}}),
        ),
        job("a", json!({"spec": {"managedBy": "a/b".repeat(30)}})),
        job("accepted-job-1", json!({})),
        job("accepted-job-2", json!({"metadata": {"labels": {"own": "1"}}})),
        job(
            "accepted-job-3",
            json!({"spec": {"template": {"metadata": {"labels": {"pod": "1"}}}}}),
        ),
        job(
            "accepted-job-4",
            json!({"spec": {"completions": 3, "completionMode": "Indexed", "backoffLimitPerIndex": 1,
            "suspend": true, "ttlSecondsAfterFinished": 0}}),
        ),
        job(
            "accepted-job-5",
            json!({"spec": {"parallelism": 3, "podFailurePolicy": {"rules": [
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}}}),
        ),
        job(
            "accepted-job-6",
            json!({"spec": {"manualSelector": true, "selector": {"matchLabels": {"x": "y"}},
            "template": {"metadata": {"labels": {"x": "y"}}}}}),
        ),
    ]
}

fn leases() -> Vec<Value> {
    vec![
        json!({"metadata": {"name": "A"}, "spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}}),
        json!({"metadata": {"name": "accepted-lease-1"}}),
        json!({"metadata": {"name": "accepted-lease-2"}, "spec": {"holderIdentity": "", "leaseDurationSeconds": 15,
            "leaseTransitions": 0, "acquireTime": "2024-02-01T00:00:00.123456+02:00", "renewTime": null,
            "preferredHolder": "x", "strategy": "OldestEmulationVersion"}}),
    ]
}

fn events() -> Vec<Value> {
    let new = "2024-01-01T00:00:00.000000Z";
    vec![
        json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "x"}}),
        json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "eventTime": new}),
        json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "eventTime": new,
            "reportingComponent": "a b", "reportingInstance": "x".repeat(129), "action": "a", "reason": "r",
            "message": "m".repeat(1025)}),
        json!({"metadata": {"name": "a/b"}, "involvedObject": {"namespace": "default"}}),
        json!({"metadata": {"name": "E_1"}, "involvedObject": {"namespace": "default"}}),
        json!({"metadata": {"name": "accepted-event-1"}, "count": 0, "type": "Normal", "reason": "R", "message": "m",
            "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:00:00.9Z",
            "source": {"component": "c"},
            "involvedObject": {"kind": "CronJob", "namespace": "default", "name": "n", "uid": "u"}}),
        json!({"metadata": {"name": "accepted-event-2"}, "involvedObject": {"namespace": "default"}, "eventTime": new,
            "reportingComponent": "a", "reportingInstance": "b", "action": "a", "reason": "r",
            "series": {"count": 2, "lastObservedTime": new}}),
    ]
}

fn namespaces() -> Vec<Value> {
    vec![
        json!({"metadata": {"name": "A.b"}}),
        json!({"metadata": {"name": "a.b"}}),
        json!({"metadata": {"name": "accepted-ns", "labels": {"a": "b"}}}),
    ]
}

fn config_maps() -> Vec<Value> {
    vec![
        json!({"metadata": {"name": "A"}, "data": {"a b": "c"}, "binaryData": {"a b": "AA=="}}),
        json!({"metadata": {"name": "a"}, "binaryData": {"a": "%"}}),
        json!({"metadata": {"name": "a"}, "data": {"..a": ""}}),
        json!({"metadata": {"name": "a"}, "data": {"a": "x".repeat(1024 * 1024 + 1)}}),
        json!({"metadata": {"name": "accepted-cm-1"}, "data": {"a": ""}, "immutable": false}),
        json!({"metadata": {"name": "accepted-cm-2"}, "data": {}, "binaryData": {"a": "AA=="}}),
    ]
}

/// Objects, and changes to their stored form.
fn updates() -> Vec<(Resource, Value, Value)> {
    let mut cases = Vec::new();
    let cron_job_changes = [
        json!({"spec": {"schedule": "1 1 * * *", "suspend": true}}),
        json!({"spec": {"schedule": "x"}}),
        json!({"spec": {"schedule": "TZ=UTC 1 1 * * *"}}),
        json!({"spec": {"timeZone": "A/B", "concurrencyPolicy": null}}),
        json!({"metadata": {"labels": {"a": "b"}, "generation": 9, "creationTimestamp": null}}),
        json!({"metadata": {"labels": {"a b": "c"}}}),
        json!({"status": {"lastScheduleTime": "2024-01-01T00:00:00Z"}}),
    ];
    for (at, change) in cron_job_changes.into_iter().enumerate() {
        cases.push((Resource::CronJob, cron_job(&format!("updated-{at}"), json!({})), change));
    }
    let job_changes = [
        json!({"spec": {"parallelism": 2, "suspend": true, "activeDeadlineSeconds": 5}}),
        json!({"spec": {"completions": 2, "completionMode": "Indexed"}}),
        json!({"spec": {"completions": null, "parallelism": -1}}),
        json!({"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
        json!({"spec": {"managedBy": "x.y/z", "backoffLimit": -1}}),
        json!({"metadata": {"labels": null}}),
    ];
    for (at, change) in job_changes.into_iter().enumerate() {
        cases.push((Resource::Job, job(&format!("updated-{at}"), json!({})), change));
    }
    let suspended = json!({"spec": {"suspend": true}});
    let placed = json!({"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}});
    cases.push((Resource::Job, job("updated-suspended", suspended), placed));
    let lease = |name: &str| json!({"metadata": {"name": name}, "spec": {"holderIdentity": "a"}});
    cases.push((
        Resource::Lease,
        lease("updated-1"),
        json!({"spec": {"leaseDurationSeconds": -1}}),
    ));
    cases.push((
        Resource::Lease,
        lease("updated-2"),
        json!({"spec": {"holderIdentity": "b"}}),
    ));
    let config_map = json!({"metadata": {"name": "updated"}, "immutable": true, "data": {"a": "b"}});
    cases.push((
        Resource::ConfigMap,
        config_map,
        json!({"immutable": false, "data": {"a": "c"}}),
    ));
    cases
}

/// Sequences of status updates of a Job. Each update starts from the last accepted status.
fn job_statuses() -> Vec<Vec<Value>> {
    let condition = |kind: &str| json!({"type": kind, "status": "True"});
    let (start, end) = ("2024-01-01T00:00:00Z", "2024-01-01T00:01:00Z");
    let complete = json!([condition("SuccessCriteriaMet"), condition("Complete")]);
    let failed = json!([condition("FailureTarget"), condition("Failed")]);
    vec![
        vec![
            json!({"active": 1, "ready": 0, "startTime": start}),
            json!({"active": -1, "failed": -2}),
            json!({"active": 1, "startTime": end}),
            json!({"startTime": start, "completionTime": end}),
            json!({"startTime": start, "conditions": complete}),
            json!({"startTime": start, "completionTime": end, "conditions": [condition("Complete")]}),
            json!({"startTime": end, "completionTime": start, "active": 1, "conditions": complete}),
            json!({"startTime": start, "completionTime": end, "succeeded": 1, "conditions": complete}),
            json!({"startTime": start, "completionTime": start, "succeeded": 0, "conditions": complete}),
            json!({"startTime": start, "completionTime": end, "succeeded": 1, "conditions": []}),
        ],
        vec![
            json!({"conditions": complete}),
            json!({"conditions": [condition("Failed")], "startTime": start}),
            json!({"conditions": [condition("Complete"), condition("Failed"), condition("FailureTarget")]}),
            json!({"failed": 1, "startTime": start, "conditions": failed}),
            json!({"failed": 0, "startTime": start, "terminating": 1, "conditions": failed}),
            json!({"failed": 1, "startTime": start}),
        ],
    ]
}
