//! The slots of a CronJob that its calendar excludes: those on a date of the calendar, in the zone of the CronJob.

use jiff::{SignedDuration, Timestamp};

use super::{
    CronJobSchedule, Schedule, Zone, after, due,
    options::{Calendar, Day, ExcludedDays},
    policy::count_between,
};

const DAY_SECONDS: i64 = 86_400;

const SECOND: SignedDuration = SignedDuration::from_secs(1);

/// The part of the future in which the next slot is searched: five years, as for the activations of a schedule (B-8.1).
const SEARCHED: SignedDuration = SignedDuration::from_hours(5 * 366 * 24);

/// A schedule with its calendar.
#[derive(Clone, Copy)]
pub struct Exclusion<'a> {
    effective: &'a CronJobSchedule,
    schedule: &'a Schedule,
    zone: &'a Zone,
    calendar: &'a Calendar,
}

impl<'a> Exclusion<'a> {
    /// `None` if the schedule does not parse, or if no calendar is known.
    pub(super) fn of(effective: &'a CronJobSchedule) -> Option<Exclusion<'a>> {
        let calendar = effective.options().not_on.as_ref()?.known()?;
        Some(Exclusion {
            schedule: effective.parsed.as_ref().ok()?,
            zone: effective.effective_zone(),
            effective,
            calendar,
        })
    }

    /// The entry of the calendar that excludes a slot.
    pub fn entry(&self, slot: Timestamp) -> Option<&'a ExcludedDays> {
        self.calendar.find(self.day_of(slot))
    }

    /// Whether the calendar excludes a slot.
    pub fn excludes(&self, slot: Timestamp) -> bool {
        self.entry(slot).is_some()
    }

    /// The last instant before the excluded days around a slot. `None` if it is not excluded.
    pub(super) fn last_before(&self, slot: Timestamp) -> Option<Timestamp> {
        let (first, _) = self.calendar.around(self.day_of(slot))?;
        Some(after(self.begin_of(first).min(slot), -SECOND))
    }

    /// The last slot after `since`, and not after `until`, that is not excluded. `anchor` starts the chain of `@every`.
    pub(crate) fn last_slot(&self, anchor: Timestamp, since: Timestamp, mut until: Timestamp) -> Option<Timestamp> {
        loop {
            let slot = due::most_recent(self.schedule, &self.effective.default_zone, anchor, until)?;
            let slot = Some(slot).filter(|slot| since < *slot)?;
            match self.last_before(slot) {
                Some(earlier) => until = earlier,
                None => return Some(slot),
            }
        }
    }

    /// The first slot after an instant that is not excluded. An interval counts from that instant.
    pub(super) fn next_after(&self, instant: Timestamp) -> Option<Timestamp> {
        let local = &self.effective.default_zone;
        self.next_from(self.schedule.next_after(instant, local)?)
    }

    /// The first slot after an instant that is not excluded. `anchor` starts the chain of `@every`.
    pub(super) fn next_in_chain(&self, anchor: Timestamp, instant: Timestamp) -> Option<Timestamp> {
        let local = &self.effective.default_zone;
        if self.schedule.is_every() {
            self.next_from(due::next_in_chain(self.schedule, local, anchor, instant)?)
        } else {
            self.next_after(instant)
        }
    }

    /// The first slot that is not excluded, from this one on and within [`SEARCHED`] of it: the dates may be those of all
    /// slots of a CronJob.
    fn next_from(&self, mut slot: Timestamp) -> Option<Timestamp> {
        let local = &self.effective.default_zone;
        let end = after(slot, SEARCHED);
        while let Some((_, last)) = self.calendar.around(self.day_of(slot)) {
            let until = after(self.begin_of(last + 1), -SECOND).max(slot);
            slot = if self.schedule.is_every() {
                due::next_in_chain(self.schedule, local, slot, until)?
            } else {
                self.schedule.next_after(until, local)?
            };
            if end < slot {
                return None;
            }
        }
        Some(slot)
    }

    /// The number of excluded slots strictly between two instants, as exact as [`count_between`]. `anchor` starts the chain
    /// of `@every`.
    pub fn count(&self, anchor: Timestamp, since: Timestamp, until: Timestamp) -> u64 {
        self.counts(anchor, since, until).map(|(_, n_slots)| n_slots).sum()
    }

    /// The entries of the calendar that exclude slots strictly between two instants, each with their number. `anchor` starts
    /// the chain of `@every`.
    pub fn counts(
        self,
        anchor: Timestamp,
        since: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = (&'a ExcludedDays, u64)> {
        let first = self.day_of(since) - 1;
        let stretches = self.calendar.stretches();
        let place = stretches.partition_point(|entry| entry.last < first);
        let near = stretches.iter().skip(place);
        let near = near.take_while(move |entry| self.begin_of(entry.first) < until);
        let counted = near.map(move |entry| {
            let begin = after(self.begin_of(entry.first), -SignedDuration::from_nanos(1)).max(since);
            let end = self.begin_of(entry.last + 1).min(until);
            if begin < end {
                (entry, count_between(self.effective, self.in_chain(anchor, begin), end))
            } else {
                (entry, 0)
            }
        });
        counted.filter(|(_, n_slots)| *n_slots > 0)
    }

    /// The last instant of the chain of `@every` that is not after an instant. The same instant for another schedule.
    fn in_chain(&self, anchor: Timestamp, instant: Timestamp) -> Timestamp {
        if !self.schedule.is_every() {
            return instant;
        }
        let last = due::most_recent(self.schedule, &self.effective.default_zone, anchor, instant);
        last.unwrap_or(anchor)
    }

    fn day_of(&self, instant: Timestamp) -> Day {
        let seconds = instant.as_second();
        (seconds + i64::from(self.zone.offset_seconds_at(seconds))).div_euclid(DAY_SECONDS)
    }

    /// The instant at which a day begins: midnight, or the end of a gap that contains it.
    fn begin_of(&self, day: Day) -> Timestamp {
        let wall = day * DAY_SECONDS;
        // Midnight by the offsets before and after it, between which the clock may change.
        let offsets = [wall - DAY_SECONDS, wall + DAY_SECONDS].map(|near| self.zone.offset_seconds_at(near));
        let midnights =
            offsets.map(|offset| Timestamp::from_second(wall - i64::from(offset)).unwrap_or(Timestamp::MAX));
        let begins = |instant: &Timestamp| day <= self.day_of(*instant) && self.day_of(after(*instant, -SECOND)) < day;
        let [before, later] = midnights;
        midnights.into_iter().find(begins).unwrap_or(before.max(later))
    }
}

#[cfg(test)]
mod tests;
