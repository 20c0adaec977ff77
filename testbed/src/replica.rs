//! One of several replicas of cronwheel, as a child process whose log says which shards it leads, and since when.

pub mod turns;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use self::turns::Turn;
use crate::process::{ProcessError, ProcessRecord};

/// Who a replica is, and how it is started.
#[derive(Clone, Debug)]
pub struct ReplicaSetup {
    /// The executable.
    pub program: PathBuf,
    /// The kubeconfig that it acts by.
    pub kubeconfig: PathBuf,
    /// The namespace of the Leases.
    pub lease_namespace: String,
    /// How many shards.
    pub n_shards: u32,
    /// The name of its pod.
    pub pod_name: String,
    /// The uid of its pod: a process with the uid of one that has ended is its restart.
    pub pod_uid: String,
    /// The revision of its pod.
    pub revision: String,
    /// Where its endpoints are, host and port.
    pub address: String,
    /// More arguments of `cronwheel run`.
    pub arguments: Vec<String>,
    /// Its log, one JSON object a line; a restart appends to it.
    pub log: PathBuf,
}

/// What went wrong with a replica.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// It does not start.
    #[error("cannot run {program}")]
    Spawn {
        /// The executable.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its log cannot be written or read.
    #[error("cannot use the log {path}")]
    Log {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It cannot be waited for.
    #[error("cannot wait for process {pid}")]
    Wait {
        /// Its process id.
        pid: u32,
        /// Why.
        source: io::Error,
    },
    /// It cannot be signalled.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// See the module. Dropping it kills it.
#[derive(Debug)]
pub struct Replica {
    setup: ReplicaSetup,
    child: Child,
    record: ProcessRecord,
}

impl Replica {
    /// Starts one; it is not ready yet.
    pub fn start(setup: ReplicaSetup) -> Result<Replica, ReplicaError> {
        let log_error = |source| ReplicaError::Log {
            path: setup.log.clone(),
            source,
        };
        let log = File::options()
            .create(true)
            .append(true)
            .open(&setup.log)
            .map_err(log_error)?;
        let mut child = Command::new(&setup.program)
            .arg("run")
            .arg("--kubeconfig")
            .arg(&setup.kubeconfig)
            .arg(format!("--shards={}", setup.n_shards))
            .arg(format!("--lease-namespace={}", setup.lease_namespace))
            .arg(format!("--pod-name={}", setup.pod_name))
            .arg(format!("--pod-uid={}", setup.pod_uid))
            .arg(format!("--pod-revision={}", setup.revision))
            .arg(format!("--listen={}", setup.address))
            .args(["--log-format=json", "--log-level=debug"])
            .args(&setup.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(log_error)?)
            .stderr(log)
            .spawn()
            .map_err(|source| ReplicaError::Spawn {
                program: setup.program.clone(),
                source,
            })?;
        match ProcessRecord::of(child.id()) {
            Ok(record) => Ok(Replica { setup, child, record }),
            Err(error) => {
                // A process that cannot be found again would be ended by nobody.
                let _ = child.kill();
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    /// How it was started.
    pub fn setup(&self) -> &ReplicaSetup {
        &self.setup
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Asks it to end, as a rollout does.
    pub fn ask_to_end(&self) -> Result<(), ReplicaError> {
        Ok(self.record.ask_to_end()?)
    }

    /// Ends it as a crash does, and waits for that.
    pub fn kill(&mut self) -> Result<(), ReplicaError> {
        let wait = |source| ReplicaError::Wait {
            pid: self.record.pid(),
            source,
        };
        self.child.kill().map_err(wait)?;
        self.child.wait().map(drop).map_err(wait)
    }

    /// Halts it where it stands.
    pub fn freeze(&self) -> Result<(), ReplicaError> {
        Ok(self.record.freeze()?)
    }

    /// Lets it go on after a freeze.
    pub fn thaw(&self) -> Result<(), ReplicaError> {
        Ok(self.record.thaw()?)
    }

    /// How it has ended; none while it runs.
    pub fn ending(&mut self) -> Result<Option<ExitStatus>, ReplicaError> {
        let pid = self.record.pid();
        self.child
            .try_wait()
            .map_err(|source| ReplicaError::Wait { pid, source })
    }

    /// What its log says of shards, in order, also before a restart.
    pub fn turns(&self) -> Result<Vec<Turn>, ReplicaError> {
        turns_in(&self.setup.log)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a log says of shards, in order.
pub fn turns_in(log: &Path) -> Result<Vec<Turn>, ReplicaError> {
    let text = fs::read(log).map_err(|source| ReplicaError::Log {
        path: log.to_owned(),
        source,
    })?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(Turn::parse).collect())
}
