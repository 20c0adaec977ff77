//! What the history stores, until it is taken.

use jiff::Timestamp;

use super::{Fleet, cron_job::CronJob};
use crate::observe::facts::{CronJobChange, Record, Run};

/// Records that were not taken yet. The caller takes them after each step, so they need no limit. A record that is dropped
/// would make its slot read as lost after a restart.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    records: Vec<Record>,
}

impl Fleet {
    /// What happened since the last call, for the history. The caller takes the records even if it does not store them.
    pub fn take_records(&mut self) -> Vec<Record> {
        let mut records = std::mem::take(&mut self.outbox.records);
        records.extend(self.observations.take_record().map(Record::Observation));
        records
    }
}

impl Outbox {
    pub(super) fn push(&mut self, record: Record) {
        self.records.push(record);
    }

    pub(super) fn push_run(&mut self, cron_job: &CronJob, run: Run) {
        self.records.push(Record::Run {
            namespace: cron_job.name.namespace.clone(),
            cron_job_name: cron_job.name.name.clone(),
            run,
        });
    }

    /// The CronJob was created or changed.
    pub(super) fn push_change(&mut self, cron_job: &CronJob, now: Timestamp) {
        if let Some(change) = change(cron_job, now, false) {
            self.records.push(Record::Change(change));
        }
    }

    /// The CronJob was deleted.
    pub(super) fn push_deletion(&mut self, cron_job: &CronJob, now: Timestamp) {
        if let Some(change) = change(cron_job, now, true) {
            self.records.push(Record::Change(change));
        }
    }
}

fn change(cron_job: &CronJob, now: Timestamp, is_deleted: bool) -> Option<CronJobChange> {
    let (era, schedule) = cron_job.eras.last_change(cron_job.facts.as_deref())?;
    Some(CronJobChange {
        // A change that nobody watched has the time that the object tells.
        at: if is_deleted { now } else { era.from.timestamp().min(now) },
        cron_job: cron_job.uid.clone(),
        namespace: cron_job.name.namespace.clone(),
        name: cron_job.name.name.clone(),
        schedule: schedule.text.clone(),
        time_zone: schedule.time_zone.clone(),
        is_suspended: era.is_suspended,
        concurrency_policy: era.policy,
        starting_deadline_seconds: era.deadline_seconds,
        is_deleted,
    })
}
