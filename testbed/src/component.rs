//! The processes of a control plane and their arguments.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{binaries::Binaries, ports::Ports};

/// One process of a control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Component {
    /// The store.
    Etcd,
    /// The API server.
    ApiServer,
    /// kube-controller-manager without its `CronJob` controller.
    ControllerManager,
    /// kwok, which completes Jobs or simulates Pods.
    Kwok,
    /// A second kube-controller-manager that runs only the `CronJob` controller, as the reference.
    Reference,
}

impl Component {
    /// All components in start order. They stop in reverse order, clients first.
    pub const ALL: [Component; 5] = [
        Component::Etcd,
        Component::ApiServer,
        Component::ControllerManager,
        Component::Kwok,
        Component::Reference,
    ];

    /// The name in messages and file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Component::Etcd => "etcd",
            Component::ApiServer => "kube-apiserver",
            Component::ControllerManager => "kube-controller-manager",
            Component::Kwok => "kwok",
            Component::Reference => "reference-cronjob-controller",
        }
    }

    pub(crate) fn program(self, binaries: &Binaries) -> &Path {
        match self {
            Component::Etcd => &binaries.etcd,
            Component::ApiServer => &binaries.kube_apiserver,
            Component::ControllerManager | Component::Reference => &binaries.kube_controller_manager,
            Component::Kwok => &binaries.kwok,
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What completes Jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum JobLife {
    /// kwok simulates Jobs without Pods. Pod template annotations: `run-for: 5s`, and `outcome: fail` or `hang`.
    #[default]
    Kwok,
    /// The real Job controller creates Pods, and kwok simulates them. Pod annotation: `run-for: 5s`. The command
    /// `/bin/false` fails, `sleep` never ends.
    Pods,
    /// Nothing. Jobs stay as created.
    None,
}

/// Client limits of the reference. The defaults are those of kube-controller-manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub struct ReferenceLimits {
    /// Requests a second, on average.
    #[arg(long, default_value_t = 20)]
    pub kube_api_qps: u32,
    /// Burst of requests above that rate.
    #[arg(long, default_value_t = 30)]
    pub kube_api_burst: u32,
    /// CronJobs synced concurrently.
    #[arg(long, default_value_t = 5)]
    pub concurrent_cron_job_syncs: u32,
}

impl Default for ReferenceLimits {
    fn default() -> ReferenceLimits {
        ReferenceLimits {
            kube_api_qps: 20,
            kube_api_burst: 30,
            concurrent_cron_job_syncs: 5,
        }
    }
}

/// The controllers that kube-controller-manager runs here: without those that need nodes, and without the CronJob
/// controller.
const BASE_CONTROLLERS: [&str; 8] = [
    "serviceaccount-token-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "namespace-controller",
    "garbage-collector-controller",
    "resourcequota-controller",
    "pod-garbage-collector-controller",
    "ttl-after-finished-controller",
];

/// The settings that determine the arguments of all processes.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) ports: &'a Ports,
    pub(crate) jobs: JobLife,
    pub(crate) audit: bool,
    pub(crate) feature_gates: &'a [String],
    /// Whether etcd syncs to disk and the API server keeps its default request limits.
    pub(crate) server_defaults: bool,
}

impl Setup<'_> {
    pub(crate) fn key_path(&self, file: &str) -> PathBuf {
        self.folder.join("pki").join(file)
    }

    fn path(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }

    fn key(&self, file: &str) -> String {
        self.key_path(file).display().to_string()
    }

    pub(crate) fn etcd_arguments(&self) -> Vec<String> {
        let client_url = format!("http://127.0.0.1:{}", self.ports.etcd_client);
        let peer_url = format!("http://127.0.0.1:{}", self.ports.etcd_peer);
        let mut arguments = vec![
            "--name=default".to_owned(),
            format!("--data-dir={}", self.path("etcd")),
            format!("--listen-client-urls={client_url}"),
            format!("--advertise-client-urls={client_url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
            "--quota-backend-bytes=8589934592".to_owned(),
            "--log-level=warn".to_owned(),
        ];
        if !self.server_defaults {
            arguments.push("--unsafe-no-fsync".to_owned());
        }
        arguments
    }

    pub(crate) fn api_server_arguments(&self) -> Vec<String> {
        let mut arguments = vec![
            format!("--etcd-servers=http://127.0.0.1:{}", self.ports.etcd_client),
            "--bind-address=127.0.0.1".to_owned(),
            "--advertise-address=127.0.0.1".to_owned(),
            format!("--secure-port={}", self.ports.api_server),
            format!("--tls-cert-file={}", self.key("apiserver.crt")),
            format!("--tls-private-key-file={}", self.key("apiserver.key")),
            format!("--client-ca-file={}", self.key("ca.crt")),
            format!("--requestheader-client-ca-file={}", self.key("fp-ca.crt")),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={}", self.key("sa.pub")),
            format!("--service-account-signing-key-file={}", self.key("sa.key")),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--allow-privileged=true".to_owned(),
            "--endpoint-reconciler-type=none".to_owned(),
            "--disable-admission-plugins=TaintNodesByCondition".to_owned(),
            "--event-ttl=15m".to_owned(),
            "--v=1".to_owned(),
        ];
        if !self.server_defaults {
            // Their sum is also the total concurrency of API priority and fairness.
            arguments.extend([
                "--max-requests-inflight=3000".to_owned(),
                "--max-mutating-requests-inflight=1500".to_owned(),
            ]);
        }
        if !self.feature_gates.is_empty() {
            arguments.push(format!("--feature-gates={}", self.feature_gates.join(",")));
        }
        if self.audit {
            arguments.extend([
                format!("--audit-policy-file={}", self.path("audit-policy.yaml")),
                format!("--audit-log-path={}", self.path("audit.log")),
                // Outside the request path, so that the log does not disturb the measurement.
                "--audit-log-mode=batch".to_owned(),
                // When the buffer is full, lines are dropped. The size covers several seconds at the server's peak
                // rate.
                "--audit-log-batch-buffer-size=200000".to_owned(),
                // Rotation would remove lines before they are read.
                "--audit-log-maxsize=0".to_owned(),
            ]);
        }
        arguments
    }

    pub(crate) fn controller_manager_arguments(&self) -> Vec<String> {
        let mut controllers = BASE_CONTROLLERS.to_vec();
        if self.jobs == JobLife::Pods {
            controllers.push("job-controller");
        }
        let mut arguments = self.shared_controller_manager_arguments(self.ports.controller_manager);
        arguments.extend([
            format!("--controllers={}", controllers.join(",")),
            "--kube-api-qps=2000".to_owned(),
            "--kube-api-burst=4000".to_owned(),
            "--concurrent-job-syncs=10".to_owned(),
        ]);
        arguments
    }

    pub(crate) fn reference_arguments(&self, limits: ReferenceLimits) -> Vec<String> {
        let mut arguments = self.shared_controller_manager_arguments(self.ports.reference);
        arguments.extend([
            "--controllers=cronjob-controller".to_owned(),
            format!("--kube-api-qps={}", limits.kube_api_qps),
            format!("--kube-api-burst={}", limits.kube_api_burst),
            format!("--concurrent-cron-job-syncs={}", limits.concurrent_cron_job_syncs),
        ]);
        arguments
    }

    fn shared_controller_manager_arguments(&self, port: u16) -> Vec<String> {
        let kubeconfig = self.path("kcm.kubeconfig");
        vec![
            format!("--kubeconfig={kubeconfig}"),
            format!("--authentication-kubeconfig={kubeconfig}"),
            format!("--authorization-kubeconfig={kubeconfig}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--tls-cert-file={}", self.key("kcm-serving.crt")),
            format!("--tls-private-key-file={}", self.key("kcm-serving.key")),
            format!("--client-ca-file={}", self.key("ca.crt")),
            "--leader-elect=false".to_owned(),
            "--use-service-account-credentials=true".to_owned(),
            format!("--service-account-private-key-file={}", self.key("sa.key")),
            format!("--root-ca-file={}", self.key("ca.crt")),
        ]
    }

    pub(crate) fn kwok_arguments(&self) -> Vec<String> {
        vec![
            format!("--kubeconfig={}", self.path("kwok.kubeconfig")),
            format!("--config={}", self.path("kwok.yaml")),
            "-v".to_owned(),
            "ERROR".to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: Ports = Ports {
        etcd_client: 1,
        etcd_peer: 2,
        api_server: 3,
        controller_manager: 4,
        reference: 5,
    };

    fn setup(jobs: JobLife, audit: bool) -> Setup<'static> {
        Setup {
            folder: Path::new("/s"),
            ports: &PORTS,
            jobs,
            audit,
            feature_gates: &[],
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
        ];
        for (arguments, port) in &servers {
            assert_eq!(value(arguments, "bind-address"), Some("127.0.0.1"));
            assert_eq!(value(arguments, "secure-port"), Some(*port));
        }
    }

    #[test]
    fn the_cron_job_controller_runs_in_the_reference_alone() {
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
    fn the_audit_log_is_written_only_where_asked_for_and_never_rotated() {
        let without = setup(JobLife::None, false).api_server_arguments();
        assert!(!without.iter().any(|argument| argument.contains("audit")));
        let with = setup(JobLife::None, true).api_server_arguments();
        assert_eq!(value(&with, "audit-log-path"), Some("/s/audit.log"));
        assert_eq!(value(&with, "audit-log-mode"), Some("batch"));
        assert_eq!(value(&with, "audit-log-maxsize"), Some("0"));
    }

    #[test]
    fn feature_gates_are_those_that_were_asked_for() {
        let mut setup = setup(JobLife::None, false);
        assert_eq!(value(&setup.api_server_arguments(), "feature-gates"), None);
        let gates = ["A=true".to_owned(), "B=false".to_owned()];
        setup.feature_gates = &gates;
        let arguments = setup.api_server_arguments();
        assert_eq!(value(&arguments, "feature-gates"), Some("A=true,B=false"));
    }

    #[test]
    fn the_defaults_of_the_servers_are_left_alone_where_asked_for() {
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
}
