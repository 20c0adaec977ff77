//! The CronJobs of a tenant, which run during a case.

use serde_json::{Value, json};

use super::{
    cluster::{Cluster, now},
    release::NAMESPACE,
};

/// The namespace of the tenant.
pub(crate) const TENANT: &str = "tenant";
/// A namespace outside the last scope of the release.
pub(crate) const OTHER: &str = "other";
/// A namespace without the label of managed ones.
pub(crate) const UNLABELLED: &str = "unlabelled";
/// CronJobs that start a Job every minute throughout a case.
pub(crate) const MINUTELY: [&str; 4] = ["minutely-0", "minutely-1", "minutely-2", "minutely-3"];
/// The size of a template that does not fit into the smallest memory limit for templates.
const LARGE_BYTES: usize = 700 << 10;

/// A CronJob that starts a Job every minute.
pub(crate) fn cron_job(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {
            "metadata": {"annotations": {"run-for": "2s"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]},
        }}}},
    })
}

impl Cluster {
    pub(crate) fn create(&self, objects: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        self.kubectl
            .run_with_input(&["create", "--filename=-"], &list.to_string())
            .unwrap();
    }

    pub(crate) fn create_cron_jobs(&self) {
        self.create_tenants();
        let mut all: Vec<Value> = MINUTELY.iter().map(|name| cron_job(TENANT, name)).collect();
        all.push(cron_job(OTHER, "elsewhere"));
        self.create(&all);
    }

    /// Creates the namespaces of tenants, with the label of the namespaces that the chart's release works in.
    pub(crate) fn create_tenants(&self) {
        let labels = json!({"cronwheel.dev/managed": "true"});
        let namespaces = [TENANT, OTHER]
            .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}));
        self.create(&namespaces);
        // Controllers create these objects in every new namespace.
        for namespace in [NAMESPACE, TENANT, OTHER] {
            let objects = ["serviceaccount/default", "configmap/kube-root-ca.crt"];
            self.kubectl(
                &[
                    &["wait", "--for=create", "--timeout=60s", "--namespace", namespace],
                    &objects[..],
                ]
                .concat(),
            );
        }
    }

    /// Creates objects that make the controller use its rarely needed permissions.
    pub(crate) fn create_rare_cases(&self) {
        // Its Job never ends, so the same Event soon repeats.
        let mut forbidding = cron_job(TENANT, "forbidding");
        forbidding["spec"]["schedule"] = json!("@every 15s");
        forbidding["spec"]["concurrencyPolicy"] = json!("Forbid");
        forbidding["spec"]["jobTemplate"]["spec"]["template"]["metadata"]["annotations"] = json!({"outcome": "hang"});
        // Its history limit makes the controller delete Jobs.
        let mut forgetting = cron_job(TENANT, "forgetting");
        forgetting["spec"]["successfulJobsHistoryLimit"] = json!(1);
        // Its template is not cached, so each run reads the CronJob first.
        let mut large = cron_job(TENANT, "large");
        large["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["env"] =
            json!([{"name": "LARGE", "value": "x".repeat(LARGE_BYTES)}]);
        self.create(&[forbidding, forgetting, large, cron_job(TENANT, "taken")]);
        // Jobs without an owner take the names of the next slots.
        let minute = now() / 60;
        let taken: Vec<Value> = (1..4).map(|ahead| job("taken", minute + ahead, json!({}))).collect();
        self.create(&taken);
        // A Job created by a controller without shards.
        let owner = self.get(&["cronjob", MINUTELY[0], "--namespace", TENANT]);
        let owner = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "controller": true,
            "name": MINUTELY[0], "uid": owner["metadata"]["uid"],
        });
        let slot = jiff::Timestamp::from_second(i64::try_from((minute - 9) * 60).unwrap()).unwrap();
        let metadata = json!({
            "ownerReferences": [owner],
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot.to_string()},
        });
        self.create(&[job(MINUTELY[0], minute - 9, metadata)]);
    }
}

/// The Job of a slot, created by another client.
fn job(cron_job_name: &str, minute: u64, mut metadata: Value) -> Value {
    metadata["name"] = json!(format!("{cron_job_name}-{minute}"));
    metadata["namespace"] = json!(TENANT);
    let spec = &cron_job(TENANT, cron_job_name)["spec"]["jobTemplate"]["spec"];
    json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})
}
