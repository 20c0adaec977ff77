//! `check --canary`, and `check` of a replica, beside the built-in controller, with a policy that silences it in labelled namespaces.

use std::{
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use kube::api::DeleteParams;
use libtest_mimic::Trial;
use serde_json::{Value, json};
use testbed::ReferenceLimits;

use crate::{
    account::{Right, account_with, permit_leases},
    block_on,
    control_plane::{Purpose, take},
    kubernetes::{ControlPlane, Namespace, wait},
};

const SILENCED: &str = "canary::only_the_label_stops_the_built_in_controller";
const WITH_CRONWHEEL: &str = "canary::cronwheel_runs_the_managed_namespace_alone";

/// A run takes up to 75 seconds.
const DURATION_MAX: Duration = Duration::from_mins(3);

const POLICY: &str = "canary";

/// All rights that `check --canary` needs, as its help says.
const CANARY_RIGHTS: [Right; 7] = [
    ("create", "", "namespaces"),
    ("delete", "", "namespaces"),
    ("create", "batch", "cronjobs"),
    ("list", "batch", "cronjobs"),
    ("list", "batch", "jobs"),
    ("list", "", "events"),
    ("list", "coordination.k8s.io", "leases"),
];

/// The second one takes another minute, in which no other case runs.
pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let silenced = Trial::test(SILENCED, || {
        beside(SILENCED, is_silenced);
        Ok(())
    });
    let with_cronwheel = Trial::test(WITH_CRONWHEEL, || {
        beside(WITH_CRONWHEEL, is_run_alone);
        Ok(())
    });
    [silenced, with_cronwheel.with_ignored_flag(true)].into_iter()
}

/// Runs a case while the built-in controller runs, which a policy silences in labelled namespaces.
fn beside(name: &str, case: impl AsyncFnOnce(&Namespace)) {
    take(Purpose::Beside, |testbed, access| {
        testbed.start_reference(ReferenceLimits::default()).expect("a start");
        block_on(DURATION_MAX, async {
            let namespace = Namespace::create_for(name, ControlPlane::connect(access).await).await;
            apply_policy(&namespace).await;
            case(&namespace).await;
            for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
                namespace.delete(kind, POLICY, DeleteParams::default()).await;
            }
        });
        testbed.stop_reference().expect("an end");
    });
}

/// Refuses the built-in controller its writes, as the policy of the chart does without a fallback.
async fn apply_policy(namespace: &Namespace) {
    let rule = |group: &str, operations: &[&str], resource: &str| json!({"apiGroups": [group], "apiVersions": ["v1"], "operations": operations, "resources": [resource]});
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [
                rule("batch", &["CREATE"], "jobs"),
                rule("batch", &["UPDATE"], "cronjobs/status"),
                rule("", &["CREATE", "UPDATE"], "events"),
            ]},
            "matchConditions": [{
                "name": "built-in",
                "expression": "request.userInfo.username == 'system:serviceaccount:kube-system:cronjob-controller'",
            }],
            "validations": [{"expression": "false", "message": "silenced"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY},
        "spec": {
            "policyName": POLICY, "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"cronwheel.dev/managed": "true"}}},
        },
    });
    namespace.create(policy).await;
    namespace.create(binding).await;
    // An API server follows policies with a delay of about a second, and the next slot is further away than that.
    tokio::time::sleep(Duration::from_secs(3)).await;
}

/// The built-in controller starts the Job in the namespace without the label alone. With a selector that the policy does
/// not have, it starts both.
async fn is_silenced(namespace: &Namespace) {
    let kubeconfig = &namespace.control_plane.admin_kubeconfig;
    let labelled = start_canary(&account_with(namespace, "canary", &CANARY_RIGHTS).await, &[]);
    let other = start_canary(kubeconfig, &["--namespace-selector", "team=a"]);
    without_a_right_nothing_is_shown(namespace).await;
    let (code, report) = end_of(labelled);
    assert_eq!(code, Some(0), "{report:#}");
    assert_check(&report, "managed namespace", "fine", "nobody created a Job within 20s");
    assert_check(&report, "unmanaged namespace", "fine", "only the label stops it");
    assert_check(&report, "removed", "fine", "deleted");
    let (code, report) = end_of(other);
    assert_eq!(code, Some(1), "{report:#}");
    assert_check(
        &report,
        "managed namespace",
        "failed",
        "kube-controller-manager created Job canary-",
    );
    assert_removed(namespace).await;
}

/// Without a right to create, the canary does not begin, and removes what it created.
async fn without_a_right_nothing_is_shown(namespace: &Namespace) {
    for (lacking, text) in [(0, "cannot create namespace"), (2, "cannot create a CronJob")] {
        let mut rights = CANARY_RIGHTS.to_vec();
        rights.remove(lacking);
        let kubeconfig = account_with(namespace, &format!("canary-{lacking}"), &rights).await;
        let (code, report) = end_of(start_canary(&kubeconfig, &[]));
        assert_eq!(code, Some(1), "{report:#}");
        assert_check(&report, "canary", "failed", text);
        assert_check(&report, "removed", "fine", "deleted");
    }
}

/// A replica runs all namespaces, so there is none in which the built-in controller could show that it works.
async fn is_run_alone(namespace: &Namespace) {
    let plane = &namespace.control_plane;
    permit_leases(namespace).await;
    let mut replica = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .args(["run", "--listen", "127.0.0.1:0", "--log-level", "warn", "--kubeconfig"])
        .arg(&plane.controller_kubeconfig)
        .args(["--lease-namespace", &namespace.name])
        .stdin(Stdio::null())
        .spawn()
        .expect("a process");
    let (code, report) = end_of(start_canary(
        &plane.admin_kubeconfig,
        &["--lease-namespace", &namespace.name],
    ));
    let checked = check(&plane.admin_kubeconfig, &["--lease-namespace", &namespace.name]);
    let (installation_code, installation) = end_of(checked);
    replica.kill().expect("it runs");
    replica.wait().expect("an end");
    assert_eq!(code, Some(0), "{report:#}");
    assert_check(
        &report,
        "managed namespace",
        "fine",
        "no other controller wrote anything there",
    );
    assert_eq!(installation_code, Some(0), "{installation:#}");
    assert_check(&installation, "replicas", "fine", "1 replica at work: ");
    assert_check(&installation, "leaders", "fine", "all 256 shards are led");
    assert_check(
        &installation,
        "admission policy",
        "warning",
        "no ValidatingAdmissionPolicy",
    );
    assert_check(&installation, "namespaces", "fine", "all namespaces");
    assert_removed(namespace).await;
}

fn start_canary(kubeconfig: &Path, arguments: &[&str]) -> Child {
    check(kubeconfig, &[&["--canary", "--wait", "20s"], arguments].concat())
}

fn check(kubeconfig: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .args(["check", "-o", "json", "--kubeconfig"])
        .arg(kubeconfig)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a process")
}

/// The exit code and the report.
fn end_of(canary: Child) -> (Option<i32>, Value) {
    let Output { status, stdout, .. } = canary.wait_with_output().expect("an end");
    (status.code(), serde_json::from_slice(&stdout).expect("JSON"))
}

fn assert_check(report: &Value, title: &str, severity: &str, text: &str) {
    let mut checks = report["checks"].as_array().expect("checks").iter();
    let check = checks.find(|check| check["title"] == title);
    let check = check.unwrap_or_else(|| panic!("no {title} in {report:#}"));
    assert_eq!(check["severity"], severity, "{report:#}");
    assert!(check["reason"].as_str().expect("text").contains(text), "{report:#}");
}

/// Asserts that the namespaces of canaries go.
async fn assert_removed(namespace: &Namespace) {
    let are_gone = async || {
        let list = namespace
            .kubectl(&["get", "namespaces", "-l", "cronwheel.dev/canary", "-o", "name"])
            .await;
        list.trim().is_empty()
    };
    assert!(wait(are_gone).await, "namespaces are left");
}
