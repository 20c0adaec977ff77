//! Commands whose output differs from that of a cluster: a cluster serves more kinds, and other programs run its Jobs.

use crate::session::Session;

const NO_PODS: &str = "there are no Pods: this API server simulates Jobs, so no container runs and there are no logs";
const HELLO: &str = include_str!("../../../examples/hello.yaml");

pub(crate) fn run(session: &mut Session) {
    let version = session.run_unrecorded("version");
    assert!(version.output.contains("Server Version: v1.36.3+apisim"), "{version:?}");
    let kinds = session.run_unrecorded("api-resources --no-headers");
    let kinds: Vec<_> = kinds.output.lines().collect();
    let expected = [
        "configmaps cm v1 true ConfigMap",
        "events ev v1 true Event",
        "namespaces ns v1 false Namespace",
        "pods po v1 true Pod",
        "cronjobs cj batch/v1 true CronJob",
        "jobs batch/v1 true Job",
        "leases coordination.k8s.io/v1 true Lease",
    ];
    assert_eq!(kinds, expected);
    let versions = session.run_unrecorded("api-versions").output;
    assert_eq!(versions, "batch/v1\ncoordination.k8s.io/v1\nv1");
    for path in [
        "cronjob",
        "cronjob.spec.jobTemplate.spec.template.spec.containers",
        "lease.spec",
        "job --recursive",
    ] {
        let explained = session.run_unrecorded(&format!("explain {path}"));
        assert!(explained.is_success, "{explained:?}");
        assert!(explained.output.contains("FIELDS:"), "{explained:?}");
    }
    let schedule = session.run_unrecorded("explain cj.spec.schedule").output;
    assert!(schedule.contains("FIELD: schedule <string>"), "{schedule}");
    jobs_run(session);
}

fn jobs_run(session: &mut Session) {
    session.run_with("apply -f -", HELLO);
    session.run("create job once --from=cronjob/hello");
    let waited = session.run_unrecorded("wait --for=condition=complete job/once --timeout=300s");
    assert_eq!(waited.output, "job.batch/once condition met");
    let jobs = session.run_unrecorded("get jobs --no-headers").output;
    assert_eq!(jobs, "once Complete 1/1 AGE AGE");
    let logs = session.run_unrecorded("logs job/once");
    assert!(!logs.is_success);
    assert_eq!(
        logs.errors,
        format!("Warning: {NO_PODS}\nError from server (NotFound): {NO_PODS}")
    );
    let pods = session.run_unrecorded("get pods");
    assert!(pods.is_success, "{pods:?}");
    let expected = format!("Warning: {NO_PODS}\nNo resources found in default namespace.");
    assert_eq!((pods.output.as_str(), pods.errors), ("", expected));
    let failed: Vec<_> = session
        .transcript
        .iter()
        .filter(|printed| !printed.is_success)
        .collect();
    assert!(failed.is_empty(), "{failed:?}");
}
