//! One CronJob in full.

use jiff::Timestamp;

use super::{Fleet, rows, second::Second, shadow};
use crate::observe::{
    forecast::{ForecastInput, clock_changes},
    slot::with_reason,
    view::{CronJobName, Detail, NextSlot},
    words::instant_text,
};

/// Number of next slots.
const NEXT_SLOTS_MAX: usize = 10;

impl Fleet {
    /// The names of the Jobs of a CronJob that the cluster has. `None` if the cluster does not have the CronJob.
    pub fn kept_job_names(&self, name: &CronJobName) -> Option<Vec<Box<str>>> {
        let cron_job = self.cron_jobs.by_name(name)?;
        let others = cron_job.other_runs.iter().filter(|other| other.is_kept);
        let slots = cron_job.slots.iter().filter(|slot| slot.is_kept && slot.has_job());
        let names = others.map(|other| other.run.job_name.clone());
        Some(names.chain(slots.map(|slot| cron_job.job_name(slot))).collect())
    }

    /// One CronJob. `None` if the cluster does not have it.
    pub fn detail(&self, name: &CronJobName, now: Timestamp) -> Option<Detail> {
        let cron_job = self.cron_jobs.by_name(name)?;
        let facts = cron_job.facts.as_deref()?;
        let freeze = self.present_freeze(cron_job, now);
        let freeze_text = freeze.map(|(until, reason)| {
            let text = format!("freeze: nothing starts before {}", instant_text(until));
            with_reason(text, reason)
        });
        let options = facts.schedule.options().sentences(facts.concurrency_policy).into_iter();
        // A walk over the slots of a long freeze would not end.
        let last_held = freeze.map(|(until, _)| Second::ceil(until).plus(-1));
        let next_slots = cron_job.next_slots(facts, Second::floor(now).max(last_held.unwrap_or(Second::MIN)));
        let next_slots: Vec<NextSlot> = next_slots.take(NEXT_SLOTS_MAX).collect();
        let frozen = freeze.filter(|_| !facts.is_suspended && !facts.is_deleting);
        let frozen = frozen.and_then(|(until, _)| ForecastInput::in_freeze(facts, until).frozen(now));
        let zone = facts.schedule.effective_zone();
        let clock_changes = next_slots.last().map(|last| clock_changes([zone], now, last.at));
        let labels = facts.labels.iter();
        Some(Detail {
            row: rows::row(cron_job, facts, (now, freeze.map(|(until, _)| until))),
            labels: labels.map(|(key, value)| (key.into(), value.into())).collect(),
            slots: self.last_slots(cron_job),
            other_runs: cron_job.jobs_without_slot().cloned().collect(),
            thaw: frozen.map(|frozen| frozen.thaw(now)),
            next_slots,
            clock_changes: clock_changes.unwrap_or_default(),
            attention: self.attention_of(cron_job, now).into_iter().collect(),
            differences: shadow::differences(cron_job, facts, (&self.observations, &self.inherited.freezes), now),
            options: options.chain(freeze_text).collect(),
            option_warnings: cron_job.option_warnings(facts),
        })
    }
}
