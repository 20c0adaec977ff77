//! The end of `dev`: a signal, the end of its time, or a closed output.

use std::{future::pending, pin::Pin, sync::Arc, time::Duration};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::Notify,
    time::{Sleep, sleep},
};

use crate::controller::shutdown::Signals;

/// The reasons to end. Reasons that are not signals count once; a second signal ends the process at once.
pub(super) struct Ending {
    signals: Signals,
    hangup: Signal,
    quit: Signal,
    others: Option<Others>,
}

struct Others {
    time_is_up: Option<Pin<Box<Sleep>>>,
    output_is_gone: Arc<Notify>,
}

impl Ending {
    /// Handles these signals from now on. The task that writes the output notifies `output_is_gone`.
    pub(super) fn listen(run_for: Option<Duration>, output_is_gone: Arc<Notify>) -> std::io::Result<Ending> {
        Ok(Ending {
            signals: Signals::listen()?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
            others: Some(Others {
                time_is_up: run_for.map(|run_for| Box::pin(sleep(run_for))),
                output_is_gone,
            }),
        })
    }

    /// Waits for the next reason and returns its name.
    pub(super) async fn next(&mut self) -> &'static str {
        let reason = tokio::select! {
            biased;
            signal = self.signals.next() => signal,
            _ = self.hangup.recv() => "SIGHUP",
            _ = self.quit.recv() => "SIGQUIT",
            reason = other(&mut self.others) => reason,
        };
        self.others = None;
        reason
    }
}

async fn other(others: &mut Option<Others>) -> &'static str {
    let Some(others) = others else { return pending().await };
    let time_is_up = async {
        match &mut others.time_is_up {
            Some(sleep) => sleep.await,
            None => pending().await,
        }
    };
    tokio::select! {
        biased;
        () = time_is_up => "--for",
        () = others.output_is_gone.notified() => "closed output",
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    // Signals are left out: other tests of this process send some.
    fn others(run_for: Option<Duration>) -> Others {
        Others {
            time_is_up: run_for.map(|run_for| Box::pin(sleep(run_for))),
            output_is_gone: Arc::default(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn dev_ends_when_its_time_is_up() {
        let mut others = Some(others(Some(Duration::from_secs(5))));
        assert!(timeout(Duration::from_secs(4), other(&mut others)).await.is_err());
        assert_eq!(timeout(Duration::from_secs(2), other(&mut others)).await, Ok("--for"));
    }

    #[tokio::test(start_paused = true)]
    async fn dev_ends_when_its_output_is_closed() {
        let mut others = Some(others(None));
        assert!(timeout(Duration::from_hours(1), other(&mut others)).await.is_err());
        others.as_ref().unwrap().output_is_gone.notify_one();
        assert_eq!(other(&mut others).await, "closed output");
        assert!(timeout(Duration::from_hours(1), other(&mut None)).await.is_err());
    }
}
