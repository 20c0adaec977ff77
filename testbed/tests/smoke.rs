//! The control plane starts, completes Jobs, survives outages of its components, and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::{fs, path::Path};

use testbed::{Component, JobLife, Kubectl, Options, ReferenceLimits, Testbed};

const JOB: &str = r"
apiVersion: batch/v1
kind: Job
metadata: {name: quick, namespace: default}
spec:
  template:
    metadata: {annotations: {run-for: 1s}}
    spec:
      restartPolicy: Never
      containers: [{name: work, image: work}]
";

const EVERY_MINUTE: &str = r#"
apiVersion: batch/v1
kind: CronJob
metadata: {name: every-minute, namespace: default}
spec:
  schedule: "* * * * *"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: work, image: work}]
"#;

fn wait_until_complete(kubectl: &Kubectl, job: &str) {
    kubectl
        .run(&["wait", "--for=condition=Complete", "--timeout=60s", job])
        .unwrap();
}

#[test]
fn jobs_complete_and_no_process_or_folder_remains() {
    let testbed = Testbed::start(Options {
        audit: true,
        ..Options::default()
    })
    .unwrap();
    let kubectl = testbed.kubectl();
    kubectl.apply(JOB).unwrap();
    wait_until_complete(&kubectl, "job/quick");

    let is_audited = |line: &str| line.contains(r#""verb":"create""#) && line.contains(r#""name":"quick""#);
    let audit_log = fs::read_to_string(testbed.audit_log_path().unwrap()).unwrap();
    assert!(audit_log.lines().any(is_audited), "{audit_log}");
    assert!(testbed.is_complete());

    let folder = testbed.folder().to_owned();
    let pids: Vec<u32> = Component::ALL
        .into_iter()
        .filter_map(|component| testbed.pid(component))
        .collect();
    assert_eq!(pids.len(), 4);
    drop(testbed);
    assert!(!folder.exists());
    assert!(
        pids.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists()),
        "{pids:?}"
    );
}

#[test]
fn state_survives_restarts_and_accounts_are_limited_to_their_role() {
    let mut testbed = Testbed::start(Options {
        jobs: JobLife::None,
        ..Options::default()
    })
    .unwrap();
    testbed.kubectl().apply(EVERY_MINUTE).unwrap();
    let rules = "- {apiGroups: [batch], resources: [cronjobs], verbs: [get, list]}";
    let kubeconfig = testbed
        .service_account_kubeconfig("kube-system", "reader", rules)
        .unwrap();
    let reader = testbed.kubectl().with_kubeconfig(kubeconfig);

    testbed.stop_api_server().unwrap();
    assert!(reader.run(&["get", "cronjobs"]).is_err());
    testbed.stop_etcd().unwrap();
    testbed.start_etcd().unwrap();
    testbed.start_api_server().unwrap();

    assert!(reader.run(&["get", "cronjobs"]).unwrap().contains("every-minute"));
    assert!(reader.run(&["get", "jobs"]).is_err());
    assert!(reader.run(&["delete", "cronjob", "every-minute"]).is_err());

    testbed.start_reference(ReferenceLimits::default()).unwrap();
    assert!(testbed.is_running(Component::Reference));
    testbed.stop_reference().unwrap();
    assert!(!testbed.is_running(Component::Reference));
    testbed.stop().unwrap();
}

#[test]
fn pods_run_if_requested() {
    let testbed = Testbed::start(Options {
        jobs: JobLife::Pods,
        ..Options::default()
    })
    .unwrap();
    let kubectl = testbed.kubectl();
    kubectl.apply(JOB).unwrap();
    wait_until_complete(&kubectl, "job/quick");
    let pods = kubectl
        .run(&["get", "pods", "--output=jsonpath={.items[*].status.phase}"])
        .unwrap();
    assert_eq!(pods, "Succeeded");
}
