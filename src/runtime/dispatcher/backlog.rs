//! What waits to be sent, in two lanes: creates, and behind them what nobody waits for. Pure and bounded.

use jiff::{SignedDuration, Timestamp};

use super::{
    fair_queue::{FairQueue, Namespaced},
    request::{Lane, Request},
};
use crate::state::sharding::Term;

/// Requests that can wait. A CronJob has at most one create waiting, so this is a million CronJobs due at one instant,
/// the most that one shard is built for: some 300 MiB should it ever fill.
pub(super) const BACKLOG_MAX: usize = 1 << 20;

/// What has waited behind creates for so long gets one turn in [`BACKGROUND_TURNS`], since creates may wait for it.
const BACKGROUND_WAIT_MAX: SignedDuration = SignedDuration::from_secs(10);

const BACKGROUND_TURNS: u32 = 8;

/// A request that waits.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) request: Request,
    /// The term in which it was ordered, the only one in which it may be sent.
    pub(super) term: Term,
    /// How many times it was sent and has to be sent again.
    pub(super) n_retries: u32,
    /// Why it is unknown whether an earlier sending was applied.
    pub(super) unanswered: Option<String>,
}

impl Namespaced for Queued {
    fn namespace(&self) -> &str {
        self.request.namespace()
    }
}

#[derive(Debug, Default)]
pub(super) struct Backlog {
    creates: FairQueue<Queued>,
    background: FairQueue<Queued>,
    n_turns: u32,
}

impl Backlog {
    /// Takes a request in, or gives it back when there is no room.
    pub(super) fn push(&mut self, queued: Queued, now: Timestamp) -> Result<(), Queued> {
        if self.creates.len() + self.background.len() >= BACKLOG_MAX {
            return Err(queued);
        }
        let lane = match queued.request.lane() {
            Lane::Creates => &mut self.creates,
            Lane::Background => &mut self.background,
        };
        let deadline = queued.request.deadline(now);
        lane.push(deadline, queued);
        Ok(())
    }

    /// The next to be sent.
    pub(super) fn pop(&mut self, now: Timestamp) -> Option<Queued> {
        self.n_turns = self.n_turns.wrapping_add(1);
        if self.n_turns.is_multiple_of(BACKGROUND_TURNS) && self.background_is_overdue(now) {
            return self.background.pop();
        }
        if self.creates.len() > 0 { self.creates.pop() } else { self.background.pop() }
    }

    fn background_is_overdue(&self, now: Timestamp) -> bool {
        self.background.earliest().is_some_and(|came| now.duration_since(came) > BACKGROUND_WAIT_MAX)
    }

    pub(super) fn n_creates(&self) -> usize {
        self.creates.len()
    }

    pub(super) fn n_background(&self) -> usize {
        self.background.len()
    }
}
