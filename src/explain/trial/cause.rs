//! The causes of a reason: the Jobs and values that hold a slot back, and the Jobs that are in no file.

use jiff::Timestamp;

use super::Trial;
use crate::{
    explain::{
        advice::{schedule_advice, shown, zone_advice},
        calendar::{days_text, local_text, span_text},
        never::nothing_matches,
        objects::Origin,
        reason::Reason,
        world::JobFacts,
    },
    schedule::{options::CatchUp, policy::ConcurrencyPolicy},
    shard::ActiveJob,
};

impl Trial<'_> {
    /// Returns the cause that holds the slot back.
    pub(super) fn cause(&self, reason: Reason, slot: Timestamp) -> Option<String> {
        if reason == Reason::DeadlineExceeded {
            let age = span_text(slot, self.now);
            let deadline = self.record.starting_deadline_seconds?;
            return Some(format!(
                "the slot is {age} old, and startingDeadlineSeconds is {deadline}"
            ));
        }
        if reason == Reason::Resumed {
            return self.release_text();
        }
        if reason == Reason::Excluded {
            let not_on = self.record.schedule.options().not_on.as_ref()?;
            let days = self.record.schedule.exclusion()?.entry(slot)?;
            return Some(format!("{} is in the ConfigMap {}", days_text(days), not_on.name));
        }
        if !matches!(reason, Reason::Forbidden | Reason::AlreadyActive) {
            return None;
        }
        let status = self.seen.written.as_ref().unwrap_or(&self.record.status);
        let job_text = |active: &ActiveJob| format!("Job {} {}", active.name, self.activity(active));
        let jobs: Vec<String> = status.active.iter().map(job_text).collect();
        (!jobs.is_empty()).then(|| jobs.join(", "))
    }

    /// Says when the suspension or the freeze ended that held the slot back.
    fn release_text(&self) -> Option<String> {
        let local = |instant| local_text(instant, self.record.schedule.effective_zone());
        let resumed = self.resumed.filter(|resumed| *resumed < self.now);
        let thawed = self.world.namespaces.frozen_until(&self.record.identity.namespace);
        let thawed = thawed.filter(|until| *until <= self.now);
        if thawed > resumed {
            return Some(format!("the freeze ended at {}", local(thawed?)));
        }
        // The end of a freeze stands on its namespace.
        let unseen = match self.record.schedule.options().missed_runs {
            CatchUp::Skip => "",
            CatchUp::Latest | CatchUp::All(_) => "; a controller that was not running then applies missed-runs",
        };
        Some(format!("it was resumed at {}{unseen}", local(resumed?)))
    }

    /// Says why a Job is still active.
    fn activity(&self, active: &ActiveJob) -> String {
        let namespace = self.namespace_of(active);
        let local = |instant| local_text(instant, self.record.schedule.effective_zone());
        let facts = self.world.job_facts(namespace, &active.name);
        if let Some(JobFacts {
            deleted: Some(deleted),
            finalizers,
            ..
        }) = facts
        {
            let held = match finalizers.as_slice() {
                [] => String::new(),
                [one] => format!(", and the finalizer {one} holds it"),
                several => format!(", and the finalizers {} hold it", several.join(", ")),
            };
            return format!("is being deleted since {}{held}", local(*deleted));
        }
        if facts.is_some_and(|facts| facts.is_suspended) {
            return "is suspended by its spec.suspend and does not end before it is resumed".to_owned();
        }
        let job = self.world.job(namespace, &active.name);
        let started = job.and_then(Result::ok).and_then(|job| job.started.or(job.scheduled));
        let since = started
            .map(|started| format!(" since {}", local(started)))
            .unwrap_or_default();
        match facts.and_then(|facts| facts.managed_by.as_deref()) {
            Some(manager) => format!("is active{since}, and its manager {manager} has not ended it"),
            None => format!("is active{since}"),
        }
    }

    /// Adds a suggested correction to the error of a parser or a loader.
    pub(super) fn with_advice(&self, reason: Reason, error: String) -> String {
        let schedule = &self.record.schedule;
        let advice = match (reason, &schedule.time_zone) {
            (Reason::UnparseableSchedule, _) => schedule_advice(&schedule.text),
            (Reason::UnknownTimeZone, Some(name)) => zone_advice(name),
            // The error of the built-in controller is about differences between slots.
            (Reason::NeverRuns, _) => return nothing_matches(schedule),
            (Reason::Frozen, _) => {
                let reason = self.world.namespaces.freeze_reason(&self.record.identity.namespace);
                return format!(
                    "{error}{}",
                    reason.map_or_else(String::new, |reason| format!(": {reason}"))
                );
            }
            _ => return error,
        };
        format!("{}; {advice}", shown(&error))
    }

    /// Returns the Jobs of the active list that are not in the file. In a cluster such a Job is gone.
    pub(super) fn missing_jobs(&self) -> Vec<String> {
        if self.world.origin == Origin::Cluster {
            return Vec::new();
        }
        let is_missing = |active: &&ActiveJob| self.world.job(self.namespace_of(active), &active.name).is_none();
        let active = self.record.status.active.iter();
        active
            .filter(is_missing)
            .map(|active| active.name.to_string())
            .collect()
    }

    /// Whether these Jobs of the active list would hold the start back if they still ran: under Forbid, and by the name
    /// of the Job to be created.
    pub(super) fn is_start_conditional(&self, missing_jobs: &[String]) -> bool {
        let is_forbid = self.record.concurrency_policy == ConcurrencyPolicy::Forbid;
        let order = self.seen.order.as_ref();
        order.is_some_and(|order| missing_jobs.iter().any(|job| is_forbid || **job == *order.name))
    }

    fn namespace_of<'b>(&'b self, active: &'b ActiveJob) -> &'b str {
        if active.namespace.is_empty() {
            &self.record.identity.namespace
        } else {
            &active.namespace
        }
    }
}
