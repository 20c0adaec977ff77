//! The lives of a process: a run begins anew, as a restart would, where the history of the API server went back.
//!
//! After a restore of etcd the versions that this process knows are of another history: Leases, Jobs and statuses may be
//! older than what it believes, and a version may stand for another content. Nothing of that is repaired piece by piece.
//! All tasks end at once, as by a crash, and others with nothing in memory take their place. What was on the way meets the
//! name of the Job or the version of the status.

use tokio::net::TcpListener;

use super::{
    Companion, Connections, RuntimeError, Shell,
    clock::Clock,
    shutdown::phases,
    tasks::{Ended, end_at_once, supervise},
};
use crate::{controller::settings::RunSettings, telemetry::metrics::Metrics};

/// A controller that has not begun: what every life of it begins with.
#[derive(Clone)]
pub struct Controller {
    /// How it works.
    pub settings: RunSettings,
    /// The time.
    pub clock: Clock,
    /// The ways to the API server.
    pub connections: Connections,
    /// Where it counts.
    pub metrics: Metrics,
}

impl Controller {
    /// Works until `next_signal` names a signal, or something fails; a second signal ends it at once. Serves its endpoints
    /// where a listener is given.
    pub async fn run(
        self,
        endpoints: Option<TcpListener>,
        companions: Vec<Companion>,
        mut next_signal: impl AsyncFnMut() -> &'static str,
    ) -> Result<(), RuntimeError> {
        if let Some(Ok(address)) = endpoints.as_ref().map(TcpListener::local_addr) {
            tracing::info!(%address, "serves /healthz, /readyz and /metrics");
        }
        let phases = phases();
        let mut shell = Shell::new(self.clone(), phases.clone());
        // First, as the API server may be among them. They last through all lives.
        let mut lasting = shell.spawn_companions(companions);
        lasting.extend(endpoints.map(|listener| shell.spawn_admin(listener)));
        loop {
            let tasks = shell.spawn_session();
            let mut went_back = shell.went_back.subscribe();
            match supervise(lasting, tasks, &shell.phases, &mut went_back, &mut next_signal).await {
                Ok(Ended::Process) => return Ok(()),
                Ok(Ended::Session { lasting: still, ended }) => {
                    end_at_once(ended).await;
                    self.reset_after_session();
                    self.metrics.start_overs.inc();
                    tracing::warn!(
                        "starts over: forgets everything, lists it anew and joins the election as a new member"
                    );
                    shell = Shell::new(self.clone(), phases.clone());
                    lasting = still;
                }
                Err(error) => {
                    if let RuntimeError::TaskFailed { .. } = &error {
                        Box::pin(shell.abandon_membership()).await;
                    }
                    return Err(error);
                }
            }
        }
    }

    /// Nothing that a life left behind reaches the API server or the metrics of the next one.
    fn reset_after_session(&self) {
        self.connections.writes.reset();
        self.metrics.watch_health.forget_all();
        self.metrics.status.pending.set(0);
    }
}
