//! Disturbances of the replicas, so that metrics of rare events change.

use std::{collections::BTreeSet, path::Path, thread::sleep, time::Duration};

use cronwheel::telemetry::metrics::table::{self, MetricKind, MetricSpec};
use serde_json::{Value, json};
use testbed::{Component, Testbed, replica::Replica};

use super::{is_ready, post_json, prometheus::Prometheus, start_replica_with, wait_for, wait_for_second};

/// Metrics that this run does not change, and the events that would change them.
const UNCHANGED: [(&str, &str); 5] = [
    (
        "cronwheel_queue_overflows_total",
        "more requests than a queue of thousands holds",
    ),
    (
        "cronwheel_clock_alarm",
        "an API server with another clock than this machine's",
    ),
    (
        "cronwheel_clock_retired_connections_total",
        "several API servers with different clocks",
    ),
    ("cronwheel_panics_total", "a fault of cronwheel"),
    ("cronwheel_cron_jobs_panicked", "a fault of cronwheel"),
];

/// More than the series of CronJobs in trouble that an installation exports.
const N_INVALID: usize = 600;
/// Enough that each of two replicas treats the namespace as failing.
const N_REFUSED: usize = 150;

fn cron_job(namespace: &str, number: usize, schedule: &str) -> Value {
    let pod = json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}});
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": format!("a-{number}"), "namespace": namespace},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": {"template": pod}}},
    })
}

fn objects() -> String {
    let namespace = |name: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "jobs", "namespace": "refused"},
        "spec": {"hard": {"count/jobs.batch": "0"}},
    });
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": "kube-system"},
    });
    let refused = (0..N_REFUSED).map(|number| cron_job("refused", number, "* * * * *"));
    let invalid = (0..N_INVALID).map(|number| cron_job("invalid", number, "0 0 31 2 *"));
    let items: Vec<Value> = [namespace("refused"), namespace("invalid"), quota, account]
        .into_iter()
        .chain(refused)
        .chain(invalid)
        .collect();
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

/// Stores a CronJob without a creation time, which the API server would not accept.
fn store_garbage(testbed: &Testbed) {
    let mut garbage = cron_job("default", 0, "* * * * *");
    garbage["metadata"]["name"] = json!("garbage");
    garbage["metadata"]["uid"] = json!("00000000-0000-4000-0000-000000000000");
    let bytes = |text: String| k8s_openapi::ByteString(text.into_bytes());
    let body =
        json!({"key": bytes("/registry/cronjobs/default/garbage".to_owned()), "value": bytes(garbage.to_string())});
    post_json(testbed.etcd_url().trim_start_matches("http://"), "/v3/kv/put", &body);
}

/// Disturbs the replicas for some minutes.
pub(super) fn run(testbed: &mut Testbed, folder: &Path, addresses: [&str; 2], replicas: &mut [Replica; 2]) {
    let kubectl = testbed.kubectl();
    kubectl.apply(&objects()).unwrap();
    store_garbage(testbed);
    // A manual run, a run that is asked for, and a status write by another client.
    kubectl
        .run(&["create", "job", "by-hand", "--from=cronjob/minutely-0"])
        .unwrap();
    kubectl
        .run(&["annotate", "cronjob", "minutely-2", "cronwheel.dev/run-now=once"])
        .unwrap();
    let status = r#"{"status": {"lastSuccessfulTime": "2026-01-01T00:00:00Z"}}"#;
    let patch = [
        "patch",
        "cronjob",
        "minutely-1",
        "--subresource=status",
        "--type=merge",
        "--field-manager=another-controller",
        "--patch",
        status,
    ];
    kubectl.run(&patch).unwrap();
    // A replica without any permission, and another installation in the same namespaces.
    let no_permissions = testbed.token_kubeconfig("kube-system", "nobody").unwrap();
    let [unpermitted, other] = addresses;
    let _without_permissions = start_replica_with(3, &no_permissions, folder, unpermitted, &[]);
    let _other = start_replica_with(4, &testbed.kubeconfig(), folder, other, &["--installation=other"]);
    wait_for("the other installation", || is_ready(other));
    // The frozen replica is evicted, and rejoins as another member.
    replicas[1].freeze().unwrap();
    sleep(Duration::from_secs(20));
    replicas[1].thaw().unwrap();
    // An outage that begins before a slot and lasts longer than a fence.
    wait_for_second(58);
    testbed.freeze(Component::ApiServer).unwrap();
    sleep(Duration::from_secs(15));
    testbed.thaw(Component::ApiServer).unwrap();
    // A restart ends the watches. The waits leave time for the check for other installations.
    wait_for_second(30);
    testbed.kill_api_server().unwrap();
    testbed.start_api_server().unwrap();
    wait_for_second(40);
    wait_for_second(10);
    crash_repeatedly(replicas);
}

/// Crashes both replicas several times, so that a scrape observes shards without a leader.
fn crash_repeatedly(replicas: &mut [Replica; 2]) {
    let is_ready = |replica: &Replica| is_ready(&replica.setup().address);
    for _ in 0..3 {
        for replica in &mut *replicas {
            replica.kill().unwrap();
        }
        for replica in &mut *replicas {
            *replica = Replica::start(replica.setup().clone()).unwrap();
        }
        wait_for("the restarted replicas", || replicas.iter().all(is_ready));
        // Leaves time for all shards to get a leader, and for a scrape.
        sleep(Duration::from_secs(5));
    }
}

/// Asserts that every metric has changed, except [`UNCHANGED`] ones.
pub(super) fn assert_all_metrics_changed(prometheus: &Prometheus) {
    let unchanged: BTreeSet<&str> = table::ALL
        .iter()
        .filter(|spec| !has_changed(prometheus, spec))
        .map(|spec| spec.name)
        .collect();
    let known = UNCHANGED.map(|(name, _)| name);
    let unexpected: Vec<&&str> = unchanged.iter().filter(|name| !known.contains(name)).collect();
    assert!(unexpected.is_empty(), "{unexpected:?} never changed");
}

fn has_changed(prometheus: &Prometheus, spec: &MetricSpec) -> bool {
    let series = match spec.kind {
        MetricKind::Counter | MetricKind::Gauge => spec.name.to_owned(),
        MetricKind::Histogram => format!("{}_count", spec.name),
    };
    let extremes = [
        format!("max(max_over_time({series}[30m]))"),
        format!("-min(min_over_time({series}[30m]))"),
    ];
    extremes
        .iter()
        .any(|extreme| prometheus.values(extreme).iter().any(|value| *value > 0.0))
}
