//! The end of `dev`: a signal, the end of its time, or a closed output.

use std::{sync::Arc, time::Duration};

use futures::{
    FutureExt as _,
    future::{BoxFuture, Fuse},
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::Notify,
    time::sleep,
};

use crate::controller::shutdown::Signals;

/// The reasons to end. A second signal ends the process at once.
pub(super) struct Ending {
    signals: Signals,
    hangup: Signal,
    quit: Signal,
    /// The reason that is no signal. It counts once, and not after a signal.
    other: Fuse<BoxFuture<'static, &'static str>>,
}

impl Ending {
    /// Handles these signals from now on. The task that writes the output notifies `output_is_gone`.
    pub(super) fn listen(run_for: Option<Duration>, output_is_gone: Arc<Notify>) -> std::io::Result<Ending> {
        Ok(Ending {
            signals: Signals::listen()?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            other: other(run_for, output_is_gone),
        })
    }

    /// Waits for the next reason and returns its name.
    pub(super) async fn next(&mut self) -> &'static str {
        let reason = tokio::select! {
            biased;
            signal = self.signals.next() => signal,
            _ = self.hangup.recv() => "SIGHUP",
            _ = self.quit.recv() => "SIGQUIT",
            reason = &mut self.other => reason,
        };
        self.other = Fuse::terminated();
        reason
    }
}

/// Waits for the end of the time, which begins now, or for a closed output.
fn other(run_for: Option<Duration>, output_is_gone: Arc<Notify>) -> Fuse<BoxFuture<'static, &'static str>> {
    let time_is_up = sleep(run_for.unwrap_or(Duration::MAX));
    let first = async move {
        tokio::select! {
            biased;
            () = time_is_up => "--for",
            () = output_is_gone.notified() => "closed output",
        }
    };
    first.boxed().fuse()
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    // Signals are left out: other tests of this process send some.
    #[tokio::test(start_paused = true)]
    async fn dev_ends_once_when_its_time_is_up() {
        let mut other = other(Some(Duration::from_secs(5)), Arc::default());
        assert!(timeout(Duration::from_secs(4), &mut other).await.is_err());
        assert_eq!(timeout(Duration::from_secs(2), &mut other).await, Ok("--for"));
        assert!(timeout(Duration::from_hours(1), &mut other).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn dev_ends_when_its_output_is_closed() {
        let output_is_gone = Arc::new(Notify::new());
        let mut other = other(None, Arc::clone(&output_is_gone));
        assert!(timeout(Duration::from_hours(1), &mut other).await.is_err());
        output_is_gone.notify_one();
        assert_eq!(other.await, "closed output");
    }
}
