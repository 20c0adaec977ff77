//! The CronJobs in trouble, and the kinds of trouble.
//!
//! [`troubles`] decides from the CronJob, its status, its Jobs and the time. It uses no state that only one process
//! has, so the next leader of a shard gets the same result. [`selection`] keeps the report of a replica within its
//! bound.

pub mod selection;

use std::num::NonZeroU32;

use jiff::{SignedDuration, Timestamp};

use super::seconds::Seconds;
use crate::schedule::CronJobSchedule;
pub use crate::schedule::options::ALERTS_ANNOTATION;

/// A kind of trouble of a CronJob. A CronJob that is suspended or being deleted, or whose alerts are off, is in no trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TroubleKind {
    /// A Job failed, and none has succeeded since it started. It ends, too, when the Job is deleted.
    Failing,
    /// A run is due, nothing holds it back, and its Job has not been created.
    Late,
    /// No Job has succeeded for three activations.
    NoSuccess,
    /// `Forbid` has held runs back for three activations, because a Job is still running.
    Blocked,
    /// The schedule does not parse or never fires, the time zone is unknown, or cronwheel panicked on the CronJob.
    Invalid,
}

impl TroubleKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [TroubleKind; 5] = [
        TroubleKind::Failing,
        TroubleKind::Late,
        TroubleKind::NoSuccess,
        TroubleKind::Blocked,
        TroubleKind::Invalid,
    ];

    /// The value of the label `kind`.
    pub fn as_str(self) -> &'static str {
        match self {
            TroubleKind::Failing => "failing",
            TroubleKind::Late => "late",
            TroubleKind::NoSuccess => "no_success",
            TroubleKind::Blocked => "blocked",
            TroubleKind::Invalid => "invalid",
        }
    }
}

/// A threshold that an annotation of the CronJob can set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Threshold {
    /// From the first due run without a Job until the CronJob is late.
    Late,
    /// From the last success, or from the creation, until the CronJob is without success.
    NoSuccess,
    /// From the first run that is held back until the CronJob is blocked.
    Blocked,
}

impl Threshold {
    /// Every threshold, in the order of their numbers.
    pub const ALL: [Threshold; 3] = [Threshold::Late, Threshold::NoSuccess, Threshold::Blocked];

    /// The name of the annotation. Its value is a number of seconds.
    pub fn annotation(self) -> &'static str {
        match self {
            Threshold::Late => "cronwheel.dev/late-after-seconds",
            Threshold::NoSuccess => "cronwheel.dev/no-success-after-seconds",
            Threshold::Blocked => "cronwheel.dev/blocked-after-seconds",
        }
    }
}

/// What the annotations of a CronJob say about its trouble.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TroubleThresholds {
    seconds: [Option<NonZeroU32>; Threshold::ALL.len()],
    invalid: Option<Threshold>,
    are_alerts_off: bool,
}

impl TroubleThresholds {
    /// Follows the value of [`ALERTS_ANNOTATION`]. Any other value than `none` has no effect.
    pub fn set_alerts(&mut self, value: &str) {
        self.are_alerts_off = value == "none";
    }

    /// Sets a threshold to the value of its annotation: a whole number of seconds from 1 to `u32::MAX`.
    pub fn set(&mut self, threshold: Threshold, value: &str) {
        let seconds = value.parse().ok();
        self.seconds[threshold as usize] = seconds;
        if seconds.is_none() {
            self.invalid = Some(self.invalid.map_or(threshold, |invalid| invalid.min(threshold)));
        }
    }

    /// The first annotation whose value is invalid, if any. The default applies in its place.
    pub fn invalid(&self) -> Option<Threshold> {
        self.invalid
    }

    fn get(&self, threshold: Threshold) -> Option<SignedDuration> {
        let seconds = self.seconds[threshold as usize]?;
        Some(SignedDuration::from_secs(seconds.get().into()))
    }
}

/// The first and the third activation after an instant. A search for them can be long, so they are stored. None are
/// known by default. 24 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activations {
    after: Seconds,
    first: Seconds,
    third: Seconds,
}

impl Activations {
    /// Finds the activations of a schedule after an instant that its calendar does not exclude; none if the schedule does
    /// not parse.
    pub fn after(schedule: &CronJobSchedule, instant: Timestamp) -> Activations {
        let next = |at: Timestamp| schedule.next_wanted(at);
        let first = next(instant);
        let third = first.and_then(next).and_then(next);
        Activations {
            after: Seconds::new(Some(instant)),
            first: Seconds::new(first),
            third: Seconds::new(third),
        }
    }

    /// Whether these are the activations after this instant.
    pub fn are_after(&self, instant: Timestamp) -> bool {
        self.after == Seconds::new(Some(instant))
    }
}

/// A run is late after this time even if its period is longer.
const LATE_AFTER_MAX: SignedDuration = SignedDuration::from_mins(10);

/// The facts that decide.
#[derive(Clone, Copy, Debug)]
pub struct TroubleFacts {
    /// Whether `spec.suspend` or `metadata.deletionTimestamp` is set.
    pub is_stopped: bool,
    /// Whether the schedule does not parse, or the time zone is unknown.
    pub is_unschedulable: bool,
    /// `metadata.creationTimestamp`.
    pub created: Timestamp,
    /// `status.lastScheduleTime`.
    pub last_schedule_time: Option<Timestamp>,
    /// `status.lastSuccessfulTime`.
    pub last_successful_time: Option<Timestamp>,
    /// The activations after the last start, or after the creation. `None` if neither `pending` nor `is_held_back` needs
    /// them.
    pub after_start: Option<Activations>,
    /// The activations after the last success, or after the creation.
    pub after_success: Activations,
    /// The start of the last Job that failed.
    pub failed_start: Option<Timestamp>,
    /// The latest due slot without a Job, unless `Forbid` holds it back.
    pub pending: Option<Timestamp>,
    /// Whether `Forbid` holds back every run that becomes due, because a Job is running.
    pub is_held_back: bool,
    /// The thresholds in its annotations.
    pub thresholds: TroubleThresholds,
}

/// The kinds of trouble that a CronJob is in, by their numbers, each with the instant at which it began.
pub type Troubles = [Option<Timestamp>; TroubleKind::ALL.len()];

/// Decides in which kinds of trouble a CronJob is.
pub fn troubles(facts: &TroubleFacts, now: Timestamp) -> Troubles {
    if facts.is_stopped || facts.thresholds.are_alerts_off {
        return Troubles::default();
    }
    let is_invalid = facts.is_unschedulable || facts.after_success.third.get().is_none();
    TroubleKind::ALL.map(|kind| match kind {
        TroubleKind::Failing => failing_since(facts),
        TroubleKind::Invalid => is_invalid.then_some(facts.last_schedule_time.unwrap_or(facts.created)),
        TroubleKind::Late | TroubleKind::NoSuccess | TroubleKind::Blocked if is_invalid => None,
        TroubleKind::Late => late_since(facts, now),
        TroubleKind::NoSuccess => no_success_since(facts).filter(|since| *since <= now),
        TroubleKind::Blocked => blocked_since(facts).filter(|since| *since <= now),
    })
}

/// A success in the second of the start is that of the run before.
fn failing_since(facts: &TroubleFacts) -> Option<Timestamp> {
    facts
        .failed_start
        .filter(|started| facts.last_successful_time <= Some(*started))
}

/// The time counts from the first run that is due, since a later slot replaces the pending one.
fn late_since(facts: &TroubleFacts, now: Timestamp) -> Option<Timestamp> {
    let pending = facts.pending?;
    let first = facts.after_start?.first.get()?.min(pending);
    let is_late = match facts.thresholds.get(Threshold::Late) {
        Some(after) => now.duration_since(first) >= after,
        // A later run is due, so one period has passed.
        None => first < pending || now.duration_since(first) >= LATE_AFTER_MAX,
    };
    is_late.then_some(first)
}

fn no_success_since(facts: &TroubleFacts) -> Option<Timestamp> {
    match facts.thresholds.get(Threshold::NoSuccess) {
        Some(after) => facts
            .last_successful_time
            .unwrap_or(facts.created)
            .checked_add(after)
            .ok(),
        None => facts.after_success.third.get(),
    }
}

fn blocked_since(facts: &TroubleFacts) -> Option<Timestamp> {
    let after_start = facts.after_start.filter(|_| facts.is_held_back)?;
    match facts.thresholds.get(Threshold::Blocked) {
        Some(after) => after_start.first.get()?.checked_add(after).ok(),
        None => after_start.third.get(),
    }
}

#[cfg(test)]
mod tests;
