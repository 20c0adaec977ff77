//! When to ask again after a failure: soon at first, then ever later, the same every time.

use std::time::Duration;

/// After the first failure: a server that restarts is back within it.
const FIRST_DELAY: Duration = Duration::from_millis(200);

/// At most: what we do not see meanwhile we start late.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// Exponential, without jitter: there are two watches for each replica, not thousands.
pub(super) struct Backoff {
    next_delay: Duration,
    due_delay: Option<Duration>,
}

impl Backoff {
    pub(super) fn new() -> Backoff {
        Backoff {
            next_delay: FIRST_DELAY,
            due_delay: None,
        }
    }

    pub(super) fn fail(&mut self) {
        self.due_delay = Some(self.next_delay);
        self.next_delay = (self.next_delay * 2).min(LONGEST_DELAY);
    }

    pub(super) fn reset(&mut self) {
        self.next_delay = FIRST_DELAY;
    }

    /// Waits, if something failed since the last time.
    pub(super) async fn wait(&mut self) {
        if let Some(delay) = self.due_delay {
            tokio::time::sleep(delay).await;
            self.due_delay = None;
        }
    }
}
