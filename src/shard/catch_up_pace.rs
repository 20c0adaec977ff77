//! The pace at which missed runs start, shared by the shards of a replica.
//!
//! The budget belongs to the installation. A replica uses the part of it that corresponds to the shards that it leads.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::cron_job::PacePlace;
use crate::schedule::{after, options::MISSED_AFTER};

/// The default number of missed runs that an installation starts in a second.
pub const MISSED_RUNS_PER_SECOND_DEFAULT: u32 = 5;

/// The pace. Clones share it.
#[derive(Clone, Debug)]
pub struct CatchUpPace(Arc<Mutex<Pace>>);

#[derive(Debug)]
struct Pace {
    per_second: u32,
    n_shards: u32,
    n_led: u32,
    /// The latest time of a reservation.
    asked: Timestamp,
    /// The last instant that is reserved.
    last: Option<Timestamp>,
}

impl CatchUpPace {
    /// Creates the pace of a replica that leads all shards of an installation.
    pub(super) fn new(n_shards: u16) -> CatchUpPace {
        CatchUpPace(Arc::new(Mutex::new(Pace {
            per_second: MISSED_RUNS_PER_SECOND_DEFAULT,
            n_shards: n_shards.into(),
            n_led: n_shards.into(),
            asked: Timestamp::MIN,
            last: None,
        })))
    }

    /// Sets the number of missed runs that the installation starts in a second, at least one.
    pub fn set_per_second(&self, per_second: u32) {
        self.pace().per_second = per_second.max(1);
    }

    /// Sets the number of shards that the replica leads. When it grows, as after a start, later reservations do not wait
    /// as long as the earlier ones did.
    pub(super) fn set_led(&self, n_led: usize) {
        let mut pace = self.pace();
        let former = pace.interval();
        pace.n_led = u32::try_from(n_led).unwrap_or(u32::MAX).clamp(1, pace.n_shards);
        let (asked, current) = (pace.asked, pace.interval());
        if let Some(last) = pace.last.as_mut().filter(|last| asked < **last && current < former) {
            let nanos = last.duration_since(asked).as_nanos() * current.as_nanos() / former.as_nanos();
            *last = after(
                asked,
                SignedDuration::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX)),
            );
        }
    }

    /// The place of a CronJob that has missed runs: its former one, or a new one behind all others. When a slot becomes
    /// due while it waits, the oldest run starts in its stead: otherwise such slots would come faster than the pace
    /// starts them, or start all at once in the end. `next_start` returns the start of the first slot that starts later.
    pub(super) fn place(
        &self,
        former: Option<PacePlace>,
        next_start: impl Fn(Timestamp) -> Option<Timestamp>,
        now: Timestamp,
    ) -> PacePlace {
        // Who did not come to its place in time waited for something else.
        let former = former.filter(|place| now < after(place.at, MISSED_AFTER));
        let place = match former {
            Some(place) if !place.is_used => place,
            _ => PacePlace {
                at: self.reserve(now),
                is_used: false,
                came_through: former.map_or(now, |place| place.came_through),
                came: None,
            },
        };
        PacePlace {
            came: next_start(place.came_through).filter(|start| *start <= now),
            ..place
        }
    }

    /// Reserves the next free instant for a missed run, and returns it; never before `now`.
    pub(super) fn reserve(&self, now: Timestamp) -> Timestamp {
        let mut pace = self.pace();
        if now < pace.asked {
            // The clock was set back, so the reservations are for instants of the wrong time.
            pace.last = None;
        }
        pace.asked = now;
        let next = pace.last.map(|last| after(last, pace.interval()));
        let reserved = next.unwrap_or(now).max(now);
        pace.last = Some(reserved);
        reserved
    }

    /// Locks the pace. It is consistent after every statement that can panic.
    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pace {
    fn interval(&self) -> SignedDuration {
        let nanos = 1_000_000_000 * i64::from(self.n_shards) / (i64::from(self.n_led) * i64::from(self.per_second));
        SignedDuration::from_nanos(nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-05-05T10:00:{text}Z").parse().unwrap()
    }

    #[test]
    fn a_replica_starts_its_part_of_five_a_second() {
        let pace = CatchUpPace::new(64);
        assert_eq!(
            ["00", "00", "00"].map(|now| pace.reserve(at(now))),
            ["00", "00.2", "00.4"].map(at)
        );
        // A quarter of the shards, so an interval of 0.8 s.
        pace.set_led(16);
        assert_eq!(
            ["00.1", "00.1", "10"].map(|now| pace.reserve(at(now))),
            ["01.2", "02", "10"].map(at)
        );
        pace.set_per_second(50);
        assert_eq!(
            ["10", "10"].map(|now| pace.reserve(at(now))),
            ["10.08", "10.16"].map(at)
        );
    }

    #[test]
    fn a_replica_that_has_just_begun_to_lead_does_not_stay_slow() {
        let pace = CatchUpPace::new(64);
        pace.set_led(1);
        // An interval of 12.8 s.
        assert_eq!(["00", "00"].map(|now| pace.reserve(at(now))), ["00", "12.8"].map(at));
        pace.set_led(64);
        assert_eq!(["00", "01"].map(|now| pace.reserve(at(now))), ["00.4", "01"].map(at));
    }

    /// The next full ten seconds.
    fn next_ten(start: Timestamp) -> Option<Timestamp> {
        Timestamp::from_second(start.as_second() / 10 * 10 + 10).ok()
    }

    #[test]
    fn a_place_is_kept_until_it_is_used_and_slots_that_become_due_need_none() {
        let waits = |until: &str, is_used, came_through: &str, came: Option<&str>| PacePlace {
            at: at(until),
            is_used,
            came_through: at(came_through),
            came: came.map(at),
        };
        // The former place, the instant, and the place.
        for (former, now, expected) in [
            (None, "15", waits("15", false, "15", None)),
            (
                Some(waits("40", false, "15", None)),
                "19",
                waits("40", false, "15", None),
            ),
            // A slot becomes due, and then another one.
            (
                Some(waits("40", false, "15", None)),
                "20",
                waits("40", false, "15", Some("20")),
            ),
            (
                Some(waits("40", false, "15", Some("20"))),
                "31",
                waits("40", false, "15", Some("20")),
            ),
            (
                Some(waits("40", false, "20", None)),
                "31",
                waits("40", false, "20", Some("30")),
            ),
            (
                Some(waits("40", false, "30", None)),
                "31",
                waits("40", false, "30", None),
            ),
            // The next run needs the next place.
            (
                Some(waits("40", true, "30", None)),
                "39",
                waits("41", false, "30", None),
            ),
        ] {
            let pace = CatchUpPace::new(1);
            if former.is_some() {
                pace.reserve(at("40.8"));
                pace.pace().asked = Timestamp::MIN;
            }
            assert_eq!(pace.place(former, next_ten, at(now)), expected, "{former:?} {now}");
        }
    }

    #[test]
    fn a_place_is_lost_after_a_minute() {
        let none = |_: Timestamp| None;
        let pace = CatchUpPace::new(1);
        let former = pace.place(None, none, at("00"));
        let in_time = pace.place(Some(former), none, at("59.999"));
        assert_eq!(in_time, former);
        let later = after(at("00"), MISSED_AFTER);
        let late = pace.place(Some(former), none, later);
        assert_eq!((late.came_through, late.at), (later, later));
    }

    #[test]
    fn a_clock_that_is_set_back_frees_the_reservations() {
        let pace = CatchUpPace::new(1);
        assert_eq!(pace.reserve(at("50")), at("50"));
        assert_eq!(pace.reserve(at("10")), at("10"));
        assert_eq!(pace.reserve(at("10")), at("10.2"));
    }
}
