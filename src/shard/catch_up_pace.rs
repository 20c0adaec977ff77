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

    /// The place of a CronJob whose run, due at `start`, was missed: its former one, or a new one behind all others. Runs
    /// that became due while the CronJob waited were not missed, so they need no place: they come as often as ever, and
    /// would fill the queue faster than the pace empties it.
    pub(super) fn place(&self, former: Option<PacePlace>, start: Timestamp, now: Timestamp) -> PacePlace {
        // Who did not come to its place in time waited for something else.
        let former = former.filter(|place| now < after(place.at, MISSED_AFTER));
        match former {
            Some(place) if !place.is_used || place.since < start => place,
            _ => PacePlace {
                since: former.map_or(now, |place| place.since),
                at: self.reserve(now),
                is_used: false,
            },
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

    #[test]
    fn a_place_is_kept_until_it_is_used_and_renewed_for_runs_that_were_missed() {
        let waits = |since, until, is_used| PacePlace {
            since: at(since),
            at: at(until),
            is_used,
        };
        // The former place, the start of the run, the instant, and the place.
        for (former, start, now, expected) in [
            (None, "00", "10", waits("10", "10", false)),
            (Some(waits("05", "20", false)), "00", "10", waits("05", "20", false)),
            // The run of the next slot takes it.
            (Some(waits("05", "20", false)), "08", "10", waits("05", "20", false)),
            (Some(waits("05", "20", true)), "05", "20", waits("05", "20", false)),
            (Some(waits("05", "20", true)), "05", "30", waits("05", "30", false)),
            // The run came while the CronJob waited.
            (Some(waits("05", "20", true)), "06", "30", waits("05", "20", true)),
        ] {
            let pace = CatchUpPace::new(1);
            assert_eq!(
                pace.place(former, at(start), at(now)),
                expected,
                "{former:?} {start} {now}"
            );
        }
    }

    #[test]
    fn a_place_is_lost_after_a_minute() {
        let pace = CatchUpPace::new(1);
        let former = pace.place(None, at("00"), at("00"));
        let in_time = pace.place(Some(former), at("00"), at("59.999"));
        assert_eq!(in_time, former);
        let later = after(at("00"), MISSED_AFTER);
        let late = pace.place(Some(former), at("00"), later);
        assert_eq!((late.since, late.at), (later, later));
    }

    #[test]
    fn a_clock_that_is_set_back_frees_the_reservations() {
        let pace = CatchUpPace::new(1);
        assert_eq!(pace.reserve(at("50")), at("50"));
        assert_eq!(pace.reserve(at("10")), at("10"));
        assert_eq!(pace.reserve(at("10")), at("10.2"));
    }
}
