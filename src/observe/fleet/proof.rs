//! What the objects in the cluster prove of slots that nobody watched.

use super::{cron_job::CronJob, era::cursor_of, observations::Observations, second::Second, slot_record::Outcome};
use crate::{observe::facts::RunResult, schedule::ConcurrencyPolicy};

/// What the objects in the cluster prove of slots before the observation.
pub(super) struct Proof {
    /// No Job was created for a slot after it.
    cursor: Second,
    /// If history limits would have kept the Job of a slot: slots after the first instant, with an older Job at or before
    /// the second.
    kept: Option<(Second, Second)>,
}

impl Proof {
    /// `None` while Jobs may be missing.
    pub(super) fn new(cron_job: &CronJob, observations: &Observations) -> Option<Proof> {
        let facts = cron_job.facts.as_deref().filter(|_| observations.is_current())?;
        Some(Proof {
            cursor: cursor_of(facts),
            kept: Proof::of_kept_jobs(cron_job),
        })
    }

    /// If fewer Jobs than the history limits are newer than a slot, the Job of that slot would exist.
    fn of_kept_jobs(cron_job: &CronJob) -> Option<(Second, Second)> {
        let facts = cron_job
            .facts
            .as_deref()
            .filter(|facts| facts.ttl_seconds_after_finished.is_none())?;
        let oldest = cron_job.slots.iter().find(|slot| slot.is_kept)?.at;
        let created = |outcome: Outcome| kept_creations(cron_job, outcome);
        let succeeded = full_since(created(Outcome::Succeeded), facts.successful_jobs_history_limit);
        let failed = full_since(created(Outcome::Failed), facts.failed_jobs_history_limit);
        // Replace deletes Jobs before any limit does.
        let replaced = cron_job.eras.end_of_last(ConcurrencyPolicy::Replace);
        Some((succeeded.max(failed).max(replaced), oldest))
    }

    pub(super) fn covers(&self, slot: Second) -> bool {
        slot > self.cursor || self.kept.is_some_and(|(full, oldest)| slot > full && slot > oldest)
    }
}

/// The instant since which more Jobs than the limit were created: older ones may have been deleted.
fn full_since(mut created: Vec<Second>, limit: u32) -> Second {
    let Some(n_newer) = limit.checked_sub(1) else {
        return Second::MAX;
    };
    created.sort_unstable_by(|one, other| other.cmp(one));
    let limiting = created.get(usize::try_from(n_newer).unwrap_or(usize::MAX));
    limiting.copied().unwrap_or(Second::MIN)
}

/// When the Jobs were created that the cluster has and that ended so. Those started by hand count for the limits too.
fn kept_creations(cron_job: &CronJob, outcome: Outcome) -> Vec<Second> {
    let slots = cron_job.slots.iter();
    let slots = slots.filter(|slot| slot.is_kept && slot.outcome == outcome);
    let others = cron_job.other_runs.iter().filter(|other| {
        let ended = match &other.run.result {
            RunResult::Succeeded => Some(Outcome::Succeeded),
            RunResult::Failed(_) => Some(Outcome::Failed),
            RunResult::Running | RunResult::Deleted | RunResult::Gone => None,
        };
        other.is_kept && ended == Some(outcome)
    });
    let others = others.map(|other| Second::floor(other.run.created));
    slots.map(|slot| slot.created).chain(others).collect()
}
