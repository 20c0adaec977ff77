//! A control plane: a folder with all its files, and its processes, identified by their pid files.
//!
//! The folder alone is enough to stop everything. The owner, a later command and a sweep can all use it.

mod records;

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::{fs::DirBuilderExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use self::records::{read_json, write_json};
use crate::{
    binaries::Binaries,
    component::{Autoscaling, Component, JobLife, Setup},
    kubectl::Kubectl,
    ports::Ports,
    process::{ProcessError, ProcessRecord},
};

/// Time between SIGTERM and SIGKILL. The API server would drain watches for longer.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// The number of log lines in an error.
const N_TAIL_LINES: usize = 15;

/// Why an operation on the folder or on a process of a control plane failed.
#[derive(Debug, thiserror::Error)]
pub enum InstanceError {
    /// The folder has no manifest file.
    #[error("{folder} holds no control plane")]
    NoManifest {
        /// The folder.
        folder: PathBuf,
    },
    /// The manifest or a pid file is malformed.
    #[error("cannot understand {path}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: serde_json::Error,
    },
    /// A file cannot be read, written or removed.
    #[error("cannot use {path}")]
    Access {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A program cannot be started.
    #[error("cannot run {program}")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The process already runs.
    #[error("{component} runs")]
    Running {
        /// The component that was to be started.
        component: Component,
    },
    /// A process cannot be inspected or stopped.
    #[error("{component} cannot be controlled")]
    Process {
        /// The component.
        component: Component,
        /// The cause.
        source: ProcessError,
    },
    /// A process of the caller cannot be inspected or killed.
    #[error("{name} cannot be controlled")]
    Attached {
        /// The name of its pid file.
        name: String,
        /// The cause.
        source: ProcessError,
    },
}

/// The manifest of a control plane, stored in `instance.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The process that stops it. `None` if it outlives the command that started it.
    pub(crate) owner: Option<ProcessRecord>,
    pub(crate) ports: Ports,
    pub(crate) jobs: JobLife,
    #[serde(default)]
    pub(crate) workloads: bool,
    #[serde(default)]
    pub(crate) autoscaling: Autoscaling,
    pub(crate) audit: bool,
    #[serde(default)]
    pub(crate) server_defaults: bool,
    pub(crate) binaries: Binaries,
}

/// One control plane, running or not.
#[derive(Clone, Debug)]
pub struct Instance {
    folder: PathBuf,
    manifest: Manifest,
}

impl Instance {
    pub(crate) fn create(folder: PathBuf, manifest: Manifest) -> Result<Instance, InstanceError> {
        let instance = Instance { folder, manifest };
        let mut builder = DirBuilder::new();
        builder.mode(0o700);
        for sub_folder in ["", "pids", "attached", "logs", "pki"] {
            let path = instance.path(sub_folder);
            builder
                .create(&path)
                .map_err(|source| InstanceError::Access { path, source })?;
        }
        instance.write_manifest()?;
        Ok(instance)
    }

    pub(crate) fn open(folder: PathBuf) -> Result<Instance, InstanceError> {
        let path = folder.join("instance.json");
        match read_json(&path)? {
            Some(manifest) => Ok(Instance { folder, manifest }),
            None => Err(InstanceError::NoManifest { folder }),
        }
    }

    /// The name, which is that of the folder.
    pub fn name(&self) -> String {
        self.folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The kubeconfig of a cluster administrator, which is exempt from API priority and fairness.
    pub fn kubeconfig(&self) -> PathBuf {
        self.path("kubeconfig")
    }

    /// Returns kubectl with the kubeconfig of a cluster administrator.
    pub fn kubectl(&self) -> Kubectl {
        Kubectl::new(
            self.manifest.binaries.kubectl.clone(),
            self.kubeconfig(),
            self.path("kubectl-cache"),
        )
    }

    /// The address of the API server.
    pub fn api_server_url(&self) -> String {
        format!("https://127.0.0.1:{}", self.manifest.ports.api_server)
    }

    /// The address of etcd. It also serves JSON (`/v3/kv/put`), so that tests can store what the API server would
    /// refuse.
    pub fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.manifest.ports.etcd_client)
    }

    /// The file with the standard output and standard error of a process.
    pub fn log_path(&self, component: Component) -> PathBuf {
        self.path(&format!("logs/{component}.log"))
    }

    /// The audit log, if enabled: one JSON object per line. It is written in batches, so the last lines are delayed.
    pub fn audit_log_path(&self) -> Option<PathBuf> {
        self.manifest.audit.then(|| self.path("audit.log"))
    }

    /// Returns whether the process runs.
    pub fn is_running(&self, component: Component) -> bool {
        matches!(self.record(component), Ok(Some(record)) if record.is_running())
    }

    /// Returns the process id, if the process runs.
    pub fn pid(&self, component: Component) -> Option<u32> {
        self.record(component)
            .ok()
            .flatten()
            .filter(ProcessRecord::is_running)
            .map(|record| record.pid())
    }

    /// Returns whether all processes of the control plane run, apart from the optional reference.
    pub fn is_complete(&self) -> bool {
        let is_expected = |component: &Component| match component {
            Component::Etcd | Component::ApiServer | Component::ControllerManager => true,
            Component::Scheduler => self.manifest.workloads,
            Component::Kwok => self.manifest.jobs != JobLife::None,
            Component::Reference => false,
        };
        Component::ALL
            .into_iter()
            .filter(is_expected)
            .all(|component| self.is_running(component))
    }

    /// Stops a process, if it runs.
    pub fn stop(&self, component: Component) -> Result<(), InstanceError> {
        self.end(component, |record| record.stop(STOP_GRACE))
    }

    /// Kills a process as in a crash, if it runs.
    pub fn kill(&self, component: Component) -> Result<(), InstanceError> {
        self.end(component, ProcessRecord::kill)
    }

    /// Freezes a process, if it runs. It still accepts connections, but does not respond.
    pub fn freeze(&self, component: Component) -> Result<(), InstanceError> {
        self.control(component, ProcessRecord::freeze).map(drop)
    }

    /// Resumes a frozen process.
    pub fn thaw(&self, component: Component) -> Result<(), InstanceError> {
        self.control(component, ProcessRecord::thaw).map(drop)
    }

    /// Stops all processes: first the clients together, then the API server, then etcd.
    pub fn stop_all(&self) -> Result<(), InstanceError> {
        self.kill_attached()?;
        for component in [
            Component::Reference,
            Component::Kwok,
            Component::Scheduler,
            Component::ControllerManager,
        ] {
            self.control(component, ProcessRecord::terminate)?;
        }
        Component::ALL
            .into_iter()
            .rev()
            .try_for_each(|component| self.stop(component))
    }

    pub(crate) fn remove_folder(&self) -> Result<(), InstanceError> {
        match fs::remove_dir_all(&self.folder) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(InstanceError::Access {
                path: self.folder.clone(),
                source,
            }),
        }
    }

    /// Starts a process in its own process group. An interrupt in the terminal then reaches only the owner, which stops
    /// everything in order.
    pub(crate) fn spawn(&self, component: Component, arguments: &[String]) -> Result<Child, InstanceError> {
        if self.is_running(component) {
            return Err(InstanceError::Running { component });
        }
        let program = component.program(&self.manifest.binaries);
        let log_path = self.log_path(component);
        let log_error = |source| InstanceError::Access {
            path: log_path.clone(),
            source,
        };
        let log = File::options()
            .create(true)
            .append(true)
            .open(&log_path)
            .map_err(log_error)?;
        let mut child = Command::new(program)
            .args(arguments)
            // The reference evaluates schedules without a time zone in its local one. It is the same on every machine.
            .env("TZ", "UTC")
            .env_remove("KUBECONFIG")
            .current_dir(&self.folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(log_error)?)
            .stderr(log)
            .spawn()
            .map_err(|source| InstanceError::Spawn {
                program: program.to_owned(),
                source,
            })?;
        let recorded = ProcessRecord::of(child.id())
            .map_err(|source| InstanceError::Process { component, source })
            .and_then(|record| write_json(&self.pid_path(component), &record));
        if let Err(error) = recorded {
            // A sweep cannot find a process without a pid file. It may have exited already, so errors are ignored.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
        Ok(child)
    }

    /// Returns the last lines of a process's log.
    pub(crate) fn log_tail(&self, component: Component) -> String {
        let text = fs::read(self.log_path(component)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(N_TAIL_LINES)..].join("\n")
    }

    /// Lets the control plane outlive its owner. From then on, only a command stops it.
    pub(crate) fn disown(&mut self) -> Result<(), InstanceError> {
        self.manifest.owner = None;
        self.write_manifest()
    }

    /// Returns whether the owner is gone, so that nothing else will stop the control plane.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.manifest.owner.as_ref().is_some_and(|owner| !owner.is_running())
    }

    pub(crate) fn ports(&self) -> &Ports {
        &self.manifest.ports
    }

    pub(crate) fn jobs(&self) -> JobLife {
        self.manifest.jobs
    }

    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup {
            folder: &self.folder,
            ports: &self.manifest.ports,
            jobs: self.manifest.jobs,
            workloads: self.manifest.workloads,
            autoscaling: self.manifest.autoscaling,
            audit: self.manifest.audit,
            server_defaults: self.manifest.server_defaults,
        }
    }

    pub(crate) fn write(&self, file: &str, text: &str) -> Result<PathBuf, InstanceError> {
        let path = self.path(file);
        match fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(source) => Err(InstanceError::Access { path, source }),
        }
    }

    fn end(
        &self,
        component: Component,
        end: impl FnOnce(&ProcessRecord) -> Result<(), ProcessError>,
    ) -> Result<(), InstanceError> {
        if !self.control(component, end)? {
            return Ok(());
        }
        let path = self.pid_path(component);
        fs::remove_file(&path).map_err(|source| InstanceError::Access { path, source })
    }

    /// Applies an operation to a process. Returns whether the process was ever started.
    fn control(
        &self,
        component: Component,
        control: impl FnOnce(&ProcessRecord) -> Result<(), ProcessError>,
    ) -> Result<bool, InstanceError> {
        let Some(record) = self.record(component)? else {
            return Ok(false);
        };
        control(&record).map_err(|source| InstanceError::Process { component, source })?;
        Ok(true)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    fn pid_path(&self, component: Component) -> PathBuf {
        self.path(&format!("pids/{component}.json"))
    }

    fn record(&self, component: Component) -> Result<Option<ProcessRecord>, InstanceError> {
        read_json(&self.pid_path(component))
    }

    fn write_manifest(&self) -> Result<(), InstanceError> {
        write_json(&self.path("instance.json"), &self.manifest)
    }
}
