//! The back-off of a watch: exponential, and without jitter, so that simulations are deterministic.

use std::time::Duration;

/// Delay after the first failure: a restarting server is back within it.
const FIRST_DELAY: Duration = Duration::from_millis(200);

/// Maximum delay: changes during it take effect late.
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// Exponential back-off without jitter: a replica has two watches, not thousands.
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

    /// Resets the back-off: a server that answers has compacted the version of this watch, and a list follows soon.
    pub(super) fn lose_place(&mut self) {
        self.reset();
        self.fail();
    }

    pub(super) fn reset(&mut self) {
        self.next_delay = FIRST_DELAY;
    }

    /// Waits if a failure was recorded since the last call.
    pub(super) async fn wait(&mut self) {
        if let Some(delay) = self.due_delay {
            tokio::time::sleep(delay).await;
            self.due_delay = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_and_begin_anew_after_success() {
        let mut backoff = Backoff::new();
        let mut delays_millis = Vec::new();
        for _ in 0..8 {
            backoff.fail();
            delays_millis.push(backoff.due_delay.unwrap().as_millis());
        }
        assert_eq!(delays_millis, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        backoff.reset();
        backoff.fail();
        assert_eq!(backoff.due_delay, Some(FIRST_DELAY));
        for _ in 0..8 {
            backoff.fail();
        }
        backoff.lose_place();
        assert_eq!(backoff.due_delay, Some(FIRST_DELAY));
    }

    #[tokio::test(start_paused = true)]
    async fn one_failure_is_waited_for_once() {
        let mut backoff = Backoff::new();
        backoff.wait().await;
        backoff.fail();
        let waited = tokio::time::timeout(FIRST_DELAY / 2, backoff.wait()).await;
        assert!(waited.is_err());
        backoff.wait().await;
        assert_eq!(backoff.due_delay, None);
    }
}
