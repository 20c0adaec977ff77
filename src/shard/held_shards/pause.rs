//! Pauses the shards while the replica may not act, and during an outage of the API server.
//!
//! After an outage, requests succeed a little earlier than the watch of CronJobs. Jobs that were due during the
//! outage would then be created from outdated CronJobs, for example from a CronJob that was suspended meanwhile.
//! Therefore the shards decide again once the watch is open, but wait for it only for a limited time.

use std::time::Duration;

use super::HeldShards;
use crate::shard::{BootInstant, Clocks, OrderAnswer, ShardId, outcome::CreateOutcome};

/// How long the shards wait for the watch of CronJobs although the replica may act. Half the shortest period of a
/// schedule, so that no slot is superseded meanwhile. A refusal that lasts longer is not that of an API server that has
/// just started, and its scope is not awaited again. A watch that cannot reach the API server is retried every two
/// seconds.
pub const WATCH_WAIT_MAX: Duration = Duration::from_secs(30);

/// The pause of all shards.
#[derive(Debug, Default)]
pub(super) struct ShardPause {
    pub(super) is_on: bool,
    /// The instant at which the shards decide again although the watch of CronJobs is interrupted; `None` until the
    /// replica may act.
    ends_at: Option<BootInstant>,
}

impl HeldShards {
    /// Lets every shard record facts without deciding. Call while the replica may not act.
    pub fn pause(&mut self) {
        self.pause.ends_at = None;
        if !std::mem::replace(&mut self.pause.is_on, true) {
            for (shard, held) in &mut self.held {
                held.state.pause();
                self.changed.insert(*shard);
            }
        }
    }

    /// Lets every shard decide again, unless it waits for the watch of CronJobs. Call while the replica may act.
    pub fn resume_if_ready(&mut self, clocks: Clocks) {
        if !self.pause.is_on {
            return;
        }
        let ends_at = *self.pause.ends_at.get_or_insert(clocks.boot + WATCH_WAIT_MAX);
        if self.progress.are_cron_jobs_interrupted() && clocks.boot < ends_at {
            return;
        }
        if ends_at <= clocks.boot {
            self.progress.believe_refusals();
        }
        self.pause = ShardPause::default();
        for (shard, held) in &mut self.held {
            held.state.resume(clocks.wall);
            self.changed.insert(*shard);
            self.with_effects.insert(*shard);
        }
    }

    /// Whether the shards are paused.
    pub fn is_paused(&self) -> bool {
        self.pause.is_on
    }

    /// Whether neither this create nor the watch of the CronJobs in its scope reached the API server. A create that is only
    /// late proves nothing: an admission webhook may delay it, while CronJobs are listed again for another reason.
    pub(super) fn is_outage(&self, shard: ShardId, answer: &OrderAnswer) -> bool {
        let OrderAnswer::Create {
            cron_job,
            answer: CreateOutcome::Unanswered {
                is_unreachable: true, ..
            },
            ..
        } = answer
        else {
            return false;
        };
        let held = self.held.get(&shard);
        let namespace = held.and_then(|held| held.state.namespace_of(cron_job));
        namespace.is_some_and(|namespace| self.progress.are_cron_jobs_interrupted_in(namespace))
    }

    /// Pauses until the watch of CronJobs is open again. Requests that are not sent yet are withdrawn, and their
    /// slots are decided again later.
    pub(super) fn pause_in_outage(&mut self) {
        if self.pause.is_on {
            return;
        }
        self.pause();
        for (shard, held) in &mut self.held {
            held.state.withdraw_all();
            self.with_effects.insert(*shard);
        }
    }
}

#[cfg(test)]
mod tests;
