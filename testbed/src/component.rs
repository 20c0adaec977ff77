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
    /// kube-scheduler, which binds Pods to nodes.
    Scheduler,
    /// kwok, which completes Jobs or simulates Pods.
    Kwok,
    /// A second kube-controller-manager that runs only the `CronJob` controller, as the reference.
    Reference,
}

impl Component {
    /// All components in start order. They stop in reverse order, clients first.
    pub const ALL: [Component; 6] = [
        Component::Etcd,
        Component::ApiServer,
        Component::ControllerManager,
        Component::Scheduler,
        Component::Kwok,
        Component::Reference,
    ];

    /// The name in messages and file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Component::Etcd => "etcd",
            Component::ApiServer => "kube-apiserver",
            Component::ControllerManager => "kube-controller-manager",
            Component::Scheduler => "kube-scheduler",
            Component::Kwok => "kwok",
            Component::Reference => "reference-cronjob-controller",
        }
    }

    pub(crate) fn program(self, binaries: &Binaries) -> &Path {
        match self {
            Component::Etcd => &binaries.etcd,
            Component::ApiServer => &binaries.kube_apiserver,
            Component::ControllerManager | Component::Reference => &binaries.kube_controller_manager,
            Component::Scheduler => binaries
                .kube_scheduler
                .as_deref()
                .unwrap_or(Path::new("kube-scheduler")),
            Component::Kwok => &binaries.kwok,
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The program that completes Jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum JobLife {
    /// kwok simulates Jobs without Pods. Pod template annotations: `run-for: 5s`, and `outcome: fail` or `hang`.
    #[default]
    Kwok,
    /// The real Job controller creates Pods, and kwok simulates them. Pod annotation: `run-for: 5s`. The command
    /// `/bin/false` fails, `sleep` never ends.
    Pods,
    /// None. Jobs stay as created.
    None,
}

/// Whether `HorizontalPodAutoscalers` work, and how fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Autoscaling {
    /// They do not work.
    #[default]
    Off,
    /// With the periods of kube-controller-manager: metrics are read every 15 s.
    Usual,
    /// With shorter periods, for tests: metrics are read every second.
    Fast,
}

impl Autoscaling {
    /// The arguments of kube-controller-manager.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Autoscaling::Off | Autoscaling::Usual => &[],
            Autoscaling::Fast => &[
                "--horizontal-pod-autoscaler-sync-period=1s",
                // The usual values are 5 minutes and 30 seconds.
                "--horizontal-pod-autoscaler-cpu-initialization-period=5s",
                "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
            ],
        }
    }
}

/// Client limits and identity of the reference. The defaults are those of kube-controller-manager with the flags of
/// kubeadm.
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
    /// Act as `system:kube-controller-manager` and not as a service account of its own, as kube-controller-manager does
    /// without `--use-service-account-credentials`. That user needs the rights.
    #[arg(long)]
    pub shared_identity: bool,
}

impl Default for ReferenceLimits {
    fn default() -> ReferenceLimits {
        ReferenceLimits {
            kube_api_qps: 20,
            kube_api_burst: 30,
            concurrent_cron_job_syncs: 5,
            shared_identity: false,
        }
    }
}

/// The controllers that kube-controller-manager runs, without those that need nodes and without the CronJob
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

/// The additional controllers for Deployments and for evictions that respect disruption budgets.
const WORKLOAD_CONTROLLERS: [&str; 3] = [
    "deployment-controller",
    "replicaset-controller",
    "disruption-controller",
];

/// The additional controller for `HorizontalPodAutoscalers`.
const AUTOSCALING_CONTROLLER: &str = "horizontal-pod-autoscaler-controller";

/// The settings that determine the arguments of all processes.
#[derive(Debug)]
pub(crate) struct Setup<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) ports: &'a Ports,
    pub(crate) jobs: JobLife,
    /// Whether Deployments work.
    pub(crate) workloads: bool,
    pub(crate) autoscaling: Autoscaling,
    pub(crate) audit: bool,
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
            // The identity of this server and of its clients, for API servers behind an APIService.
            format!("--proxy-client-cert-file={}", self.key("front-proxy.crt")),
            format!("--proxy-client-key-file={}", self.key("front-proxy.key")),
            format!("--requestheader-client-ca-file={}", self.key("fp-ca.crt")),
            "--requestheader-allowed-names=front-proxy".to_owned(),
            "--requestheader-username-headers=X-Remote-User".to_owned(),
            "--requestheader-group-headers=X-Remote-Group".to_owned(),
            "--requestheader-extra-headers-prefix=X-Remote-Extra-".to_owned(),
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
        if self.workloads {
            controllers.extend(WORKLOAD_CONTROLLERS);
        }
        if self.autoscaling != Autoscaling::Off {
            controllers.push(AUTOSCALING_CONTROLLER);
        }
        let mut arguments = self.shared_controller_manager_arguments(self.ports.controller_manager);
        arguments.extend([
            format!("--controllers={}", controllers.join(",")),
            "--kube-api-qps=2000".to_owned(),
            "--kube-api-burst=4000".to_owned(),
            "--concurrent-job-syncs=10".to_owned(),
        ]);
        arguments.extend(self.autoscaling.arguments().iter().map(|&argument| argument.to_owned()));
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
        if limits.shared_identity {
            // The last value of a flag counts.
            arguments.push("--use-service-account-credentials=false".to_owned());
        }
        arguments
    }

    pub(crate) fn scheduler_arguments(&self) -> Vec<String> {
        self.controller_arguments("scheduler.kubeconfig", self.ports.scheduler)
    }

    fn shared_controller_manager_arguments(&self, port: u16) -> Vec<String> {
        let mut arguments = self.controller_arguments("kcm.kubeconfig", port);
        arguments.extend([
            "--use-service-account-credentials=true".to_owned(),
            format!("--service-account-private-key-file={}", self.key("sa.key")),
            format!("--root-ca-file={}", self.key("ca.crt")),
        ]);
        arguments
    }

    /// The common arguments of kube-controller-manager and kube-scheduler.
    fn controller_arguments(&self, kubeconfig: &str, port: u16) -> Vec<String> {
        let kubeconfig = self.path(kubeconfig);
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
mod tests;
