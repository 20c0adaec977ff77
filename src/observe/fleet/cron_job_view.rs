//! One CronJob for advice and report, and its slots in full.

use jiff::{SignedDuration, Timestamp};

use super::{
    Fleet, KEPT_SLOTS_MAX,
    cron_job::CronJob,
    judge::{self, Holder},
    second::Second,
    shadow,
    slot_record::Outcome,
};
use crate::observe::{facts::CronJobFacts, forecast::ForecastInput, slot::Slot, view::CronJobName};

/// A CronJob of the fleet.
#[derive(Clone, Copy, Debug)]
pub struct CronJobView<'a> {
    /// Its facts.
    pub facts: &'a CronJobFacts,
    /// The median run time of the known runs.
    pub run_time_p50: Option<SignedDuration>,
    /// The 95th percentile of the run time.
    pub run_time_p95: Option<SignedDuration>,
    cron_job: &'a CronJob,
    fleet: &'a Fleet,
}

impl Fleet {
    /// The CronJobs of the cluster, by namespace and name.
    pub fn cron_jobs(&self) -> impl Iterator<Item = CronJobView<'_>> {
        self.cron_jobs.sorted().filter_map(|cron_job| self.view(cron_job))
    }

    fn view<'a>(&'a self, cron_job: &'a CronJob) -> Option<CronJobView<'a>> {
        let times = RunTimes::of(cron_job);
        Some(CronJobView {
            facts: cron_job.facts.as_deref()?,
            run_time_p50: times.percentile(50),
            run_time_p95: times.percentile(95),
            cron_job,
            fleet: self,
        })
    }

    /// The slots of a CronJob from a place on.
    pub(super) fn slots_from(&self, cron_job: &CronJob, first: usize) -> Vec<Slot> {
        let places = first..cron_job.slots.len();
        places.map(|place| self.slot(cron_job, place)).collect()
    }

    fn slot(&self, cron_job: &CronJob, place: usize) -> Slot {
        let record = &cron_job.slots[place];
        Slot {
            at: record.at.timestamp(),
            held_until: record.held_until.map(Second::timestamp),
            outcome: record.slot_outcome(
                &self.ids,
                || cron_job.job_name(record),
                || holder_name(cron_job, place).unwrap_or_default(),
            ),
            with_cronwheel: shadow::with_cronwheel(cron_job, &self.observations, place),
        }
    }
}

impl<'a> From<CronJobView<'a>> for ForecastInput<'a> {
    fn from(view: CronJobView<'a>) -> ForecastInput<'a> {
        ForecastInput {
            facts: view.facts,
            ignores_options: view.ignores_options(),
        }
    }
}

impl CronJobView<'_> {
    /// Namespace and name.
    pub fn name(&self) -> &CronJobName {
        &self.cron_job.name
    }

    /// The slots that are known, the oldest first.
    pub fn slots(&self) -> Vec<Slot> {
        self.fleet.slots_from(self.cron_job, 0)
    }

    /// Whether slots after an instant were dropped, because there are too many.
    pub fn is_cut_after(&self, instant: Timestamp) -> bool {
        let n_slots = self.cron_job.slots.len();
        let first = self.cron_job.slots.first();
        n_slots >= KEPT_SLOTS_MAX && first.is_some_and(|slot| slot.at.timestamp() > instant)
    }

    /// Whether the built-in controller runs it, which ignores its options.
    pub fn ignores_options(&self) -> bool {
        self.cron_job.ignores_options()
    }

    /// The end of the last successful Job, of any time.
    pub fn last_success(&self) -> Option<Timestamp> {
        last_success(self.cron_job)
    }
}

/// The end of the last successful Job: in the status, or later.
pub(super) fn last_success(cron_job: &CronJob) -> Option<Timestamp> {
    let facts = cron_job.facts.as_deref()?;
    facts
        .last_successful_time
        .max(cron_job.last.succeeded.map(Second::timestamp))
}

/// The Job that holds a slot back.
pub(super) fn holder_name(cron_job: &CronJob, place: usize) -> Option<Box<str>> {
    let (holder, _) = judge::holder(cron_job, place)?;
    Some(match holder {
        Holder::Slot(place) => cron_job.job_name(&cron_job.slots[place]),
        Holder::Other(place) => cron_job.other_runs[place].run.job_name.clone(),
    })
}

/// The run times of the Jobs that ended by themselves, in seconds, ascending.
pub(super) struct RunTimes(Vec<u32>);

impl RunTimes {
    pub(super) fn of(cron_job: &CronJob) -> RunTimes {
        let ended = cron_job.slots.iter();
        let ended = ended.filter(|slot| matches!(slot.outcome, Outcome::Succeeded | Outcome::Failed));
        let times = ended.filter_map(|slot| Some(slot.finished?.since(slot.created)));
        let mut times: Vec<u32> = times.collect();
        times.sort_unstable();
        RunTimes(times)
    }

    /// The smallest time that at least so many percent of the runs do not exceed.
    pub(super) fn percentile(&self, percent: usize) -> Option<SignedDuration> {
        let place = (self.0.len() * percent).div_ceil(100).checked_sub(1)?;
        let seconds = self.0.get(place).copied()?;
        Some(SignedDuration::from_secs(seconds.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_of_runs() {
        let times = RunTimes((1..=20).collect());
        let seconds = |percent| times.percentile(percent).map(|time| time.as_secs());
        assert_eq!((seconds(50), seconds(95), seconds(100)), (Some(10), Some(19), Some(20)));
        assert_eq!(RunTimes(vec![7]).percentile(50), Some(SignedDuration::from_secs(7)));
        assert_eq!(RunTimes(Vec::new()).percentile(50), None);
    }
}
