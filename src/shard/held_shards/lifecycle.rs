//! Executes an election's commands to the shards of a replica: load, lead, seal and release.
//!
//! A shard passes through these states:
//!
//! - Loading: the shard is on standby, and its own list is ordered or in progress.
//! - Entering: the shard is to be led, and is led once its view is complete. The view is complete at the end of a
//!   consistent list that began after the command to lead. After a handover, it is complete as well when the loaded
//!   objects and the watches have reached every version that the last leader wrote or knew.
//! - Closing: the shard is to be sealed, and still acts. It is sealed once it is idle and another shard may be sealed,
//!   and at the time limit of the order in any case. A shard is idle when its requests are answered and its statuses
//!   are stored.
//! - Sealed: no replica acts for the shard until the next leader does.
//! - Reported: the seal was reported to the election, once the shard was idle or [`SEAL_TIMEOUT`] after the seal.
//!
//! The caller performs effects, makes lists and forwards reports.

use std::{collections::VecDeque, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{HeldShards, ListRequest, held::Held, list_queue::ListQueue};
use crate::shard::{
    BootInstant, Clocks, Entry, Input, ResourceVersions, Scope, SealOrder, ShardCommand, ShardId, ShardPhase,
    ShardReport, ShardSet, ShardTerm, Term,
};

/// How long a sealed shard waits for outstanding answers and status writes.
pub const SEAL_TIMEOUT: Duration = Duration::from_secs(2);

/// A shard that is due within this time starts its Jobs before it is sealed, so that they are not late by the handover.
const SEAL_CLEARANCE: SignedDuration = SignedDuration::from_millis(200);

/// How long the watches may take to deliver the last leader's versions before the shard is listed as well.
const WATCH_PATIENCE: Duration = Duration::from_millis(500);

/// The lists and reports of all shards of a replica.
#[derive(Debug, Default)]
pub(super) struct Lifecycle {
    is_synced_reported: bool,
    /// Shards whose loading is to be reported.
    loading: ShardSet,
    lists: ListQueue,
    reports: VecDeque<ShardReport>,
    /// The next seal is timed from here: from the last seal of a shard that another member will lead, or from the last
    /// `next_seal_at` at which no shard was ready.
    last_seal_at: Option<BootInstant>,
}

/// A shard on standby that is to be led when its view is complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entering {
    term: Term,
    /// The versions that must be observed; `None` if only a list suffices.
    written: Option<ResourceVersions>,
    /// The instant at which a list is ordered if the watches have not delivered the versions; `None` once a list has
    /// been ordered.
    list_at: Option<BootInstant>,
}

/// The end of a leadership.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sealing {
    order: SealOrder,
    step: SealStep,
}

/// The state of a shard after the order to seal it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SealStep {
    /// The shard acts until it is idle and may be sealed, or until the time limit of the order.
    Closing,
    /// The shard waits for missing answers. It has started every slot that was due at `fired_through`, the wall time of
    /// the seal; `None` if the shard was never led, or was paused.
    Sealed {
        at: BootInstant,
        fired_through: Option<Timestamp>,
    },
    /// The shard was reported as sealed, and is held until its Lease names another holder.
    Reported,
}

impl Sealing {
    /// The time limit of the step.
    fn until(&self) -> Option<BootInstant> {
        match self.step {
            SealStep::Closing => Some(self.order.close_by),
            SealStep::Sealed { at, .. } => Some(at + SEAL_TIMEOUT),
            SealStep::Reported => None,
        }
    }
}

impl HeldShards {
    /// Executes a command of the election.
    pub fn command(&mut self, command: ShardCommand, now: Clocks) {
        match command {
            ShardCommand::Load(wanted) => {
                for shard in wanted.iter() {
                    self.lifecycle.loading.insert(shard);
                    // The list need not be consistent: the command to lead has the versions that must be observed.
                    self.request_list(shard, now);
                }
            }
            ShardCommand::Lead {
                shard_term,
                entry,
                fired_through,
            } => {
                self.enter(shard_term, entry, now);
                self.with(shard_term.shard, |held| held.state.fired_through = fired_through);
            }
            ShardCommand::Seal(order) => self.begin_to_seal(order, now),
            ShardCommand::Release(shard) => self.release(shard),
            ShardCommand::ReleaseAll => {
                let held: Vec<ShardId> = self.shards().collect();
                for shard in held {
                    self.release(shard);
                }
            }
        }
        self.advance_lifecycles(now);
    }

    /// The next list to make, if it is due and none is in progress. The caller passes its objects to
    /// [`HeldShards::handle_listed`] and its end to [`HeldShards::finish_list`].
    pub fn poll_list_request(&mut self, now: Clocks) -> Option<ListRequest> {
        self.lifecycle.lists.begin(now.boot)
    }

    /// Restarts the list in progress. Objects found so far may be outdated.
    pub fn restart_list(&mut self, now: Clocks) {
        let listing = self.lifecycle.lists.in_progress();
        for shard in listing.iter() {
            self.stand_by(shard, now.wall);
        }
    }

    /// Handles an object found by the list.
    pub fn handle_listed(&mut self, found: Input, now: Clocks) {
        let shard = self.concerned(&found);
        if shard.is_some_and(|shard| self.lifecycle.lists.in_progress().contains(shard)) {
            self.add_listed(found, now.wall);
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
    pub fn finish_list(&mut self, through: &ResourceVersions, now: Clocks) {
        let listed = self.lifecycle.lists.end();
        self.end_lists(&listed, through, now.wall);
        for shard in listed.iter() {
            if self.lifecycle.loading.remove(shard) {
                self.lifecycle.reports.push_back(ShardReport::Loaded(shard));
            }
        }
        self.advance_lifecycles(now);
    }

    /// Leads, lists, seals or reports each ready shard. Call in every iteration, and at [`HeldShards::next_lifecycle_step`].
    pub fn advance_lifecycles(&mut self, now: Clocks) {
        if !self.lifecycle.is_synced_reported && self.are_permitted_watches_synced() {
            self.lifecycle.is_synced_reported = true;
            self.lifecycle.reports.push_back(ShardReport::Synced);
        }
        self.advance_entering(now);
        self.advance_sealing(now);
    }

    /// The instant of the next call of [`HeldShards::advance_lifecycles`]; may be early, never late.
    pub fn next_lifecycle_step(&self) -> Option<BootInstant> {
        let list_at = |held: &Held| held.entering.and_then(|entering| entering.list_at);
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

    /// Requests a list of a shard. The list must be consistent if the shard is entering.
    fn request_list(&mut self, shard: ShardId, now: Clocks) {
        self.stand_by(shard, now.wall);
        let is_entering = self.held.get(&shard).is_some_and(|held| held.entering.is_some());
        self.lifecycle.lists.add(shard, is_entering, now.boot);
    }

    fn enter(&mut self, shard_term: ShardTerm, entry: Entry, now: Clocks) {
        let ShardTerm { shard, term } = shard_term;
        let held = self.held.get(&shard);
        let is_loaded = held.is_some_and(|held| held.state.phase() == ShardPhase::Standby);
        if !is_loaded {
            // A shard that is led in a former term, or not held, must be loaded before it is led in this term.
            self.release(shard);
            self.hold(shard, now.wall);
        }
        let written = match entry {
            Entry::Watch(written) if is_loaded => Some(written),
            Entry::Watch(_) | Entry::List => None,
        };
        if let Some(held) = self.held.get_mut(&shard) {
            held.entering = Some(Entering {
                term,
                written,
                list_at: written.map(|_| now.boot + WATCH_PATIENCE),
            });
        }
        if written.is_none() {
            self.request_list(shard, now);
        }
    }

    fn advance_entering(&mut self, now: Clocks) {
        let with_entering = |(shard, held): (&ShardId, &Held)| Some((*shard, held.entering?));
        let entering: Vec<(ShardId, Entering)> = self.held.iter().filter_map(with_entering).collect();
        for (shard, mut entering) in entering {
            let is_late = entering.list_at.is_some_and(|list_at| list_at <= now.boot);
            let is_synced = self.is_shard_synced(shard);
            let is_listed = entering.list_at.is_none() && !self.lifecycle.lists.contains(shard);
            let has_observed = || {
                entering
                    .written
                    .is_some_and(|written| self.has_observed(shard, &written))
            };
            if is_synced && (is_listed || has_observed()) {
                self.begin_to_lead(shard, entering, now);
            } else if is_late {
                // A shard that is still being loaded gets more time.
                entering.list_at = (!is_synced).then_some(now.boot + WATCH_PATIENCE);
                self.with(shard, |held| held.entering = Some(entering));
                if is_synced {
                    self.request_list(shard, now);
                }
            }
        }
    }

    fn begin_to_lead(&mut self, shard: ShardId, entering: Entering, now: Clocks) {
        let Entering { term, written, .. } = entering;
        let shard_term = ShardTerm { shard, term };
        self.lead(shard_term, now.wall);
        self.with(shard, |held| {
            held.entering = None;
            // The next leader must observe these versions too.
            held.written = held.written.max(&written.unwrap_or_default());
        });
        self.lifecycle.reports.push_back(ShardReport::Leading(shard_term));
    }

    /// Begins to seal a shard, or shortens the time limit of a shard that is not sealed yet. Its statuses are written
    /// at once from here on.
    fn begin_to_seal(&mut self, order: SealOrder, now: Clocks) {
        self.with(order.shard_term.shard, |held| {
            let begun = held.sealing.filter(|begun| begun.order.shard_term == order.shard_term);
            let close_by = begun.map_or(order.close_by, |begun| begun.order.close_by.min(order.close_by));
            held.sealing = Some(Sealing {
                order: SealOrder { close_by, ..order },
                step: begun.map_or(SealStep::Closing, |begun| begun.step),
            });
            // A shard that is entering is not led any more.
            held.entering = None;
            if held.state.phase() == ShardPhase::Leading {
                held.state.close(now.wall);
            }
        });
    }

    /// Seals one shard at a time, because no replica acts for a sealed shard until its next leader does. If the API
    /// server is slow, further shards are sealed sooner, so that they do not reach their time limit together.
    fn advance_sealing(&mut self, now: Clocks) {
        let is_due = self.next_seal_at().is_some_and(|at| at <= now.boot);
        let has_room = is_due || !self.held.values().any(Held::is_without_leader);
        let mut is_sealed = false;
        for (shard, held) in self.held.iter_mut().filter(|(_, held)| held.sealing.is_some()) {
            let was_without_leader = held.is_without_leader();
            held.seal_when_idle(has_room && !is_sealed, now);
            is_sealed |= !was_without_leader && held.is_without_leader();
            held.is_wakeup_old = true;
            self.with_effects.insert(*shard);
            self.lifecycle.reports.extend(held.report_when_idle(now));
        }
        if is_due || is_sealed {
            self.lifecycle.last_seal_at = Some(now.boot);
        }
    }

    /// The instant from which another shard is sealed although one is still without a leader. The time left is divided
    /// equally among the waiting shards.
    fn next_seal_at(&self) -> Option<BootInstant> {
        let last_seal_at = self.lifecycle.last_seal_at?;
        let limit = |held: &Held| Some(held.closing()?.close_by);
        let limits = || self.held.values().filter_map(limit);
        let left = limits().min()?.since(last_seal_at);
        Some(last_seal_at + left / u32::try_from(limits().count()).unwrap_or(u32::MAX))
    }

    fn release(&mut self, shard: ShardId) {
        self.lifecycle.loading.remove(shard);
        self.lifecycle.lists.remove(shard);
        self.drop_shard(shard);
    }
}

impl Held {
    /// The order to seal the shard, while the shard is closing.
    fn closing(&self) -> Option<SealOrder> {
        let sealing = self.sealing.filter(|sealing| sealing.step == SealStep::Closing);
        sealing.map(|sealing| sealing.order)
    }

    /// Whether the shard has no leader until its next leader takes over.
    fn is_without_leader(&self) -> bool {
        self.sealing
            .is_some_and(|sealing| sealing.order.will_be_led && sealing.step != SealStep::Closing)
    }

    /// Seals the shard if it is ready and another shard may be sealed, and at its time limit in any case.
    fn seal_when_idle(&mut self, has_room: bool, now: Clocks) {
        let Some(order) = self.closing() else { return };
        let is_late = order.close_by <= now.boot;
        if is_late || ((has_room || !order.will_be_led) && self.may_be_sealed(now.wall)) {
            let fired_through = self.state.decides().then_some(now.wall);
            self.state.seal(now.wall);
            let at = now.boot;
            let step = SealStep::Sealed { at, fired_through };
            self.sealing = Some(Sealing { order, step });
        }
    }

    /// The report of the sealed shard, once it is idle or at its time limit.
    fn report_when_idle(&mut self, now: Clocks) -> Option<ShardReport> {
        let Sealing { order, step } = self.sealing?;
        let SealStep::Sealed { at, fired_through } = step else {
            return None;
        };
        let was_led = self.state.phase() == ShardPhase::Sealed;
        if was_led && !self.state.is_idle() && now.boot < at + SEAL_TIMEOUT {
            return None;
        }
        let step = SealStep::Reported;
        self.sealing = Some(Sealing { order, step });
        Some(ShardReport::Sealed {
            shard_term: order.shard_term,
            at,
            fired_through,
            written_through: self.written_through(),
        })
    }

    /// Whether the shard is idle and no Job is due shortly.
    fn may_be_sealed(&mut self, now: Timestamp) -> bool {
        if !self.state.phase().acts() {
            return true;
        }
        let is_about_to_fire = self.state.next_wakeup().is_some_and(|wakeup| {
            let left = wakeup.duration_since(now);
            left > SignedDuration::ZERO && left <= SEAL_CLEARANCE
        });
        self.state.is_idle() && !is_about_to_fire
    }
}

#[cfg(test)]
mod tests;
