//! The decision: from the facts about one CronJob and `now` to a Job or a named reason for none (B-6, B-9, B-10).
//!
//! [`decide`] is the only place that says whether a slot starts. Every way not to start one is a variant of
//! [`SkipReason`]; whoever adds a way adds a variant.

use jiff::{SignedDuration, Timestamp};

use super::{
    due::{self, Missed},
    effective::CronJobSchedule,
    fires::Schedule,
};

/// `spec.concurrencyPolicy`; a value of a newer server is treated as `Allow` (B-10.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcurrencyPolicy {
    /// Runs may overlap.
    Allow,
    /// A run waits for the one before (B-10.3).
    Forbid,
    /// A run ends the one before (B-10.4).
    Replace,
}

/// A slot that was on the wheel, and an order in a queue, may be this late whatever the starting deadline says:
/// the deadline bounds how old a run may be, not how fast we are (B-9.7 and its difference).
pub const LATENESS_ALLOWED_SECS: i64 = 10;

/// All that bears on one decision.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// What was scheduled.
    pub schedule: &'a CronJobSchedule,
    /// `metadata.deletionTimestamp` is set.
    pub is_deleting: bool,
    /// `spec.suspend`.
    pub is_suspended: bool,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// The cursor, our own unsaved move of it included.
    pub last_schedule_time: Option<Timestamp>,
    /// `spec.startingDeadlineSeconds`.
    pub starting_deadline_seconds: Option<i64>,
    /// `spec.concurrencyPolicy`.
    pub concurrency_policy: ConcurrencyPolicy,
    /// How many of its Jobs run (B-5.1 and its difference).
    pub n_active_jobs: usize,
    /// Whether a running Job bears the name of this slot (B-10.2).
    pub is_active_slot: &'a dyn Fn(Timestamp) -> bool,
    /// When the schedule was last changed, where we saw it: no earlier slot is started (B-2.2 and its difference).
    pub schedule_changed: Option<Timestamp>,
    /// The first activation after the cursor that is not decided yet, where the wheel or an open slot holds it.
    pub armed: Option<Timestamp>,
    /// Whether `armed` is judged at its instant: it came off the wheel, or its order was under way.
    pub is_held: bool,
}

/// A decision with what follows from the same look at the schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Start or skip.
    pub decision: Decision,
    /// The first activation after `now`, where there is one.
    pub next: Option<Timestamp>,
    /// More than a hundred activations were missed by the estimate (B-9.4).
    pub is_many_missed: bool,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Create the Job of this slot.
    Start {
        /// The due slot.
        slot: Timestamp,
        /// The running Jobs go first (B-10.4).
        replaces: bool,
    },
    /// Create nothing.
    Skip(SkipReason),
}

impl Decision {
    /// The due slot that it is about.
    pub fn slot(&self) -> Option<Timestamp> {
        match self {
            Decision::Start { slot, .. }
            | Decision::Skip(
                SkipReason::ScheduleChanged { slot }
                | SkipReason::DeadlineExceeded { slot }
                | SkipReason::AlreadyActive { slot }
                | SkipReason::Forbidden { slot },
            ) => Some(*slot),
            Decision::Skip(
                SkipReason::Deleting
                | SkipReason::UnknownTimeZone(_)
                | SkipReason::Suspended
                | SkipReason::Unparseable(_)
                | SkipReason::NeverRuns(_)
                | SkipReason::NotDue,
            ) => None,
        }
    }
}

/// Every way not to start a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// The CronJob is being deleted (B-6.1).
    Deleting,
    /// `spec.timeZone` does not load; the loader's text (B-6.2).
    UnknownTimeZone(String),
    /// `spec.suspend` (B-6.3).
    Suspended,
    /// The schedule does not parse; the parser's text (B-6.4).
    Unparseable(String),
    /// The schedule parses and has no activations; the text (B-6.5).
    NeverRuns(String),
    /// No activation since the last (B-9.5).
    NotDue,
    /// The due slot lies before the change of the schedule (B-2.2 and its difference).
    ScheduleChanged {
        /// The slot.
        slot: Timestamp,
    },
    /// The starting deadline of the due slot has passed (B-10.1).
    DeadlineExceeded {
        /// The slot.
        slot: Timestamp,
    },
    /// A running Job bears the slot's name (B-10.2).
    AlreadyActive {
        /// The slot.
        slot: Timestamp,
    },
    /// A run before it has not ended and the policy is Forbid (B-10.3): it stays due.
    Forbidden {
        /// The slot.
        slot: Timestamp,
    },
}

/// Decides one CronJob (B-6, B-9, B-10).
pub fn decide(facts: &Facts<'_>, now: Timestamp) -> Verdict {
    let due = match gate(facts) {
        Ok(schedule) => due_slot(schedule, facts, now),
        Err(reason) => return skip(reason, next_while_gated(facts, now)),
    };
    let due = match due {
        Ok(due) => due,
        Err(never) => return skip(SkipReason::NeverRuns(never.to_string()), None),
    };
    let decision = match due.slot {
        None => Decision::Skip(SkipReason::NotDue),
        Some(slot) => admit(slot, facts, now),
    };
    let is_many_missed = due.is_many_missed
        && match &decision {
            Decision::Start { .. } => true,
            Decision::Skip(reason) => {
                matches!(reason, SkipReason::AlreadyActive { .. } | SkipReason::Forbidden { .. })
            }
        };
    Verdict {
        decision,
        next: due.next,
        is_many_missed,
    }
}

fn skip(reason: SkipReason, next: Option<Timestamp>) -> Verdict {
    Verdict {
        decision: Decision::Skip(reason),
        next,
        is_many_missed: false,
    }
}

/// A suspended CronJob's slots pass and are counted; behind the other gates there are none.
fn next_while_gated(facts: &Facts<'_>, now: Timestamp) -> Option<Timestamp> {
    let schedule = facts.schedule.parsed.as_ref().ok()?;
    let is_only_suspended = facts.is_suspended && !facts.is_deleting && !matches!(facts.schedule.zone, Some(Err(_)));
    let since = due::earliest_time(facts.created, facts.last_schedule_time, None, now);
    is_only_suspended
        .then(|| due::next_in_chain(schedule, &facts.schedule.default_zone, since, now))
        .flatten()
}

/// The gates before scheduling, in the order of B-6.
fn gate<'a>(facts: &Facts<'a>) -> Result<&'a Schedule, SkipReason> {
    if facts.is_deleting {
        return Err(SkipReason::Deleting);
    }
    if let Some(Err(error)) = &facts.schedule.zone {
        return Err(SkipReason::UnknownTimeZone(error.to_string()));
    }
    if facts.is_suspended {
        return Err(SkipReason::Suspended);
    }
    facts
        .schedule
        .parsed
        .as_ref()
        .map_err(|error| SkipReason::Unparseable(error.to_string()))
}

/// From a due slot to the decision (B-10).
fn admit(slot: Timestamp, facts: &Facts<'_>, now: Timestamp) -> Decision {
    if facts.schedule_changed.is_some_and(|changed| slot < changed) {
        return Decision::Skip(SkipReason::ScheduleChanged { slot });
    }
    if last_start(slot, facts).is_some_and(|last| now > last) {
        return Decision::Skip(SkipReason::DeadlineExceeded { slot });
    }
    if (facts.is_active_slot)(slot) {
        return Decision::Skip(SkipReason::AlreadyActive { slot });
    }
    match facts.concurrency_policy {
        ConcurrencyPolicy::Forbid if facts.n_active_jobs > 0 => Decision::Skip(SkipReason::Forbidden { slot }),
        ConcurrencyPolicy::Replace if facts.n_active_jobs > 0 => Decision::Start { slot, replaces: true },
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace => {
            Decision::Start { slot, replaces: false }
        }
    }
}

/// The last instant at which a slot may start, or none where there is no starting deadline.
fn last_start(slot: Timestamp, facts: &Facts<'_>) -> Option<Timestamp> {
    let deadline_secs = facts.starting_deadline_seconds?;
    // A slot that we held in time is judged at its instant: our own lateness does not lose it.
    let is_held = facts.is_held && facts.armed == Some(slot);
    Some(add_secs(
        slot,
        if is_held {
            deadline_secs.max(LATENESS_ALLOWED_SECS)
        } else {
            deadline_secs
        },
    ))
}

/// When an order for a slot is too late to be sent: with a starting deadline, after the later of that and ten seconds.
pub fn order_expiry(slot: Timestamp, starting_deadline_seconds: Option<i64>) -> Option<Timestamp> {
    Some(add_secs(slot, starting_deadline_seconds?.max(LATENESS_ALLOWED_SECS)))
}

/// What the schedule says of `now`.
struct Due {
    slot: Option<Timestamp>,
    next: Option<Timestamp>,
    is_many_missed: bool,
}

fn due_slot(schedule: &Schedule, facts: &Facts<'_>, now: Timestamp) -> Result<Due, due::NeverRuns> {
    let local = &facts.schedule.default_zone;
    // The usual case first: the slot on the wheel is due and the one after it is not.
    if let Some(armed) = facts.armed {
        if now < armed {
            return Ok(Due {
                slot: None,
                next: Some(armed),
                is_many_missed: false,
            });
        }
        if let Some(next) = schedule.next_after(armed, local).filter(|next| now < *next) {
            return Ok(Due {
                slot: Some(armed),
                next: Some(next),
                is_many_missed: false,
            });
        }
    }
    let deadline_secs = facts.starting_deadline_seconds;
    let since = due::earliest_time(facts.created, facts.last_schedule_time, None, now);
    let earliest = due::earliest_time(facts.created, facts.last_schedule_time, deadline_secs, now);
    let estimate = due::estimate(schedule, local, earliest, now)?;
    let slot = match deadline_secs {
        // `@every` keeps its grid, and a short deadline is judged at the slot: neither moves the earliest time (B-9.7).
        Some(secs) if schedule.is_every() || secs < LATENESS_ALLOWED_SECS => {
            due::most_recent(schedule, local, since, now)
        }
        // A slot that the deadline hides is looked for as well, so that its loss is told (B-10.1).
        Some(_) => {
            due::most_recent(schedule, local, earliest, now).or_else(|| due::most_recent(schedule, local, since, now))
        }
        None => due::most_recent(schedule, local, earliest, now),
    };
    Ok(Due {
        slot,
        next: schedule
            .next_after(slot.unwrap_or(since), local)
            .filter(|next| now < *next)
            .or_else(|| schedule.next_after(now, local)),
        is_many_missed: estimate.missed == Missed::Many,
    })
}

/// How many activations lie after `base` and before `slot`: counted up to a hundred, by their mean distance beyond.
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

fn add_secs(instant: Timestamp, secs: i64) -> Timestamp {
    instant
        .checked_add(SignedDuration::from_secs(secs))
        .unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
