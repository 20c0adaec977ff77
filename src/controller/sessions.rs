//! Sessions of a process: when the history of the API server goes back, a new session begins, as after a restart.
//!
//! After a restore of etcd, the resourceVersions known to this process belong to another history. Leases, Jobs and
//! statuses may be older than their cached copies, and the same resourceVersion may stand for different content.
//! Nothing is repaired piece by piece: all tasks end at once, as in a crash, and new tasks start with empty state.
//! Requests that were in flight are harmless: the name of the Job or the resourceVersion of the status rejects a stale
//! one.

use tokio::net::TcpListener;

use super::{
    Companion, Connections, RuntimeError, Session,
    clock::Clock,
    shutdown::phases,
    tasks::{Ended, end_at_once, supervise},
};
use crate::{controller::settings::RunSettings, telemetry::metrics::Metrics};

/// A controller that has not started: the initial state of every session.
#[derive(Clone)]
pub struct Controller {
    /// Configuration of the run.
    pub settings: RunSettings,
    /// Clock of the process.
    pub clock: Clock,
    /// Connections to the API server.
    pub connections: Connections,
    /// Metrics of the process; they last through all sessions.
    pub metrics: Metrics,
}

impl Controller {
    /// Runs until `next_signal` returns a signal name or a task fails. A second signal ends the run at once. Serves the
    /// endpoints if a listener is given.
    ///
    /// # Errors
    ///
    /// [`RuntimeError`] if a task ends or fails before its phase, or if a second signal interrupts the shutdown.
    pub async fn run(
        self,
        endpoints: Option<TcpListener>,
        companions: Vec<Companion>,
        mut next_signal: impl AsyncFnMut() -> &'static str,
    ) -> Result<(), RuntimeError> {
        if let Some(Ok(address)) = endpoints.as_ref().map(TcpListener::local_addr) {
            tracing::info!(%address, "serves /healthz, /readyz and /metrics");
        }
        self.metrics.other_controllers.begin(self.clock.now());
        let phases = phases();
        let mut session = Session::new(self.clone(), phases.clone());
        // Companions start first because the API server may be one of them. They last through all sessions.
        let mut lasting = session.spawn_companions(companions);
        lasting.extend(endpoints.map(|listener| session.spawn_admin(listener)));
        loop {
            let tasks = session.spawn_session();
            let mut went_back = session.went_back.subscribe();
            match supervise(lasting, tasks, &session.phases, &mut went_back, &mut next_signal).await {
                Ok(Ended::Process) => return Ok(()),
                Ok(Ended::Session { lasting: still, ended }) => {
                    end_at_once(ended).await;
                    self.reset_after_session();
                    self.metrics.start_overs.inc();
                    tracing::warn!(
                        "starts over: discards its state, lists everything and joins the election as a new member"
                    );
                    session = Session::new(self.clone(), phases.clone());
                    lasting = still;
                }
                Err(error) => {
                    if let RuntimeError::TaskFailed { .. } = &error {
                        Box::pin(session.abandon_membership()).await;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Removes the remaining state of a session, so that none of it reaches the API server or the metrics of the next
    /// session.
    fn reset_after_session(&self) {
        self.connections.writes.reset_connections();
        self.metrics.watch_health.forget_all();
        self.metrics.status.pending.set(0);
    }
}
