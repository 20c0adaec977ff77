//! `helm test` of a release.

use super::{
    audit::Audit,
    cases::WANTED,
    cluster::{Cluster, is_wanted},
    release::{CHART, NAMESPACE},
    tenant::TENANT,
};

const ACCOUNT: &str = "system:serviceaccount:cronwheel:cronwheel-test";

#[test]
fn test_of_a_release_succeeds_in_a_managed_namespace_and_leaves_nothing() {
    if !is_wanted(WANTED) {
        return;
    }
    let cluster = Cluster::start();
    cluster.create_namespace();
    cluster.create_cron_jobs();
    let before = cluster.objects();
    let namespace = format!("--set=tests.namespace={TENANT}");
    cluster.release("install", &[CHART, &namespace, "--set=replicaCount=1"]);
    cluster.wait_for_pods(1);
    let output = cluster.helm(&["test", "cronwheel", "--namespace", NAMESPACE, "--timeout=3m"]);
    assert!(output.contains("Succeeded"), "{output}");
    let audit = Audit::of_account(&cluster, ACCOUNT);
    audit.assert_nothing_forbidden();
    let expected = ["create batch cronjobs", "delete batch cronjobs", "list batch jobs"];
    assert_eq!(audit.used_permissions(), expected.map(str::to_owned).into());
    let left = cluster.list(&["cronjobs", "--namespace", TENANT, "--selector", "cronwheel.dev/canary"]);
    assert!(left.is_empty(), "{left:?}");
    cluster.wait_for_pods(1);
    cluster.uninstall(&before);
}
