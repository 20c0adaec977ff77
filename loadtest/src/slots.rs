//! Whole minutes: the instants at which everything is due.

use jiff::{SignedDuration, Timestamp};

/// A whole minute, counted from the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(i64);

impl Slot {
    /// The first one not before `instant`.
    pub(crate) fn at_or_after(instant: Timestamp) -> Slot {
        let minute = instant.as_second().div_euclid(60);
        let is_whole = instant == Slot(minute).start();
        Slot(if is_whole { minute } else { minute + 1 })
    }

    /// Its instant.
    pub(crate) fn start(self) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(self.0)
    }

    /// The name of the Job that a `CronJob` has for it (B-11.1).
    pub(crate) fn job_name(self, cron_job: &str) -> String {
        format!("{cron_job}-{}", self.0)
    }
}

/// The slots of one run: some to warm up, whose Jobs must be there as well, then those that are measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    first: i64,
    n_warm_up: u32,
    n_measured: u32,
}

impl Slots {
    /// Slots from the first one not before `instant`.
    pub(crate) fn starting_at(instant: Timestamp, n_warm_up: u32, n_measured: u32) -> Slots {
        Slots {
            first: Slot::at_or_after(instant).0,
            n_warm_up,
            n_measured,
        }
    }

    pub(crate) fn first(&self) -> Slot {
        Slot(self.first)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = Slot> + use<> {
        (self.first..self.end().0).map(Slot)
    }

    pub(crate) fn is_measured(&self, slot: Slot) -> bool {
        self.first_measured() <= slot && slot < self.end()
    }

    pub(crate) fn first_measured(&self) -> Slot {
        Slot(self.first + i64::from(self.n_warm_up))
    }

    /// The first one that is not of this run.
    pub(crate) fn end(&self) -> Slot {
        Slot(self.first_measured().0 + i64::from(self.n_measured))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64, nanosecond: i32) -> Timestamp {
        Timestamp::new(second, nanosecond).unwrap()
    }

    #[test]
    fn a_slot_is_the_next_whole_minute() {
        assert_eq!(Slot::at_or_after(at(120, 0)), Slot(2));
        assert_eq!(Slot::at_or_after(at(120, 1)), Slot(3));
        assert_eq!(Slot::at_or_after(at(179, 999_999_999)), Slot(3));
        assert_eq!(Slot(3).start(), at(180, 0));
    }

    #[test]
    fn a_job_is_named_after_the_minute_of_its_slot() {
        assert_eq!(
            Slot::at_or_after(at(1_795_257_360, 0)).job_name("load-00001"),
            "load-00001-29920956"
        );
    }

    #[test]
    fn warm_up_comes_first_and_is_not_measured() {
        let slots = Slots::starting_at(at(61, 0), 1, 2);
        assert_eq!(slots.all().collect::<Vec<_>>(), [Slot(2), Slot(3), Slot(4)]);
        assert_eq!(
            [1, 2, 3, 4, 5].map(|minute| slots.is_measured(Slot(minute))),
            [false, false, true, true, false]
        );
    }
}
