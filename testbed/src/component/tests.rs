//! The arguments of the processes.

use super::*;

const PORTS: Ports = Ports {
    etcd_client: 1,
    etcd_peer: 2,
    api_server: 3,
    controller_manager: 4,
    reference: 5,
    scheduler: 6,
};

fn setup(jobs: JobLife, audit: bool) -> Setup<'static> {
    Setup {
        folder: Path::new("/s"),
        ports: &PORTS,
        jobs,
        workloads: false,
        autoscaling: Autoscaling::Off,
        audit,
        server_defaults: false,
    }
}

fn value<'a>(arguments: &'a [String], flag: &str) -> Option<&'a str> {
    let prefix = format!("--{flag}=");
    arguments.iter().find_map(|argument| argument.strip_prefix(&prefix))
}

#[test]
fn everything_listens_on_loopback_only() {
    let setup = setup(JobLife::Kwok, false);
    let etcd = setup.etcd_arguments();
    assert_eq!(value(&etcd, "listen-client-urls"), Some("http://127.0.0.1:1"));
    assert_eq!(value(&etcd, "listen-peer-urls"), Some("http://127.0.0.1:2"));
    let servers = [
        (setup.api_server_arguments(), "3"),
        (setup.controller_manager_arguments(), "4"),
        (setup.reference_arguments(ReferenceLimits::default()), "5"),
        (setup.scheduler_arguments(), "6"),
    ];
    for (arguments, port) in &servers {
        assert_eq!(value(arguments, "bind-address"), Some("127.0.0.1"));
        assert_eq!(value(arguments, "secure-port"), Some(*port));
    }
}

#[test]
fn cron_job_controller_runs_only_in_the_reference() {
    let controllers = |arguments: &[String]| value(arguments, "controllers").unwrap().to_owned();
    let base = controllers(&setup(JobLife::Kwok, false).controller_manager_arguments());
    assert!(
        !base.contains("cronjob-controller") && !base.contains("job-controller"),
        "{base}"
    );
    let with_pods = controllers(&setup(JobLife::Pods, false).controller_manager_arguments());
    assert_eq!(with_pods, format!("{base},job-controller"));
    let reference = setup(JobLife::Kwok, false).reference_arguments(ReferenceLimits::default());
    assert_eq!(controllers(&reference), "cronjob-controller");
    assert_eq!(value(&reference, "kube-api-qps"), Some("20"));
    assert_eq!(value(&reference, "kube-api-burst"), Some("30"));
    assert_eq!(value(&reference, "concurrent-cron-job-syncs"), Some("5"));
}

#[test]
fn deployment_controllers_run_only_if_requested() {
    let mut setup = setup(JobLife::Kwok, false);
    let runs = |setup: &Setup<'_>, controller: &str| {
        let arguments = setup.controller_manager_arguments();
        let controllers = value(&arguments, "controllers").unwrap();
        controllers.split(',').any(|name| name == controller)
    };
    assert!(!runs(&setup, "deployment-controller"));
    setup.workloads = true;
    for controller in WORKLOAD_CONTROLLERS {
        assert!(runs(&setup, controller), "{controller}");
    }
    assert!(!runs(&setup, "cronjob-controller"));
}

#[test]
fn autoscaling_controller_runs_only_if_requested() {
    let mut setup = setup(JobLife::Kwok, false);
    let of = |setup: &Setup<'_>| {
        let arguments = setup.controller_manager_arguments();
        let controllers = value(&arguments, "controllers").unwrap();
        let runs = controllers.split(',').any(|name| name == AUTOSCALING_CONTROLLER);
        let period = value(&arguments, "horizontal-pod-autoscaler-sync-period");
        (runs, period.map(str::to_owned))
    };
    assert_eq!(of(&setup), (false, None));
    setup.autoscaling = Autoscaling::Usual;
    assert_eq!(of(&setup), (true, None));
    setup.autoscaling = Autoscaling::Fast;
    assert_eq!(of(&setup), (true, Some("1s".to_owned())));
}

#[test]
fn audit_log_is_written_only_if_requested_and_never_rotated() {
    let without = setup(JobLife::None, false).api_server_arguments();
    assert!(!without.iter().any(|argument| argument.contains("audit")));
    let with = setup(JobLife::None, true).api_server_arguments();
    assert_eq!(value(&with, "audit-log-path"), Some("/s/audit.log"));
    assert_eq!(value(&with, "audit-log-mode"), Some("batch"));
    assert_eq!(value(&with, "audit-log-maxsize"), Some("0"));
}

#[test]
fn server_defaults_are_kept_if_requested() {
    let mut setup = setup(JobLife::None, false);
    let has = |setup: &Setup<'_>| {
        (
            setup.etcd_arguments().contains(&"--unsafe-no-fsync".to_owned()),
            value(&setup.api_server_arguments(), "max-mutating-requests-inflight").is_some(),
        )
    };
    assert_eq!(has(&setup), (true, true));
    setup.server_defaults = true;
    assert_eq!(has(&setup), (false, false));
}
