//! A replica of cronwheel as a child process. Its log records which shards it leads, and since when.

pub mod turns;

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

use self::turns::Turn;
use crate::process::{ProcessError, ProcessRecord};

/// The number of shards of an installation.
pub const N_SHARDS: u32 = 256;

/// The identity of a replica, and how to start it.
#[derive(Clone, Debug)]
pub struct ReplicaSetup {
    /// The executable.
    pub program: PathBuf,
    /// The kubeconfig that it uses.
    pub kubeconfig: PathBuf,
    /// The namespace of the Leases.
    pub lease_namespace: String,
    /// The name of its Pod.
    pub pod_name: String,
    /// The uid of its Pod. A process with the uid of a previous one is a restart of the container.
    pub pod_uid: String,
    /// The revision of its Pod.
    pub revision: String,
    /// Host and port of its endpoints.
    pub address: String,
    /// Further arguments of `cronwheel run`.
    pub arguments: Vec<String>,
    /// Its log, one JSON object per line. A restart appends to it.
    pub log: PathBuf,
}

/// Why an operation on a replica failed.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The replica cannot be started.
    #[error("cannot run {program}")]
    Spawn {
        /// The executable.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The log of the replica cannot be written or read.
    #[error("cannot use the log {path}")]
    Log {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The process cannot be waited for.
    #[error("cannot wait for process {pid}")]
    Wait {
        /// The process id.
        pid: u32,
        /// The cause.
        source: io::Error,
    },
    /// The process cannot be signalled.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// A replica of cronwheel as a child process. Dropping it kills it.
#[derive(Debug)]
pub struct Replica {
    setup: ReplicaSetup,
    child: Child,
    record: ProcessRecord,
}

impl Replica {
    /// Starts a replica. It is not ready yet.
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
                // A process without a record cannot be found and stopped later.
                let _ = child.kill();
                let _ = child.wait();
                Err(error.into())
            }
        }
    }

    /// The setup with which the replica was started.
    pub fn setup(&self) -> &ReplicaSetup {
        &self.setup
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends SIGTERM, as a rollout does.
    pub fn terminate(&self) -> Result<(), ReplicaError> {
        Ok(self.record.terminate()?)
    }

    /// Kills the replica as in a crash, and waits until it is gone.
    pub fn kill(&mut self) -> Result<(), ReplicaError> {
        let wait = |source| ReplicaError::Wait {
            pid: self.record.pid(),
            source,
        };
        self.child.kill().map_err(wait)?;
        self.child.wait().map(drop).map_err(wait)
    }

    /// Freezes the replica.
    pub fn freeze(&self) -> Result<(), ReplicaError> {
        Ok(self.record.freeze()?)
    }

    /// Resumes the frozen replica.
    pub fn thaw(&self) -> Result<(), ReplicaError> {
        Ok(self.record.thaw()?)
    }

    /// Returns the exit status, or `None` while the replica runs.
    pub fn ending(&mut self) -> Result<Option<ExitStatus>, ReplicaError> {
        let pid = self.record.pid();
        self.child
            .try_wait()
            .map_err(|source| ReplicaError::Wait { pid, source })
    }

    /// Returns the log lines about shards, in order, including those before a restart.
    pub fn turns(&self) -> Result<Vec<Turn>, ReplicaError> {
        turns_in(&self.setup.log)
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the lines about shards in a log, in order.
pub fn turns_in(log: &Path) -> Result<Vec<Turn>, ReplicaError> {
    let text = fs::read(log).map_err(|source| ReplicaError::Log {
        path: log.to_owned(),
        source,
    })?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(Turn::parse).collect())
}
