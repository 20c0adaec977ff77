//! Leads and releases the shards of a replica by the commands of the election.
//!
//! A shard that is to be led stays on standby until its view is complete:
//!
//! - After a planned handover, when the watches have delivered every version that the last leader wrote or knew. If they
//!   have not within half a second, the next condition counts instead.
//! - Otherwise, when the watches have provably reached the versions that the quorum of etcd had after the command. One
//!   request for these versions serves all shards that wait for them.
//!
//! A watch that does not get there in time lists again, which completes the view as well. The caller makes the requests,
//! and forwards reports.

use std::{collections::VecDeque, iter, sync::Arc, time::Duration};

use super::{HeldShards, held::Held, pause::WATCH_WAIT_MAX};
use crate::shard::{
    BootInstant, Clocks, Entry, ResourceVersions, Scope, ShardCommand, ShardId, ShardPhase, ShardReport, ShardSet,
    ShardTerm, Term, WatchedResource,
};

/// How long the watches may take to deliver the last leader's versions before the current versions are requested. A watch
/// of a quiet namespace never delivers them.
const DELIVERY_PATIENCE: Duration = Duration::from_millis(500);

/// How long a watch may take to prove that it has reached a current version before it lists again. The second watch that
/// proves it for a quiet resource takes up to three seconds.
const PROOF_PATIENCE: Duration = Duration::from_secs(4);

/// The time between two relists of a watch that takeovers wait for. A list of 100,000 CronJobs takes less.
const RELIST_INTERVAL: Duration = Duration::from_secs(10);

/// A request for the current versions of all scopes, from the quorum of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionRequest {
    /// Each scope with the versions that its watches have reached. A second watch from them proves that nothing has
    /// changed since.
    pub reached: Vec<(Scope, ResourceVersions)>,
}

/// The takeovers of all shards of a replica, and the reports to the election.
#[derive(Debug, Default)]
pub(super) struct Takeovers {
    is_synced_reported: bool,
    /// The shards with a takeover.
    pub(super) shards: ShardSet,
    /// Whether a request for the current versions is not answered yet.
    is_requesting: bool,
    /// The watches that are to list again.
    relists: VecDeque<(Scope, WatchedResource)>,
    pub(super) reports: VecDeque<ShardReport>,
}

/// The command to lead a shard that is on standby, until its view is complete.
#[derive(Clone, Debug)]
pub(super) struct Takeover {
    term: Term,
    begun: BootInstant,
    /// The versions that the last leader wrote or knew, which the next leader must observe too.
    written: ResourceVersions,
    view: ViewNeeded,
}

/// What completes the view of a shard.
#[derive(Clone, Debug)]
enum ViewNeeded {
    /// The versions of the last leader in every scope, until this instant, and then the current versions.
    Written { until: BootInstant },
    /// The current versions, which are to be requested.
    Current,
    /// The current versions, which are requested and not answered.
    Requested,
    /// These versions, one pair for each scope. The watches that lack them list again at `relist_at`.
    Versions {
        needed: Arc<[ResourceVersions]>,
        relist_at: BootInstant,
    },
}

impl Takeover {
    /// The instant at which another step completes a view that lacks versions.
    pub(super) fn next_step(&self) -> Option<BootInstant> {
        match self.view {
            ViewNeeded::Written { until, .. } => Some(until),
            ViewNeeded::Versions { relist_at, .. } => Some(relist_at),
            ViewNeeded::Current | ViewNeeded::Requested => None,
        }
    }
}

impl HeldShards {
    /// Executes a command of the election.
    pub fn command(&mut self, command: ShardCommand, clocks: Clocks) {
        match command {
            ShardCommand::Lead {
                shard_term,
                entry,
                fired_through,
            } => {
                self.begin_takeover(shard_term, entry, clocks);
                self.update(shard_term.shard, |held| held.state.fired_through = fired_through);
            }
            ShardCommand::Seal(order) => self.begin_to_seal(order, clocks),
            ShardCommand::Release(shard) => self.release(shard, clocks),
            ShardCommand::ReleaseAll => {
                let shards: Vec<ShardId> = self.shards().collect();
                for shard in shards {
                    self.release(shard, clocks);
                }
            }
        }
        self.advance_lifecycles(clocks);
    }

    /// The next request for current versions. The caller passes the answer to [`HeldShards::take_current_versions`]. A
    /// request that fails is repeated by the caller.
    pub fn poll_version_request(&mut self) -> Option<VersionRequest> {
        if self.takeovers.is_requesting || !self.change_views(is_current, |view| *view = ViewNeeded::Requested) {
            return None;
        }
        self.takeovers.is_requesting = true;
        Some(VersionRequest {
            reached: self.progress.reached(),
        })
    }

    /// Handles the current versions, one pair for each scope. A scope that the API server does not permit has versions of
    /// zero, so the shards are led without it.
    pub fn take_current_versions(&mut self, current: Arc<[ResourceVersions]>, clocks: Clocks) {
        self.takeovers.is_requesting = false;
        self.change_views(is_requested, |view| {
            *view = ViewNeeded::Versions {
                needed: Arc::clone(&current),
                relist_at: clocks.boot + PROOF_PATIENCE,
            };
        });
        self.advance_lifecycles(clocks);
    }

    /// The next watch that must list again.
    pub fn poll_relist(&mut self) -> Option<(Scope, WatchedResource)> {
        self.takeovers.relists.pop_front()
    }

    /// Leads, seals or reports each ready shard. Call it in every iteration, and at
    /// [`HeldShards::next_lifecycle_step`].
    pub fn advance_lifecycles(&mut self, clocks: Clocks) {
        if !self.takeovers.is_synced_reported && self.are_permitted_watches_synced() {
            self.takeovers.is_synced_reported = true;
            self.takeovers.reports.push_back(ShardReport::Synced);
        }
        self.advance_takeovers(clocks);
        self.advance_sealing(clocks);
    }

    /// The instant of the next call of [`HeldShards::advance_lifecycles`]; may be early, never late.
    pub fn next_lifecycle_step(&self) -> Option<BootInstant> {
        // Until the watches are listed, a takeover waits for them and not for an instant.
        let are_listed = self.are_permitted_watches_synced();
        let waiting = are_listed.then(|| self.taken_over()).into_iter().flatten();
        let steps = waiting.filter_map(|(_, takeover)| takeover.next_step());
        steps.chain(self.next_sealing_step()).min()
    }

    /// The next report to the election.
    pub fn poll_report(&mut self) -> Option<ShardReport> {
        self.takeovers.reports.pop_front()
    }

    fn begin_takeover(&mut self, shard_term: ShardTerm, entry: Entry, clocks: Clocks) {
        let ShardTerm { shard, term } = shard_term;
        let Some(held) = self.held.get_mut(&shard) else { return };
        if held.term.is_some() || held.state.phase() != ShardPhase::Standby {
            held.stand_by(clocks.wall);
        }
        let (written, view) = match entry {
            Entry::Watch(written) => {
                let until = clocks.boot + DELIVERY_PATIENCE;
                (written, ViewNeeded::Written { until })
            }
            Entry::Current => (ResourceVersions::default(), ViewNeeded::Current),
        };
        self.sealing.shards.remove(shard);
        held.sealing = None;
        held.takeover = Some(Takeover {
            term,
            begun: clocks.boot,
            written,
            view,
        });
        self.takeovers.shards.insert(shard);
    }

    /// The shards with a takeover.
    fn taken_over(&self) -> impl Iterator<Item = (ShardId, &Takeover)> {
        let shards = self.takeovers.shards.iter();
        shards.filter_map(|shard| Some((shard, self.held.get(&shard)?.takeover.as_ref()?)))
    }

    /// Changes the views needed that meet a condition. Returns whether there were any.
    fn change_views(&mut self, is_meant: impl Fn(&ViewNeeded) -> bool, change: impl Fn(&mut ViewNeeded)) -> bool {
        let mut is_any = false;
        for shard in self.takeovers.shards.iter() {
            let takeover = self.held.get_mut(&shard).and_then(|held| held.takeover.as_mut());
            if let Some(takeover) = takeover.filter(|takeover| is_meant(&takeover.view)) {
                change(&mut takeover.view);
                is_any = true;
            }
        }
        is_any
    }

    fn advance_takeovers(&mut self, clocks: Clocks) {
        if self.takeovers.shards.is_empty() || !self.are_permitted_watches_synced() {
            return;
        }
        let mut ready = Vec::new();
        let mut is_late = false;
        for (shard, takeover) in self.taken_over() {
            match &takeover.view {
                ViewNeeded::Written { .. } if self.progress.has_reached(iter::repeat(&takeover.written)) => {
                    ready.push(shard);
                }
                ViewNeeded::Versions { needed, .. } if self.progress.has_reached(needed.iter()) => ready.push(shard),
                ViewNeeded::Versions { relist_at, .. } => is_late |= *relist_at <= clocks.boot,
                ViewNeeded::Written { .. } | ViewNeeded::Current | ViewNeeded::Requested => {}
            }
        }
        // The shards are ready one by one, but decide at once.
        self.set_catch_up_share();
        for shard in ready {
            self.begin_to_lead(shard, clocks);
        }
        self.change_views(
            |view| matches!(view, ViewNeeded::Written { until, .. } if *until <= clocks.boot),
            |view| *view = ViewNeeded::Current,
        );
        if is_late {
            self.relist_behind(clocks);
        }
    }

    /// Lets the watches that lack versions for a late takeover list again.
    fn relist_behind(&mut self, clocks: Clocks) {
        let is_long = |(_, takeover): (ShardId, &Takeover)| clocks.boot.since(takeover.begun) >= WATCH_WAIT_MAX;
        if self.taken_over().any(is_long) {
            // A namespace whose rights were removed keeps no shard without a leader.
            self.progress.believe_refusals();
        }
        let mut behind = Vec::new();
        for (_, takeover) in self.taken_over() {
            if let ViewNeeded::Versions { needed, relist_at } = &takeover.view
                && *relist_at <= clocks.boot
            {
                behind.extend(self.progress.behind(needed));
            }
        }
        behind.sort();
        behind.dedup();
        self.takeovers.relists.extend(behind);
        let next = clocks.boot + RELIST_INTERVAL;
        self.change_views(
            |view| matches!(view, ViewNeeded::Versions { relist_at, .. } if *relist_at <= clocks.boot),
            |view| {
                if let ViewNeeded::Versions { relist_at, .. } = view {
                    *relist_at = next;
                }
            },
        );
    }

    fn begin_to_lead(&mut self, shard: ShardId, clocks: Clocks) {
        self.takeovers.shards.remove(shard);
        let taken = self.held.get_mut(&shard).and_then(|held| held.takeover.take());
        let Some(Takeover { term, written, .. }) = taken else {
            return;
        };
        let shard_term = ShardTerm { shard, term };
        self.lead(shard_term, clocks.wall);
        // The next leader must observe these versions too.
        self.update(shard, |held| held.written = held.written.max(&written));
        self.takeovers.reports.push_back(ShardReport::Leading(shard_term));
    }

    /// Ends the leadership of a shard, or the command to lead it.
    fn release(&mut self, shard: ShardId, clocks: Clocks) {
        self.takeovers.shards.remove(shard);
        self.sealing.shards.remove(shard);
        let is_leader = |held: &Held| held.term.is_some() || held.takeover.is_some() || held.sealing.is_some();
        if let Some(held) = self.held.get_mut(&shard).filter(|held| is_leader(held)) {
            held.stand_by(clocks.wall);
            self.changed.insert(shard);
        }
        self.with_effects.remove(&shard);
    }
}

fn is_current(view: &ViewNeeded) -> bool {
    matches!(view, ViewNeeded::Current)
}

fn is_requested(view: &ViewNeeded) -> bool {
    matches!(view, ViewNeeded::Requested)
}

#[cfg(test)]
mod tests;
