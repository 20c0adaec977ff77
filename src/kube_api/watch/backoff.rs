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

    /// A server that answers has lost our place in its history: it is listed anew soon, whatever failed before.
    pub(super) fn lose_place(&mut self) {
        self.reset();
        self.fail();
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
