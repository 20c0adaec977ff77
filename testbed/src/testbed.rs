//! Starts a control plane in order, and owns it.

use std::{
    ops::Deref,
    path::PathBuf,
    process::Child,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    binaries::{self, Binaries, BinariesError, find_or_build_scheduler},
    certificates::{self, CertificatesError},
    component::{Autoscaling, Component, JobLife, ReferenceLimits},
    instance::{Instance, InstanceError, Manifest},
    kubeconfig::{self, Credential},
    kubectl::KubectlError,
    process::{ProcessError, ProcessRecord},
    readiness::{self, ReadinessError},
    state_root::{StateRoot, StateRootError},
};

/// Logs the requests for these objects without bodies: an external record of what each controller did.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources:
  - {group: batch, resources: [jobs, cronjobs, cronjobs/status]}
  - {group: '', resources: [events]}
  - {group: events.k8s.io, resources: [events]}
  - {group: coordination.k8s.io, resources: [leases]}
- level: Metadata
  userGroups: ['system:serviceaccounts:cronwheel']
- level: None
";

const KWOK_JOBS: &str = include_str!("../config/kwok-jobs.yaml");
const KWOK_PODS: &str = include_str!("../config/kwok-pods.yaml");
const PIN_PODS: &str = include_str!("../config/pin-pods.yaml");

/// A Pod that is bound to the kwok node once the policy of [`PIN_PODS`] is active.
const PINNED_POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: probe, namespace: default}, \
                          spec: {containers: [{name: probe, image: probe}]}}";

/// Why a control plane cannot be started or used.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// An error of the programs.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// An error of the folder of all control planes.
    #[error(transparent)]
    StateRoot(#[from] StateRootError),
    /// An error of this control plane's folder or processes.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// An error of this process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// An error of keys or certificates.
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    /// A process is not ready.
    #[error(transparent)]
    Readiness(#[from] ReadinessError),
    /// An error of kubectl.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
}

/// Options of a control plane.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What completes Jobs.
    pub jobs: JobLife,
    /// Whether Deployments work, with kube-scheduler and the controllers of Deployments, `ReplicaSets` and disruption
    /// budgets The caller provides the nodes. Not compatible with [`JobLife::Pods`], which binds all Pods to a
    /// simulated node.
    pub workloads: bool,
    /// Whether `HorizontalPodAutoscalers` work. The caller provides the metrics with an `APIService`.
    pub autoscaling: Autoscaling,
    /// Whether the API server writes an audit log of Jobs, CronJobs, their status, Events and Leases, and of all
    /// requests of service accounts in the namespace `cronwheel`.
    pub audit: bool,
    /// Whether etcd syncs each write to disk and the API server has its default request limits, 400 and 200. Otherwise
    /// etcd runs with `--unsafe-no-fsync`, and the limits are 3000 and 1500. With this option, put the state folder on
    /// a disk.
    pub server_defaults: bool,
    /// The name, unique for this user. `None` generates one.
    pub name: Option<String>,
    /// The parent of the state folder. `None` means the default one.
    pub state_root: Option<PathBuf>,
}

/// A running control plane that is stopped on drop. It dereferences to [`Instance`].
#[derive(Debug)]
pub struct Testbed {
    root: StateRoot,
    instance: Instance,
    /// Child processes to wait for after they were stopped. Otherwise they would remain as zombies.
    children: Vec<(Component, Child)>,
    is_detached: bool,
}

impl Testbed {
    /// Builds missing programs, sweeps the leftovers of killed owners, starts all processes and waits until they are
    /// ready.
    pub fn start(options: Options) -> Result<Testbed, TestbedError> {
        let mut binaries = Binaries::find_or_build()?;
        if options.workloads {
            binaries.kube_scheduler = Some(find_or_build_scheduler()?);
        }
        let root = match options.state_root {
            Some(folder) => StateRoot::at(folder)?,
            None => StateRoot::usual()?,
        };
        root.sweep()?;
        let owner = ProcessRecord::of_this_process()?;
        let name = options.name.unwrap_or_else(unique_name);
        let instance = root.claim(&name, |ports| Manifest {
            owner: Some(owner),
            ports,
            jobs: options.jobs,
            workloads: options.workloads,
            autoscaling: options.autoscaling,
            audit: options.audit,
            server_defaults: options.server_defaults,
            binaries,
        })?;
        // From here on, a failure stops the processes that were started.
        let mut testbed = Testbed {
            root,
            instance,
            children: Vec::new(),
            is_detached: false,
        };
        testbed.write_files()?;
        testbed.start_etcd()?;
        testbed.start_api_server()?;
        testbed.start_clients()?;
        Ok(testbed)
    }

    /// Lets the control plane outlive this process. A command or [`StateRoot::remove`] stops it.
    pub fn detach(mut self) -> Result<Instance, TestbedError> {
        self.instance.disown()?;
        self.is_detached = true;
        Ok(self.instance.clone())
    }

    /// The data folder of etcd. Copy and restore it only while etcd is stopped.
    pub fn etcd_data(&self) -> PathBuf {
        self.instance.folder().join("etcd")
    }

    /// Starts etcd. After [`Testbed::stop_etcd`] it continues with its data.
    pub fn start_etcd(&mut self) -> Result<(), TestbedError> {
        self.spawn(Component::Etcd, &self.instance.setup().etcd_arguments())?;
        let port = self.instance.ports().etcd_client;
        Ok(readiness::wait_until(&self.instance, Component::Etcd, || {
            readiness::is_etcd_healthy(port)
        })?)
    }

    /// Stops etcd. The API server then returns errors.
    pub fn stop_etcd(&mut self) -> Result<(), TestbedError> {
        self.stop_and_reap(Component::Etcd)
    }

    /// Kills etcd as in a crash, even while it is frozen. The API server does not learn the result of its last writes.
    pub fn kill_etcd(&mut self) -> Result<(), TestbedError> {
        self.kill_and_reap(Component::Etcd)
    }

    /// Starts the API server. After [`Testbed::stop_api_server`] it uses the same port.
    pub fn start_api_server(&mut self) -> Result<(), TestbedError> {
        self.spawn(Component::ApiServer, &self.instance.setup().api_server_arguments())?;
        self.wait_for_server(Component::ApiServer, self.instance.ports().api_server, "/readyz")?;
        // The server creates these namespaces a moment after it reports that it is ready.
        let port = self.instance.ports().api_server;
        for namespace in ["default", "kube-system"] {
            self.wait_for_server(Component::ApiServer, port, &format!("/api/v1/namespaces/{namespace}"))?;
        }
        Ok(())
    }

    /// Stops the API server, which closes its port.
    pub fn stop_api_server(&mut self) -> Result<(), TestbedError> {
        self.stop_and_reap(Component::ApiServer)
    }

    /// Kills the API server as in a crash. Its clients do not learn the results of their last requests.
    pub fn kill_api_server(&mut self) -> Result<(), TestbedError> {
        self.kill_and_reap(Component::ApiServer)
    }

    /// Starts the built-in CronJob controller. Run only one at a time: two would create the same Jobs.
    pub fn start_reference(&mut self, limits: ReferenceLimits) -> Result<(), TestbedError> {
        let child = self.instance.start_reference(limits)?;
        self.children.push((Component::Reference, child));
        Ok(())
    }

    /// Stops the built-in CronJob controller.
    pub fn stop_reference(&mut self) -> Result<(), TestbedError> {
        self.stop_and_reap(Component::Reference)
    }

    /// Kills the built-in CronJob controller as in a crash.
    pub fn kill_reference(&mut self) -> Result<(), TestbedError> {
        self.kill_and_reap(Component::Reference)
    }

    /// Stops everything and removes the state folder, as drop does, but returns errors.
    pub fn stop(mut self) -> Result<(), TestbedError> {
        self.stop_all_and_reap()
    }

    fn start_clients(&mut self) -> Result<(), TestbedError> {
        self.spawn(
            Component::ControllerManager,
            &self.instance.setup().controller_manager_arguments(),
        )?;
        if self.instance.setup().workloads {
            self.spawn(Component::Scheduler, &self.instance.setup().scheduler_arguments())?;
            self.wait_for_server(Component::Scheduler, self.instance.ports().scheduler, "/healthz")?;
        }
        if self.instance.jobs() != JobLife::None {
            self.adapt_job_stages()?;
            self.spawn(Component::Kwok, &self.instance.setup().kwok_arguments())?;
        }
        self.wait_for_server(
            Component::ControllerManager,
            self.instance.ports().controller_manager,
            "/healthz",
        )?;
        match self.instance.jobs() {
            JobLife::Kwok => self.check_kwok(),
            JobLife::Pods => {
                self.pin_pods()?;
                self.check_kwok()
            }
            JobLife::None => Ok(()),
        }
    }

    /// Kubernetes before 1.31 refuses the condition `SuccessCriteriaMet` on a Job without a success policy; newer ones
    /// demand it. Only programs from elsewhere can be that old.
    fn adapt_job_stages(&self) -> Result<(), TestbedError> {
        if !binaries::are_from_elsewhere() || self.instance.jobs() != JobLife::Kwok {
            return Ok(());
        }
        let version = self.instance.kubectl().run(&["get", "--raw=/version"])?;
        if version.contains(r#""minor": "30""#) {
            let is_allowed = |line: &&str| !line.contains("SuccessCriteriaMet");
            let stages: Vec<&str> = KWOK_JOBS.lines().filter(is_allowed).collect();
            self.instance.write("kwok.yaml", &stages.join("\n"))?;
        }
        Ok(())
    }

    /// kwok does not report readiness, but it exits at once if its configuration is invalid.
    fn check_kwok(&self) -> Result<(), TestbedError> {
        let is_running = || self.instance.is_running(Component::Kwok);
        Ok(readiness::wait_until(&self.instance, Component::Kwok, is_running)?)
    }

    /// Binds Pods to the single kwok node with an admission policy, in place of a scheduler, and waits until the policy
    /// is active.
    fn pin_pods(&self) -> Result<(), TestbedError> {
        let kubectl = self.instance.kubectl();
        kubectl.apply(PIN_PODS)?;
        let probe = [
            "create",
            "--dry-run=server",
            "--output=jsonpath={.spec.nodeName}",
            "--filename=-",
        ];
        let is_pinned = || {
            kubectl
                .run_with_input(&probe, PINNED_POD)
                .is_ok_and(|node| node == "kwok-0")
        };
        Ok(readiness::wait_until(&self.instance, Component::ApiServer, is_pinned)?)
    }

    fn write_files(&self) -> Result<(), TestbedError> {
        let keys = self.instance.setup().key_path("");
        certificates::write_all(&keys)?;
        let server = self.instance.api_server_url();
        for (file, user) in [
            ("kubeconfig", "admin"),
            ("kcm.kubeconfig", "kcm"),
            ("scheduler.kubeconfig", "scheduler"),
            ("kwok.kubeconfig", "kwok"),
        ] {
            self.instance
                .write(file, &kubeconfig::text(&server, &keys, &Credential::Certificate(user)))?;
        }
        self.instance.write("audit-policy.yaml", AUDIT_POLICY)?;
        match self.instance.jobs() {
            JobLife::Kwok => drop(self.instance.write("kwok.yaml", KWOK_JOBS)?),
            JobLife::Pods => drop(self.instance.write("kwok.yaml", KWOK_PODS)?),
            JobLife::None => {}
        }
        Ok(())
    }

    fn wait_for_server(&self, component: Component, port: u16, path: &str) -> Result<(), TestbedError> {
        let is_ready = || readiness::responds(&self.instance, port, path);
        Ok(readiness::wait_until(&self.instance, component, is_ready)?)
    }

    fn spawn(&mut self, component: Component, arguments: &[String]) -> Result<(), TestbedError> {
        let child = self.instance.spawn(component, arguments)?;
        self.children.push((component, child));
        Ok(())
    }

    fn stop_and_reap(&mut self, component: Component) -> Result<(), TestbedError> {
        self.instance.stop(component)?;
        self.reap(|other| other == component);
        Ok(())
    }

    fn kill_and_reap(&mut self, component: Component) -> Result<(), TestbedError> {
        self.instance.kill(component)?;
        self.reap(|other| other == component);
        Ok(())
    }

    fn stop_all_and_reap(&mut self) -> Result<(), TestbedError> {
        self.is_detached = true;
        self.root.remove(&self.instance)?;
        self.reap(|_| true);
        Ok(())
    }

    /// Waits for child processes that were stopped before.
    fn reap(&mut self, is_wanted: impl Fn(Component) -> bool) {
        for (_, mut child) in self.children.extract_if(.., |(component, _)| is_wanted(*component)) {
            // This fails only if the process was waited for before.
            let _ = child.wait();
        }
    }
}

impl Instance {
    /// Starts the built-in CronJob controller and waits until it is ready. The caller must wait for the child.
    pub fn start_reference(&self, limits: ReferenceLimits) -> Result<Child, TestbedError> {
        let child = self.spawn(Component::Reference, &self.setup().reference_arguments(limits))?;
        let port = self.ports().reference;
        readiness::wait_until(self, Component::Reference, || {
            readiness::responds(self, port, "/healthz")
        })?;
        Ok(child)
    }

    /// Returns the metrics of the built-in CronJob controller, in the Prometheus text format.
    pub fn reference_metrics(&self) -> Result<String, TestbedError> {
        let server = format!("--server=https://127.0.0.1:{}", self.ports().reference);
        Ok(self.kubectl().run(&["get", &server, "--raw", "/metrics"])?)
    }
}

impl Deref for Testbed {
    type Target = Instance;

    fn deref(&self) -> &Instance {
        &self.instance
    }
}

impl Drop for Testbed {
    fn drop(&mut self) {
        if self.is_detached {
            return;
        }
        if let Err(error) = self.stop_all_and_reap() {
            eprintln!("testbed: {} was not stopped: {error}", self.instance.folder().display());
        }
    }
}

/// The id of this process, and a counter.
fn unique_name() -> String {
    static N_STARTED: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), N_STARTED.fetch_add(1, Ordering::Relaxed))
}
