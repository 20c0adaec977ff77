//! The fields of a CronJob that decide its slots, and the times between which they were in force.

use std::sync::Arc;

use jiff::Timestamp;

use super::second::Second;
use crate::{
    observe::{
        facts::{CronJobChange, CronJobFacts},
        slot::LATE_AFTER,
    },
    schedule::{ConcurrencyPolicy, CronJobSchedule, Zone},
};

/// Maximum number of eras of a CronJob. Older ones count as the oldest that is kept.
const ERAS_MAX: usize = 128;

/// A time in which the fields did not change. It ends where the next one begins.
#[derive(Clone, Debug)]
pub(super) struct Era {
    /// The observation of the change that began it. What was before the first one is not known.
    pub(super) from: Second,
    /// The schedule, if it is not that of the present facts.
    schedule: Option<Arc<CronJobSchedule>>,
    pub(super) is_suspended: bool,
    pub(super) is_deleting: bool,
    pub(super) policy: ConcurrencyPolicy,
    pub(super) deadline_seconds: Option<i64>,
    /// `status.lastScheduleTime` at the end of the era; `MIN` without one, `MAX` if it is not known.
    pub(super) cursor: Second,
    /// `CronJobFacts::spec_changed` when the era was first observed.
    pub(super) spec_changed: Option<Second>,
}

/// The eras of one CronJob, the oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Eras {
    eras: Vec<Era>,
}

impl Era {
    fn of_facts(facts: &CronJobFacts, from: Second) -> Era {
        Era {
            from,
            schedule: None,
            is_suspended: facts.is_suspended,
            is_deleting: facts.is_deleting,
            policy: facts.concurrency_policy,
            deadline_seconds: facts.starting_deadline_seconds,
            cursor: cursor_of(facts),
            spec_changed: facts.spec_changed.map(Second::floor),
        }
    }

    /// The schedule of the era.
    pub(super) fn schedule<'a>(&'a self, facts: &'a CronJobFacts) -> &'a CronJobSchedule {
        self.schedule.as_deref().unwrap_or(&facts.schedule)
    }

    /// Whether the fields that decide slots differ, except the schedule.
    fn differs_from(&self, other: &Era) -> bool {
        self.is_suspended != other.is_suspended
            || self.is_deleting != other.is_deleting
            || self.policy != other.policy
            || self.deadline_seconds != other.deadline_seconds
    }
}

/// `status.lastScheduleTime`; the lowest instant without one.
pub(super) fn cursor_of(facts: &CronJobFacts) -> Second {
    facts.last_schedule_time.map_or(Second::MIN, Second::floor)
}

impl Eras {
    pub(super) fn get(&self, index: usize) -> Option<&Era> {
        self.eras.get(index)
    }

    /// The number of the era in force at an instant. The first one counts for all time before it.
    pub(super) fn index_at(&self, at: Second) -> usize {
        self.eras.partition_point(|era| era.from <= at).saturating_sub(1)
    }

    /// Whether the fields in force at an instant were observed, or follow from those of the first observation.
    pub(super) fn are_known_at(&self, at: Second) -> bool {
        self.eras
            .first()
            .is_some_and(|first| first.from <= at || first.spec_changed.is_some_and(|changed| changed <= at))
    }

    /// The times in which slots were wanted: neither suspended nor being deleted. The second instant of each is excluded.
    pub(super) fn wanted_spans(&self) -> impl Iterator<Item = (Second, Second)> {
        self.eras.iter().enumerate().filter_map(|(index, era)| {
            let from = if index == 0 { Second::MIN } else { era.from };
            let to = self.eras.get(index + 1).map_or(Second::MAX, |next| next.from);
            if era.is_deleting {
                return None;
            }
            // A suspension that began unseen began after the cursor.
            let to = if !era.is_suspended {
                to
            } else if index == 0 && era.cursor < era.from {
                era.cursor.plus(1)
            } else {
                return None;
            };
            (from < to).then_some((from, to))
        })
    }

    /// The changes of the spec that the objects told.
    pub(super) fn spec_changes(&self) -> impl Iterator<Item = Second> {
        self.eras.iter().filter_map(|era| era.spec_changed)
    }

    /// The first era after `index` with another schedule.
    pub(super) fn next_schedule(&self, index: usize, facts: &CronJobFacts) -> Option<&Era> {
        let schedule = self.eras.get(index)?.schedule(facts);
        let mut later = self.eras.iter().skip(index + 1);
        later.find(|era| schedule.differs_from(era.schedule(facts)))
    }

    /// The end of the last era with a policy: the lowest instant without one, the highest if it is in force.
    pub(super) fn end_of_last(&self, policy: ConcurrencyPolicy) -> Second {
        let Some(last) = self.eras.iter().rposition(|era| era.policy == policy) else {
            return Second::MIN;
        };
        self.eras.get(last + 1).map_or(Second::MAX, |next| next.from)
    }

    /// Whether the CronJob was suspended at a slot. A suspension that is observed shortly after the slot may have come
    /// before it.
    pub(super) fn is_suspended_at(&self, slot: Second) -> bool {
        let index = self.index_at(slot);
        let Some(era) = self.eras.get(index) else {
            return false;
        };
        // Nobody knows when the first era began to be suspended, but no slot up to the cursor was.
        let was_suspended = era.is_suspended && (era.from <= slot || slot > era.cursor);
        let shortly_after = slot.plus_duration(LATE_AFTER);
        let next = self.eras.get(index + 1);
        was_suspended || next.is_some_and(|next| next.is_suspended && next.from <= shortly_after)
    }

    /// The end of the last suspension that ended until an instant, if it was observed.
    pub(super) fn resumed_before(&self, at: Second) -> Option<Second> {
        let ends = self
            .eras
            .windows(2)
            .filter(|pair| pair[0].is_suspended && !pair[1].is_suspended);
        ends.map(|pair| pair[1].from).rfind(|end| *end <= at)
    }

    /// The end of the suspension in force at a slot, if it ended.
    pub(super) fn suspended_until(&self, slot: Second) -> Option<Second> {
        if !self.is_suspended_at(slot) {
            return None;
        }
        let later = self.eras.iter().skip(self.index_at(slot) + 1);
        later.skip_while(|era| era.is_suspended).map(|era| era.from).next()
    }

    /// Follows the facts. Returns whether an era began.
    pub(super) fn follow(&mut self, before: Option<&CronJobFacts>, facts: &CronJobFacts, now: Timestamp) -> bool {
        let mut era = Era::of_facts(facts, Second::ceil(now));
        if before.is_none() {
            self.use_default_zone_of(&facts.schedule);
        }
        let Some(last) = self.eras.last_mut() else {
            // Most CronJobs never change.
            self.eras.reserve_exact(1);
            self.eras.push(era);
            return true;
        };
        let last_schedule = last.schedule(before.unwrap_or(facts));
        // Options decide slots too, and a change of them is no change of the schedule.
        let has_new_schedule = last_schedule.differs_from(&facts.schedule)
            || !last_schedule.options().treat_slots_like(facts.schedule.options());
        if !has_new_schedule && !last.differs_from(&era) {
            last.cursor = era.cursor;
            last.schedule = None;
            return false;
        }
        era.from = era.from.max(last.from);
        let has_new_change = before.is_none_or(|before| before.spec_changed != facts.spec_changed);
        if has_new_change {
            // Perhaps nobody watched when it changed.
            let changed = era.spec_changed;
            era.from = changed
                .filter(|changed| (last.from.plus(1)..era.from).contains(changed))
                .unwrap_or(era.from);
        }
        if let Some(before) = before.filter(|_| has_new_schedule) {
            let replaced = Arc::new(before.schedule.clone());
            for era in self.eras.iter_mut().filter(|era| era.schedule.is_none()) {
                era.schedule = Some(Arc::clone(&replaced));
            }
        }
        self.push(era);
        true
    }

    /// Parses the schedules of the history again, which does not know the default zone.
    fn use_default_zone_of(&mut self, present: &CronJobSchedule) {
        for era in &mut self.eras {
            let parsed = era.schedule.take().filter(|schedule| schedule.differs_from(present));
            era.schedule = parsed.map(|schedule| {
                let time_zone = schedule.time_zone.as_deref();
                Arc::new(CronJobSchedule::new(&schedule.text, time_zone, &present.default_zone))
            });
        }
    }

    /// Adds an era of the history.
    pub(super) fn load(&mut self, change: &CronJobChange) {
        let schedule = CronJobSchedule::new(&change.schedule, change.time_zone.as_deref(), &Zone::utc());
        self.push(Era {
            from: Second::ceil(change.at),
            schedule: Some(Arc::new(schedule)),
            is_suspended: change.is_suspended,
            is_deleting: false,
            policy: change.concurrency_policy,
            deadline_seconds: change.starting_deadline_seconds,
            cursor: Second::MAX,
            spec_changed: None,
        });
    }

    /// Drops eras that ended before an instant.
    pub(super) fn forget_before(&mut self, at: Second) {
        let n_ended = self.index_at(at);
        self.eras.drain(..n_ended);
    }

    /// The last era as a change at `now`. `facts` are the present ones; without them the era's own schedule counts.
    pub(super) fn last_change<'a>(&'a self, facts: Option<&'a CronJobFacts>) -> Option<(&'a Era, &'a CronJobSchedule)> {
        let era = self.eras.last()?;
        let schedule = era.schedule.as_deref().or(facts.map(|facts| &facts.schedule))?;
        Some((era, schedule))
    }

    fn push(&mut self, era: Era) {
        let place = self.eras.partition_point(|other| other.from <= era.from);
        self.eras.insert(place, era);
        let n_excess = self.eras.len().saturating_sub(ERAS_MAX);
        self.eras.drain(..n_excess);
    }
}
