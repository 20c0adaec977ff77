//! The part of the run in which what seldom happens happens, so that the metrics about it move.

use std::{collections::BTreeSet, path::Path, thread::sleep, time::Duration};

use cronwheel::telemetry::metrics::table::{self, MetricKind, MetricSpec};
use serde_json::{Value, json};
use testbed::{Component, Testbed, replica::Replica};

use super::{await_second, is_ready, post_json, prometheus::Prometheus, start_replica_with, wait_for};

/// Metrics that this run does not move, and what would.
const STILL: [(&str, &str); 5] = [
    (
        "cronwheel_queue_overflows_total",
        "more requests than a queue of thousands holds",
    ),
    ("cronwheel_start_overs_total", "a restore of etcd: outages::restore"),
    ("cronwheel_cron_jobs_keep_overflows_total", "64 MiB of CronJobs"),
    (
        "cronwheel_clock_alarm",
        "an API server with another clock than this machine's",
    ),
    (
        "cronwheel_clock_retired_connections_total",
        "several API servers with different clocks",
    ),
];

/// More than the series of CronJobs in trouble that an installation exports.
const N_INVALID: usize = 600;
/// So many that each of two replicas has more than it retries by their own back-off.
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

/// Stores a CronJob without a time of creation, which the API server would not accept.
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
pub(super) fn play(testbed: &mut Testbed, folder: &Path, addresses: [&str; 2], replicas: &mut [Replica; 2]) {
    let kubectl = testbed.kubectl();
    kubectl.apply(&objects()).unwrap();
    store_garbage(testbed);
    // A run by hand, and a status write of somebody else.
    kubectl
        .run(&["create", "job", "by-hand", "--from=cronjob/minutely-0"])
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
    // A replica without any right, and another installation in the same namespaces.
    let no_rights = testbed.token_kubeconfig("kube-system", "nobody").unwrap();
    let [lone, other] = addresses;
    let _without_rights = start_replica_with(3, &no_rights, folder, lone, &[]);
    let _other = start_replica_with(4, &testbed.kubeconfig(), folder, other, &["--installation=other"]);
    wait_for("the other installation", || is_ready(other));
    // The frozen replica is evicted, and comes back as another member.
    replicas[1].freeze().unwrap();
    sleep(Duration::from_secs(20));
    replicas[1].thaw().unwrap();
    // No answers for longer than a fence, from before a slot on.
    await_second(58);
    testbed.freeze(Component::ApiServer).unwrap();
    sleep(Duration::from_secs(15));
    testbed.thaw(Component::ApiServer).unwrap();
    // Watches end, and the check for other installations has its time.
    await_second(30);
    testbed.kill_api_server().unwrap();
    testbed.start_api_server().unwrap();
    await_second(40);
    await_second(10);
    crash_again_and_again(replicas);
}

/// After three crashes in a row, the shards of the replicas are in quarantine.
fn crash_again_and_again(replicas: &mut [Replica; 2]) {
    let is_ready = |replica: &Replica| is_ready(&replica.setup().address);
    for _ in 0..3 {
        for replica in &mut *replicas {
            replica.kill().unwrap();
        }
        for replica in &mut *replicas {
            *replica = Replica::start(replica.setup().clone()).unwrap();
        }
        wait_for("the restarted replicas", || replicas.iter().all(is_ready));
        // Until all shards have a leader again, and that is scraped.
        sleep(Duration::from_secs(5));
    }
}

/// Demands that every metric has moved, but for those that are listed.
pub(super) fn demand_movement(prometheus: &Prometheus) {
    let still: BTreeSet<&str> = table::ALL
        .iter()
        .filter(|spec| !has_moved(prometheus, spec))
        .map(|spec| spec.name)
        .collect();
    let known = STILL.map(|(name, _)| name);
    let unexpected: Vec<&&str> = still.iter().filter(|name| !known.contains(name)).collect();
    assert!(unexpected.is_empty(), "{unexpected:?} never moved");
}

fn has_moved(prometheus: &Prometheus, spec: &MetricSpec) -> bool {
    let series = match spec.kind {
        MetricKind::Counter | MetricKind::Gauge => spec.name.to_owned(),
        MetricKind::Histogram => format!("{}_count", spec.name),
    };
    let furthest = [
        format!("max(max_over_time({series}[30m]))"),
        format!("-min(min_over_time({series}[30m]))"),
    ];
    furthest
        .iter()
        .any(|extreme| prometheus.values(extreme).iter().any(|value| *value > 0.0))
}
