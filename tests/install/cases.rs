//! A release from its installation to its removal.

use std::{thread::sleep, time::Duration};

use rustix::process::{Pid, Signal, kill_process};

use serde_json::json;
use testbed::ReferenceLimits;

use super::{
    audit::Audit,
    cluster::{Cluster, is_wanted, last_minute, next_minute, now, wait_for, wait_for_second},
    release::{CHART, NAMESPACE, OLD_CHART, name_of},
    tenant::{OTHER, TENANT, UNLABELLED, cron_job},
};

/// The second of a minute at which a rollout begins, so that a slot is due during the rollout.
const BEFORE_THE_SLOT: u64 = 52;
/// Longer than the other replicas take to evict a frozen one.
const FREEZE: Duration = Duration::from_secs(15);

/// The account of the built-in controller.
const BUILT_IN: &str = "system:serviceaccount:kube-system:cronjob-controller";

/// Set to run the cases, which take minutes.
pub(crate) const WANTED: &str = "CRONWHEEL_INSTALL_TEST";

#[test]
fn client_side_apply_upgrades_rolls_back_and_removes_a_release() {
    if !is_wanted(WANTED) {
        return;
    }
    let mut cluster = Cluster::start();
    cluster.create_namespace();
    cluster.create_cron_jobs();
    cluster.create(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": UNLABELLED}})]);
    cluster.kubectl(&[
        "wait",
        "--for=create",
        "--timeout=60s",
        "--namespace",
        UNLABELLED,
        "serviceaccount/default",
        "configmap/kube-root-ca.crt",
    ]);
    cluster.create(&[cron_job(UNLABELLED, "unlabelled")]);
    let before = cluster.objects();
    cluster.release("install", &[OLD_CHART, "--server-side=false"]);
    cluster.check_pods();
    let first = next_minute();
    wait_for("a Job by the former chart", || {
        let jobs = cluster.list(&["jobs", "--namespace", UNLABELLED]);
        (!jobs.is_empty()).then_some(())
    });

    wait_for_second(BEFORE_THE_SLOT);
    cluster.release(
        "upgrade",
        &[CHART, "--server-side=false", "--set=controller.logFormat=json"],
    );
    cluster.check_pods();
    unlabelled_namespaces_go_to_the_built_in_controller(&mut cluster);
    evictions_respect_the_budget(&cluster);

    wait_for_second(BEFORE_THE_SLOT);
    cluster.release("rollback", &["1"]);
    cluster.check_pods();
    // An uninstallation deletes the permissions before the Pods, so requests are forbidden after this point. The former chart
    // has no right to read policies, which the last Pods of this chart still used.
    Audit::read(&cluster).assert_nothing_forbidden_but("/apis/admissionregistration.k8s.io/");
    let last = last_minute();
    // A rollback keeps what helm keeps, and the notes of the former chart do not name it.
    let kinds = "validatingadmissionpolicybinding,validatingadmissionpolicy";
    cluster.kubectl(&["delete", kinds, "cronwheel-built-in-leases"]);
    cluster.uninstall(&before);
    Audit::read(&cluster).assert_runs(first..=last);
}

#[test]
fn server_side_apply_changes_time_zone_and_scope_of_a_release() {
    if !is_wanted(WANTED) {
        return;
    }
    let cluster = Cluster::start();
    cluster.create_namespace();
    cluster.create_cron_jobs();
    let before = cluster.objects();
    let values = "--set=controller.maxTemplateMemory=1";
    cluster.release("install", &[CHART, "--server-side=true", values]);
    cluster.check_pods();
    let first = next_minute();
    cluster.create_rare_cases();

    wait_for_second(BEFORE_THE_SLOT);
    let zone = "--set=controller.defaultTimeZone=Europe/Berlin";
    cluster.release("upgrade", &[CHART, "--reuse-values", zone]);
    cluster.check_pods();
    frozen_replica_is_evicted_and_returns(&cluster);
    cluster.assert_permissions();

    wait_for_second(BEFORE_THE_SLOT);
    let scope = format!("--set=controller.namespaces={{{TENANT}}}");
    cluster.release("upgrade", &[CHART, "--reuse-values", &scope]);
    cluster.check_pods();
    the_scope_is_one_namespace(&cluster);

    wait_for_second(BEFORE_THE_SLOT);
    cluster.release("rollback", &["1"]);
    cluster.check_pods();
    let last = last_minute();
    cluster.uninstall(&before);
    Audit::read(&cluster).assert_runs(first..=last);
}

/// The former chart ran all namespaces. The notes say what changes, and the built-in controller continues where cronwheel
/// stopped.
fn unlabelled_namespaces_go_to_the_built_in_controller(cluster: &mut Cluster) {
    let notes = cluster.helm(&["get", "notes", "cronwheel", "--namespace", NAMESPACE]);
    let listing = "kubectl get namespaces --selector 'cronwheel.dev/managed!=true'";
    assert!(notes.contains(listing), "{notes}");
    let since = next_minute();
    cluster.testbed.start_reference(ReferenceLimits::default()).unwrap();
    wait_for("a Job of the built-in controller", || {
        let audit = Audit::of_account(cluster, BUILT_IN);
        (!audit.created_in(UNLABELLED, since).is_empty()).then_some(())
    });
    cluster.testbed.stop_reference().unwrap();
    // kube-controller-manager created it.
    cluster.kubectl(&[
        "delete",
        "serviceaccount",
        "cronjob-controller",
        "--namespace=kube-system",
    ]);
    assert_eq!(Audit::read(cluster).created_in(UNLABELLED, since), Vec::<&str>::new());
    assert_eq!(
        Audit::of_account(cluster, BUILT_IN).created_in(TENANT, 0),
        Vec::<&str>::new()
    );
}

/// The budget allows one eviction. It allows another one only when the first Pod is replaced.
fn evictions_respect_the_budget(cluster: &Cluster) {
    let pods = cluster.pods();
    let names: Vec<&str> = pods.iter().map(name_of).collect();
    wait_for("the first eviction", || cluster.evict(names[0]).ok());
    let refused = cluster.evict(names[1]).unwrap_err();
    assert!(
        refused.contains("would violate the pod's disruption budget"),
        "{refused}"
    );
    wait_for("the second eviction", || cluster.evict(names[1]).ok());
    cluster.check_pods();
}

fn frozen_replica_is_evicted_and_returns(cluster: &Cluster) {
    let pods = cluster.pods();
    let process = cluster.nodes.process(name_of(&pods[0])).unwrap();
    let pid = Pid::from_raw(process.pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    sleep(FREEZE);
    kill_process(pid, Signal::CONT).unwrap();
    cluster.check_pods();
}

/// After a change of the scope, new replicas need no other permissions and start nothing in other namespaces.
fn the_scope_is_one_namespace(cluster: &Cluster) {
    let since = next_minute();
    let pods = cluster.pods();
    sleep(Duration::from_secs((since * 60 + 10).saturating_sub(now())));
    let audit = Audit::read(cluster);
    assert!(!audit.created_in(TENANT, since).is_empty());
    assert!(audit.created_in(OTHER, since).is_empty());
    let is_present = |pod: &str| pods.iter().any(|present| name_of(present) == pod);
    let missing: Vec<_> = audit
        .forbidden()
        .into_iter()
        .filter(|(pod, _)| is_present(pod))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
