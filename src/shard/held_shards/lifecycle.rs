//! Executes an election's commands to the shards of a replica: load, lead, seal and release.
//!
//! A shard passes through these states:
//!
//! - Loading: the shard is on standby, and its own list is ordered or in progress.
//! - Takeover: the shard is to be led, and is led once its view is complete. The view is complete at the end of a
//!   consistent list that began after the command to lead. After a handover, it is complete as well when the loaded
//!   objects and the watches have reached every version that the last leader wrote or knew.
//! - Leading: the shard acts.
//! - Closing: the shard is to be sealed, and still acts. It is sealed once it is idle, and at the time limit of the order
//!   in any case. A shard is idle when its requests are answered and its statuses are stored. A shard that is handed over
//!   also waits until no Job of it is due soon, and until another shard may be sealed.
//! - Sealed: no replica acts for the shard until the next leader does.
//! - Reported: the seal was reported to the election, once the shard was idle or two seconds after the seal.
//!
//! The last three states are in [`sealing`](super::sealing). The caller performs effects, makes lists and forwards
//! reports.

use std::{collections::VecDeque, time::Duration};

use super::{HeldShards, ListRequest, held::Held, list_queue::ListQueue};
use crate::shard::{
    BootInstant, Clocks, Entry, Input, ResourceVersions, Scope, ShardCommand, ShardId, ShardPhase, ShardReport,
    ShardSet, ShardTerm, Term,
};

/// How long the watches may take to deliver the last leader's versions before the shard is listed as well.
const WATCH_PATIENCE: Duration = Duration::from_millis(500);

/// The lists and reports of all shards of a replica.
#[derive(Debug, Default)]
pub(super) struct Lifecycle {
    is_synced_reported: bool,
    /// Shards whose loading is to be reported.
    loading: ShardSet,
    lists: ListQueue,
    pub(super) reports: VecDeque<ShardReport>,
    /// The next seal is timed from here: from the last seal of a shard that another member will lead, or from the last
    /// `next_seal_at` at which no shard was ready.
    pub(super) seal_timed_from: Option<BootInstant>,
}

/// The command to lead a shard that is on standby, until its view is complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Takeover {
    term: Term,
    /// The versions that must be observed; `None` if only a list suffices.
    written: Option<ResourceVersions>,
    list: TakeoverList,
}

/// The list for a takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TakeoverList {
    /// It is not needed if the watches deliver the versions before this instant.
    NotBefore(BootInstant),
    /// It is in the queue, in progress or complete.
    Requested,
}

impl Takeover {
    /// The instant at which a list is requested if the watches have not delivered the versions.
    fn list_at(&self) -> Option<BootInstant> {
        match self.list {
            TakeoverList::NotBefore(list_at) => Some(list_at),
            TakeoverList::Requested => None,
        }
    }
}

impl HeldShards {
    /// Executes a command of the election.
    pub fn command(&mut self, command: ShardCommand, clocks: Clocks) {
        match command {
            ShardCommand::Load(wanted) => {
                for shard in wanted.iter() {
                    self.lifecycle.loading.insert(shard);
                    // The list need not be consistent: the command to lead has the versions that must be observed.
                    self.request_list(shard, clocks);
                }
            }
            ShardCommand::Lead {
                shard_term,
                entry,
                fired_through,
            } => {
                self.begin_takeover(shard_term, entry, clocks);
                self.update(shard_term.shard, |held| held.state.fired_through = fired_through);
            }
            ShardCommand::Seal(order) => self.begin_to_seal(order, clocks),
            ShardCommand::Release(shard) => self.release(shard),
            ShardCommand::ReleaseAll => {
                let held: Vec<ShardId> = self.shards().collect();
                for shard in held {
                    self.release(shard);
                }
            }
        }
        self.advance_lifecycles(clocks);
    }

    /// The next list to make, if it is due and none is in progress. The caller passes its objects to
    /// [`HeldShards::handle_listed`] and its end to [`HeldShards::finish_list`].
    pub fn poll_list_request(&mut self, clocks: Clocks) -> Option<ListRequest> {
        self.lifecycle.lists.begin(clocks.boot)
    }

    /// Restarts the list in progress. Objects found so far may be outdated.
    pub fn restart_list(&mut self, clocks: Clocks) {
        let listing = self.lifecycle.lists.in_progress();
        for shard in listing.iter() {
            self.stand_by(shard, clocks.wall);
        }
    }

    /// Handles an object found by the list.
    pub fn handle_listed(&mut self, found: Input, clocks: Clocks) {
        let shard = self.shard_of_input(&found);
        if shard.is_some_and(|shard| self.lifecycle.lists.in_progress().contains(shard)) {
            self.add_listed(found, clocks.wall);
        }
    }

    /// Skips a scope in the list, because the API server does not permit it. The shards are led without it; once
    /// it is permitted, the watch of the scope lists it for them.
    pub fn skip_scope(&mut self, scope: &Scope) {
        let listing = self.lifecycle.lists.in_progress();
        for shard in listing.iter() {
            self.skip_scope_of(shard, scope);
        }
    }

    /// Handles the end of the list, which covers writes up to these versions.
    pub fn finish_list(&mut self, through: &ResourceVersions, clocks: Clocks) {
        let listed = self.lifecycle.lists.end();
        self.end_lists(&listed, through, clocks.wall);
        for shard in listed.iter() {
            if self.lifecycle.loading.remove(shard) {
                self.lifecycle.reports.push_back(ShardReport::Loaded(shard));
            }
        }
        self.advance_lifecycles(clocks);
    }

    /// Leads, lists, seals or reports each ready shard. Call it in every iteration, and at
    /// [`HeldShards::next_lifecycle_step`].
    pub fn advance_lifecycles(&mut self, clocks: Clocks) {
        if !self.lifecycle.is_synced_reported && self.are_permitted_watches_synced() {
            self.lifecycle.is_synced_reported = true;
            self.lifecycle.reports.push_back(ShardReport::Synced);
        }
        self.advance_takeovers(clocks);
        self.advance_sealing(clocks);
    }

    /// The instant of the next call of [`HeldShards::advance_lifecycles`]; may be early, never late.
    pub fn next_lifecycle_step(&self) -> Option<BootInstant> {
        let list_at = |held: &Held| held.takeover?.list_at();
        let until = |held: &Held| held.sealing?.until();
        let held = self.held.values();
        let of_held = held.flat_map(|held| [list_at(held), until(held)]).flatten();
        let of_all = [self.lifecycle.lists.due_at(), self.next_seal_at()];
        of_held.chain(of_all.into_iter().flatten()).min()
    }

    /// The next report to the election.
    pub fn poll_report(&mut self) -> Option<ShardReport> {
        self.lifecycle.reports.pop_front()
    }

    /// Requests a list of a shard. The list must be consistent if the shard is taken over.
    fn request_list(&mut self, shard: ShardId, clocks: Clocks) {
        self.stand_by(shard, clocks.wall);
        let is_taken_over = self.held.get(&shard).is_some_and(|held| held.takeover.is_some());
        self.lifecycle.lists.add(shard, is_taken_over, clocks.boot);
    }

    fn begin_takeover(&mut self, shard_term: ShardTerm, entry: Entry, clocks: Clocks) {
        let ShardTerm { shard, term } = shard_term;
        let held = self.held.get(&shard);
        let is_loaded = held.is_some_and(|held| held.state.phase() == ShardPhase::Standby);
        if !is_loaded {
            // A shard that is led in a former term, or not held, must be loaded before it is led in this term.
            self.release(shard);
            self.hold(shard, clocks.wall);
        }
        let written = match entry {
            Entry::Watch(written) if is_loaded => Some(written),
            Entry::Watch(_) | Entry::List => None,
        };
        if let Some(held) = self.held.get_mut(&shard) {
            held.takeover = Some(Takeover {
                term,
                written,
                list: written.map_or(TakeoverList::Requested, |_| {
                    TakeoverList::NotBefore(clocks.boot + WATCH_PATIENCE)
                }),
            });
        }
        if written.is_none() {
            self.request_list(shard, clocks);
        }
    }

    fn advance_takeovers(&mut self, clocks: Clocks) {
        let takeover_of = |(shard, held): (&ShardId, &Held)| Some((*shard, held.takeover?));
        let takeovers: Vec<(ShardId, Takeover)> = self.held.iter().filter_map(takeover_of).collect();
        for (shard, takeover) in takeovers {
            let is_synced = self.is_shard_synced(shard);
            let is_late = takeover.list_at().is_some_and(|list_at| list_at <= clocks.boot);
            if is_synced && (self.is_listed_for(shard, &takeover) || self.has_observed_for(shard, &takeover)) {
                self.begin_to_lead(shard, takeover, clocks);
            } else if is_late && is_synced {
                self.set_takeover_list(shard, TakeoverList::Requested);
                self.request_list(shard, clocks);
            } else if is_late {
                // A shard that is still being loaded gets more time.
                self.set_takeover_list(shard, TakeoverList::NotBefore(clocks.boot + WATCH_PATIENCE));
            }
        }
    }

    /// Whether the list for a takeover is complete.
    fn is_listed_for(&self, shard: ShardId, takeover: &Takeover) -> bool {
        takeover.list == TakeoverList::Requested && !self.lifecycle.lists.contains(shard)
    }

    /// Whether the loaded objects and the watches have reached the versions for a takeover.
    fn has_observed_for(&self, shard: ShardId, takeover: &Takeover) -> bool {
        takeover
            .written
            .is_some_and(|written| self.has_observed(shard, &written))
    }

    fn set_takeover_list(&mut self, shard: ShardId, list: TakeoverList) {
        self.update(shard, |held| {
            held.takeover = held.takeover.map(|takeover| Takeover { list, ..takeover });
        });
    }

    fn begin_to_lead(&mut self, shard: ShardId, takeover: Takeover, clocks: Clocks) {
        let Takeover { term, written, .. } = takeover;
        let shard_term = ShardTerm { shard, term };
        self.lead(shard_term, clocks.wall);
        self.update(shard, |held| {
            held.takeover = None;
            // The next leader must observe these versions too.
            held.written = held.written.max(&written.unwrap_or_default());
        });
        self.lifecycle.reports.push_back(ShardReport::Leading(shard_term));
    }

    fn release(&mut self, shard: ShardId) {
        self.lifecycle.loading.remove(shard);
        self.lifecycle.lists.remove(shard);
        self.drop_shard(shard);
    }
}

#[cfg(test)]
mod tests;
