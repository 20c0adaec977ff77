//! Waits before the next attempt after a failed request.

use std::time::Duration;

use jiff::SignedDuration;

use crate::shard::{back_off::BackOff, index::OwnerIndex};

/// The wait after the first failure.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);

/// The longest wait after failed deletes, look-ups and status writes.
const BACK_OFF_MAX: Duration = Duration::from_secs(30);

/// The longest wait after a create was refused: a CronJob that runs every minute is tried once a slot. Upstream may wait
/// for a quarter of an hour (B-12.4).
const CREATE_BACK_OFF_MAX: Duration = Duration::from_mins(1);

/// The time by which a refused create delays the create of a later slot, at most. A slot may start for longer than
/// this, even with a short starting deadline.
pub(super) const NEXT_SLOT_WAIT_MAX: SignedDuration = SignedDuration::from_secs(9);

/// The wait after a Job was refused as invalid for the first time: a CronJob that runs every minute tries once a slot.
const INVALID_JOB_WAIT_MIN: Duration = Duration::from_mins(1);

/// The longest wait after a Job was refused as invalid: a corrected webhook is noticed within this time.
const INVALID_JOB_WAIT_MAX: Duration = Duration::from_mins(5);

/// The back-off after failed deletes, look-ups and status writes.
pub(super) const BACK_OFF: BackOff = BackOff {
    first: BACK_OFF_MIN,
    longest: BACK_OFF_MAX,
};

/// The back-off after refused creates.
pub(super) const CREATE_BACK_OFF: BackOff = BackOff {
    first: BACK_OFF_MIN,
    longest: CREATE_BACK_OFF_MAX,
};

/// The back-off after a Job was refused as invalid.
pub(super) const INVALID_JOB_BACK_OFF: BackOff = BackOff {
    first: INVALID_JOB_WAIT_MIN,
    longest: INVALID_JOB_WAIT_MAX,
};

/// The wait of a CronJob after this number of failures in a row.
pub(super) fn wait_after(back_off: BackOff, n_failures: u32, owner: OwnerIndex) -> SignedDuration {
    let wait = SignedDuration::try_from(back_off.after(n_failures)).unwrap_or(SignedDuration::MAX);
    let number = owner.wrapping_mul(0x9E37_79B9).wrapping_add(n_failures);
    spread(wait, number)
}

/// Adds up to a quarter to a wait, chosen by a number, so that simultaneous failures are not retried simultaneously.
pub(super) fn spread(wait: SignedDuration, number: u32) -> SignedDuration {
    let part = i32::try_from(number % 256).unwrap_or_default();
    wait.saturating_add(wait.saturating_mul(part) / 1024)
}

/// The wait that an answer of the API server requests; zero if it requests none.
pub(super) fn requested_wait(retry_after: Option<Duration>) -> SignedDuration {
    retry_after
        .and_then(|wait| SignedDuration::try_from(wait).ok())
        .unwrap_or_default()
}
