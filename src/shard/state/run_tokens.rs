//! The tokens that the Jobs of runs carry (O-10): how a leader knows of a run that a former one started and did not store.

use jiff::Timestamp;

use super::ShardState;
use crate::{
    schedule::options::TOKENS_REMEMBERED_MAX,
    shard::index::{Job, JobIndex, OwnerIndex},
};

impl ShardState {
    /// The token of a Job of a run that was asked for: the Job carries it, and has the name that it determines.
    pub(super) fn run_token(&self, owner: OwnerIndex, job: JobIndex) -> Option<&str> {
        let token = self.index.run_token(job)?;
        let name = self.index.cron_job(owner).record.run_job_name(token);
        (self.index.job(job).name == name).then_some(token)
    }

    /// Notes that tokens are answered whose Jobs a former leader created, if that was not stored before it ended. The run
    /// that is asked for finds its own Job.
    pub(super) fn note_carried_tokens(&mut self, owner: OwnerIndex) {
        // The usual case.
        if !self.index.has_run_tokens() {
            return;
        }
        for token in self.carried_tokens(owner) {
            self.index.cron_job_mut(owner).note_run_done(&token);
        }
    }

    /// The tokens of Jobs that are not answered, the oldest first. If as many are answered as are remembered, an older Job
    /// than those of them is of a token that was forgotten.
    fn carried_tokens(&self, owner: OwnerIndex) -> Vec<Box<str>> {
        let cron_job = self.index.cron_job(owner);
        let status = cron_job.current_status();
        let asked = [cron_job.asked_run(), cron_job.run.as_deref().map(|run| &*run.token)];
        let jobs = self.index.children_of(owner);
        let carried = jobs.filter_map(|(index, job)| Some((age(job), self.run_token(owner, index)?)));
        let (done, mut waiting): (Vec<_>, Vec<_>) = carried.partition(|(_, token)| status.is_run_done(token));
        waiting.retain(|(_, token)| !asked.contains(&Some(*token)));
        if status.tokens_done().count() >= TOKENS_REMEMBERED_MAX {
            let newest = done.iter().map(|(age, _)| *age).max();
            waiting.retain(|(age, _)| Some(*age) > newest);
        }
        waiting.sort_unstable();
        waiting.into_iter().map(|(_, token)| token.into()).collect()
    }
}

/// The order of Jobs by their starts; one that has not started is the newest.
fn age(job: &Job) -> (bool, Option<Timestamp>) {
    (job.started().is_none(), job.started())
}
