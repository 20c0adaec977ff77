//! A slot and its Job in 48 bytes. A fleet of 20,000 CronJobs holds a million slots.

use super::{
    names::{BACKFILL, NameIds},
    second::Second,
};
use crate::{
    observe::{
        facts::{Run, RunResult},
        slot::{LATE_AFTER, LossReason, SkipCause, SlotOutcome},
        view::Cell,
    },
    shard::{Uid, naming},
};

/// What became of a slot, without what the record has beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    NotObserved,
    Open,
    /// The slot has a Job that has not ended.
    Running,
    Succeeded,
    Failed,
    Deleted,
    /// The Job left unseen; `finished` is the last instant at which it ran.
    Gone,
    Lost(LossReason),
    Suspended,
    HeldByForbid,
    ScheduleChanged,
    Deleting,
    SameMinute,
    /// `missed-runs` is `skip`.
    Missed,
    /// `on-resume` is `skip`.
    Resumed,
    /// The namespace was frozen.
    Frozen,
    /// The calendar of `not-on` excludes the date.
    Excluded,
    /// No Job, and the calendar was not read.
    CalendarUnread,
    /// No Job, and it is not known when a freeze began or ended.
    FreezeUnknown,
    /// No Job, and it is not known whether the CronJob was suspended: `on-resume` is `skip`.
    SuspensionUnknown,
}

/// A slot and its Job.
#[derive(Clone, Debug)]
pub(super) struct SlotRecord {
    pub(super) job_uid: Option<Uid>,
    /// The due instant.
    pub(super) at: Second,
    /// The creation of the Job; the slot's instant without a Job.
    pub(super) created: Second,
    pub(super) finished: Option<Second>,
    /// Forbid, a suspension, a freeze or `spread` held the slot until then.
    pub(super) held_until: Option<Second>,
    /// The reason of a failure.
    pub(super) reason: u16,
    pub(super) creator: u8,
    pub(super) outcome: Outcome,
    /// Whether the cluster has the Job.
    pub(super) is_kept: bool,
    /// Whether the Job has the name that both controllers give. Other names are beside the records.
    pub(super) has_usual_name: bool,
    /// Whether it was proven that the slot had no Job when the observation began.
    pub(super) is_proven: bool,
    /// What is added to the slot's minute.
    pub(super) counted: Counted,
}

/// What a slot adds to its minute, one bit for each number of a [`Cell`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted(u8);

impl Counted {
    fn new(bits: [bool; 4]) -> Counted {
        let bits = bits
            .iter()
            .enumerate()
            .map(|(place, is_set)| u8::from(*is_set) << place);
        Counted(bits.sum())
    }

    pub(super) fn cell(self) -> Cell {
        let bit = |place: u8| u32::from(self.0 >> place & 1);
        Cell {
            n_runs: bit(0),
            n_late: bit(1),
            n_failed: bit(2),
            n_lost: bit(3),
        }
    }
}

impl SlotRecord {
    /// A slot without a Job.
    pub(super) fn new(at: Second) -> SlotRecord {
        SlotRecord {
            job_uid: None,
            at,
            created: at,
            finished: None,
            held_until: None,
            reason: 0,
            creator: 0,
            outcome: Outcome::NotObserved,
            is_kept: false,
            has_usual_name: true,
            is_proven: false,
            counted: Counted::default(),
        }
    }

    /// Attaches a Job, or its new form. Returns whether anything changed.
    pub(super) fn set_run(&mut self, run: &Run, is_kept: bool, ids: &mut NameIds) -> bool {
        let before = (self.job_uid.clone(), self.finished, self.reason, self.outcome);
        self.job_uid = Some(run.job_uid.clone());
        self.created = Second::floor(run.created);
        self.finished = run.finished.map(Second::floor);
        self.creator = ids.creator_id(&run.creator);
        self.reason = 0;
        self.outcome = match &run.result {
            RunResult::Running => Outcome::Running,
            RunResult::Succeeded => Outcome::Succeeded,
            RunResult::Deleted => Outcome::Deleted,
            RunResult::Gone => Outcome::Gone,
            RunResult::Failed(reason) => {
                self.reason = ids.reason_id(reason);
                Outcome::Failed
            }
        };
        self.is_kept = is_kept;
        before != (self.job_uid.clone(), self.finished, self.reason, self.outcome)
    }

    pub(super) fn has_job(&self) -> bool {
        self.job_uid.is_some()
    }

    /// Whether the slot was judged with its Job.
    pub(super) fn is_counted(&self) -> bool {
        self.counted.cell().n_runs > 0
    }

    pub(super) fn is_running(&self) -> bool {
        self.outcome == Outcome::Running
    }

    /// The instant from which the slot could start.
    pub(super) fn startable(&self) -> Second {
        self.held_until.map_or(self.at, |held| held.max(self.at))
    }

    /// Whether a user started the slot again. No controller was late.
    pub(super) fn is_backfilled(&self) -> bool {
        self.has_job() && self.creator == BACKFILL
    }

    /// Whether a controller created the Job late.
    pub(super) fn has_late_job(&self) -> bool {
        self.has_job() && !self.is_backfilled() && self.created > self.startable().plus_duration(LATE_AFTER)
    }

    /// Whether the slot is due, late and without a Job.
    pub(super) fn is_late_now(&self, now: Second) -> bool {
        self.outcome == Outcome::Open && now > self.startable().plus_duration(LATE_AFTER)
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.outcome, Outcome::Lost(_))
    }

    /// The end of the Job as far as it matters to Forbid: `None` while it runs. A Job that is gone ran at least until then.
    pub(super) fn job_end(&self) -> Option<Second> {
        match (self.finished, self.outcome) {
            (None, Outcome::Running) => None,
            (finished, _) => Some(finished.unwrap_or(self.created)),
        }
    }

    /// What the slot should add to its minute.
    pub(super) fn count(&self) -> Counted {
        let is_failed = self.outcome == Outcome::Failed;
        Counted::new([self.has_job(), self.has_late_job(), is_failed, self.is_lost()])
    }

    /// The outcome as the views show it. `job_name` is that of the slot's Job, `holder` that of the Job that holds it,
    /// `successor` that of the Job that replaced it.
    pub(super) fn slot_outcome(
        &self,
        ids: &NameIds,
        job_name: impl FnOnce() -> Box<str>,
        holder: impl FnOnce() -> Box<str>,
        successor: impl FnOnce() -> Option<Box<str>>,
    ) -> SlotOutcome {
        if let Some(job_uid) = self.job_uid.clone() {
            return SlotOutcome::Started {
                job_uid,
                job_name: job_name(),
                created: self.created.timestamp(),
                finished: self
                    .finished
                    .filter(|_| self.outcome != Outcome::Gone)
                    .map(Second::timestamp),
                result: self.run_result(ids),
                is_backfilled: self.is_backfilled(),
                replaced_by: successor().filter(|_| self.outcome == Outcome::Deleted),
            };
        }
        match self.outcome {
            Outcome::Open => SlotOutcome::Open,
            Outcome::Lost(reason) => SlotOutcome::Lost(reason),
            Outcome::Suspended => SlotOutcome::Skipped(SkipCause::Suspended),
            Outcome::HeldByForbid => SlotOutcome::Skipped(SkipCause::HeldByForbid { job_name: holder() }),
            Outcome::ScheduleChanged => SlotOutcome::Skipped(SkipCause::ScheduleChanged),
            Outcome::Deleting => SlotOutcome::Skipped(SkipCause::Deleting),
            Outcome::SameMinute => SlotOutcome::Skipped(SkipCause::SameMinute),
            Outcome::Missed => SlotOutcome::Skipped(SkipCause::Missed),
            Outcome::Resumed => SlotOutcome::Skipped(SkipCause::Resumed),
            // What the first five say stands beside the record.
            Outcome::Frozen
            | Outcome::Excluded
            | Outcome::CalendarUnread
            | Outcome::FreezeUnknown
            | Outcome::SuspensionUnknown
            | Outcome::NotObserved
            | Outcome::Running
            | Outcome::Succeeded
            | Outcome::Failed
            | Outcome::Deleted
            | Outcome::Gone => SlotOutcome::NotObserved,
        }
    }

    /// The Job in full, except what the record does not hold: `started`, and what hinders it. `None` without a Job.
    pub(super) fn run(&self, cron_job: &Uid, job_name: Box<str>, ids: &NameIds) -> Option<Run> {
        Some(Run {
            job_uid: self.job_uid.clone()?,
            job_name,
            cron_job: cron_job.clone(),
            slot: Some(self.at.timestamp()),
            created: self.created.timestamp(),
            started: None,
            finished: self.finished.map(Second::timestamp),
            result: self.run_result(ids),
            creator: ids.creator(self.creator).clone(),
            hindrance: None,
        })
    }

    /// Whether a Job has the name that both controllers give. Names with a second are beside the records, like others.
    pub(super) fn is_usual_name(run: &Run, cron_job_name: &str, at: Second) -> bool {
        run.job_name == naming::job_name(cron_job_name, at.timestamp())
    }

    fn run_result(&self, ids: &NameIds) -> RunResult {
        match self.outcome {
            Outcome::Succeeded => RunResult::Succeeded,
            Outcome::Failed => RunResult::Failed(ids.reason(self.reason).into()),
            Outcome::Deleted => RunResult::Deleted,
            Outcome::Gone => RunResult::Gone,
            Outcome::Running
            | Outcome::NotObserved
            | Outcome::Open
            | Outcome::Lost(_)
            | Outcome::Suspended
            | Outcome::HeldByForbid
            | Outcome::ScheduleChanged
            | Outcome::Deleting
            | Outcome::SameMinute
            | Outcome::Missed
            | Outcome::Resumed
            | Outcome::Frozen
            | Outcome::Excluded
            | Outcome::CalendarUnread
            | Outcome::FreezeUnknown
            | Outcome::SuspensionUnknown => RunResult::Running,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_48_bytes() {
        assert_eq!(std::mem::size_of::<SlotRecord>(), 48);
    }
}
