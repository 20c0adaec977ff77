//! Looks of a canary that fail now and then, as while an API server restarts.

use std::time::Duration;

use tokio::time::sleep;

use crate::cli::check::finding::{Cause, Unread};

/// Pause between two looks.
pub(super) const PAUSE: Duration = Duration::from_secs(1);

/// How many looks in a row may fail: for as long as a right that was just granted may be without effect, and as the last
/// look is repeated.
const FAILURES_MAX: u32 = 10;

/// The looks until the end of the wait. A failed one shows nothing and ends nothing, because the Jobs are still there at
/// the next one.
#[derive(Debug, Default)]
pub(super) struct Looks {
    n_denied: u32,
}

impl Looks {
    /// Takes what a look found; `None` if it failed. Fails if the account lacks the right and has lacked it for a while.
    pub(super) fn take<T>(&mut self, look: Result<T, Unread>) -> Result<Option<T>, Unread> {
        match look {
            Err(unread) if unread.cause == Cause::Denied && self.n_denied == FAILURES_MAX => Err(unread),
            Err(unread) => {
                self.n_denied += u32::from(unread.cause == Cause::Denied);
                Ok(None)
            }
            Ok(found) => {
                self.n_denied = 0;
                Ok(Some(found))
            }
        }
    }
}

/// Repeats the last look until it succeeds.
pub(super) async fn repeated<T>(look: impl AsyncFn() -> Result<T, Unread>) -> Result<T, Unread> {
    for _ in 0..FAILURES_MAX {
        match look().await {
            Err(unread) if unread.cause != Cause::Denied => sleep(PAUSE).await,
            result => return result,
        }
    }
    look().await
}
