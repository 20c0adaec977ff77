//! What became of one slot.

use jiff::{SignedDuration, Timestamp};

use super::{facts::RunResult, words::instant_text};

/// A run that starts later than this after its slot is late. The alerts of the chart use the same objective.
pub const LATE_AFTER: SignedDuration = SignedDuration::from_secs(5);

/// One slot of a CronJob, with its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The due instant.
    pub at: Timestamp,
    /// The CronJob asked to wait until then: Forbid waited for an earlier Job, `spec.suspend` was true, the namespace was
    /// frozen, or the option `spread` starts the slot later. Or it was changed then, and nobody watched what changed.
    pub held_until: Option<Timestamp>,
    /// What became of it.
    pub outcome: SlotOutcome,
    /// The names of further Jobs of the same slot.
    pub other_jobs: Vec<Box<str>>,
    /// What cronwheel would have done with it, by [`decide`](crate::schedule::policy::decide) on the same facts. `None`
    /// if the facts are not known.
    pub with_cronwheel: Option<Shadow>,
}

/// What became of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotOutcome {
    /// A Job was created for the slot.
    Started {
        /// `metadata.uid` of the Job.
        job_uid: crate::shard::Uid,
        /// The Job's name.
        job_name: Box<str>,
        /// `metadata.creationTimestamp` of the Job, in whole seconds.
        created: Timestamp,
        /// The end of the Job, if it was seen.
        finished: Option<Timestamp>,
        /// How the Job ended.
        result: RunResult,
        /// Whether `cronwheel backfill` created the Job: a user started it, and no controller was late.
        is_backfilled: bool,
        /// The Job for which `Replace` deleted this one.
        replaced_by: Option<Box<str>>,
    },
    /// The slot is due and has no Job yet.
    Open,
    /// No Job was created, although nothing in the CronJob asked for that.
    Lost(LossReason),
    /// No Job was created, as the CronJob asks.
    Skipped(SkipCause),
    /// Whether a Job was created is not known: nothing watched the cluster, and it keeps no Jobs of that time.
    NotObserved,
    /// No Job was created, and whether the CronJob asks for one is not known.
    Undecided(Doubt),
}

/// Why it is not known whether a slot should have a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The calendar of this name, which `not-on` names, was not read.
    Calendar(Box<str>),
    /// Its namespace has or had a freeze that ends or ended then, and it is not known when the freeze began.
    Freeze(Timestamp),
    /// The CronJob was changed then, which may have ended a suspension after which nothing starts.
    Suspension(Timestamp),
}

impl Doubt {
    /// The doubt in words.
    pub fn sentence(&self) -> String {
        match self {
            Doubt::Calendar(name) => {
                format!("no Job; the calendar {name} was not read, so it may exclude the date")
            }
            Doubt::Freeze(until) => {
                let until = instant_text(*until);
                format!("no Job; the namespace has a freeze until {until}, and it is not known since when")
            }
            Doubt::Suspension(changed) => {
                let changed = instant_text(*changed);
                format!(
                    "no Job; the CronJob was changed at {changed}, and nothing starts if that ended a suspension: on-resume, \
                     or without it missed-runs, is skip"
                )
            }
        }
    }
}

/// Why a slot was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LossReason {
    /// The controller started a later slot instead.
    Superseded,
    /// `startingDeadlineSeconds` passed before the controller started it.
    DeadlineExceeded,
    /// No Job came before the next slot was due, and none of a later slot either.
    NotStarted,
}

impl LossReason {
    /// All reasons.
    pub const ALL: [LossReason; 3] = [
        LossReason::Superseded,
        LossReason::DeadlineExceeded,
        LossReason::NotStarted,
    ];

    /// The reason as part of a sentence: "lost 5 runs: …".
    pub fn sentence(self) -> &'static str {
        match self {
            LossReason::Superseded => "the controller was late and started a later slot instead",
            LossReason::DeadlineExceeded => "startingDeadlineSeconds passed before the controller started it",
            LossReason::NotStarted => "no controller started it, or its Job was refused",
        }
    }

    /// The name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            LossReason::Superseded => "Superseded",
            LossReason::DeadlineExceeded => "DeadlineExceeded",
            LossReason::NotStarted => "NotStarted",
        }
    }
}

/// Why a CronJob itself asked for no Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipCause {
    /// `spec.suspend` was true, until the slot could no longer start.
    Suspended,
    /// `concurrencyPolicy` is Forbid and this Job ran until the next slot.
    HeldByForbid {
        /// The name of the Job.
        job_name: Box<str>,
    },
    /// The schedule was changed after the slot.
    ScheduleChanged,
    /// The CronJob was being deleted.
    Deleting,
    /// A Job of the same minute exists: Jobs are named by the minute.
    SameMinute,
    /// The slot was missed, and the option `missed-runs` is `skip`.
    Missed,
    /// `spec.suspend` was true, and the option `on-resume`, or without it `missed-runs`, is `skip`.
    Resumed,
    /// The namespace was frozen, until the slot could no longer start.
    Frozen {
        /// The end of the freeze.
        until: Timestamp,
        /// Its reason; may be empty.
        reason: Box<str>,
    },
    /// The calendar of `not-on` excludes the date of the slot.
    Excluded {
        /// The name of the calendar.
        calendar: Box<str>,
        /// Its note on the date; may be empty.
        note: Box<str>,
    },
}

impl SkipCause {
    /// The name in JSON.
    pub fn as_str(&self) -> &'static str {
        match self {
            SkipCause::Suspended => "Suspended",
            SkipCause::HeldByForbid { .. } => "HeldByForbid",
            SkipCause::ScheduleChanged => "ScheduleChanged",
            SkipCause::Deleting => "Deleting",
            SkipCause::SameMinute => "SameMinute",
            SkipCause::Missed => "Missed",
            SkipCause::Resumed => "Resumed",
            SkipCause::Frozen { .. } => "Frozen",
            SkipCause::Excluded { .. } => "Excluded",
        }
    }

    /// The cause in words.
    pub fn sentence(&self) -> String {
        match self {
            SkipCause::Suspended => "the CronJob was suspended".to_owned(),
            SkipCause::HeldByForbid { job_name } => format!("Forbid: Job {job_name} still ran"),
            SkipCause::ScheduleChanged => "the schedule changed afterwards".to_owned(),
            SkipCause::Deleting => "the CronJob was being deleted".to_owned(),
            SkipCause::SameMinute => "a Job of the same minute exists".to_owned(),
            SkipCause::Missed => "the slot was missed, and missed-runs is skip".to_owned(),
            SkipCause::Resumed => {
                "the CronJob was suspended, and on-resume, or without it missed-runs, is skip".to_owned()
            }
            SkipCause::Frozen { until, reason } => {
                let until = instant_text(*until);
                with_reason(format!("in a freeze of the namespace until {until}"), reason)
            }
            SkipCause::Excluded { calendar, note } => {
                with_reason(format!("the calendar {calendar} excludes the date"), note)
            }
        }
    }
}

/// A sentence, and a text that people wrote about it.
pub(in crate::observe) fn with_reason(sentence: String, reason: &str) -> String {
    if reason.is_empty() {
        sentence
    } else {
        format!("{sentence}: {reason}")
    }
}

impl SlotOutcome {
    /// Why the slot has no Job, in words. `None` if it has one.
    pub fn absence(&self) -> Option<String> {
        Some(match self {
            SlotOutcome::Started { .. } => return None,
            SlotOutcome::Open => "no Job yet".to_owned(),
            SlotOutcome::Lost(reason) => reason.sentence().to_owned(),
            SlotOutcome::Skipped(cause) => cause.sentence(),
            SlotOutcome::NotObserved => "nothing watched the cluster, and it keeps no Job of that time".to_owned(),
            SlotOutcome::Undecided(doubt) => doubt.sentence(),
        })
    }
}

/// What cronwheel would have done with a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shadow {
    /// It would have started the Job at the slot.
    Starts,
    /// It would have started the Job this long after the slot, when something ended.
    StartsAfter(SignedDuration, Ended),
    /// It would not have started a Job either; the reason in plain words with its rule, such as B-10.3.
    Holds(&'static str),
}

/// What ends when cronwheel starts a slot later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The earlier Job for which Forbid waits.
    Job,
    /// The suspension.
    Suspension,
    /// The freeze of the namespace.
    Freeze,
}

impl Ended {
    /// When the slot starts, in words.
    pub fn when(self) -> &'static str {
        match self {
            Ended::Job => "when the earlier Job ended",
            Ended::Suspension => "when the CronJob was resumed",
            Ended::Freeze => "when the freeze ended",
        }
    }
}

/// The appearance of a slot, from the least to the most serious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// Not known.
    NotObserved,
    /// No Job, as the CronJob asks.
    Skipped,
    /// The Job succeeded.
    Succeeded,
    /// The Job runs.
    Running,
    /// Due, without a Job, and not late yet.
    Due,
    /// The Job started late, or is late and has not started.
    Late,
    /// The Job failed.
    Failed,
    /// The slot has no Job.
    Lost,
}

impl Mark {
    /// All marks.
    pub const ALL: [Mark; 8] = [
        Mark::NotObserved,
        Mark::Skipped,
        Mark::Succeeded,
        Mark::Running,
        Mark::Due,
        Mark::Late,
        Mark::Failed,
        Mark::Lost,
    ];

    /// The word on the page, in JSON and as a style class.
    pub fn as_str(self) -> &'static str {
        match self {
            Mark::NotObserved => "unknown",
            Mark::Skipped => "skipped",
            Mark::Succeeded => "succeeded",
            Mark::Running => "running",
            Mark::Due => "due",
            Mark::Late => "late",
            Mark::Failed => "failed",
            Mark::Lost => "lost",
        }
    }
}

impl Slot {
    /// The instant from which a controller could start the Job.
    pub fn startable(&self) -> Timestamp {
        self.held_until.map_or(self.at, |held| held.max(self.at))
    }

    /// The time from the slot to the creation of its Job, in whole seconds; `None` without a Job. The time for which the
    /// CronJob itself asked to wait does not count. `None` also for a Job of `cronwheel backfill`.
    pub fn lateness(&self) -> Option<SignedDuration> {
        match &self.outcome {
            SlotOutcome::Started {
                created,
                is_backfilled: false,
                ..
            } => Some(created.duration_since(self.startable()).max(SignedDuration::ZERO)),
            SlotOutcome::Started { .. }
            | SlotOutcome::Open
            | SlotOutcome::Lost(_)
            | SlotOutcome::Skipped(_)
            | SlotOutcome::NotObserved
            | SlotOutcome::Undecided(_) => None,
        }
    }

    /// The time from the creation of the Job to its end.
    pub fn run_time(&self) -> Option<SignedDuration> {
        match &self.outcome {
            SlotOutcome::Started {
                created,
                finished: Some(finished),
                ..
            } => Some(finished.duration_since(*created).max(SignedDuration::ZERO)),
            SlotOutcome::Started { finished: None, .. }
            | SlotOutcome::Open
            | SlotOutcome::Lost(_)
            | SlotOutcome::Skipped(_)
            | SlotOutcome::NotObserved
            | SlotOutcome::Undecided(_) => None,
        }
    }

    /// The appearance of the slot at `now`. A failure is more serious than a late start.
    pub fn mark(&self, now: Timestamp) -> Mark {
        match &self.outcome {
            SlotOutcome::Started { result, .. } => {
                let is_late = self.lateness() > Some(LATE_AFTER);
                match result {
                    RunResult::Failed(_) => Mark::Failed,
                    _ if is_late => Mark::Late,
                    RunResult::Running => Mark::Running,
                    RunResult::Succeeded => Mark::Succeeded,
                    RunResult::Deleted => Mark::Skipped,
                    RunResult::Gone => Mark::NotObserved,
                }
            }
            SlotOutcome::Open if now.duration_since(self.startable()) > LATE_AFTER => Mark::Late,
            SlotOutcome::Open => Mark::Due,
            SlotOutcome::Lost(_) => Mark::Lost,
            SlotOutcome::Skipped(_) => Mark::Skipped,
            SlotOutcome::NotObserved | SlotOutcome::Undecided(_) => Mark::NotObserved,
        }
    }
}
