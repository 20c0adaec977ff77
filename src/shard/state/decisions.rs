//! What was decided, kept for whoever asks why; a run keeps nothing.

use super::ShardState;
use crate::{
    schedule::policy::Verdict,
    shard::{ids::Uid, index::OwnerIndex},
};

/// One decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// About which CronJob.
    pub cron_job: Uid,
    /// What was decided.
    pub verdict: Verdict,
}

impl ShardState {
    /// Keeps every decision from here on for [`ShardState::take_decisions`]; who asks for them must take them.
    pub fn keep_decisions(&mut self) {
        self.decisions.get_or_insert_default();
    }

    /// The decisions since the last call, oldest first.
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
