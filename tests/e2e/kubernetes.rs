//! Requests of cases to the API server: objects as JSON, and waits with a limit.

use std::{
    cell::Cell,
    path::{Path, PathBuf},
    rc::Rc,
    time::Duration,
};

use jiff::Timestamp;
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::Status,
};
use serde_json::{Value, json};
use testbed::{Kubectl, KubectlError};

use super::control_plane::Access;

const WAIT_MAX: Duration = Duration::from_secs(25);
const POLL: Duration = Duration::from_millis(100);

pub(super) async fn connect(kubeconfig: &Path) -> Client {
    client(Kubeconfig::read_from(kubeconfig).expect("a kubeconfig"), true).await
}

/// A client that returns errors without retries.
pub(super) async fn connect_without_retries(kubeconfig: &Path) -> Client {
    client(Kubeconfig::read_from(kubeconfig).expect("a kubeconfig"), false).await
}

pub(super) async fn client(kubeconfig: Kubeconfig, retries: bool) -> Client {
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut config = config.expect("a configuration");
    config.default_retry = retries;
    Client::try_from(config).expect("a client")
}

/// The status code of a list of Jobs.
pub(super) async fn code_of_list(client: &Client, namespace: &Namespace) -> u16 {
    refusal_of_list(client, namespace)
        .await
        .map_or(200, |status| status.code)
}

/// The error of a list of Jobs, if it fails.
pub(super) async fn refusal_of_list(client: &Client, namespace: &Namespace) -> Option<Status> {
    let jobs: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace.name, &resource("batch", "Job"));
    match jobs.list(&ListParams::default().limit(1)).await {
        Ok(_) => None,
        Err(kube::Error::Api(status)) => Some(*status),
        Err(error) => panic!("{error}"),
    }
}

/// The control plane of a case.
pub(super) struct ControlPlane {
    /// A client of a cluster administrator.
    pub(super) client: Client,
    /// The kubeconfig of a cluster administrator, for further connections.
    pub(super) admin_kubeconfig: PathBuf,
    /// The kubeconfig of the service account that controllers use.
    pub(super) controller_kubeconfig: PathBuf,
    /// kubectl as a cluster administrator.
    pub(super) kubectl: Kubectl,
    pub(super) etcd_url: String,
    /// The audit log, if enabled.
    pub(super) audit_log: Option<PathBuf>,
}

impl ControlPlane {
    /// Connects one case to the control plane, with its own connection.
    pub(super) async fn connect(access: &Access) -> Rc<ControlPlane> {
        Rc::new(ControlPlane {
            client: connect(&access.admin_kubeconfig).await,
            admin_kubeconfig: access.admin_kubeconfig.clone(),
            controller_kubeconfig: access.controller_kubeconfig.clone(),
            kubectl: access.kubectl.clone(),
            etcd_url: access.etcd_url.clone(),
            audit_log: access.audit_log.clone(),
        })
    }

    /// The same control plane with another kubeconfig for controllers.
    pub(super) fn with_controller_kubeconfig(&self, controller_kubeconfig: PathBuf) -> ControlPlane {
        ControlPlane {
            client: self.client.clone(),
            admin_kubeconfig: self.admin_kubeconfig.clone(),
            controller_kubeconfig,
            kubectl: self.kubectl.clone(),
            etcd_url: self.etcd_url.clone(),
            audit_log: self.audit_log.clone(),
        }
    }
}

/// The namespace of a case.
pub(super) struct Namespace {
    pub(super) name: String,
    pub(super) control_plane: Rc<ControlPlane>,
    /// The first full minute of the case in Unix seconds. Set by the first CronJob, or at the first use.
    first_minute: Cell<Option<i64>>,
}

impl Namespace {
    pub(super) async fn create_for(case: &str, control_plane: Rc<ControlPlane>) -> Namespace {
        let case = case.rsplit("::").next().unwrap_or(case);
        let mut name = case.replace('_', "-");
        name.truncate(60);
        let name = name.trim_end_matches('-').to_owned();
        let namespace = Namespace {
            name,
            control_plane,
            first_minute: Cell::new(None),
        };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace.name}});
        namespace.create(object).await;
        namespace
    }

    /// The API for a kind, in this namespace if the kind is namespaced.
    pub(super) fn api(&self, kind: &str) -> Api<DynamicObject> {
        let (group, is_namespaced) = match kind {
            "Namespace" => ("", false),
            "ConfigMap" | "Event" | "Pod" | "ResourceQuota" | "ServiceAccount" => ("", true),
            "CronJob" | "Job" => ("batch", true),
            "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding" => ("admissionregistration.k8s.io", false),
            "Lease" => ("coordination.k8s.io", true),
            "ClusterRole" | "ClusterRoleBinding" => ("rbac.authorization.k8s.io", false),
            "Deployment" => ("apps", true),
            "FlowSchema" | "PriorityLevelConfiguration" => ("flowcontrol.apiserver.k8s.io", false),
            kind => panic!("where is {kind}?"),
        };
        let client = self.control_plane.client.clone();
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
        if is_namespaced {
            Api::namespaced_with(client, &self.name, &resource)
        } else {
            Api::all_with(client, &resource)
        }
    }

    /// Creates an object that names its kind.
    pub(super) async fn create(&self, object: Value) {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        let created = self.try_create(object).await;
        created.unwrap_or_else(|error| panic!("{}: {kind}: {error}", self.name));
    }

    /// Creates an object that names its kind. The minutes of the case follow the creation of its first CronJob.
    pub(super) async fn try_create(&self, object: Value) -> kube::Result<()> {
        let kind = object["kind"].as_str().expect("a kind").to_owned();
        let created = self
            .api(&kind)
            .create(&PostParams::default(), &from_json(object))
            .await?;
        if kind == "CronJob" && self.first_minute.get().is_none() {
            let created = created.metadata.creation_timestamp.expect("a creation time").0;
            self.first_minute.set(Some((created.as_second() / 60 + 1) * 60));
        }
        Ok(())
    }

    pub(super) async fn patch(&self, kind: &str, name: &str, patch: Value) {
        let patch = Patch::Merge(patch);
        let patched = self.api(kind).patch(name, &PatchParams::default(), &patch).await;
        patched.unwrap_or_else(|error| panic!("{}: {kind} {name}: {error}", self.name));
    }

    pub(super) async fn delete(&self, kind: &str, name: &str, params: DeleteParams) {
        let deleted = self.api(kind).delete(name, &params).await;
        deleted.unwrap_or_else(|error| panic!("{}: {kind} {name}: {error}", self.name));
    }

    pub(super) async fn find(&self, kind: &str, name: &str) -> Option<Value> {
        let found = self.api(kind).get_opt(name).await.expect("an answer");
        found.map(|object| serde_json::to_value(object).expect("JSON"))
    }

    /// Runs kubectl in this namespace. Returns its standard output.
    pub(super) async fn kubectl(&self, arguments: &[&str]) -> String {
        self.try_kubectl(arguments).await.expect("kubectl says yes")
    }

    /// Like [`Namespace::kubectl`], but returns errors.
    pub(super) async fn try_kubectl(&self, arguments: &[&str]) -> Result<String, KubectlError> {
        let kubectl = self.control_plane.kubectl.clone();
        let arguments: Vec<String> = ["--namespace", &self.name]
            .iter()
            .chain(arguments)
            .map(ToString::to_string)
            .collect();
        let run = move || kubectl.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        tokio::task::spawn_blocking(run).await.expect("an end")
    }

    /// Creates the minutely CronJob `hello` with these changes. `life` controls its Jobs (`{"run-for": "1s"}`).
    pub(super) async fn create_cron_job(&self, life: Value, changes: Value) {
        let mut object = cron_job(life);
        merge(&mut object, changes);
        self.create(object).await;
    }

    pub(super) async fn patch_cron_job(&self, patch: Value) {
        self.patch("CronJob", "hello", patch).await;
    }

    pub(super) async fn patch_status(&self, status: Value) {
        self.patch_status_of("hello", status).await;
    }

    pub(super) async fn patch_status_of(&self, name: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        self.api("CronJob")
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .expect("a status patch");
    }

    /// Sets the cursor of a CronJob.
    pub(super) async fn set_last_run(&self, name: &str, slot: Timestamp) {
        self.patch_status_of(name, json!({"lastScheduleTime": slot.to_string()}))
            .await;
    }

    pub(super) async fn cron_job(&self) -> Value {
        self.find("CronJob", "hello").await.expect("the CronJob")
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

    pub(super) async fn events(&self) -> Vec<Value> {
        let list = self.api("Event").list(&ListParams::default()).await.expect("Events");
        let json = |event| serde_json::to_value(event).expect("JSON");
        list.items.into_iter().map(json).collect()
    }

    /// The messages of a CronJob's Events with this reason, and their counts, sorted.
    pub(super) async fn event_counts(&self, cron_job: &str, reason: &str) -> Vec<(String, u64)> {
        let is_it = |event: &Value| event["involvedObject"]["name"] == *cron_job && event["reason"] == *reason;
        let text = |event: &Value| {
            let message = event["message"].as_str().unwrap_or_default().to_owned();
            (message, event["count"].as_u64().unwrap_or(1))
        };
        let mut counts: Vec<_> = self
            .events()
            .await
            .iter()
            .filter(|event| is_it(event))
            .map(text)
            .collect();
        counts.sort();
        counts
    }

    /// Waits until exactly these Jobs exist.
    pub(super) async fn wait_for_jobs(&self, expected: &[String]) {
        let mut seen = Vec::new();
        let is_there = async || {
            seen = self.job_names().await;
            seen == expected
        };
        let is_reached = wait(is_there).await;
        assert!(is_reached, "{}: Jobs {seen:?}, not {expected:?}", self.name);
    }

    /// Waits until the status meets the condition.
    pub(super) async fn wait_for_status(&self, what: &str, is_reached: impl Fn(&Value) -> bool) {
        self.wait_for_status_of("hello", what, is_reached).await;
    }

    pub(super) async fn wait_for_status_of(&self, name: &str, what: &str, is_reached: impl Fn(&Value) -> bool) {
        let mut seen = Value::Null;
        let reached = wait(async || {
            seen = self.find("CronJob", name).await.expect("the CronJob")["status"].clone();
            is_reached(&seen)
        })
        .await;
        assert!(reached, "{}: {what}: {seen}", self.name);
    }

    pub(super) async fn wait_for_event(&self, reason: &str) {
        self.wait_for_event_on("hello", reason).await;
    }

    /// Waits for an Event with this reason on a CronJob. Returns its message.
    pub(super) async fn wait_for_event_on(&self, cron_job: &str, reason: &str) -> String {
        let mut events = Vec::new();
        let is_reported = async || {
            events = self.event_counts(cron_job, reason).await;
            !events.is_empty()
        };
        assert!(
            wait(is_reported).await,
            "{}: no Event {reason} on {cron_job}",
            self.name
        );
        events.remove(0).0
    }

    pub(super) async fn wait_until_gone(&self, kind: &str, name: &str) {
        let is_gone = wait(async || self.find(kind, name).await.is_none()).await;
        assert!(is_gone, "{}: {kind} {name} stays", self.name);
    }

    /// A full minute of the case, counted from its first slot.
    pub(super) fn minute(&self, number: i64) -> Timestamp {
        let first = self.first_minute.get().unwrap_or_else(|| {
            let first = (Timestamp::now().as_second() / 60 + 1) * 60;
            self.first_minute.set(Some(first));
            first
        });
        Timestamp::from_second(first + number * 60).expect("an instant")
    }

    /// Counts the minutes as another namespace of the case does. Called before the first CronJob.
    pub(super) fn count_minutes_as(&self, other: &Namespace) {
        self.first_minute.set(Some(other.minute(0).as_second()));
    }

    /// The name of the Job of this minute.
    pub(super) fn job_name(&self, number: i64) -> String {
        job_name("hello", self.minute(number))
    }
}

/// The name of a slot's Job.
pub(super) fn job_name(cron_job: &str, slot: Timestamp) -> String {
    format!("{cron_job}-{}", slot.as_second() / 60)
}

/// The minutely CronJob `hello`. `life` controls its Jobs.
pub(super) fn cron_job(life: Value) -> Value {
    json!({
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
    })
}

/// A Job of a user, without a CronJob.
pub(super) fn own_job(name: &str, life: Value) -> Value {
    let mut job = cron_job(life)["spec"]["jobTemplate"].clone();
    let head = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}});
    merge(&mut job, head);
    job
}

/// Polls until the condition is true. Returns whether it became true.
pub(super) async fn wait(mut is_reached: impl AsyncFnMut() -> bool) -> bool {
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

/// Merges objects member by member. Other values are replaced.
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
