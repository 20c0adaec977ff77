//! The decision: from the facts about one CronJob and `now` to a Job, or to a named reason for none (B-6, B-9, B-10).
//!
//! [`decide`] is the only function that determines whether a slot starts. Every reason not to start a slot is a
//! variant of [`SkipReason`].

use jiff::{SignedDuration, Timestamp};

#[cfg(doc)]
use super::busy::busy_since;
pub use super::concurrency::ConcurrencyPolicy;
use super::{
    after, due,
    effective::CronJobSchedule,
    fires::Schedule,
    just_before,
    options::{Chosen, DueSlots, MISSED_AFTER, Options},
};

/// The minimum starting deadline of a slot that this process was waiting for, or whose create waits in a queue. A
/// shorter deadline limits the age of missed runs; it must not lose runs to the latency of cronwheel (B-9.7 and its
/// difference).
pub const DEADLINE_MIN_SECS: i64 = 10;

/// The inputs of one decision.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// The effective schedule, with the options of the CronJob.
    pub schedule: &'a CronJobSchedule,
    /// Whether `metadata.deletionTimestamp` is set.
    pub is_deleting: bool,
    /// `spec.suspend`.
    pub is_suspended: bool,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// `status.lastScheduleTime` (the cursor), including an update by this replica that is not stored yet.
    pub last_schedule_time: Option<Timestamp>,
    /// `spec.startingDeadlineSeconds`.
    pub starting_deadline_seconds: Option<i64>,
    /// `spec.concurrencyPolicy`.
    pub concurrency_policy: ConcurrencyPolicy,
    /// The number of running Jobs (B-5.1 and its difference).
    pub n_active_jobs: usize,
    /// Whether a running Job has the name of this slot (B-10.2).
    pub is_active_slot: &'a dyn Fn(Timestamp) -> bool,
    /// The time of the last change of the schedule, if this process observed it. No earlier slot is started (B-2.2
    /// and its difference).
    pub schedule_changed: Option<Timestamp>,
    /// The end of the freeze of its namespace, also if it has passed.
    pub frozen_until: Option<Timestamp>,
    /// The end of the last suspension or freeze, if it is known. `on-resume` determines which slots until then start.
    pub resumed: Option<Timestamp>,
    /// The instant since which Jobs of the CronJob have run ([`busy_since`]). Under Forbid, a slot that waited for them was
    /// not missed.
    pub busy_since: Option<Timestamp>,
    /// The next undecided activation after the cursor: the slot on the wheel, or the open slot.
    pub armed: Option<Timestamp>,
    /// Whether this process was waiting for `armed`: its timer fired, or its create is retried. A shorter deadline
    /// than [`DEADLINE_MIN_SECS`] then counts as that constant.
    pub was_awaited: bool,
}

/// A decision, and the results of the same evaluation of the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Start or skip.
    pub decision: Decision,
    /// The first activation after `now`, if any.
    pub next: Option<Timestamp>,
    /// Whether the built-in controller would count more than a hundred missed activations (B-9.4).
    pub is_many_missed: bool,
}

/// The action for the due slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Create the Job of this slot.
    Start {
        /// The due slot.
        slot: Timestamp,
        /// Whether the running Jobs are deleted first (B-10.4).
        replaces: bool,
    },
    /// Create nothing.
    Skip(SkipReason),
}

impl Decision {
    /// The due slot of the decision.
    pub fn slot(&self) -> Option<Timestamp> {
        match self {
            Decision::Start { slot, .. }
            | Decision::Skip(
                SkipReason::ScheduleChanged(slot)
                | SkipReason::DeadlineExceeded(slot)
                | SkipReason::AlreadyActive(slot)
                | SkipReason::HeldByForbid(slot)
                | SkipReason::Missed(slot)
                | SkipReason::Resumed(slot)
                | SkipReason::Excluded(slot),
            ) => Some(*slot),
            Decision::Skip(
                SkipReason::Deleting
                | SkipReason::UnknownTimeZone(_)
                | SkipReason::Suspended
                | SkipReason::Frozen(_)
                | SkipReason::Unparseable(_)
                | SkipReason::NeverRuns(_)
                | SkipReason::NotDue,
            ) => None,
        }
    }
}

/// Every reason not to start a Job. A reason that concerns a due slot carries the slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The CronJob is being deleted (B-6.1).
    Deleting,
    /// `spec.timeZone` does not load; holds the loader's error text (B-6.2).
    UnknownTimeZone(String),
    /// `spec.suspend` is set (B-6.3).
    Suspended,
    /// The namespace is frozen until this instant.
    Frozen(Timestamp),
    /// The schedule does not parse; holds the parser's error text (B-6.4).
    Unparseable(String),
    /// The schedule parses but has no activations; holds the error text (B-6.5).
    NeverRuns(String),
    /// No activation is due since the last (B-9.5).
    NotDue,
    /// The due slot is before the change of the schedule (B-2.2 and its difference).
    ScheduleChanged(Timestamp),
    /// The starting deadline of the due slot has passed (B-10.1).
    DeadlineExceeded(Timestamp),
    /// A running Job has the slot's name (B-10.2).
    AlreadyActive(Timestamp),
    /// A previous run has not ended and the policy is Forbid (B-10.3). The slot stays due.
    HeldByForbid(Timestamp),
    /// The slot was missed, and the option `missed-runs` is `skip`.
    Missed(Timestamp),
    /// The slot passed during a suspension or a freeze, and the option `on-resume` is `skip`.
    Resumed(Timestamp),
    /// The calendar of the option `not-on` excludes the slot, and no earlier one is due.
    Excluded(Timestamp),
}

/// Decides one CronJob (B-6, B-9, B-10). Slots are nominal; with `spread`, a slot is due an offset later.
pub fn decide(facts: &Facts<'_>, now: Timestamp) -> Verdict {
    let gate = gate(facts, now);
    let now = facts.schedule.slots_until(now);
    let schedule = match gate {
        Ok(schedule) => schedule,
        Err(reason @ (SkipReason::Suspended | SkipReason::Frozen(_))) => {
            return skip(reason, next_while_held_back(facts, now));
        }
        Err(reason) => return skip(reason, None),
    };
    let due = match due_slot(schedule, facts, now) {
        Ok(due) => due,
        Err(never) => return skip(SkipReason::NeverRuns(never.to_string()), None),
    };
    let decision = match due.slot {
        None => Decision::Skip(SkipReason::NotDue),
        Some(Chosen::Start(slot)) => admit(slot, facts, now),
        Some(Chosen::SkipMissed(slot)) => Decision::Skip(SkipReason::Missed(slot)),
        Some(Chosen::SkipOnResume(slot)) => Decision::Skip(SkipReason::Resumed(slot)),
        Some(Chosen::Exclude(slot)) => Decision::Skip(SkipReason::Excluded(slot)),
    };
    let is_in_time = matches!(
        decision,
        Decision::Start { .. } | Decision::Skip(SkipReason::AlreadyActive(_) | SkipReason::HeldByForbid(_))
    );
    Verdict {
        decision,
        next: due.next,
        is_many_missed: due.is_many_missed && is_in_time,
    }
}

fn skip(reason: SkipReason, next: Option<Timestamp>) -> Verdict {
    Verdict {
        decision: Decision::Skip(reason),
        next,
        is_many_missed: false,
    }
}

/// The next slot of a CronJob that is suspended or frozen, whose missed slots are counted. The search starts at the slot that has just
/// passed, because the cursor may be years old.
fn next_while_held_back(facts: &Facts<'_>, now: Timestamp) -> Option<Timestamp> {
    let schedule = facts.schedule.parsed.as_ref().ok()?;
    let passed = facts.armed.filter(|armed| *armed <= now);
    let since = passed.or(facts.last_schedule_time).unwrap_or(facts.created);
    due::next_in_chain(schedule, &facts.schedule.default_zone, since, now)
}

/// The gates before scheduling, in the order of B-6.
fn gate<'a>(facts: &Facts<'a>, now: Timestamp) -> Result<&'a Schedule, SkipReason> {
    if facts.is_deleting {
        return Err(SkipReason::Deleting);
    }
    if let Some(Err(error)) = &facts.schedule.zone {
        return Err(SkipReason::UnknownTimeZone(error.to_string()));
    }
    if facts.is_suspended {
        return Err(SkipReason::Suspended);
    }
    if let Some(until) = facts.frozen_until.filter(|until| now < *until) {
        return Err(SkipReason::Frozen(until));
    }
    facts
        .schedule
        .parsed
        .as_ref()
        .map_err(|error| SkipReason::Unparseable(error.to_string()))
}

/// Decides a due slot (B-10).
fn admit(slot: Timestamp, facts: &Facts<'_>, now: Timestamp) -> Decision {
    // A slot of the former schedule that waits for its offset is not lost to the change.
    let changed = facts
        .schedule_changed
        .map(|changed| facts.schedule.slots_until(changed));
    if changed.is_some_and(|changed| slot < changed) {
        return Decision::Skip(SkipReason::ScheduleChanged(slot));
    }
    if may_start_until(slot, facts).is_some_and(|last| now > last) {
        return Decision::Skip(SkipReason::DeadlineExceeded(slot));
    }
    if (facts.is_active_slot)(slot) {
        return Decision::Skip(SkipReason::AlreadyActive(slot));
    }
    match facts.concurrency_policy {
        ConcurrencyPolicy::Forbid if facts.n_active_jobs > 0 => Decision::Skip(SkipReason::HeldByForbid(slot)),
        ConcurrencyPolicy::Replace if facts.n_active_jobs > 0 => Decision::Start { slot, replaces: true },
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace => {
            Decision::Start { slot, replaces: false }
        }
    }
}

/// The last instant at which a slot may start, or `None` without a starting deadline.
fn may_start_until(slot: Timestamp, facts: &Facts<'_>) -> Option<Timestamp> {
    // A slot that was armed in time is judged at its instant, so latency of cronwheel does not lose it.
    if facts.was_awaited && facts.armed == Some(slot) {
        return order_expiry(slot, facts.starting_deadline_seconds);
    }
    Some(after(slot, SignedDuration::from_secs(facts.starting_deadline_seconds?)))
}

/// The instant after which an order for a slot is not sent: with a starting deadline, the later of the deadline and ten
/// seconds after the slot.
pub fn order_expiry(slot: Timestamp, starting_deadline_seconds: Option<i64>) -> Option<Timestamp> {
    let allowed_secs = starting_deadline_seconds?.max(DEADLINE_MIN_SECS);
    Some(after(slot, SignedDuration::from_secs(allowed_secs)))
}

/// The due slot and the next one at `now`.
struct SlotAndNext {
    slot: Option<Chosen>,
    next: Option<Timestamp>,
    is_many_missed: bool,
}

fn due_slot(schedule: &Schedule, facts: &Facts<'_>, now: Timestamp) -> Result<SlotAndNext, due::NeverRuns> {
    let local = &facts.schedule.default_zone;
    let options = facts.schedule.options();
    if options.choose_slots() {
        return chosen_slot(schedule, options, facts, now);
    }
    // The usual case first: the slot on the wheel is due and the next one is not.
    if let Some(armed) = facts.armed {
        if now < armed {
            return Ok(SlotAndNext {
                slot: None,
                next: Some(armed),
                is_many_missed: false,
            });
        }
        if let Some(next) = schedule.next_after(armed, local).filter(|next| now < *next) {
            return Ok(SlotAndNext {
                slot: Some(Chosen::Start(armed)),
                next: Some(next),
                is_many_missed: false,
            });
        }
    }
    let deadline_secs = facts.starting_deadline_seconds;
    let since = facts.last_schedule_time.unwrap_or(facts.created);
    let earliest = due::earliest_time(facts.created, facts.last_schedule_time, deadline_secs, now);
    let is_many_missed = due::is_many_missed(schedule, local, earliest, now)?;
    let slot = match deadline_secs {
        // Search from the cursor and not from the deadline: `@every` would lose its phase, and `admit` judges a short
        // deadline (B-9.7).
        Some(secs) if schedule.is_every() || secs < DEADLINE_MIN_SECS => due::most_recent(schedule, local, since, now),
        // If no slot is within the deadline, find the most recent one before it, so that its loss is reported (B-10.1).
        Some(_) => {
            due::most_recent(schedule, local, earliest, now).or_else(|| due::most_recent(schedule, local, since, now))
        }
        None => due::most_recent(schedule, local, earliest, now),
    };
    Ok(SlotAndNext {
        slot: slot.map(Chosen::Start),
        next: schedule
            .next_after(slot.unwrap_or(since), local)
            .filter(|next| now < *next)
            .or_else(|| schedule.next_after(now, local)),
        is_many_missed,
    })
}

/// The slot that the options of the CronJob choose among the due ones.
fn chosen_slot(
    schedule: &Schedule,
    options: &Options,
    facts: &Facts<'_>,
    now: Timestamp,
) -> Result<SlotAndNext, due::NeverRuns> {
    let local = &facts.schedule.default_zone;
    let since = facts.last_schedule_time.unwrap_or(facts.created);
    let earliest = due::earliest_time(
        facts.created,
        facts.last_schedule_time,
        facts.starting_deadline_seconds,
        now,
    );
    due::is_many_missed(schedule, local, earliest, now)?;
    let earliest = earliest_admitted(earliest, facts, now).max(since);
    // Where several slots start, one from before the change of the schedule would hide those after it.
    let changed = facts.schedule_changed.filter(|_| options.start_several());
    let changed = changed.map(|changed| just_before(facts.schedule.slots_until(changed)));
    let earliest = earliest.max(changed.unwrap_or(since));
    let due_slots = |earliest| DueSlots {
        schedule,
        local,
        exclusion: facts.schedule.exclusion(),
        since,
        earliest,
        resumed: facts.resumed.map(|resumed| facts.schedule.slots_until(resumed)),
        // Replace ends a run that a later slot follows.
        may_start_several: facts.concurrency_policy != ConcurrencyPolicy::Replace,
        now,
    };
    let missed_until = missed_until(facts, now);
    // If no slot is within the deadline, find the most recent one before it, so that its loss is reported (B-10.1).
    let within_deadline = due_slots(earliest).choose(options, missed_until);
    let latest = || due_slots(since).last(since, now).map(Chosen::Start);
    let excluded = || due::most_recent(schedule, local, since, now).map(Chosen::Exclude);
    Ok(SlotAndNext {
        slot: within_deadline.or_else(latest).or_else(excluded),
        next: due::next_in_chain(schedule, local, since, now),
        is_many_missed: false,
    })
}

/// The instant after which due slots count: at its deadline a slot may still start, and an awaited one later (B-9.7).
fn earliest_admitted(earliest: Timestamp, facts: &Facts<'_>, now: Timestamp) -> Timestamp {
    let is_admitted = |armed: &Timestamp| may_start_until(*armed, facts).is_none_or(|last| now <= last);
    let armed = facts.armed.filter(is_admitted).unwrap_or(earliest);
    just_before(earliest.min(armed))
}

/// The latest slot that `missed-runs: skip` does not start. A slot that has waited under Forbid for Jobs that began before
/// it was missed was not missed.
fn missed_until(facts: &Facts<'_>, now: Timestamp) -> Timestamp {
    let is_forbid = facts.concurrency_policy == ConcurrencyPolicy::Forbid;
    let busy_since = facts.busy_since.filter(|_| is_forbid);
    let idle_until = busy_since.map_or(now, |since| now.min(facts.schedule.slots_until(since)));
    idle_until.checked_sub(MISSED_AFTER).unwrap_or(Timestamp::MIN)
}

/// The number of activations strictly between `base` and `slot`: exact up to a hundred, extrapolated from their mean
/// distance beyond.
pub fn count_between(schedule: &CronJobSchedule, base: Timestamp, slot: Timestamp) -> u64 {
    const N_COUNTED_MAX: u64 = 100;
    let Ok(parsed) = &schedule.parsed else { return 0 };
    let next = |at| {
        parsed
            .next_after(at, &schedule.default_zone)
            .filter(|next| *next < slot)
    };
    let Some(first) = next(base) else { return 0 };
    let mut at = first;
    for n_counted in 1..N_COUNTED_MAX {
        match next(at) {
            Some(later) => at = later,
            None => return n_counted,
        }
    }
    let counted_secs = u64::try_from(at.as_second() - first.as_second()).unwrap_or(0).max(1);
    let all_secs = u64::try_from(slot.as_second() - first.as_second()).unwrap_or(0);
    all_secs.saturating_mul(N_COUNTED_MAX - 1) / counted_secs
}

#[cfg(test)]
mod tests;
