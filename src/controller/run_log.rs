//! Logs runs that have ended: at most a hundred lines in a second, and the number of those that are left out.
//!
//! The task of the shards calls it after it has handed out every request, so that no line delays a create.

use std::time::Duration;

use crate::shard::{BootInstant, CronJobIdentity, EndedRun, EndedRuns, LostSlots, RunEnd};

/// Maximum number of lines in a second: a millisecond of work.
const LINES_PER_SECOND: usize = 100;

/// The log of runs.
#[derive(Debug, Default)]
pub(super) struct RunLog {
    /// The beginning of the current second.
    begun: Option<BootInstant>,
    n_lines: usize,
    /// Runs that are left out and not reported yet.
    n_omitted: u64,
}

impl RunLog {
    /// Logs runs that wait, as far as the rate permits. The others wait on.
    pub(super) fn write(&mut self, runs: &EndedRuns, now: BootInstant) {
        self.n_omitted += runs.take_omitted();
        let is_over = |begun: BootInstant| now.since(begun) >= Duration::from_secs(1);
        if self.begun.is_none_or(is_over) {
            (self.begun, self.n_lines) = (Some(now), 0);
            self.report_omitted();
        }
        let taken = runs.take(LINES_PER_SECOND - self.n_lines);
        self.n_lines += taken.len();
        taken.iter().for_each(log);
    }

    /// Reports the number of the runs that no line names, at the end of the process.
    pub(super) fn end(&mut self, runs: &EndedRuns) {
        let n_waiting = runs.take(usize::MAX).len();
        self.n_omitted += runs.take_omitted() + u64::try_from(n_waiting).unwrap_or(u64::MAX);
        self.report_omitted();
    }

    fn report_omitted(&mut self) {
        let n_runs = std::mem::take(&mut self.n_omitted);
        if n_runs > 0 {
            tracing::warn!(n_runs, "runs ended without a line of their own: there are too many");
        }
    }
}

fn log(run: &EndedRun) {
    let CronJobIdentity { namespace, name, .. } = &*run.cron_job;
    let (namespace, cronjob) = (&**namespace, &**name);
    let outcome = run.outcome.as_str();
    let shard = run.shard_term.map(|shard_term| shard_term.shard.0);
    let term = run.shard_term.map(|shard_term| shard_term.term.0);
    match &run.end {
        RunEnd::Started { slot, job, lateness } => {
            let lateness_seconds = lateness.map(|lateness| lateness.as_secs_f64());
            let job = &**job;
            tracing::info!(%slot, namespace, cronjob, outcome, lateness_seconds, job, shard, term, "a run started");
        }
        RunEnd::Asked { token, job } => {
            let (token, job) = (&**token, &**job);
            tracing::info!(
                namespace,
                cronjob,
                outcome,
                token,
                job,
                shard,
                term,
                "a run that was asked for started"
            );
        }
        RunEnd::Lost { slots, error, next } => {
            let reason = run.outcome.loss();
            let (error, next) = (error.as_deref(), next.map(tracing::field::display));
            match slots {
                LostSlots::One(slot) => {
                    tracing::warn!(%slot, n_slots = 1, namespace, cronjob, outcome, reason, error, next, shard, term, "a run was lost");
                }
                LostSlots::Between { after, before, n_slots } => {
                    tracing::warn!(%after, %before, n_slots, namespace, cronjob, outcome, reason, next, shard, term, "runs were lost");
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
