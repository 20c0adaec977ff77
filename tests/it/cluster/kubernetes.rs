//! What a case asks of the API server: objects as JSON, waits with a limit.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

const WAIT_MAX: Duration = Duration::from_secs(25);
const POLL: Duration = Duration::from_millis(100);

pub(super) async fn connect(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

/// A case's namespace.
pub(super) struct Namespace {
    pub(super) name: String,
    client: Client,
    /// Of the account that the controller runs as.
    pub(super) controller_kubeconfig: PathBuf,
    /// Unix seconds of the first whole minute, fixed when the case first asks.
    first_minute: Cell<Option<i64>>,
}

impl Namespace {
    pub(super) async fn create(client: Client, controller_kubeconfig: &Path, case: &str) -> Namespace {
        let mut name = case.replace('_', "-");
        name.truncate(60);
        let name = name.trim_end_matches('-').to_owned();
        let namespaces: Api<DynamicObject> = Api::all_with(client.clone(), &resource("", "Namespace"));
        let object = from_json(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        namespaces
            .create(&PostParams::default(), &object)
            .await
            .expect("a namespace");
        let controller_kubeconfig = controller_kubeconfig.to_owned();
        Namespace {
            name,
            client,
            controller_kubeconfig,
            first_minute: Cell::new(None),
        }
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        let group = if kind == "Event" { "" } else { "batch" };
        Api::namespaced_with(self.client.clone(), &self.name, &resource(group, kind))
    }

    /// Creates the CronJob `hello`, every minute, its Jobs of the given life (`{"run-for": "1s"}`), with these
    /// changes to its spec.
    pub(super) async fn create_cron_job(&self, life: Value, changes: Value) {
        let mut object = json!({
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "hello"},
            "spec": {
                "schedule": "* * * * *",
                "jobTemplate": {"spec": {"template": {
                    "metadata": {"annotations": life},
                    "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]},
                }}},
            },
        });
        merge(&mut object, changes);
        self.api("CronJob")
            .create(&PostParams::default(), &from_json(object))
            .await
            .expect("a CronJob");
    }

    pub(super) async fn patch_cron_job(&self, patch: Value) {
        let params = PatchParams::default();
        self.api("CronJob")
            .patch("hello", &params, &Patch::Merge(patch))
            .await
            .expect("a patch");
    }

    pub(super) async fn patch_status(&self, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.api("CronJob")
            .patch_status("hello", &PatchParams::default(), &patch)
            .await
            .expect("a status patch");
    }

    pub(super) async fn cron_job(&self) -> Value {
        let object = self.api("CronJob").get("hello").await.expect("the CronJob");
        serde_json::to_value(object).expect("JSON")
    }

    pub(super) async fn status(&self) -> Value {
        self.cron_job().await["status"].clone()
    }

    /// The Jobs of the namespace, by name.
    pub(super) async fn jobs(&self) -> Vec<Value> {
        let list = self.api("Job").list(&ListParams::default()).await.expect("Jobs");
        let mut jobs: Vec<Value> = list
            .items
            .into_iter()
            .map(|job| serde_json::to_value(job).expect("JSON"))
            .collect();
        jobs.sort_by_key(|job| job["metadata"]["name"].as_str().map(ToOwned::to_owned));
        jobs
    }

    pub(super) async fn job_names(&self) -> Vec<String> {
        let name = |job: &Value| job["metadata"]["name"].as_str().expect("a name").to_owned();
        self.jobs().await.iter().map(name).collect()
    }

    pub(super) async fn delete_job(&self, name: &str) {
        self.api("Job")
            .delete(name, &DeleteParams::background())
            .await
            .expect("a delete");
    }

    /// Reasons of the Events on the CronJob, each once, sorted.
    pub(super) async fn event_reasons(&self) -> Vec<String> {
        let list = self.api("Event").list(&ListParams::default()).await.expect("Events");
        let reason = |event: DynamicObject| event.data["reason"].as_str().unwrap_or_default().to_owned();
        let mut reasons: Vec<String> = list.items.into_iter().map(reason).collect();
        reasons.sort();
        reasons.dedup();
        reasons
    }

    /// Waits until the Jobs have these names.
    pub(super) async fn wait_for_jobs(&self, expected: &[String]) {
        let mut seen = Vec::new();
        let is_there = async || {
            seen = self.job_names().await;
            seen == expected
        };
        let is_reached = wait(is_there).await;
        assert!(is_reached, "{}: Jobs {seen:?}, not {expected:?}", self.name);
    }

    /// Waits until the status holds for the given condition.
    pub(super) async fn wait_for_status(&self, what: &str, is_reached: impl Fn(&Value) -> bool) {
        let mut seen = Value::Null;
        let reached = wait(async || {
            seen = self.status().await;
            is_reached(&seen)
        })
        .await;
        assert!(reached, "{}: {what}: {seen}", self.name);
    }

    pub(super) async fn wait_for_event(&self, reason: &str) {
        let is_reached = wait(async || self.event_reasons().await.iter().any(|seen| seen == reason)).await;
        assert!(is_reached, "{}: no Event {reason}", self.name);
    }

    /// The whole minute that a case's first slot is, and the ones after it.
    pub(super) fn minute(&self, number: i64) -> Timestamp {
        let first = self.first_minute.get().unwrap_or_else(|| {
            let first = (Timestamp::now().as_second() / 60 + 1) * 60;
            self.first_minute.set(Some(first));
            first
        });
        Timestamp::from_second(first + number * 60).expect("an instant")
    }

    /// The name of the Job of a minute.
    pub(super) fn job_name(&self, number: i64) -> String {
        format!("hello-{}", self.minute(number).as_second() / 60)
    }
}

/// Polls until the condition holds; says whether it did.
async fn wait(mut is_reached: impl AsyncFnMut() -> bool) -> bool {
    let limit = tokio::time::Instant::now() + WAIT_MAX;
    while tokio::time::Instant::now() < limit {
        if is_reached().await {
            return true;
        }
        tokio::time::sleep(POLL).await;
    }
    false
}

pub(super) fn resource(group: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind))
}

pub(super) fn from_json(value: Value) -> DynamicObject {
    serde_json::from_value(value).expect("an object")
}

/// Merges objects member by member; anything else takes the place of what was there.
pub(super) fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}
