//! A replica whose service account lacks one permission. Either Jobs start, or `/readyz` fails and the log names the
//! permission. A check whose account lacks a right names it.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
    rc::Rc,
};

use cronwheel::controller::permissions::{PERMISSIONS, POLICY_PERMISSIONS, Permission, Place};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::{
    account::{Right, account_with},
    controller::Controller,
    kubernetes::{ControlPlane, Namespace, wait},
};

/// The number of concurrent processes.
const N_AT_ONCE: usize = 4;

const NAME: &str = "candidate";

pub(super) async fn without_one_permission_jobs_start_or_the_replica_is_not_ready(namespace: Namespace) {
    let needed: Vec<&Permission> = needed().collect();
    for permissions in needed.chunks(N_AT_ONCE) {
        let runs = permissions
            .iter()
            .map(|missing| run_without(missing, &namespace.control_plane));
        join_all(runs).await;
    }
}

/// The permissions that a replica needs. Those of the cluster are needed with `--namespace-selector`, or with
/// `--built-in-policy`.
fn needed() -> impl Iterator<Item = &'static Permission> {
    PERMISSIONS.iter().chain(&POLICY_PERMISSIONS)
}

/// Whether a Role in the namespace of a case can grant the permission.
fn is_namespaced(permission: &Permission) -> bool {
    permission.place != Place::Cluster
}

async fn run_without(missing: &Permission, control_plane: &Rc<ControlPlane>) {
    let namespace = account_without(missing, control_plane).await;
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    let log_path = file(&namespace, "log");
    let log = File::create(&log_path).expect("a log");
    let lease_namespace = format!("--lease-namespace={}", namespace.name);
    // By the replica's clock, the slot of minute 0 has passed.
    let selector = format!("--namespace-selector=kubernetes.io/metadata.name={}", namespace.name);
    let mut arguments = vec![&*lease_namespace];
    if POLICY_PERMISSIONS.contains(missing) {
        arguments.push("--built-in-policy=cronwheel-built-in-writes");
    } else if !is_namespaced(missing) {
        arguments.push(&selector);
    }
    let replica = Controller::start_replica_with_log(&namespace, 1, &arguments, log);

    let place = if is_namespaced(missing) {
        format!("namespace {}", namespace.name)
    } else {
        "all namespaces".to_owned()
    };
    let what = format!("{} {} in {place}", missing.verb, missing.resource);
    wait_for_log(&log_path, &what).await;
    let labels = [("verb", missing.verb), ("resource", missing.resource)];
    replica
        .wait_for_metric("cronwheel_permissions_missing", &labels, |n| n == 1)
        .await;
    if missing.is_required {
        let readiness = replica.readiness().await;
        assert!(readiness.contains(&what), "{what}: {readiness}");
        // A replica can create a Lease without the permission to renew it, so it may lead for a moment. It can list without
        // the permission to watch, so it may act on its list before the watch is refused.
        if missing.place != Place::LeaseNamespace && missing.verb != "watch" {
            assert_eq!(namespace.job_names().await, Vec::<String>::new(), "{what}");
        }
    } else {
        let is_there = async || !namespace.job_names().await.is_empty();
        assert!(wait(is_there).await, "no Job without {what}");
        replica.wait_until_ready().await;
    }
    replica.kill();
}

async fn wait_for_log(path: &Path, text: &str) {
    let mut log = String::new();
    let is_logged = async || {
        log = fs::read_to_string(path).expect("a log");
        log.contains(text)
    };
    assert!(wait(is_logged).await, "{text} is not in the log: {log}");
}

/// The path of a file for a namespace, next to the kubeconfigs.
fn file(namespace: &Namespace, extension: &str) -> PathBuf {
    let kubeconfig = &namespace.control_plane.admin_kubeconfig;
    kubeconfig.with_file_name(format!("{}.{extension}", namespace.name))
}

/// Creates a namespace whose controllers use a service account with all permissions except one. The installation
/// already exists.
async fn account_without(missing: &Permission, shared: &Rc<ControlPlane>) -> Namespace {
    let name = format!("without-{}-{}", missing.verb, missing.resource.replace('/', "-"));
    let mut namespace = Namespace::create_for(&name, Rc::clone(shared)).await;
    let objects = file(&namespace, "account.json");
    fs::write(&objects, account(missing, &namespace.name).to_string()).expect("a file");
    namespace
        .kubectl(&["apply", "-f", objects.to_str().expect("a path")])
        .await;
    let token = namespace.kubectl(&["create", "token", NAME]).await;
    let text = fs::read_to_string(&shared.controller_kubeconfig).expect("a kubeconfig");
    let mut kubeconfig: Value = serde_json::from_str(&text).expect("JSON");
    kubeconfig["users"][0]["user"] = json!({"token": token.trim()});
    let path = file(&namespace, "kubeconfig");
    fs::write(&path, kubeconfig.to_string()).expect("a kubeconfig");

    namespace.control_plane = Rc::new(ControlPlane {
        client: shared.client.clone(),
        admin_kubeconfig: shared.admin_kubeconfig.clone(),
        controller_kubeconfig: path,
        kubectl: shared.kubectl.clone(),
        etcd_url: shared.etcd_url.clone(),
        audit_log: shared.audit_log.clone(),
    });
    namespace
}

/// The service account, its Role and the binding.
fn account(missing: &Permission, namespace: &str) -> Value {
    let given = needed().filter(|it| *it != missing && is_namespaced(it));
    let rules: Vec<Value> = given
        .map(|permission| {
            json!({
                "apiGroups": [permission.group],
                "resources": [permission.resource],
                "verbs": [permission.verb],
            })
        })
        .collect();
    let metadata = json!({"name": NAME, "namespace": namespace});
    let group = "rbac.authorization.k8s.io";
    let version = format!("{group}/v1");
    json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": rules},
        {
            "apiVersion": version,
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
        },
    ]})
}

/// All rights that `check` needs for an installation, as its help says.
const CHECK_RIGHTS: [Right; 6] = [
    ("list", "coordination.k8s.io", "leases"),
    ("list", "", "namespaces"),
    ("list", "batch", "cronjobs"),
    ("list", "batch", "jobs"),
    ("list", "admissionregistration.k8s.io", "validatingadmissionpolicies"),
    (
        "list",
        "admissionregistration.k8s.io",
        "validatingadmissionpolicybindings",
    ),
];

pub(super) async fn check_names_each_right_that_its_account_lacks(namespace: Namespace) {
    crate::account::permit_leases(&namespace).await;
    let selector = format!("--namespace-selector=kubernetes.io/metadata.name={}", namespace.name);
    let controller = Controller::start(&namespace, 0, &[&selector]);
    controller.wait_until_leading().await;
    let complete = account_with(&namespace, "all", &CHECK_RIGHTS).await;
    let is_granted = async || unchecked(&namespace, &complete).is_empty();
    assert!(wait(is_granted).await, "{:?}", unchecked(&namespace, &complete));
    // That of the replicas may list no policy. It may get those of its release, which its rights name.
    let of_replicas = &namespace.control_plane.controller_kubeconfig;
    let is_granted = async || unchecked(&namespace, of_replicas).is_empty();
    assert!(wait(is_granted).await, "{:?}", unchecked(&namespace, of_replicas));
    for (number, (verb, _, resource)) in CHECK_RIGHTS.iter().enumerate() {
        let mut rights = CHECK_RIGHTS.to_vec();
        rights.remove(number);
        let kubeconfig = account_with(&namespace, &format!("without-{resource}"), &rights).await;
        let mut reasons = Vec::new();
        let is_named = async || {
            reasons = unchecked(&namespace, &kubeconfig);
            reasons.len() == 1 && reasons[0].contains(resource)
        };
        assert!(wait(is_named).await, "without {verb} {resource}: {reasons:?}");
    }
    controller.terminate().await;
}

/// The reasons of the findings of `check` that were not checked.
fn unchecked(namespace: &Namespace, kubeconfig: &Path) -> Vec<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .args([
            "check",
            "-o",
            "json",
            "--lease-namespace",
            &namespace.name,
            "--kubeconfig",
        ])
        .arg(kubeconfig)
        .output()
        .expect("a process");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = report["checks"].as_array().expect("checks").iter();
    let reasons = findings.filter_map(|finding| finding["reason"].as_str());
    reasons
        .filter(|reason| reason.starts_with("not checked"))
        .map(str::to_owned)
        .collect()
}
