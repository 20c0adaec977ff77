//! A fleet with a past, in two namespaces. Each CronJob is in another state.
//!
//! The API server sets creation times itself, so the objects are written into etcd.

use std::{collections::BTreeMap, fs, path::PathBuf, rc::Rc};

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use kube::api::ListParams;
use serde_json::{Value, json};
use testbed::Proxy;

use crate::{
    control_plane::Access,
    kubernetes::{ControlPlane, Namespace, cron_job, job_name, merge},
};

/// All requests of service accounts in this namespace are in the audit log.
pub(super) const ACCOUNTS: &str = "cronwheel";

/// The last slot is this long ago, and the next one is forty minutes away.
const LAST_SLOT_MINUTES: i64 = 20;

/// The usual failure.
const FAILED: Life<'static> = Life::Failed("BackoffLimitExceeded");

/// How a Job went.
#[derive(Clone, Copy, Debug)]
pub(super) enum Life<'a> {
    /// It started on time, and ran for so many seconds.
    Ran(i64),
    /// It started so many seconds late, and ran for 30 seconds.
    Late(i64),
    /// It failed with this reason.
    Failed(&'a str),
    Running,
    /// It was deleted, and this finalizer holds it.
    Held(&'a str),
}

/// The namespaces, and the account of the page.
pub(super) struct World {
    pub(super) shop: Namespace,
    pub(super) ops: Namespace,
    /// The minute of the last slot of every hour.
    last_slot: Timestamp,
    /// Through it the page reaches the API server.
    pub(super) proxy: Proxy,
    pub(super) kubeconfig: PathBuf,
    /// The name of the account.
    pub(super) account: String,
}

impl World {
    /// Creates the namespaces and the account, which may get, list and watch CronJobs and Jobs in them.
    pub(super) async fn create(case: &str, access: &Access) -> World {
        let control_plane = ControlPlane::connect(access).await;
        let case: String = case.rsplit("::").next().unwrap_or(case).chars().take(40).collect();
        let [shop, ops] = ["shop", "ops"].map(|name| format!("{case}_{name}"));
        let shop = Namespace::create_for(&shop, Rc::clone(&control_plane)).await;
        let ops = Namespace::create_for(&ops, control_plane).await;
        let now = Timestamp::now().as_second() / 60 * 60;
        let last_slot = Timestamp::from_second(now - LAST_SLOT_MINUTES * 60).expect("an instant");
        let account = shop.name.clone();
        let (proxy, kubeconfig) = account_with_proxy(&account, [&shop, &ops]).await;
        World {
            shop,
            ops,
            last_slot,
            proxy,
            kubeconfig,
            account,
        }
    }

    /// Both namespaces, as arguments.
    pub(super) fn arguments(&self) -> [&str; 4] {
        ["-n", &self.shop.name, "-n", &self.ops.name]
    }

    /// The slot so many hours before the last one.
    pub(super) fn slot(&self, n_hours_back: i64) -> Timestamp {
        self.last_slot - SignedDuration::from_hours(n_hours_back)
    }

    /// Stores the fleet: for each trouble a CronJob, and three without one.
    pub(super) async fn fill(&self) {
        use Life::{Held, Late, Ran, Running};
        let forbid = json!({"concurrencyPolicy": "Forbid"});
        let deadline = json!({"startingDeadlineSeconds": 60});
        let suspended = json!({"suspend": true});
        let never = json!({"schedule": "0 0 31 2 *"});
        let (none, shop, ops) = (json!({}), &self.shop, &self.ops);
        let stored = [
            self.hourly(
                shop,
                "nightly-report",
                &none,
                &[(3, Ran(42)), (2, Ran(42)), (1, Ran(42)), (0, Ran(42))],
            ),
            self.hourly(
                shop,
                "import",
                &none,
                &[(3, Ran(9)), (2, Ran(9)), (1, FAILED), (0, FAILED)],
            ),
            self.hourly(shop, "invoice", &none, &[(2, Ran(30)), (1, Ran(30)), (0, Late(300))]),
            self.hourly(shop, "sync", &deadline, &[(3, Ran(5)), (2, Ran(5)), (0, Ran(5))]),
            self.hourly(ops, "backup", &forbid, &[(2, Ran(600)), (1, Held("example.com/hold"))]),
            self.hourly(ops, "cleanup", &suspended, &[(3, Ran(1))]),
            self.hourly(ops, "leap", &never, &[]),
            self.hourly(ops, "rotate", &none, &[(1, Ran(65)), (0, Running)]),
        ];
        join_all(stored).await;
    }

    /// Stores a CronJob that is due every hour, created six hours ago, with its Jobs by the age of their slots in hours.
    pub(super) async fn hourly(&self, namespace: &Namespace, name: &str, spec: &Value, jobs: &[(i64, Life<'_>)]) {
        let minute = self.last_slot.as_second() / 60 % 60;
        let team = if namespace.name == self.shop.name {
            "green"
        } else {
            "blue"
        };
        let object = json!({
            "metadata": {"name": name, "creationTimestamp": self.slot(6).to_string(), "labels": {"team": team}},
            "spec": {"schedule": format!("{minute} * * * *")},
        });
        let jobs: Vec<_> = jobs
            .iter()
            .map(|(n_hours_back, life)| (self.slot(*n_hours_back), *life))
            .collect();
        store(namespace, (object, spec), &jobs).await;
    }

    /// The CronJobs and the Jobs of both namespaces, by namespace and name.
    pub(super) async fn objects(&self, kind: &str) -> BTreeMap<String, Value> {
        let mut objects = BTreeMap::new();
        for namespace in [&self.shop, &self.ops] {
            let list = namespace.api(kind).list(&ListParams::default()).await.expect("a list");
            for object in list.items {
                let name = object.metadata.name.clone().expect("a name");
                let object = serde_json::to_value(object).expect("JSON");
                objects.insert(format!("{}/{name}", namespace.name), object);
            }
        }
        objects
    }
}

/// Stores a CronJob with these changes, and its Jobs.
pub(super) async fn store(namespace: &Namespace, (changes, spec): (Value, &Value), jobs: &[(Timestamp, Life<'_>)]) {
    let name = changes["metadata"]["name"].as_str().expect("a name");
    let uid = uid(&[&namespace.name, name]);
    let limits = json!({"successfulJobsHistoryLimit": 200, "failedJobsHistoryLimit": 200});
    let fields = json!([{
        "manager": "kubectl", "operation": "Update", "apiVersion": "batch/v1", "fieldsType": "FieldsV1",
        "time": changes["metadata"]["creationTimestamp"], "fieldsV1": {"f:spec": {"f:schedule": {}}},
    }]);
    let metadata = json!({"namespace": namespace.name, "uid": uid, "generation": 1, "managedFields": fields});
    let mut object = cron_job(json!({}));
    merge(&mut object, json!({"metadata": metadata, "spec": limits}));
    if let Some((last, _)) = jobs.iter().max_by_key(|(slot, _)| *slot) {
        merge(&mut object, json!({"status": {"lastScheduleTime": last.to_string()}}));
    }
    merge(&mut object, changes);
    merge(&mut object, json!({"spec": spec}));
    namespace.store("cronjobs", &object).await;
    let stored = jobs.iter().map(async |(slot, life)| {
        let job = job((&object, &uid), *slot, *life);
        namespace.store("jobs", &job).await;
    });
    join_all(stored).await;
}

/// The Job of a slot, as the built-in controller creates it.
pub(super) fn job((cron_job, uid_of_cron_job): (&Value, &str), slot: Timestamp, life: Life<'_>) -> Value {
    let [namespace, owner] = ["namespace", "name"].map(|field| cron_job["metadata"][field].as_str().expect("a name"));
    let name = job_name(owner, slot);
    let created = match life {
        Life::Late(seconds) => slot + SignedDuration::from_secs(seconds),
        Life::Ran(_) | Life::Failed(_) | Life::Running | Life::Held(_) => slot,
    };
    let text = |seconds: i64| (created + SignedDuration::from_secs(seconds)).to_string();
    let mut job = cron_job["spec"]["jobTemplate"].clone();
    merge(
        &mut job,
        json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {
                "name": name, "namespace": namespace, "uid": uid(&[namespace, &name]), "generation": 1,
                "creationTimestamp": created.to_string(),
                "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot.to_string()},
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "CronJob", "name": owner, "uid": uid_of_cron_job,
                    "controller": true, "blockOwnerDeletion": true,
                }],
                "managedFields": [{
                    "manager": "kube-controller-manager", "operation": "Update", "apiVersion": "batch/v1",
                    "time": created.to_string(), "fieldsType": "FieldsV1", "fieldsV1": {},
                }],
            },
            "status": {"startTime": created.to_string()},
        }),
    );
    let condition = |kind: &str, reason: &str, seconds: i64| {
        json!({"status": {"conditions": [
            {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": text(seconds)},
        ]}})
    };
    match life {
        Life::Ran(seconds) => {
            merge(&mut job, condition("Complete", "", seconds));
            merge(&mut job, json!({"status": {"completionTime": text(seconds)}}));
        }
        Life::Late(_) => {
            merge(&mut job, condition("Complete", "", 30));
            merge(&mut job, json!({"status": {"completionTime": text(30)}}));
        }
        Life::Failed(reason) => merge(&mut job, condition("Failed", reason, 20)),
        Life::Running => {}
        Life::Held(finalizer) => {
            let deletion = json!({"deletionTimestamp": text(120), "finalizers": [finalizer]});
            merge(&mut job, json!({"metadata": deletion}));
        }
    }
    job
}

/// A UID that is made of names.
pub(super) fn uid(names: &[&str]) -> String {
    let hash = names.join("/").bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("00000000-0000-4000-{:04x}-{:012x}", hash >> 48, hash & 0xffff_ffff_ffff)
}

/// Creates the account of the page, and the kubeconfig by which it reaches the API server through a proxy.
async fn account_with_proxy(account: &str, namespaces: [&Namespace; 2]) -> (Proxy, PathBuf) {
    let group = "rbac.authorization.k8s.io";
    let reads = json!([{"apiGroups": ["batch"], "resources": ["cronjobs", "jobs"], "verbs": ["get", "list", "watch"]}]);
    let mut items = vec![
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ACCOUNTS}}),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": ACCOUNTS}}),
    ];
    for namespace in namespaces {
        let metadata = json!({"name": "viewer", "namespace": namespace.name});
        items.push(json!({"apiVersion": format!("{group}/v1"), "kind": "Role", "metadata": metadata, "rules": reads}));
        items.push(json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "viewer"},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": ACCOUNTS}],
        }));
    }
    let shared = &namespaces[0].control_plane;
    let file = |extension: &str| shared.admin_kubeconfig.with_file_name(format!("{account}.{extension}"));
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": items});
    fs::write(file("viewer.json"), objects.to_string()).expect("a file");
    let objects = file("viewer.json");
    let kubectl = shared.kubectl.clone();
    let name = account.to_owned();
    let token = tokio::task::spawn_blocking(move || {
        kubectl.run(&["apply", "-f", objects.to_str().expect("a path")])?;
        kubectl.run(&["create", "token", &name, "-n", ACCOUNTS])
    });
    let token = token.await.expect("an end").expect("a token");

    let text = fs::read_to_string(&shared.controller_kubeconfig).expect("a kubeconfig");
    let mut kubeconfig: Value = serde_json::from_str(&text).expect("JSON");
    let server = kubeconfig["clusters"][0]["cluster"]["server"].take();
    let server = server.as_str().expect("an address").trim_start_matches("https://");
    let proxy = Proxy::to(server).await.expect("a port");
    kubeconfig["clusters"][0]["cluster"]["server"] = json!(format!("https://{}", proxy.address()));
    kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
    let path = file("viewer.kubeconfig");
    fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig");
    (proxy, path)
}
