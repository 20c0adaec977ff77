//! The signals that end a run early.

use tokio::signal::{
    ctrl_c,
    unix::{SignalKind, signal},
};

/// Waits for SIGINT or SIGTERM. Returns its name.
pub(crate) async fn received() -> anyhow::Result<&'static str> {
    let mut terminations = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = ctrl_c() => interrupted.map(|()| "SIGINT").map_err(Into::into),
        _ = terminations.recv() => Ok("SIGTERM"),
    }
}
