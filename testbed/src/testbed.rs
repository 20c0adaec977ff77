//! Starting a control plane, in order, and owning it.

use std::{
    ops::Deref,
    path::PathBuf,
    process::Child,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::{
    binaries::{Binaries, BinariesError},
    certificates::{self, CertificatesError},
    component::{Component, JobLife, ReferenceLimits},
    instance::{Instance, InstanceError, Manifest},
    kubeconfig::{self, Credential},
    kubectl::KubectlError,
    process::{ProcessError, ProcessRecord},
    readiness::{self, ReadinessError},
    state_root::{StateRoot, StateRootError},
};

/// Who does what to which objects, without bodies: the view from outside of any controller's work.
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
- level: None
";

const KWOK_JOBS: &str = include_str!("../config/kwok-jobs.yaml");
const KWOK_PODS: &str = include_str!("../config/kwok-pods.yaml");
const PIN_PODS: &str = include_str!("../config/pin-pods.yaml");

/// A pod that binds to the kwok node once the policy of [`PIN_PODS`] works.
const PINNED_POD: &str = "{apiVersion: v1, kind: Pod, metadata: {name: probe, namespace: default}, \
                          spec: {containers: [{name: probe, image: probe}]}}";

/// What went wrong with a control plane.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// The programs.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// The folder of all control planes.
    #[error(transparent)]
    StateRoot(#[from] StateRootError),
    /// The folder or a process of this one.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// This very process.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// Keys.
    #[error(transparent)]
    Certificates(#[from] CertificatesError),
    /// A process does not serve.
    #[error(transparent)]
    Readiness(#[from] ReadinessError),
    /// A call of kubectl.
    #[error(transparent)]
    Kubectl(#[from] KubectlError),
}

/// How a control plane is to be.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Who brings Jobs to their end.
    pub jobs: JobLife,
    /// Whether the API server writes an audit log of Jobs, `CronJob`s, their status, Events and Leases.
    pub audit: bool,
    /// Feature gates of the API server, as `Name=true`.
    pub feature_gates: Vec<String>,
    /// Whether etcd syncs each write to disk and the API server has its own limits on requests, 400 and 200. Otherwise
    /// etcd has `--unsafe-no-fsync`, and the limits are 3000 and 1500. The state folder should be on a disk then.
    pub server_defaults: bool,
    /// Its name, unique for this user; none for one that no other has.
    pub name: Option<String>,
    /// Where its state folder goes; none for the usual place.
    pub state_root: Option<PathBuf>,
}

/// A running control plane that ends with this value. Everything that an [`Instance`] can do, it can do.
#[derive(Debug)]
pub struct Testbed {
    root: StateRoot,
    instance: Instance,
    /// To be waited for once they were stopped; else they would stay as zombies.
    children: Vec<(Component, Child)>,
    is_detached: bool,
}

impl Testbed {
    /// Builds the programs where they are missing, sweeps what killed owners left, starts all and waits until it serves.
    pub fn start(options: Options) -> Result<Testbed, TestbedError> {
        let binaries = Binaries::find_or_build()?;
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
            audit: options.audit,
            feature_gates: options.feature_gates,
            server_defaults: options.server_defaults,
            binaries,
        })?;
        // From here on a failure stops what was started.
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

    /// Lets it run on without this process; a command or [`StateRoot::remove`] stops it.
    pub fn detach(mut self) -> Result<Instance, TestbedError> {
        self.instance.disown()?;
        self.is_detached = true;
        Ok(self.instance.clone())
    }

    /// Where etcd keeps its data. To be copied and put back while etcd is stopped.
    pub fn etcd_data(&self) -> PathBuf {
        self.instance.folder().join("etcd")
    }

    /// Starts etcd, also again after [`Testbed::stop_etcd`], with the data that it had.
    pub fn start_etcd(&mut self) -> Result<(), TestbedError> {
        self.spawn(Component::Etcd, &self.instance.setup().etcd_arguments())?;
        let port = self.instance.ports().etcd_client;
        Ok(readiness::wait_until(&self.instance, Component::Etcd, || {
            readiness::is_etcd_healthy(port)
        })?)
    }

    /// Stops etcd: the API server then answers errors.
    pub fn stop_etcd(&mut self) -> Result<(), TestbedError> {
        self.stop_and_reap(Component::Etcd)
    }

    /// Ends etcd as a crash does, also while it is frozen: the API server never learns what became of its last writes.
    pub fn kill_etcd(&mut self) -> Result<(), TestbedError> {
        self.kill_and_reap(Component::Etcd)
    }

    /// Starts the API server, also again after [`Testbed::stop_api_server`], on the same port.
    pub fn start_api_server(&mut self) -> Result<(), TestbedError> {
        self.spawn(Component::ApiServer, &self.instance.setup().api_server_arguments())?;
        self.wait_for_server(Component::ApiServer, self.instance.ports().api_server, "/readyz")?;
        // Made by the server itself, a moment after it says that it is ready.
        let port = self.instance.ports().api_server;
        for namespace in ["default", "kube-system"] {
            self.wait_for_server(Component::ApiServer, port, &format!("/api/v1/namespaces/{namespace}"))?;
        }
        Ok(())
    }

    /// Stops the API server: its port is closed.
    pub fn stop_api_server(&mut self) -> Result<(), TestbedError> {
        self.stop_and_reap(Component::ApiServer)
    }

    /// Ends the API server as a crash does: its clients never learn what became of their last requests.
    pub fn kill_api_server(&mut self) -> Result<(), TestbedError> {
        self.kill_and_reap(Component::ApiServer)
    }

    /// Starts the built-in `CronJob` controller. No other may run at the same time: two fight over the same Job names.
    pub fn start_reference(&mut self, limits: ReferenceLimits) -> Result<(), TestbedError> {
        let child = self.instance.start_reference(limits)?;
        self.children.push((Component::Reference, child));
        Ok(())
    }

    /// Stops the built-in `CronJob` controller.
    pub fn stop_reference(&mut self) -> Result<(), TestbedError> {
        self.stop_and_reap(Component::Reference)
    }

    /// Ends the built-in `CronJob` controller as a crash does.
    pub fn kill_reference(&mut self) -> Result<(), TestbedError> {
        self.kill_and_reap(Component::Reference)
    }

    /// Stops all and removes the state folder, as dropping does, but with an answer.
    pub fn stop(mut self) -> Result<(), TestbedError> {
        self.stop_all_and_reap()
    }

    fn start_clients(&mut self) -> Result<(), TestbedError> {
        self.spawn(
            Component::ControllerManager,
            &self.instance.setup().controller_manager_arguments(),
        )?;
        if self.instance.jobs() != JobLife::None {
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

    /// It tells nobody when it is ready, but it ends at once where it does not like its configuration.
    fn check_kwok(&self) -> Result<(), TestbedError> {
        let is_running = || self.instance.is_running(Component::Kwok);
        Ok(readiness::wait_until(&self.instance, Component::Kwok, is_running)?)
    }

    /// Binds pods to the one kwok node by an admission policy, in place of a scheduler, and waits until that works.
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
        let is_ready = || readiness::answers(&self.instance, port, path);
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

    /// Only for those that have ended: waiting does not end them.
    fn reap(&mut self, is_wanted: impl Fn(Component) -> bool) {
        for (_, mut child) in self.children.extract_if(.., |(component, _)| is_wanted(*component)) {
            // Fails only where it was waited for before.
            let _ = child.wait();
        }
    }
}

impl Instance {
    /// Starts the built-in `CronJob` controller for whoever waits for the child, and waits until it serves.
    pub fn start_reference(&self, limits: ReferenceLimits) -> Result<Child, TestbedError> {
        let child = self.spawn(Component::Reference, &self.setup().reference_arguments(limits))?;
        let port = self.ports().reference;
        readiness::wait_until(self, Component::Reference, || {
            readiness::answers(self, port, "/healthz")
        })?;
        Ok(child)
    }

    /// The metrics of the built-in `CronJob` controller, in Prometheus' text format.
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

/// This process, and how many it has started.
fn unique_name() -> String {
    static N_STARTED: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), N_STARTED.fetch_add(1, Ordering::Relaxed))
}
