//! Calendars of the option `not-on`: the slots that they exclude, and changes of them.
//!
//! An excluded slot is counted when it is due, whatever is decided about other slots, and never opened. A changed
//! calendar counts for the slots after the change: those before it that the former one excluded do not start.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{ShardState, order};
use crate::{
    schedule::{CronJobSchedule, after, due, options::NamedCalendar},
    shard::{
        calendars::CalendarChange, effect::EventReason, index::OwnerIndex, outcome_counts::InstantOutcome,
        seconds::Seconds,
    },
};

/// What is noted of CronJobs that have, or had, a calendar.
#[derive(Debug, Default)]
pub(super) struct CalendarNotes {
    notes: BTreeMap<OwnerIndex, CalendarNote>,
    /// The CronJobs that name a calendar.
    naming: BTreeSet<OwnerIndex>,
}

#[derive(Clone, Copy, Debug, Default)]
struct CalendarNote {
    /// No slot up to this one starts: the former calendar excluded it.
    excluded_through: Seconds,
    /// The excluded slots up to this instant are counted.
    counted_until: Seconds,
}

impl CalendarNotes {
    /// Forgets what a leader has counted.
    pub(super) fn forget_counts(&mut self, owner: OwnerIndex) {
        if let Some(note) = self.notes.get_mut(&owner) {
            note.counted_until = Seconds::default();
        }
    }

    /// Corrects what was noted while the clock was ahead.
    pub(super) fn set_back(&mut self, owner: OwnerIndex, now: Timestamp) {
        if let Some(note) = self.notes.get_mut(&owner) {
            for instant in [&mut note.excluded_through, &mut note.counted_until] {
                *instant = Seconds::new(instant.get().map(|instant| instant.min(now)));
            }
        }
    }

    /// Forgets a CronJob.
    pub(super) fn remove(&mut self, owner: OwnerIndex) {
        self.notes.remove(&owner);
        self.naming.remove(&owner);
    }

    /// The slot up to which a former calendar excluded all due slots.
    pub(super) fn excluded_through(&self, owner: OwnerIndex) -> Option<Timestamp> {
        self.notes.get(&owner)?.excluded_through.get()
    }
}

impl ShardState {
    /// Handles a change of calendars.
    pub(crate) fn follow_calendars(&mut self, change: &CalendarChange, now: Timestamp) {
        self.follow_clock(now);
        for owner in self.naming(change) {
            self.contained_at(owner, |shard| shard.follow_calendar(owner, now));
        }
    }

    /// The CronJobs that a change of calendars concerns.
    fn naming(&self, change: &CalendarChange) -> Vec<OwnerIndex> {
        let is_concerned = |owner: &OwnerIndex| {
            let record = self.index.get_cron_job(*owner).map(|cron_job| &cron_job.record);
            record.is_some_and(|record| {
                let not_on = record.schedule.options().not_on.as_ref();
                not_on.is_some_and(|not_on| change.concerns(&record.identity.namespace, &not_on.name))
            })
        };
        self.calendar_notes
            .naming
            .iter()
            .copied()
            .filter(is_concerned)
            .collect()
    }

    /// Notes whether a CronJob names a calendar.
    pub(super) fn note_naming(&mut self, owner: OwnerIndex) {
        let cron_job = self.index.get_cron_job(owner);
        if cron_job.is_some_and(|cron_job| cron_job.record.schedule.options().not_on.is_some()) {
            self.calendar_notes.naming.insert(owner);
        } else {
            self.calendar_notes.naming.remove(&owner);
        }
    }

    fn follow_calendar(&mut self, owner: OwnerIndex, now: Timestamp) {
        let record = &mut self.index.cron_job_mut(owner).record;
        let former = record.schedule.clone();
        self.calendars.resolve(&record.identity.namespace, &mut record.schedule);
        self.note_calendar_change(owner, &former, now);
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.reported.remove(EventReason::InvalidOption);
        (cron_job.after_start, cron_job.after_success) = Default::default();
        cron_job.must_decide = true;
        self.arm(owner, None);
        // A create that waits was decided on the former calendar.
        self.withdraw(owner);
        self.evaluate(owner, now);
    }

    /// Notes that due slots do not start, which the former options excluded. If only the new ones exclude the slot that
    /// would start, no earlier slot starts in its place.
    pub(super) fn note_calendar_change(&mut self, owner: OwnerIndex, former: &CronJobSchedule, now: Timestamp) {
        let cron_job = self.index.cron_job(owner);
        let current = &cron_job.record.schedule;
        let (former_exclusion, exclusion) = (former.exclusion(), current.exclusion());
        let not_on = former.options().not_on.as_ref();
        let was_unknown = not_on.is_some_and(|not_on| not_on.calendar == NamedCalendar::Unknown);
        let has_none = former_exclusion.is_none() && exclusion.is_none();
        if was_unknown || has_none || current.differs_from(former) {
            return;
        }
        let Ok(parsed) = &current.parsed else { return };
        let decided = cron_job
            .decided_through()
            .max(self.calendar_notes.excluded_through(owner));
        let since = decided.unwrap_or(cron_job.record.created);
        let until = former.slots_until(now);
        let latest = due::most_recent(parsed, &current.default_zone, since, until);
        let wanted = match former_exclusion {
            Some(exclusion) => exclusion.last_slot(since, since, until),
            None => latest,
        };
        let starts_several = current.options().start_several();
        let is_over = wanted.is_none_or(|wanted| !starts_several && current.excludes(wanted));
        if let Some(latest) = latest.filter(|_| is_over) {
            self.calendar_notes.notes.entry(owner).or_default().excluded_through = Seconds::new(Some(latest));
        }
    }

    /// Whether the CronJob names a calendar that is not listed yet.
    pub(super) fn awaits_calendar(&self, owner: OwnerIndex) -> bool {
        let record = &self.index.cron_job(owner).record;
        record.schedule.options().not_on.is_some() && !self.calendars.are_known_in(&record.identity.namespace)
    }

    /// Ends the open slot if the facts say that it is over, and counts the slots that are due and excluded.
    pub(super) fn settle(&mut self, owner: OwnerIndex, now: Timestamp) {
        self.close_behind_cursor(owner);
        self.close_of_former_schedule(owner);
        let record = &self.index.cron_job(owner).record;
        if record.schedule.exclusion().is_none() {
            return self.calendar_notes.forget_counts(owner);
        }
        if record.is_deleting {
            return;
        }
        let open = self.index.cron_job(owner).open.as_ref();
        if open.is_some_and(|open| record.schedule.excludes(open.slot)) {
            self.close_unless_in_flight(owner, InstantOutcome::Excluded);
        }
        self.count_excluded(owner, now);
    }

    fn count_excluded(&mut self, owner: OwnerIndex, now: Timestamp) {
        let is_frozen = self.freeze_of(owner).is_some_and(|freeze| freeze.holds_at(now));
        let cron_job = self.index.cron_job(owner);
        let schedule = &cron_job.record.schedule;
        let until = schedule.slots_until(now);
        let note = self.calendar_notes.notes.entry(owner).or_default();
        let counted = note.counted_until.get();
        // As for other slots, those before the first decision of a leader are not counted while all are held back.
        let is_first_held_back = counted.is_none() && (cron_job.record.is_suspended || is_frozen);
        let since = counted.max(Some(order::counted_through(cron_job, self.fired_through)));
        if let (Some(since), Some(exclusion), false) = (since, schedule.exclusion(), is_first_held_back) {
            let n_excluded = exclusion.count(
                order::cursor_of(cron_job),
                since,
                after(until, SignedDuration::from_nanos(1)),
            );
            self.outcome_counts.pass(n_excluded, InstantOutcome::Excluded);
        }
        note.counted_until = Seconds::new(counted.max(Some(until)));
    }
}
