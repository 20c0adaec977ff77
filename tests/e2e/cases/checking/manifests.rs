//! Manifests of CronJobs, most of them broken in one to three places, drawn from a seed.

use serde_json::{Value, json};

use crate::random::Random;

const SPEC: &str = "/spec";
const JOB: &str = "/spec/jobTemplate/spec";
const POD: &str = "/spec/jobTemplate/spec/template/spec";
const CONTAINER: &str = "/spec/jobTemplate/spec/template/spec/containers/0";

/// A change: the object, the member, and the values of which one is drawn. Null removes the member.
type Change = (&'static str, &'static str, fn() -> Vec<Value>);

/// A manifest that the API server accepts.
pub(super) fn valid(name: &str) -> Value {
    let template = json!({"metadata": {"labels": {"app": "probe"}}, "spec": {
        "restartPolicy": "Never", "serviceAccountName": "default", "terminationGracePeriodSeconds": 10,
        "volumes": [{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "c"}}],
        "initContainers": [{"name": "first", "image": "busybox"}],
        "containers": [container()],
    }});
    let job = json!({
        "parallelism": 1, "completions": 1, "backoffLimit": 2, "activeDeadlineSeconds": 100, "ttlSecondsAfterFinished": 60,
        "template": template,
    });
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "labels": {"app": "probe"}, "annotations": {"example.com/team": "a"}},
        "spec": {
            "schedule": "5 4 * * *", "timeZone": "Europe/Berlin", "concurrencyPolicy": "Forbid", "suspend": true,
            "startingDeadlineSeconds": 600, "successfulJobsHistoryLimit": 2, "failedJobsHistoryLimit": 1,
            "jobTemplate": {"metadata": {"labels": {"app": "probe"}}, "spec": job},
        },
    })
}

fn container() -> Value {
    json!({
        "name": "main", "image": "busybox:1", "command": ["sh"], "args": ["-c", "true"],
        "env": [{"name": "DAYS", "value": "30"}, {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}],
        "envFrom": [{"configMapRef": {"name": "c"}}],
        "ports": [{"name": "http", "containerPort": 80}],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "readinessProbe": {"httpGet": {"path": "/", "port": 80}},
        "securityContext": {"runAsUser": 1000, "allowPrivilegeEscalation": false},
    })
}

/// Changes that break a rule, and some that break none.
const CHANGES: &[Change] = &[
    ("/metadata", "name", || {
        vec![
            json!("night_sync"),
            json!("Night"),
            json!("-a"),
            json!("a."),
            json!("a b"),
            json!("a".repeat(53)),
            json!(null),
            json!("a.b"),
        ]
    }),
    ("/metadata", "namespace", || vec![json!("Other_"), json!("a.b")]),
    ("/metadata", "labels", || {
        vec![
            json!({"a b": "c"}),
            json!({"app": "a b"}),
            json!({"app": "x".repeat(64)}),
            json!({"/x": "y"}),
            json!({"app": "-"}),
        ]
    }),
    ("/metadata", "annotations", || {
        vec![json!({"a b": "c"}), json!({"x/y/z": ""}), json!({"team": "a b"})]
    }),
    ("/metadata", "finalizers", || {
        vec![json!(["x"]), json!(["example.com/x"]), json!(["a b/c"])]
    }),
    ("/metadata", "ownerReferences", || {
        vec![json!([{"apiVersion": "v1", "kind": "Pod", "name": "a"}])]
    }),
    (SPEC, "schedule", || {
        vec![
            json!(null),
            json!(""),
            json!("61 * * * *"),
            json!("@dayly"),
            json!("TZ=UTC @daily"),
            json!("@daily"),
            json!("5 4 * * * root"),
        ]
    }),
    (SPEC, "timeZone", || {
        vec![
            json!(""),
            json!("Local"),
            json!("GMT+2"),
            json!("Europe/Paris\n"),
            json!("../x"),
            json!("Etc/UTC"),
            json!(null),
        ]
    }),
    (SPEC, "concurrencyPolicy", || {
        vec![json!("forbid"), json!("Never"), json!(""), json!(null)]
    }),
    (SPEC, "startingDeadlineSeconds", || {
        vec![json!(-1), json!(0), json!("60"), json!(1.5), json!(9_999_999_999_i64)]
    }),
    (SPEC, "successfulJobsHistoryLimit", || {
        vec![json!(-1), json!(3_000_000_000_i64), json!("3"), json!(0)]
    }),
    (SPEC, "failedJobsHistoryLimit", || vec![json!(-7), json!(true)]),
    (SPEC, "suspend", || vec![json!("true"), json!(1), json!(null)]),
    (SPEC, "jobTemplate", || {
        vec![json!(null), json!([]), json!({}), json!({"spec": {}})]
    }),
    (SPEC, "backoffLimit", || vec![json!(2)]),
    (SPEC, "timezone", || vec![json!("UTC")]),
    ("/spec/jobTemplate", "ttlSecondsAfterFinished", || vec![json!(100)]),
    ("/spec/jobTemplate/metadata", "labels", || {
        vec![json!({"a b": "c"}), json!({"app": 1})]
    }),
    ("/spec/jobTemplate/metadata", "annotations", || {
        vec![json!({"a b": "c"}), json!({"n": 1})]
    }),
    (JOB, "parallelism", || {
        vec![json!(-1), json!("1"), json!(5_000_000_000_i64), json!(0)]
    }),
    (JOB, "completions", || vec![json!(-1), json!(0), json!(null)]),
    (JOB, "backoffLimit", || vec![json!(-1), json!("x")]),
    (JOB, "activeDeadlineSeconds", || vec![json!(-1), json!(0), json!("1h")]),
    (JOB, "ttlSecondsAfterFinished", || {
        vec![json!(-1), json!(0), json!(null)]
    }),
    (JOB, "selector", || {
        vec![json!({"matchLabels": {"app": "probe"}}), json!({})]
    }),
    (JOB, "manualSelector", || vec![json!(true), json!(false)]),
    (JOB, "completionMode", || {
        vec![json!("Indexed"), json!("indexed"), json!("NonIndexed")]
    }),
    (JOB, "backoffLimitPerIndex", || vec![json!(1), json!(-1)]),
    (JOB, "maxFailedIndexes", || vec![json!(1)]),
    (JOB, "podReplacementPolicy", || vec![json!("Always"), json!("Failed")]),
    (JOB, "managedBy", || {
        vec![json!("x".repeat(64)), json!("a b"), json!("example.com/x")]
    }),
    (JOB, "suspend", || vec![json!(true), json!("no")]),
    (JOB, "podFailurePolicy", || {
        let rule = |action: &str| json!({"action": action, "onExitCodes": {"operator": "In", "values": [1]}});
        vec![
            json!({"rules": []}),
            json!({"rules": [rule("Ignore")]}),
            json!({"rules": [rule("Stop")]}),
            json!({"rules": [{"action": "FailJob"}]}),
            json!({"rules": [rule("FailIndex")]}),
            json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": []}}]}),
            json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [0]}}]}),
            json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [2, 1]}}]}),
            json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "Is", "values": [1]}}]}),
            json!({"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1], "containerName": "x"}}]}),
            json!({"rules": [{"action": "Count", "onPodConditions": [{"type": "a b"}]}]}),
            json!({"rules": [{"action": "Count", "onPodConditions": [{"type": "DisruptionTarget", "status": "Yes"}]}]}),
        ]
    }),
    (JOB, "successPolicy", || {
        vec![json!({"rules": [{"succeededCount": 1}]}), json!({"rules": []})]
    }),
    (JOB, "successfulJobsHistoryLimit", || vec![json!(1)]),
    (JOB, "template", || vec![json!(null), json!([]), json!({})]),
    ("/spec/jobTemplate/spec/template/metadata", "labels", || {
        vec![json!({"a": "b c"}), json!({"a": true})]
    }),
    ("/spec/jobTemplate/spec/template/metadata", "annotations", || {
        vec![json!({"a b": ""})]
    }),
    (POD, "restartPolicy", || {
        vec![
            json!(null),
            json!("Always"),
            json!("never"),
            json!("OnFailure"),
            json!(1),
        ]
    }),
    (POD, "containers", || {
        vec![json!(null), json!([]), json!({}), json!(["a"]), json!([{}])]
    }),
    (POD, "initContainers", || {
        vec![
            json!([{"name": "main", "image": "b"}]),
            json!([{"name": "Up", "image": "b"}]),
            json!([{"image": "b"}]),
            json!([{"name": "i", "image": "b", "readinessProbe": {"exec": {"command": ["a"]}}}]),
            json!([{"name": "i", "image": "b", "restartPolicy": "Sometimes"}]),
            json!([{"name": "i", "image": "b", "restartPolicy": "Always"}]),
        ]
    }),
    (POD, "volumes", || {
        vec![
            json!(null),
            json!([{"name": "data"}]),
            json!([{"name": "data", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]),
            json!([{"name": "Data", "emptyDir": {}}]),
            json!([{"name": "data", "emptyDir": {}, "hostPath": {"path": "/x"}}]),
            json!([{"name": "data", "hostPath": {}}]),
            json!([{"name": "data", "hostPath": {"path": "/x", "type": "Folder"}}]),
            json!([{"name": "data", "secret": {}}]),
            json!([{"name": "data", "secret": {"secretName": "s", "defaultMode": 4096}}]),
            json!([{"name": "data", "secret": {"secretName": "s", "items": [{"key": "a"}]}}]),
            json!([{"name": "data", "configMap": {}}]),
            json!([{"name": "data", "configMap": {"name": "c", "items": [{"key": "a", "path": "../b"}]}}]),
            json!([{"name": "data", "persistentVolumeClaim": {}}]),
            json!([{"name": "data", "nfs": {"server": "a"}}]),
            json!([{"name": "data", "downwardAPI": {"items": [{"path": "a"}]}}]),
            json!([{"name": "data", "emptyDir": {"sizeLimit": "-1"}}]),
            json!([{"name": "data", "secret": {"name": "s"}}]),
        ]
    }),
    (POD, "dnsPolicy", || {
        vec![json!("None"), json!("Custom"), json!("Default")]
    }),
    (POD, "nodeSelector", || {
        vec![json!({"a b": "c"}), json!({"disk": "ssd"}), json!({"disk": 1})]
    }),
    (POD, "serviceAccountName", || vec![json!("A_B"), json!("robot")]),
    (POD, "terminationGracePeriodSeconds", || {
        vec![json!(-1), json!(0), json!("10s")]
    }),
    (POD, "activeDeadlineSeconds", || vec![json!(0), json!(-1), json!(10)]),
    (POD, "hostname", || vec![json!("A"), json!("a.b"), json!("a")]),
    (POD, "priorityClassName", || vec![json!("A_B")]),
    (POD, "imagePullSecrets", || {
        vec![json!([{"name": "x"}]), json!(["x"]), json!([{}])]
    }),
    (POD, "tolerations", || {
        vec![
            json!([{"key": "a", "operator": "Is"}]),
            json!([{"operator": "Exists", "value": "x", "key": "a"}]),
            json!([{"operator": "Equal", "value": "x"}]),
            json!([{"key": "a", "effect": "Never", "operator": "Exists"}]),
            json!([{"key": "a", "tolerationSeconds": 5, "effect": "NoSchedule"}]),
            json!([{"key": "a b", "operator": "Exists"}]),
        ]
    }),
    (POD, "securityContext", || {
        vec![
            json!({"runAsUser": -1}),
            json!({"fsGroup": -2}),
            json!({"runAsNonRoot": "yes"}),
            json!({"supplementalGroups": [-1]}),
        ]
    }),
    (POD, "hostNetwork", || vec![json!(true), json!("true")]),
    (POD, "command", || vec![json!(["sh"])]),
    (POD, "backoffLimit", || vec![json!(1)]),
    (CONTAINER, "name", || {
        vec![
            json!(null),
            json!("Main"),
            json!("a".repeat(64)),
            json!("first"),
            json!(5),
        ]
    }),
    (CONTAINER, "image", || {
        vec![json!(null), json!(""), json!(" busybox"), json!(1.5), json!("b")]
    }),
    (CONTAINER, "imagePullPolicy", || vec![json!("always"), json!("Always")]),
    (CONTAINER, "imagepullPolicy", || vec![json!("Always")]),
    (CONTAINER, "command", || vec![json!("sh"), json!([1]), json!([true])]),
    (CONTAINER, "args", || vec![json!({"a": 1}), json!(["-n", 5])]),
    (CONTAINER, "env", || {
        vec![
            json!([{"name": "A", "value": 30}]),
            json!([{"name": "A", "value": true}]),
            json!([{"name": "", "value": "a"}]),
            json!([{"name": "A=B", "value": "a"}]),
            json!([{"value": "a"}]),
            json!({"A": "b"}),
            json!([{"name": "A", "value": "a", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
            json!([{"name": "A", "valueFrom": {}}]),
            json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}]),
            json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"key": "k"}}}]),
            json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nothing"}}}]),
            json!([{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.x"}}}]),
            json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "a b"}}}]),
            json!([{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}, "configMapKeyRef": {"name": "c", "key": "k"}}}]),
            json!([{"name": "A"}, {"name": "A"}]),
        ]
    }),
    (CONTAINER, "envFrom", || {
        vec![
            json!([{}]),
            json!([{"configMapRef": {}}]),
            json!([{"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}}]),
            json!([{"secretRef": {"name": "A_"}}]),
        ]
    }),
    (CONTAINER, "ports", || {
        vec![
            json!([{"containerPort": 0}]),
            json!([{"containerPort": 70_000}]),
            json!([{"containerPort": 80, "protocol": "HTTP"}]),
            json!([{"containerPort": 80, "name": "far-too-long-a-name"}]),
            json!([{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]),
            json!([{"containerPort": "80"}]),
        ]
    }),
    (CONTAINER, "resources", || {
        vec![
            json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
            json!({"requests": {"memory": "-1Mi"}}),
            json!({"limits": {"cpu": "x"}}),
            json!({"limits": {"cpu": 1}}),
            json!({"limits": {"gpu": 1}}),
            json!({"limits": {"example.com/gpu": "1.5"}}),
            json!({"requests": {"example.com/gpu": "1"}}),
            json!({"limits": "1"}),
            json!({"cpu": "1"}),
            json!({"requests": {"ephemeral-storage": "1Gi"}}),
            json!({"limits": {"storage": "1Gi"}}),
        ]
    }),
    (CONTAINER, "volumeMounts", || {
        vec![
            json!([{"name": "absent", "mountPath": "/x"}]),
            json!([{"name": "data"}]),
            json!([{"name": "data", "mountPath": "/x"}, {"name": "config", "mountPath": "/x"}]),
            json!([{"name": "data", "mountPath": "/x", "subPath": "../y"}]),
            json!([{"name": "data", "mountPath": "/x", "subPath": "/y"}]),
            json!([{"mountPath": "/x"}]),
            json!([{"name": "data", "mountPath": "/x", "subPath": "a", "subPathExpr": "b"}]),
            json!([{"name": "data", "mountPath": "/x", "mountPropagation": "Both"}]),
        ]
    }),
    (CONTAINER, "readinessProbe", || {
        vec![
            json!({}),
            json!({"httpGet": {"port": 80}, "exec": {"command": ["a"]}}),
            json!({"httpGet": {"path": "/"}}),
            json!({"httpGet": {"port": 70_000}}),
            json!({"httpGet": {"port": "far-too-long-a-name"}}),
            json!({"httpGet": {"port": 80, "scheme": "FTP"}}),
            json!({"exec": {}}),
            json!({"tcpSocket": {"port": 0}}),
            json!({"exec": {"command": ["a"]}, "periodSeconds": -1}),
            json!({"exec": {"command": ["a"]}, "timeoutSeconds": -5}),
        ]
    }),
    (CONTAINER, "livenessProbe", || {
        vec![
            json!({"exec": {"command": ["a"]}, "successThreshold": 2}),
            json!({"exec": {"command": ["a"]}}),
        ]
    }),
    (CONTAINER, "lifecycle", || {
        vec![
            json!({"preStop": {}}),
            json!({"postStart": {"exec": {}}}),
            json!({"preStop": {"exec": {"command": ["a"]}}}),
        ]
    }),
    (CONTAINER, "securityContext", || {
        vec![
            json!({"runAsUser": -1}),
            json!({"runAsGroup": -1}),
            json!({"privileged": true, "allowPrivilegeEscalation": false}),
            json!({"runAsUser": "root"}),
            json!({"readOnlyRootFilesystem": true}),
        ]
    }),
    (CONTAINER, "terminationMessagePolicy", || {
        vec![json!("None"), json!("File")]
    }),
    (CONTAINER, "restartPolicy", || vec![json!("Always"), json!("Never")]),
    (CONTAINER, "limits", || vec![json!({"cpu": "1"})]),
    (CONTAINER, "nonsense", || vec![json!(1), json!({"a": 1})]),
    ("", "specs", || vec![json!({})]),
    ("", "suspend", || vec![json!(true)]),
    ("", "spec", || vec![json!(null), json!([]), json!({})]),
];

/// Returns a manifest with its own name.
pub(super) fn draw(random: &mut Random, number: usize) -> Value {
    let mut manifest = valid(&format!("drawn-{number}"));
    // Every change comes up once; then they are combined.
    let first = CHANGES[number % CHANGES.len()];
    let n_more = if number < CHANGES.len() {
        0
    } else {
        random.between(0, 2)
    };
    change(&mut manifest, first, random);
    for _ in 0..n_more {
        let next = random.pick(CHANGES);
        change(&mut manifest, next, random);
    }
    manifest
}

fn change(manifest: &mut Value, (place, member, values): Change, random: &mut Random) {
    let values = values();
    let value = values[random.below(values.len())].clone();
    // An earlier change may have removed the object.
    let Some(members) = manifest.pointer_mut(place).and_then(Value::as_object_mut) else {
        return;
    };
    if value.is_null() {
        members.remove(member);
    } else {
        members.insert(member.to_owned(), value);
    }
}
