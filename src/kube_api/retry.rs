//! The pause before a failed list or watch is repeated.

use std::time::Duration;

use crate::shard::back_off::BackOff;

/// Delay after the first failure of a watch: a restarting server is back within it.
const WATCH_DELAY_MIN: Duration = Duration::from_millis(200);

/// Maximum delay after a failure of a watch: changes during it take effect late.
const WATCH_DELAY_MAX: Duration = Duration::from_secs(10);

/// Maximum delay after a failure of an interrupted watch. After an outage, shards wait for the watch of CronJobs before
/// they create the Jobs that are overdue.
pub(super) const INTERRUPTED_DELAY_MAX: Duration = Duration::from_secs(2);

pub(super) const WATCH_DELAYS: BackOff = BackOff {
    first: WATCH_DELAY_MIN,
    longest: WATCH_DELAY_MAX,
};

/// Pause after the first failure of a request for the current versions of the watched objects.
const VERSION_PAUSE_MIN: Duration = Duration::from_millis(100);

/// Maximum pause after such a failure. Shards may wait for the versions, without a leader.
const VERSION_PAUSE_MAX: Duration = Duration::from_secs(5);

/// The pauses before a request for the current versions is repeated.
pub const VERSION_PAUSES: BackOff = BackOff {
    first: VERSION_PAUSE_MIN,
    longest: VERSION_PAUSE_MAX,
};

/// The pauses of one list or watch.
#[derive(Debug)]
pub struct Retry {
    back_off: BackOff,
    n_failures: u32,
    due: Option<Duration>,
}

impl Retry {
    /// Creates an instance without failures.
    pub fn new(back_off: BackOff) -> Retry {
        Retry {
            back_off,
            n_failures: 0,
            due: None,
        }
    }

    /// Records a failure.
    pub fn fail(&mut self) {
        self.fail_within(self.back_off.longest);
    }

    /// Records a failure, and pauses at most this long after it. A pause that this shortens does not lengthen later ones.
    pub fn fail_within(&mut self, longest: Duration) {
        let n_failures = self.n_failures.saturating_add(1);
        let pause = self.back_off.after(n_failures);
        if pause <= longest {
            self.n_failures = n_failures;
        }
        self.due = Some(pause.min(longest));
    }

    /// Records a success: the next failure counts as the first.
    pub fn reset(&mut self) {
        self.n_failures = 0;
    }

    /// Pauses if a failure was recorded since the last call. Cancel safe.
    pub async fn wait(&mut self) {
        if let Some(delay) = self.due {
            tokio::time::sleep(delay).await;
            self.due = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACK_OFF: BackOff = BackOff {
        first: Duration::from_millis(200),
        longest: Duration::from_secs(10),
    };

    /// Checks that the pause is longer than one duration and ends within another.
    async fn check(retry: &mut Retry, longer_than_millis: u64, within_millis: u64) {
        let too_short = Duration::from_millis(longer_than_millis);
        assert!(tokio::time::timeout(too_short, retry.wait()).await.is_err());
        // A cancelled pause begins again.
        let within = Duration::from_millis(within_millis);
        assert!(tokio::time::timeout(within, retry.wait()).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn retry_delay_doubles_until_a_reset() {
        let mut retry = Retry::new(BACK_OFF);
        retry.wait().await;
        retry.fail();
        check(&mut retry, 199, 201).await;
        assert_eq!(retry.due, None, "once");
        retry.fail();
        check(&mut retry, 399, 401).await;
        retry.reset();
        retry.fail();
        check(&mut retry, 199, 201).await;
    }

    #[tokio::test(start_paused = true)]
    async fn shortened_pauses_do_not_lengthen_later_ones() {
        let mut retry = Retry::new(BACK_OFF);
        for _ in 0..20 {
            retry.fail_within(Duration::from_millis(500));
        }
        check(&mut retry, 499, 501).await;
        retry.fail();
        check(&mut retry, 799, 801).await;
    }
}
