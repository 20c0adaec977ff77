//! Whole Unix seconds in four bytes. Slots, Jobs and changes have whole seconds, and a fleet holds a million of them.

use std::num::NonZeroU32;

use jiff::{SignedDuration, Timestamp};

/// Number of seconds of a minute.
const MINUTE_SECONDS: u32 = 60;

/// An instant in whole seconds, from 1970-01-01T00:00:01Z to 2106. Other instants are clamped. An `Option` of it has no
/// further size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Second(NonZeroU32);

impl Second {
    pub(super) const MIN: Second = Second(NonZeroU32::MIN);
    pub(super) const MAX: Second = Second(NonZeroU32::MAX);

    /// The second at or before an instant.
    pub(super) fn floor(instant: Timestamp) -> Second {
        Second::clamped(instant.as_second())
    }

    /// The second at or after an instant.
    pub(super) fn ceil(instant: Timestamp) -> Second {
        let has_fraction = instant.subsec_nanosecond() > 0;
        Second::clamped(instant.as_second() + i64::from(has_fraction))
    }

    pub(super) fn timestamp(self) -> Timestamp {
        Timestamp::from_second(self.unix()).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    pub(super) fn plus(self, seconds: i64) -> Second {
        Second::clamped(self.unix().saturating_add(seconds))
    }

    pub(super) fn plus_duration(self, duration: SignedDuration) -> Second {
        self.plus(duration.as_secs())
    }

    /// Seconds since an earlier instant, 0 if it is later.
    pub(super) fn since(self, earlier: Second) -> u32 {
        self.0.get().saturating_sub(earlier.0.get())
    }

    pub(super) fn duration_since(self, earlier: Second) -> SignedDuration {
        SignedDuration::from_secs(self.since(earlier).into())
    }

    /// Minutes since the epoch.
    pub(super) fn minute(self) -> u32 {
        self.0.get() / MINUTE_SECONDS
    }

    pub(super) fn is_whole_minute(self) -> bool {
        self.0.get().is_multiple_of(MINUTE_SECONDS)
    }

    pub(super) fn start_of_minute(self) -> Second {
        self.plus(-i64::from(self.0.get() % MINUTE_SECONDS))
    }

    pub(super) fn unix(self) -> i64 {
        self.0.get().into()
    }

    fn clamped(unix_seconds: i64) -> Second {
        let bounded = unix_seconds.clamp(1, u32::MAX.into());
        let bounded = u32::try_from(bounded).ok().and_then(NonZeroU32::new);
        Second(bounded.unwrap_or(NonZeroU32::MIN))
    }
}

/// The start of a minute that is counted from the epoch.
pub(super) fn start_of_minute(minute: u32) -> Timestamp {
    Second::clamped(i64::from(minute) * i64::from(MINUTE_SECONDS)).timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_rounded_and_clamped() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        for (text, floor, ceil) in [
            ("2026-05-05T10:00:00Z", "2026-05-05T10:00:00Z", "2026-05-05T10:00:00Z"),
            ("2026-05-05T10:00:00.4Z", "2026-05-05T10:00:00Z", "2026-05-05T10:00:01Z"),
            ("1950-01-01T00:00:00Z", "1970-01-01T00:00:01Z", "1970-01-01T00:00:01Z"),
            ("2300-01-01T00:00:00Z", "2106-02-07T06:28:15Z", "2106-02-07T06:28:15Z"),
        ] {
            assert_eq!(Second::floor(at(text)).timestamp(), at(floor), "floor of {text}");
            assert_eq!(Second::ceil(at(text)).timestamp(), at(ceil), "ceil of {text}");
        }
        assert_eq!(std::mem::size_of::<Option<Second>>(), 4);
    }
}
