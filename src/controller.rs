//! Layer 5, the shell: a run from its start to its end. `session` starts its tasks, and `tasks` joins them.
//!
//! If a task ends before its phase of the shutdown, the process ends too: a restart is better than a controller without
//! one of its tasks.

use std::net::SocketAddr;

use futures::future::BoxFuture;
use tokio::{net::TcpListener, task::JoinError};

pub mod clock;
pub mod clock_task;
pub mod connections;
mod credential_task;
pub mod dispatcher;
pub mod election;
pub mod event_task;
mod fair_queue;
mod in_flight;
mod lane;
pub mod pacing;
pub mod permission_task;
pub mod permissions;
pub mod policy_task;
mod recorded_client;
mod recorded_send;
mod run_log;
mod session;
pub mod settings;
pub mod shard_task;
pub mod shutdown;
pub mod status_batcher;
mod tasks;
#[cfg(test)]
mod tests;
mod tokens;
pub mod version_task;
pub mod watch_task;
mod watches;

pub use self::connections::Connections;
use self::{clock::Clock, session::Session, settings::RunSettings, tasks::supervise};
use crate::{kube_api::http::ConnectError, telemetry::metrics::Metrics};

/// Reasons why a run ends with an error.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// Signals cannot be received.
    #[error("cannot listen for signals")]
    Signals(#[source] std::io::Error),
    /// The address of the endpoints cannot be bound.
    #[error("--listen {address}: cannot listen there; give an address of this machine and a free port")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The client configuration does not allow connections.
    #[error("cannot prepare connections to the API server")]
    Connect(#[from] ConnectError),
    /// A task ended before its phase of the shutdown.
    #[error("the {task} task ended unexpectedly")]
    TaskEnded {
        /// Name of the task.
        task: &'static str,
    },
    /// A task panicked.
    #[error("the {task} task failed")]
    TaskFailed {
        /// Name of the task.
        task: &'static str,
        /// The panic.
        source: JoinError,
    },
    /// The history of the API server went back, so the versions known to this process belong to another history. Leases,
    /// Jobs and statuses may be older than their cached copies, and the same version may stand for different content.
    /// Nothing is repaired piece by piece: a restart begins with empty state. Requests in flight are harmless: the name
    /// of the Job or the version of the status rejects a stale one.
    #[error(
        "the API server returned to an older history, as after a restore of etcd: a restart of this process lists \
         everything again"
    )]
    HistoryWentBack,
    /// A second signal arrived during the shutdown.
    #[error("{signal} while going down: ended at once")]
    Interrupted {
        /// Name of the signal.
        signal: &'static str,
    },
}

/// A task that runs beside the controller's tasks and ends after them. If it ends earlier, the run ends with an error.
pub struct Companion {
    /// Name of the task, for errors.
    pub name: &'static str,
    /// The task itself; it is dropped at the end of the shutdown.
    pub run: BoxFuture<'static, ()>,
}

/// Binds the address of the endpoints.
///
/// # Errors
///
/// [`RuntimeError::Listen`] if the address is not of this machine or the port is in use.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, RuntimeError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| RuntimeError::Listen { address, source })
}

/// A controller that has not started.
pub struct Controller {
    /// Configuration of the run.
    pub settings: RunSettings,
    /// Clock of the process.
    pub clock: Clock,
    /// Connections to the API server.
    pub connections: Connections,
    /// Metrics of the process.
    pub metrics: Metrics,
}

impl Controller {
    /// Runs until `next_signal` returns a signal name or a task fails. A second signal ends the run at once. Serves the
    /// endpoints if a listener is given.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`] if a task ends or fails before its phase, if the history of the API server goes back, or if a
    /// second signal interrupts the shutdown.
    pub async fn run(
        self,
        endpoints: Option<TcpListener>,
        companions: Vec<Companion>,
        next_signal: impl AsyncFnMut() -> &'static str,
    ) -> Result<(), RuntimeError> {
        if let Some(Ok(address)) = endpoints.as_ref().map(TcpListener::local_addr) {
            tracing::info!(%address, "serves /healthz, /readyz and /metrics");
        }
        let installation = self.settings.membership.full_name();
        self.metrics.other_controllers.begin(self.clock.now(), installation);
        let session = Session::new(self);
        let tasks = session.start_all(companions, endpoints);
        let mut went_back = session.went_back.subscribe();
        let ended = supervise(tasks, &session.phases, &mut went_back, next_signal).await;
        if let Err(RuntimeError::TaskFailed { .. }) = &ended {
            Box::pin(session.abandon_membership()).await;
        }
        ended
    }
}
