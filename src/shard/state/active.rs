//! The active list, `lastSuccessfulTime`, adoption and missing Jobs (B-5).

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use jiff::Timestamp;

use super::ShardState;
use crate::{
    schedule::after,
    shard::{
        ShardPhase,
        cron_job::LookUp,
        effect::{EventReason, JobLookUp},
        ids::{CronJobIdentity, Uid},
        index::{Job, JobIndex, OwnerIndex},
        naming,
        record::{ActiveJob, Finish},
    },
};

/// The action that one Job requires.
enum Finding {
    /// A running Job of this CronJob that is not on the list (B-5.1 and its difference).
    Adopt,
    /// A running Job that cronwheel did not create.
    Unexpected,
    /// A Job on the list that has ended.
    Ended(Finish),
}

/// The look-up for an entry of the active list (B-5.4).
pub(super) fn look_up_of(cron_job: &Arc<CronJobIdentity>, active: &ActiveJob) -> JobLookUp {
    let namespace = if active.namespace.is_empty() {
        &cron_job.namespace
    } else {
        &active.namespace
    };
    JobLookUp {
        cron_job: cron_job.clone(),
        namespace: namespace.clone(),
        name: active.name.clone(),
        listed_uid: Some(active.uid.clone()),
    }
}

impl ShardState {
    /// Reconciles the active list with the Jobs (B-5.1), then looks up the entries without a known Job (B-5.4).
    pub(super) fn reconcile_active(&mut self, owner: OwnerIndex, now: Timestamp) {
        for (job, finding) in self.findings(owner, now) {
            match finding {
                Finding::Adopt => self.adopt(owner, job),
                Finding::Unexpected => self.report_unexpected(owner, job, now),
                Finding::Ended(finish) => self.take_off(owner, job, finish),
            }
        }
        self.note_success(owner, now);
        self.look_up_missing(owner, now);
    }

    /// The actions required, ordered by slot and name. Usually none.
    fn findings(&self, owner: OwnerIndex, now: Timestamp) -> Vec<(JobIndex, Finding)> {
        let cron_job = self.index.cron_job(owner);
        let listed = cron_job.listed();
        let latest = self.latest_slot_of_jobs(now);
        let mut findings = Vec::new();
        for (index, job) in self.index.jobs_of(owner) {
            let is_listed = listed.contains(&job.uid);
            let is_child = job.is_in_namespace_of(&cron_job.record.identity);
            let finding = match (job.finish, is_listed) {
                _ if !is_child || (!is_listed && job.is_scheduled_after(latest)) => {
                    if job.is_reported_unexpected {
                        continue;
                    }
                    Finding::Unexpected
                }
                (Some(finish), true) => Finding::Ended(finish),
                (None, false) if job.is_delete_requested => continue,
                (None, false) if self.is_ours(owner, index) => Finding::Adopt,
                (None, false) if !job.is_reported_unexpected => Finding::Unexpected,
                (None, _) | (Some(_), false) => continue,
            };
            findings.push((index, finding));
        }
        findings.sort_by_key(|(index, _)| {
            let job = self.index.job(*index);
            (job.scheduled(), &job.name)
        });
        findings
    }

    /// Whether the Job is that of a slot or of a run that is asked for, or one of others that counts by the option
    /// `manual-jobs`.
    pub(super) fn is_ours(&self, owner: OwnerIndex, job: JobIndex) -> bool {
        let cron_job = self.index.cron_job(owner);
        self.is_of_slot(owner, job)
            || cron_job.record.schedule.options().counts_manual_jobs
            || cron_job.is_job_of_run(self.index.job(job))
            || self.run_token(owner, job).is_some()
    }

    /// Whether the Job's name matches its scheduled timestamp.
    fn is_of_slot(&self, owner: OwnerIndex, job: JobIndex) -> bool {
        let name = &self.index.cron_job(owner).record.identity.name;
        let job = self.index.job(job);
        job.scheduled()
            .is_some_and(|slot| naming::is_job_name(&job.name, name, slot))
    }

    /// The running Jobs of the CronJob that Forbid and Replace count (B-5.1 and its difference).
    pub(super) fn running(&self, owner: OwnerIndex) -> impl Iterator<Item = &Job> {
        let listed = self.index.cron_job(owner).listed();
        let children = self.index.children_of(owner).map(|(_, job)| job);
        children.filter(move |job| job.finish.is_none() && !job.is_delete_requested && listed.contains(&job.uid))
    }

    /// Whether the Job of the last slot also has the name for this slot, since both are in the same minute, and has
    /// ended. A create would fail because the name is taken (B-12.3).
    pub(super) fn has_ended_job(&self, owner: OwnerIndex, slot: Timestamp) -> bool {
        let cron_job = self.index.cron_job(owner);
        let Some(last) = cron_job.current_status().last_schedule_time else {
            return false;
        };
        let name = &cron_job.record.identity.name;
        let is_ended = |job: &Job| {
            job.finish.is_some()
                && !job.is_delete_requested
                && [last, slot]
                    .iter()
                    .all(|slot| naming::is_job_name(&job.name, name, *slot))
        };
        self.index.children_of(owner).any(|(_, job)| is_ended(job))
    }

    /// The latest slot for which a Job can exist, given the permitted difference between the clocks of replicas. A
    /// Job with a later slot belongs to no run.
    pub(super) fn latest_slot_of_jobs(&self, now: Timestamp) -> Timestamp {
        after(now, self.config.clock_skew_max)
    }

    fn adopt(&mut self, owner: OwnerIndex, job: JobIndex) {
        let active = self.active_entry(job);
        let scheduled = self.index.job(job).scheduled().filter(|_| self.is_of_slot(owner, job));
        let cron_job = self.index.cron_job_mut(owner);
        cron_job.add_active(active);
        if let Some(slot) = scheduled
            && cron_job.advance_cursor(slot)
        {
            cron_job.must_decide = true;
            cron_job.note_short_life();
        }
    }

    /// Moves the cursor to the latest slot whose Job of this CronJob has ended without being recorded. Otherwise a
    /// slot that may no longer start would never find its Job. Returns the cursor.
    pub(super) fn record_ended(&mut self, owner: OwnerIndex, now: Timestamp) -> Option<Timestamp> {
        let latest_slot = self.latest_slot_of_jobs(now);
        let is_ended = |job: &Job| job.finish.is_some() && !job.is_scheduled_after(latest_slot);
        let ended = self.index.children_of(owner).filter(|(_, job)| is_ended(job));
        let ours = ended.filter(|(index, _)| self.is_of_slot(owner, *index));
        let latest = ours.filter_map(|(_, job)| job.scheduled()).max();
        let cron_job = self.index.cron_job_mut(owner);
        if let Some(slot) = latest {
            cron_job.advance_cursor(slot);
        }
        cron_job.current_status().last_schedule_time
    }

    /// The entry of `status.active` for a Job (B-12.5).
    pub(super) fn active_entry(&self, job: JobIndex) -> ActiveJob {
        let job = self.index.job(job);
        ActiveJob {
            name: job.name.clone(),
            namespace: (*job.namespace).into(),
            uid: job.uid.clone(),
            resource_version: job.resource_version.to_string().into(),
        }
    }

    fn report_unexpected(&mut self, owner: OwnerIndex, job: JobIndex, now: Timestamp) {
        let job = self.index.job_mut(job);
        job.is_reported_unexpected = true;
        let (namespace, name) = (job.namespace.clone(), job.name.clone());
        self.outcome_counts.unexpected_jobs += 1;
        let cron_job = self.index.cron_job_mut(owner);
        let place = if *cron_job.record.identity.namespace == *namespace {
            String::new()
        } else {
            format!("{namespace}/")
        };
        if cron_job.rare_mut().unexpected_events.take(now) {
            let message = format!("Saw a job that the controller did not create or forgot: {place}{name}");
            self.emit_event(owner, EventReason::UnexpectedJob, message);
        }
    }

    fn take_off(&mut self, owner: OwnerIndex, job: JobIndex, finish: Finish) {
        let job = self.index.job(job);
        let (uid, message) = (
            job.uid.clone(),
            format!("Saw completed job: {}, condition: {}", job.name, finish.as_str()),
        );
        self.index.cron_job_mut(owner).remove_active(&uid);
        self.emit_event(owner, EventReason::SawCompletedJob, message);
    }

    /// Sets `lastSuccessfulTime` to the latest completion observed (B-5.1).
    fn note_success(&mut self, owner: OwnerIndex, now: Timestamp) {
        let latest_slot = self.latest_slot_of_jobs(now);
        let children = self.index.children_of(owner).map(|(_, job)| job);
        let children = children.filter(|job| !job.is_scheduled_after(latest_slot));
        if let Some(latest) = children.filter_map(Job::completed).max() {
            self.index.cron_job_mut(owner).note_success(latest);
        }
    }

    /// Looks up the entries without a known Job (B-5.4), once, and again after a failure.
    fn look_up_missing(&mut self, owner: OwnerIndex, now: Timestamp) {
        let (uids, mut missing) = self.missing(owner);
        let cron_job = self.index.cron_job_mut(owner);
        cron_job
            .lookups
            .retain(|uid, look_up| missing.get(uid) == Some(&look_up.request));
        for uid in uids {
            let Some(request) = missing.remove(&uid) else { continue };
            let next = match self.index.cron_job_mut(owner).lookups.entry(uid) {
                Entry::Occupied(known) => known.into_mut().retry(now),
                Entry::Vacant(vacant) => {
                    vacant.insert(LookUp::new(request.clone()));
                    Ok(Some(request))
                }
            };
            self.look_up_or_wait(owner, next);
        }
    }

    /// The entries of the active list without a known Job, in order, with the look-up for each. Of entries with the
    /// same uid, the second is looked up after the first is answered.
    fn missing(&self, owner: OwnerIndex) -> (Vec<Uid>, BTreeMap<Uid, JobLookUp>) {
        let (mut uids, mut requests) = (Vec::new(), BTreeMap::new());
        let cron_job = self.index.cron_job(owner);
        for active in &cron_job.current_status().active {
            if !self.index.is_child_of(owner, &active.uid)
                && let Entry::Vacant(vacant) = requests.entry(active.uid.clone())
            {
                uids.push(active.uid.clone());
                vacant.insert(look_up_of(&cron_job.record.identity, active));
            }
        }
        (uids, requests)
    }

    /// Removes a Job that a list does not contain. The Job may exist, so its entry in the active list is looked up.
    pub(super) fn remove_doubtful_job(&mut self, job: JobIndex, now: Timestamp) {
        let owner = self.index.remove_job(job).owner;
        self.evaluate_jobs(owner, now);
    }

    /// Removes a Job that is gone. A Job on the list that cronwheel did not delete went missing (B-5.4).
    pub(super) fn forget_job(&mut self, job: JobIndex, now: Timestamp) {
        let job = self.index.remove_job(job);
        let owner = job.owner;
        // On standby, the status is that of the leader. An entry that is left over is looked up later.
        if self.phase_of(owner) == ShardPhase::Standby {
            return;
        }
        let Some(cron_job) = self.index.get_cron_job_mut(owner) else {
            return;
        };
        let was_active = cron_job.remove_active(&job.uid);
        if cron_job.awaits_job(&job)
            && let Some(open) = &mut cron_job.open
        {
            open.gone = Some(Box::new(job.uid.clone()));
        }
        if let Some(run) = cron_job.run_awaiting(&job) {
            run.open.gone = Some(Box::new(job.uid.clone()));
        }
        if was_active && !job.is_delete_requested && job.finish.is_none() && self.is_listed(owner) {
            self.emit_event(
                owner,
                EventReason::MissingJob,
                format!("Active job went missing: {}", job.name),
            );
        }
        self.evaluate_jobs(owner, now);
    }
}
