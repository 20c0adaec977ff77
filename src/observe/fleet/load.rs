//! Loads the history into an empty fleet, before the first lists.

use jiff::Timestamp;

use super::{Fleet, KEPT_SLOTS_MAX, cells::MINUTES_KEPT, second::Second};
use crate::observe::facts::{CronJobChange, Record, Run};

/// Runs of the last day are loaded up to this number, 48 MB: they count in the tiles. Beyond it, each CronJob has only as
/// many as it has slots.
const RUNS_MAX: usize = 1_000_000;

impl Fleet {
    /// Keeps all slots from an instant on, up to [`KEPT_SLOTS_MAX`] of each CronJob. To be called before the history is
    /// loaded.
    pub fn keep_since(&mut self, since: Timestamp) {
        self.kept_since = Second::floor(since);
    }

    /// Loads the records of the history, in the order in which they were stored, before the first lists. They may come in
    /// several parts.
    pub fn load(&mut self, records: impl IntoIterator<Item = Record>, now: Timestamp) {
        let mut n_runs: usize = self.cron_jobs.iter().map(|(_, cron_job)| cron_job.slots.len()).sum();
        for record in records {
            match record {
                Record::Observation(observation) => {
                    let until = Some(Second::floor(observation.to));
                    self.inherited.loaded_until = self.inherited.loaded_until.max(until);
                    self.observations.load(observation);
                }
                Record::Freeze(span) => self.load_freeze(&span),
                // Of namespaces that are not watched, nothing would end what the history tells.
                Record::Change(CronJobChange { namespace, .. }) | Record::Run { namespace, .. }
                    if !self.observations.is_watched(&namespace) => {}
                Record::Change(change) => self.load_change(&change),
                Record::Run {
                    namespace,
                    cron_job_name,
                    run,
                } => self.load_run((&namespace, &cron_job_name), &run, now, &mut n_runs),
            }
        }
        self.version += 1;
    }

    fn load_change(&mut self, change: &CronJobChange) {
        if change.is_deleted {
            // Its runs stay until the list of CronJobs is there.
            return;
        }
        let key = self
            .cron_jobs
            .insert(&change.cron_job, &change.namespace, &change.name, &mut self.ids);
        if let Some(cron_job) = self.cron_jobs.get_mut(key) {
            cron_job.eras.load(change);
        }
    }

    fn load_run(&mut self, (namespace, name): (&str, &str), run: &Run, now: Timestamp, n_runs: &mut usize) {
        let key = self.cron_jobs.insert(&run.cron_job, namespace, name, &mut self.ids);
        self.unsettled.insert(key);
        let Some(cron_job) = self.cron_jobs.get_mut(key) else {
            return;
        };
        let n_before = cron_job.slots.len();
        let update = cron_job.put_run(run, false, &mut self.ids);
        if update.has_new_job {
            self.creators
                .count(self.ids.creator_id(&run.creator), Second::floor(run.created));
        }
        let oldest_minute = Second::floor(now).minute().saturating_sub(MINUTES_KEPT);
        let oldest_minute = oldest_minute.min(self.kept_since.minute());
        let is_long = cron_job.slots.len() > KEPT_SLOTS_MAX;
        let is_old = cron_job
            .slots
            .first()
            .is_some_and(|slot| slot.at.minute() < oldest_minute);
        if is_old || is_long || *n_runs >= RUNS_MAX {
            let n_slots_max = self.config.n_slots_max.max(cron_job.slots.len().saturating_sub(1));
            let n_slots_max = if *n_runs >= RUNS_MAX {
                self.overflows.of_history = true;
                self.config.n_slots_max
            } else {
                n_slots_max
            };
            cron_job.trim(n_slots_max, &self.ids);
        }
        *n_runs = (*n_runs + cron_job.slots.len()).saturating_sub(n_before);
    }
}
