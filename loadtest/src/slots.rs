//! Slots: the full minutes at which CronJobs are due.

use jiff::{SignedDuration, Timestamp};

/// A full minute, counted from the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot(i64);

impl Slot {
    /// Returns the first slot at or after `instant`.
    pub(crate) fn at_or_after(instant: Timestamp) -> Slot {
        let minute = instant.as_second().div_euclid(60);
        let is_whole = instant == Slot(minute).start();
        Slot(if is_whole { minute } else { minute + 1 })
    }

    /// The slot in the name of a Job.
    pub(crate) fn of_job(name: &str) -> Option<Slot> {
        name.rsplit_once('-')?.1.parse().ok().map(Slot)
    }

    /// The slot this many minutes earlier.
    pub(crate) fn before(self, minutes: i64) -> Slot {
        Slot(self.0 - minutes)
    }

    /// The instant of the slot.
    pub(crate) fn start(self) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(self.0)
    }

    /// The name of a CronJob's Job for this slot (B-11.1).
    pub(crate) fn job_name(self, cron_job: &str) -> String {
        format!("{cron_job}-{}", self.0)
    }
}

/// The slots at which a CronJob is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// Every this many minutes, a divisor of 60.
    EveryMinutes(u32),
    /// At a single slot per year.
    Once(Slot),
    /// At no slot during a run.
    Never,
}

impl Due {
    pub(crate) fn is_at(self, slot: Slot) -> bool {
        match self {
            Due::EveryMinutes(minutes) => slot.0 % i64::from(minutes) == 0,
            Due::Once(only) => slot == only,
            Due::Never => false,
        }
    }

    /// The schedule, in UTC.
    pub(crate) fn schedule(self) -> String {
        match self {
            Due::EveryMinutes(1) => "* * * * *".to_owned(),
            Due::EveryMinutes(60) => "0 * * * *".to_owned(),
            Due::EveryMinutes(minutes) => format!("*/{minutes} * * * *"),
            Due::Once(slot) => slot.start().strftime("%-M %-H %-d %-m *").to_string(),
            // No measurement runs on this rare day.
            Due::Never => "0 0 29 2 *".to_owned(),
        }
    }
}

/// The slots of a run: warm-up slots, whose Jobs must exist as well, then the measured slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    first: i64,
    n_warm_up: u32,
    n_measured: u32,
}

impl Slots {
    /// Returns slots from the first one at or after `instant`.
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

    /// The first slot after the run.
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
    fn schedule_text_matches_the_due_slots() {
        let check = |due: Due, schedule: &str, expected: [bool; 3]| {
            assert_eq!(due.schedule(), schedule);
            // 21 November 2026, 10:36, 10:37 and 11:00.
            let slots = [29_920_956, 29_920_957, 29_920_980].map(Slot);
            assert_eq!(slots.map(|slot| due.is_at(slot)), expected, "{schedule}");
        };
        check(Due::EveryMinutes(1), "* * * * *", [true, true, true]);
        check(Due::EveryMinutes(2), "*/2 * * * *", [true, false, true]);
        check(Due::EveryMinutes(60), "0 * * * *", [false, false, true]);
        check(Due::Once(Slot(29_920_957)), "37 10 21 11 *", [false, true, false]);
        check(Due::Never, "0 0 29 2 *", [false, false, false]);
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
