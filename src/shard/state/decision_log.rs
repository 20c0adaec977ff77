//! Records decisions for diagnosis, such as `explain`; a run records none.

use super::ShardState;
use crate::{
    schedule::policy::Verdict,
    shard::{ids::Uid, index::OwnerIndex},
};

/// A recorded decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The uid of the CronJob.
    pub cron_job: Uid,
    /// The verdict.
    pub verdict: Verdict,
}

impl ShardState {
    /// Records every later decision for [`ShardState::take_decisions`], which the caller must call to bound the memory.
    pub fn keep_decisions(&mut self) {
        self.decisions.get_or_insert_default();
    }

    /// Returns the decisions since the last call, oldest first.
    pub fn take_decisions(&mut self) -> Vec<Decided> {
        self.decisions.as_mut().map(std::mem::take).unwrap_or_default()
    }

    pub(super) fn note_decision(&mut self, owner: OwnerIndex, verdict: &Verdict) {
        if let (Some(decisions), Some(cron_job)) = (&mut self.decisions, self.index.cron_job(owner)) {
            decisions.push(Decided {
                cron_job: cron_job.record.identity.uid.clone(),
                verdict: verdict.clone(),
            });
        }
    }
}
