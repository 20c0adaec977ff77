//! The synchronous index of all CronJobs: facts of a cluster go in, views come out.
//!
//! Nothing here waits, reads a clock or knows a client: the watches call `apply_*` and `remove_*`, the page calls the
//! views, and [`Fleet::take_records`] returns what the history stores. What became of a slot is recomputed from the facts
//! after each event, so the order of events does not matter.
//!
//! The initial lists are judged when both watches are current, or by [`Fleet::advance`] once a namespace is listed in
//! full, and not Job by Job: half a list would tell of slots without Jobs.

mod attention;
mod busy_time;
mod cells;
mod creators;
mod cron_job;
mod cron_job_view;
mod cron_jobs;
mod detail;
mod due_slots;
mod early_runs;
mod era;
mod freezes;
mod holders;
mod inherited;
mod judge;
mod last_outcomes;
mod limits;
mod listed;
mod load;
mod minutes;
mod names;
mod namespaces;
mod observations;
mod options;
mod other_runs;
mod overview;
mod proof;
mod records;
mod release;
mod rows;
mod second;
mod shadow;
mod slot_record;
mod starts;
mod strip;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use self::{
    cells::Cells,
    creators::Creators,
    cron_job::{CronJob, Leaving, Surroundings},
    cron_jobs::{CronJobKey, CronJobs},
    early_runs::EarlyRuns,
    inherited::Inherited,
    limits::Overflows,
    listed::Listed,
    names::NameIds,
    observations::Observations,
    records::Outbox,
    second::Second,
};
pub use self::{cron_job_view::CronJobView, due_slots::KEPT_SLOTS_MAX, limits::FleetConfig};
use super::{
    facts::{CronJobFacts, Kind, Run},
    forecast::Forecast,
};
use crate::shard::Uid;

/// All CronJobs of a cluster with their Jobs.
#[derive(Debug)]
pub struct Fleet {
    config: FleetConfig,
    /// Slots from here on are kept beyond the maximum.
    kept_since: Second,
    cron_jobs: CronJobs,
    /// The CronJobs of the Jobs that the cluster has.
    jobs: BTreeMap<Uid, CronJobKey>,
    early_runs: EarlyRuns,
    observations: Observations,
    inherited: Inherited,
    overflows: Overflows,
    ids: NameIds,
    cells: Cells,
    creators: Creators,
    /// When outcomes change by time alone.
    wakeups: BTreeSet<(Second, CronJobKey)>,
    /// CronJobs that are not judged yet.
    unsettled: BTreeSet<CronJobKey>,
    listed: Listed,
    outbox: Outbox,
    version: u64,
    forecast: Forecast,
    forecast_computed: Timestamp,
    is_forecast_stale: bool,
}

impl Fleet {
    /// A fleet without CronJobs.
    pub fn new(config: FleetConfig, now: Timestamp) -> Fleet {
        Fleet {
            config,
            kept_since: Second::MAX,
            cron_jobs: CronJobs::default(),
            jobs: BTreeMap::new(),
            early_runs: EarlyRuns::default(),
            observations: Observations::default(),
            inherited: Inherited::default(),
            overflows: Overflows::default(),
            ids: NameIds::default(),
            cells: Cells::default(),
            creators: Creators::default(),
            wakeups: BTreeSet::new(),
            unsettled: BTreeSet::new(),
            listed: Listed::default(),
            outbox: Outbox::default(),
            version: 0,
            forecast: Forecast::new(std::iter::empty::<&CronJobFacts>(), now, now),
            forecast_computed: now,
            is_forecast_stale: false,
        }
    }

    /// A CronJob was listed, created or changed.
    pub fn apply_cron_job(&mut self, mut facts: CronJobFacts, now: Timestamp) {
        self.complete(&mut facts);
        if !self.has_room_for_cron_job(&facts.uid) {
            return;
        }
        let key = self
            .cron_jobs
            .insert(&facts.uid, &facts.namespace, &facts.name, &mut self.ids);
        self.cron_jobs.name(key);
        let early_runs = self.early_runs.take(&facts.uid);
        let Some(cron_job) = self.cron_jobs.get_mut(key) else {
            return;
        };
        let is_first = cron_job.facts.is_none();
        if cron_job.set_facts(facts, now) {
            self.outbox.push_change(cron_job, now);
            self.is_forecast_stale = true;
        }
        self.is_forecast_stale |= is_first;
        for run in early_runs {
            self.put_run(key, &run);
        }
        self.touch(key, now);
    }

    /// A CronJob was deleted. What it added to the last 24 hours stays.
    pub fn remove_cron_job(&mut self, uid: &Uid, now: Timestamp) {
        let Some(key) = self.cron_jobs.key(uid) else {
            return;
        };
        self.settle(key, now);
        let Some(cron_job) = self.cron_jobs.remove(key) else {
            return;
        };
        self.outbox.push_deletion(&cron_job, now);
        if let Some(wakeup) = cron_job.wakeup {
            self.wakeups.remove(&(wakeup, key));
        }
        self.unsettled.remove(&key);
        for job_uid in cron_job.job_uids() {
            self.jobs.remove(job_uid);
        }
        self.is_forecast_stale = true;
        self.version += 1;
    }

    /// A Job was listed, created or changed.
    pub fn apply_run(&mut self, run: Run, now: Timestamp) {
        let known = self.cron_jobs.key(&run.cron_job);
        let Some(key) = known else {
            self.jobs.remove(&run.job_uid);
            if self.has_room_for_early_run() {
                self.early_runs.put(run);
            }
            return;
        };
        if !self.has_room_for_job(&run.job_uid) {
            return;
        }
        self.put_run(key, &run);
        self.touch(key, now);
    }

    /// A Job was deleted. Its run stays known.
    pub fn remove_run(&mut self, job_uid: &Uid, now: Timestamp) {
        let Some(key) = self.jobs.remove(job_uid) else {
            self.early_runs.remove(job_uid);
            return;
        };
        self.lose_run(key, job_uid, Leaving::Seen(now));
        self.touch(key, now);
    }

    /// CronJobs that a new list does not contain are gone. `namespace` is that of the list.
    pub fn retain_cron_jobs(&mut self, listed: &BTreeSet<Uid>, namespace: Option<&str>, now: Timestamp) {
        let all = self.cron_jobs.iter();
        let gone = all.filter(|(_, cron_job)| is_in(cron_job, namespace) && !listed.contains(&cron_job.uid));
        let gone: Vec<Uid> = gone.map(|(_, cron_job)| cron_job.uid.clone()).collect();
        for uid in gone {
            self.remove_cron_job(&uid, now);
        }
        self.listed.add_cron_jobs(namespace);
        if let Some(namespace) = namespace {
            self.observations.regain(namespace, Kind::CronJob, now);
        }
    }

    /// Jobs that a new list does not contain are gone. `namespace` is that of the list.
    pub fn retain_runs(&mut self, listed: &BTreeSet<Uid>, namespace: Option<&str>, now: Timestamp) {
        let is_listed_here = |key: CronJobKey| {
            self.cron_jobs
                .get(key)
                .is_some_and(|cron_job| is_in(cron_job, namespace))
        };
        let known = self
            .jobs
            .iter()
            .filter(|(uid, key)| !listed.contains(*uid) && is_listed_here(**key));
        let gone: Vec<(CronJobKey, Uid)> = known.map(|(uid, key)| (*key, uid.clone())).collect();
        // The history told of others.
        let cron_jobs = self.cron_jobs.iter().filter(|(_, cron_job)| is_in(cron_job, namespace));
        let unlisted = cron_jobs.flat_map(|(key, cron_job)| {
            let uids = cron_job.unlisted_runs().into_iter();
            uids.map(move |uid| (key, uid))
        });
        let unlisted: Vec<(CronJobKey, Uid)> = unlisted.collect();
        if namespace.is_none() {
            self.early_runs.retain(listed);
        }
        // Nobody saw their end.
        let last_seen = Leaving::Unseen(self.observations.last());
        for (key, uid) in gone.into_iter().chain(unlisted) {
            self.jobs.remove(&uid);
            self.lose_run(key, &uid, last_seen);
            self.touch(key, now);
        }
        self.listed.add_jobs(namespace);
        if let Some(namespace) = namespace {
            self.observations.regain(namespace, Kind::Job, now);
        }
    }

    /// Both watches are current, or one of them no longer is: a period of observation begins or ends.
    pub fn set_watches_current(&mut self, is_current: bool, now: Timestamp) {
        if is_current == self.observations.is_current() {
            return;
        }
        if is_current {
            self.observations.begin(now);
            self.early_runs.drop_orphans(now);
        } else {
            self.observations.end(now);
            for cron_job in self.cron_jobs.iter_mut() {
                cron_job.forget_open_proofs();
            }
        }
        let with_facts = self.cron_jobs.iter().filter(|(_, cron_job)| cron_job.facts.is_some());
        let keys: Vec<CronJobKey> = with_facts.map(|(key, _)| key).collect();
        for key in keys {
            self.settle(key, now);
        }
        self.advance(now);
        self.version += 1;
    }

    /// Time passes: due slots open, slots settle, and old minutes leave the views.
    pub fn advance(&mut self, now: Timestamp) {
        self.observations.advance(now);
        let second = Second::floor(now);
        while let Some((_, key)) = self.wakeups.first().copied().filter(|(at, _)| *at <= second) {
            self.version += 1;
            self.settle(key, now);
        }
        for key in self.unsettled_and_listed().collect::<Vec<_>>() {
            self.settle(key, now);
        }
        self.cells.expire(second);
        self.creators.expire(second);
        self.refresh_forecast(now);
    }

    /// When [`Fleet::advance`] has something to do.
    pub fn next_wakeup(&self) -> Option<Timestamp> {
        if self.unsettled_and_listed().next().is_some() {
            return Some(self.forecast_computed);
        }
        let outcome = self.wakeups.first().map(|(at, _)| at.timestamp());
        outcome.into_iter().chain(self.forecast_due()).min()
    }

    /// A number that changes when a view may differ, except by the passing of time.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Places a Job of the cluster.
    fn put_run(&mut self, key: CronJobKey, run: &Run) {
        let Some(cron_job) = self.cron_jobs.get_mut(key) else {
            return;
        };
        self.jobs.insert(run.job_uid.clone(), key);
        let update = cron_job.put_run(run, true, &mut self.ids);
        if update.has_new_job {
            self.creators
                .count(self.ids.creator_id(&run.creator), Second::floor(run.created));
        }
        if let Some(slot) = update.failed_slot {
            self.cells.add_failure(cron_job.namespace_id, slot.minute());
        }
        if update.is_changed {
            self.outbox.push_run(cron_job, run.clone());
        }
    }

    fn lose_run(&mut self, key: CronJobKey, job_uid: &Uid, end: Leaving) {
        let Some(cron_job) = self.cron_jobs.get_mut(key) else {
            return;
        };
        if let Some(run) = cron_job.lose_run(job_uid, end, &self.ids) {
            self.outbox.push_run(cron_job, run);
        }
    }

    /// Judges a CronJob that changed: at once while the watches are current, otherwise with the others.
    fn touch(&mut self, key: CronJobKey, now: Timestamp) {
        self.version += 1;
        if self.observations.is_current() {
            self.settle(key, now);
        } else {
            self.unsettled.insert(key);
        }
    }

    /// The CronJobs to judge now. Without its facts and all of its Jobs, a CronJob would seem to have lost slots.
    fn unsettled_and_listed(&self) -> impl Iterator<Item = CronJobKey> {
        let is_listed = |key: &CronJobKey| {
            let cron_job = self.cron_jobs.get(*key);
            cron_job.is_some_and(|cron_job| cron_job.facts.is_some() && self.listed.contains(&cron_job.name.namespace))
        };
        self.unsettled.iter().copied().filter(is_listed)
    }

    fn settle(&mut self, key: CronJobKey, now: Timestamp) {
        self.unsettled.remove(&key);
        let Some(cron_job) = self.cron_jobs.get_mut(key) else {
            return;
        };
        let before = cron_job.wakeup;
        let is_changed = cron_job.settle(&mut Surroundings {
            now: Second::floor(now),
            n_slots_max: self.config.n_slots_max,
            kept_since: self.kept_since,
            observations: &self.observations,
            freezes: &self.inherited.freezes,
            ids: &self.ids,
            cells: &mut self.cells,
        });
        self.version += u64::from(is_changed);
        if before != cron_job.wakeup {
            if let Some(before) = before {
                self.wakeups.remove(&(before, key));
            }
            if let Some(wakeup) = cron_job.wakeup {
                self.wakeups.insert((wakeup, key));
            }
        }
    }
}

/// Whether a CronJob is in the namespace of a list.
fn is_in(cron_job: &CronJob, namespace: Option<&str>) -> bool {
    namespace.is_none_or(|namespace| *cron_job.name.namespace == *namespace)
}

#[cfg(test)]
mod tests;
