//! Which slots of a CronJob are due, by the schedules that were in force.

use super::{
    cron_job::{CronJob, Surroundings},
    era::cursor_of,
    second::Second,
    slot_record::SlotRecord,
    words,
};
use crate::{
    observe::facts::CronJobFacts,
    schedule::{CronJobSchedule, due},
};

const DAY_SECONDS: i64 = 24 * 3_600;

/// Maximum number of slots of a CronJob, however long they are to be kept: a week at one each minute.
pub const KEPT_SLOTS_MAX: usize = 7 * DAY_SLOTS_MAX;

/// Number of slots of a day at one each minute. Those within a minute have no Jobs of their own.
const DAY_SLOTS_MAX: usize = 24 * 60;

/// Maximum doublings of the time in which slots are looked for: more than a hundred years.
const DOUBLINGS_MAX: u32 = 16;

/// The end of the slots that were left out at the first enumeration, because there were too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// What is known begins after it.
    begin: Second,
    /// The first slot that was not left out.
    pub(super) first: Second,
}

/// Adds the slots that are due and finds the next one.
pub(super) fn enumerate(cron_job: &mut CronJob, around: &Surroundings<'_>) {
    let now = around.now;
    let Some(facts) = &cron_job.facts else { return };
    let begin = match cron_job.enumerated {
        Some(_) if cron_job.next.is_none_or(|next| next > now) => return,
        Some(enumerated) => enumerated,
        None => oldest_evidence(cron_job, facts, around),
    };
    // Slots that were dropped are known, and must not come back without their Jobs.
    let begin = cron_job.dropped_until.map_or(begin, |dropped| dropped.max(begin));
    let (slots, next) = due_between(cron_job, (begin, now), around);
    if let Some(first) = slots.first().filter(|_| cron_job.enumerated.is_none()) {
        let is_cut = cron_job.dropped_until.is_none() && next_after(cron_job, begin) < Some(*first);
        cron_job.cut = is_cut.then_some(Cut { begin, first: *first });
    }
    let is_interval = words::is_interval(facts);
    cron_job.reserve_slots(slots.len());
    for at in slots {
        let place = cron_job.slots.partition_point(|slot| slot.at < at);
        let is_known = cron_job.slots.get(place).is_some_and(|slot| slot.at == at);
        let is_in_name = is_interval && place > 0 && is_known_by_minute(cron_job, place - 1, at);
        if !is_known && !is_in_name {
            cron_job.insert_slot(place, SlotRecord::new(at));
        }
    }
    (cron_job.enumerated, cron_job.next) = (Some(now.max(begin)), next);
}

/// Whether the slot of a Job is known by the minute in the Job's name alone, and is `at` in truth.
fn is_known_by_minute(cron_job: &CronJob, place: usize, at: Second) -> bool {
    let slot = &cron_job.slots[place];
    let is_named_so = slot.has_job() && slot.at.is_whole_minute() && slot.at.minute() == at.minute();
    is_named_so && next_after(cron_job, slot.at.plus(-1)) != Some(slot.at)
}

/// The first slot after an instant.
pub(super) fn next_after(cron_job: &CronJob, after: Second) -> Option<Second> {
    let facts = cron_job.facts.as_deref()?;
    let mut at = after;
    let mut index = cron_job.eras.index_at(after);
    loop {
        let era = cron_job.eras.get(index)?;
        let next = next_of(era.schedule(facts), facts, at);
        match cron_job.eras.next_schedule(index, facts) {
            Some(later) if next.is_none_or(|next| next >= later.from) => {
                at = later.from.plus(-1).max(at);
                index = cron_job.eras.index_at(later.from);
            }
            _ => return next,
        }
    }
}

/// The first activation after an instant. Those of an interval are in one chain with the cursor.
fn next_of(schedule: &CronJobSchedule, facts: &CronJobFacts, after: Second) -> Option<Second> {
    let anchor = facts.last_schedule_time.unwrap_or(facts.created);
    let mut anchor_second = Second::floor(anchor);
    let parsed = schedule.parsed.as_ref().ok()?;
    if parsed.is_every() && after < anchor_second {
        let first = due::next_in_chain(parsed, &schedule.default_zone, anchor, anchor)?;
        let period = i64::from(Second::floor(first).since(anchor_second)).max(1);
        let n_periods = i64::from(anchor_second.since(after)) / period + 1;
        anchor_second = anchor_second.plus(-n_periods * period);
    }
    if matches!(schedule.zone, Some(Err(_))) {
        return None;
    }
    // Slots that a calendar excludes are due too.
    let zone = &schedule.default_zone;
    let next = if parsed.is_every() {
        due::next_in_chain(parsed, zone, anchor_second.timestamp(), after.timestamp())
    } else {
        parsed.next_after(after.timestamp(), zone)
    };
    next.map(Second::floor).filter(|next| *next > after)
}

/// The instant after which slots can be judged: that of the oldest Job or observation, or the cursor, which proves that
/// later slots have no Job.
fn oldest_evidence(cron_job: &CronJob, facts: &CronJobFacts, around: &Surroundings<'_>) -> Second {
    let created = Second::floor(facts.created);
    let observed = around.observations.first().map(Second::floor);
    let evidence = cron_job.slots.first().map(|slot| slot.at).into_iter().chain(observed);
    let before = evidence.map(|at| at.plus(-1)).chain([cursor_of(facts)]);
    before.min().unwrap_or(created).max(created)
}

/// The number of slots from an instant on, bounded.
pub(super) fn n_since(cron_job: &CronJob, since: Second) -> usize {
    let n_before = cron_job.slots.partition_point(|slot| slot.at < since);
    (cron_job.slots.len() - n_before).min(KEPT_SLOTS_MAX)
}

/// The due slots between two instants, and the first slot after them: those of the last day or of the time for which
/// slots are kept, and earlier ones until there are enough.
fn due_between(
    cron_job: &CronJob,
    (after, until): (Second, Second),
    around: &Surroundings<'_>,
) -> (Vec<Second>, Option<Second>) {
    let n_min = around.n_slots_max;
    let kept_seconds = i64::from(until.since(around.kept_since));
    let n_max = if kept_seconds > DAY_SECONDS {
        KEPT_SLOTS_MAX
    } else {
        DAY_SLOTS_MAX
    };
    // A slot at the first instant counts.
    let mut window_seconds = DAY_SECONDS.max(kept_seconds + 1);
    let mut found = (Vec::new(), None);
    for _ in 0..DOUBLINGS_MAX {
        let begin = until.plus(-window_seconds).max(after);
        found = forward(cron_job, begin, until, n_min.max(n_max));
        if begin == after || found.0.len() >= n_min {
            break;
        }
        window_seconds *= 2;
    }
    found
}

/// Whether a slot before those that are known is not the first of its minute (B-11.1).
pub(super) fn shares_minute(cron_job: &CronJob, at: Second) -> bool {
    !cron_job.has_seconds_before(at) && is_later_in_minute(cron_job, at)
}

/// Whether the minute of a slot has an earlier one.
pub(super) fn is_later_in_minute(cron_job: &CronJob, at: Second) -> bool {
    !at.is_whole_minute() && next_after(cron_job, at.start_of_minute().plus(-1)).is_some_and(|first| first < at)
}

/// The last slots after an instant and until another, at most so many.
pub(super) fn last_between(cron_job: &CronJob, (after, until): (Second, Second), n_max: usize) -> Vec<Second> {
    let mut window_seconds = DAY_SECONDS;
    let mut slots = Vec::new();
    for _ in 0..DOUBLINGS_MAX {
        let begin = until.plus(-window_seconds).max(after);
        (slots, _) = forward(cron_job, begin, until, n_max);
        if begin == after || slots.len() >= n_max {
            break;
        }
        window_seconds *= 2;
    }
    slots
}

/// The first slot that was left out at the first enumeration and has the present spec.
pub(super) fn first_left_out(cron_job: &CronJob) -> Option<Second> {
    let facts = cron_job.facts.as_deref()?;
    let changed = facts.spec_changed.map(|changed| Second::floor(changed).plus(-1));
    next_after(cron_job, changed.max(Some(cron_job.cut?.begin))?)
}

fn forward(cron_job: &CronJob, after: Second, until: Second, n_max: usize) -> (Vec<Second>, Option<Second>) {
    let mut slots = Vec::new();
    let mut next = next_after(cron_job, after);
    while let Some(at) = next.filter(|at| *at <= until) {
        if slots.len() >= 2 * n_max {
            slots.drain(..n_max);
        }
        slots.push(at);
        next = next_after(cron_job, at);
    }
    slots.drain(..slots.len().saturating_sub(n_max));
    (slots, next)
}
