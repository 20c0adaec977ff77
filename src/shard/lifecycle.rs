//! Executes an election's commands to the shards of a replica: load, lead, seal and release.
//!
//! A shard is led only with a complete view. Either a consistent list that began after the command to lead is complete,
//! or, after a handover, the loaded objects and this replica's watches have reached every version that the last leader
//! wrote or relied on. A shard to be sealed continues to act until everything that it began is answered and stored,
//! within its time limit, because no replica acts for it from the seal on. A sealed shard is reported once it is
//! settled or its time limit has passed. The caller performs effects, makes lists and forwards reports; `now` is an
//! argument.

mod list_order;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use super::{
    held_shards::{HeldShards, Listed},
    input::Scope,
};
use crate::shard::{
    BootInstant, Entry, ResourceVersions, SealOrder, ShardCommand, ShardId, ShardReport, ShardSet, ShardTerm, Term,
};

pub use self::list_order::ListOrder;

/// How long a sealed shard waits for outstanding answers and status writes.
pub const SEAL_TIMEOUT: Duration = Duration::from_secs(2);

/// A shard that is due within this time starts its Jobs before it is sealed, so that they are not late by the handover.
const SEAL_CLEARANCE: SignedDuration = SignedDuration::from_millis(200);

/// Maximum number of shards that are sealed and not yet released. They have no leader; one at a time keeps each wait
/// short.
const SEALED_MAX: usize = 1;

/// How long the watches may take to deliver the last leader's versions before the shard is listed as well.
const WATCH_PATIENCE: Duration = Duration::from_millis(500);

/// The current time on two clocks.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Wall time, for schedules.
    pub wall: Timestamp,
    /// The boot clock, for durations.
    pub boot: BootInstant,
}

/// The loading, entry and sealing of the shards of a replica.
#[derive(Debug, Default)]
pub struct ShardLifecycle {
    is_synced_reported: bool,
    /// Shards to be led when their view is complete.
    entering: BTreeMap<ShardId, Entering>,
    sealing: BTreeMap<ShardId, Sealing>,
    /// Shards whose loading is to be reported.
    loading: ShardSet,
    /// Shards for the next list.
    to_list: ShardSet,
    /// Whether the next list must be consistent.
    must_be_consistent: bool,
    is_listing: bool,
    /// Shards of the list in progress that still need it.
    listing: ShardSet,
    reports: VecDeque<ShardReport>,
}

#[derive(Clone, Copy, Debug)]
struct Entering {
    term: Term,
    /// The versions that must be observed; `None` if only a list suffices.
    written: Option<ResourceVersions>,
    /// When the shard is listed as well; `None` if that list was made or ordered.
    list_at: Option<BootInstant>,
}

#[derive(Clone, Copy, Debug)]
struct Sealing {
    term: Term,
    stage: SealStage,
    /// The time limit of the current stage.
    late_at: BootInstant,
    /// Whether another member will lead the shard.
    has_successor: bool,
}

/// The progress of sealing a shard.
#[derive(Clone, Copy, Debug)]
enum SealStage {
    /// The shard first starts the Jobs that are due shortly.
    Firing { close_at: Timestamp },
    /// The shard acts, and its statuses are written at once.
    Closing,
    /// The shard starts nothing more. `fired_through` is the time of the seal, or `None` if the shard was never led.
    Sealed {
        at: BootInstant,
        fired_through: Option<Timestamp>,
    },
    /// The shard was reported as sealed. It is held until its Lease names another holder.
    Reported,
}

impl ShardLifecycle {
    /// Executes a command of the election.
    pub fn command(&mut self, shards: &mut HeldShards, command: ShardCommand, now: Clocks) {
        match command {
            ShardCommand::Load(wanted) => {
                for shard in wanted.iter() {
                    self.loading.insert(shard);
                    // The last writes of its leader are checked at the handover.
                    self.list(shards, shard, now);
                }
            }
            ShardCommand::Lead { shard_term, entry } => self.enter(shards, shard_term, entry, now),
            ShardCommand::Seal(order) => self.seal(shards, order, now),
            ShardCommand::Release(shard) => self.release(shards, shard),
            ShardCommand::ReleaseAll => {
                let held: Vec<ShardId> = shards.shards().collect();
                for shard in held {
                    self.release(shards, shard);
                }
            }
            ShardCommand::Look => {}
        }
        self.follow(shards, now);
    }

    /// The next list to make, if none is in progress. The caller passes its objects to [`ShardLifecycle::take_listed`]
    /// and its end to [`ShardLifecycle::listed`].
    pub fn poll_list(&mut self) -> Option<ListOrder> {
        if self.is_listing || self.to_list.is_empty() {
            return None;
        }
        self.is_listing = true;
        self.listing = std::mem::take(&mut self.to_list);
        Some(ListOrder {
            shards: self.listing,
            is_consistent: std::mem::take(&mut self.must_be_consistent),
        })
    }

    /// Restarts the list in progress. Objects found so far may be outdated.
    pub fn list_again(&mut self, shards: &mut HeldShards, now: Clocks) {
        for shard in self.listing.iter() {
            shards.stand_by(shard, now.wall);
        }
    }

    /// Handles an object found by the list.
    pub fn take_listed(&self, shards: &mut HeldShards, listed: Listed, now: Clocks) {
        let shard = shards.shard_of(listed.cron_job());
        if self.listing.contains(shard) {
            shards.take_listed(listed, now.wall);
        }
    }

    /// Leaves a scope out of the list, because the API server does not permit it. The shards are led without it; once
    /// it is permitted, the watch of the scope lists it for them.
    pub fn leave_out(&self, shards: &mut HeldShards, scope: &Scope) {
        shards.leave_out(&self.listing, scope);
    }

    /// Handles the end of the list, which covers writes up to these versions.
    pub fn listed(&mut self, shards: &mut HeldShards, through: &ResourceVersions, now: Clocks) {
        self.is_listing = false;
        let listed = std::mem::take(&mut self.listing);
        shards.end_list(&listed, through, now.wall);
        for shard in listed.iter() {
            if self.loading.remove(shard) {
                self.reports.push_back(ShardReport::Loaded(shard));
            }
        }
        self.follow(shards, now);
    }

    /// Takes every step that has become possible. Call after every turn, and at [`ShardLifecycle::next_wakeup`].
    pub fn follow(&mut self, shards: &mut HeldShards, now: Clocks) {
        if !self.is_synced_reported && shards.are_permitted_watches_synced() {
            self.is_synced_reported = true;
            self.reports.push_back(ShardReport::Synced);
        }
        self.follow_entering(shards, now);
        self.follow_sealing(shards, now);
    }

    /// The next report to the election.
    pub fn poll_report(&mut self) -> Option<ShardReport> {
        self.reports.pop_front()
    }

    /// Returns a report that could not be sent.
    pub fn put_back(&mut self, report: ShardReport) {
        self.reports.push_front(report);
    }

    /// When to call [`ShardLifecycle::follow`] next; may be early, never late.
    pub fn next_wakeup(&self) -> Option<BootInstant> {
        let entering = self.entering.values();
        let list_at = entering.filter_map(|entering| entering.list_at);
        let sealing = self
            .sealing
            .values()
            .filter(|sealing| !matches!(sealing.stage, SealStage::Reported));
        let late_at = sealing.map(|sealing| sealing.late_at);
        list_at.chain(late_at).min()
    }

    /// Orders a list of a shard. A list in progress began too early, so the shard waits for the next one. The list must
    /// be consistent if the shard is to be led.
    fn list(&mut self, shards: &mut HeldShards, shard: ShardId, now: Clocks) {
        self.listing.remove(shard);
        self.to_list.insert(shard);
        self.must_be_consistent |= self.entering.contains_key(&shard);
        shards.stand_by(shard, now.wall);
    }

    fn enter(&mut self, shards: &mut HeldShards, shard_term: ShardTerm, entry: Entry, now: Clocks) {
        let ShardTerm { shard, term } = shard_term;
        let is_loaded = shards.is_on_standby(shard);
        if !is_loaded {
            // A shard that is already led, or not held, is not a valid start for this term.
            self.release(shards, shard);
        }
        let written = match entry {
            Entry::Watch(written) if is_loaded => Some(written),
            Entry::Watch(_) | Entry::List => None,
        };
        let entering = Entering {
            term,
            written,
            list_at: written.map(|_| now.boot + WATCH_PATIENCE),
        };
        self.entering.insert(shard, entering);
        if written.is_none() {
            self.list(shards, shard, now);
        }
    }

    fn follow_entering(&mut self, shards: &mut HeldShards, now: Clocks) {
        let entering: Vec<(ShardId, Entering)> = self.entering.iter().map(|(shard, it)| (*shard, *it)).collect();
        for (shard, Entering { term, written, list_at }) in entering {
            let is_late = list_at.is_some_and(|list_at| list_at <= now.boot);
            if !shards.is_shard_synced(shard) {
                // Still being loaded: extend the time limit.
                if is_late && let Some(entering) = self.entering.get_mut(&shard) {
                    entering.list_at = Some(now.boot + WATCH_PATIENCE);
                }
                continue;
            }
            let is_listed = list_at.is_none() && !self.to_list.contains(shard) && !self.listing.contains(shard);
            let has_seen = || written.is_some_and(|written| shards.has_seen(shard, &written));
            if is_listed || has_seen() {
                self.entering.remove(&shard);
                let shard_term = ShardTerm { shard, term };
                shards.lead(shard_term, now.wall);
                if let Some(written) = written {
                    shards.note_handed_over(shard, &written);
                }
                self.reports.push_back(ShardReport::Leading(shard_term));
            } else if is_late {
                if let Some(entering) = self.entering.get_mut(&shard) {
                    entering.list_at = None;
                }
                self.list(shards, shard, now);
            }
        }
    }

    /// Begins to seal a shard, or shortens the time limit of one that is not sealed yet.
    fn seal(&mut self, shards: &mut HeldShards, order: SealOrder, now: Clocks) {
        let SealOrder {
            shard_term: ShardTerm { shard, term },
            close_by,
            has_successor,
        } = order;
        if let Some(begun) = self.sealing.get_mut(&shard).filter(|begun| begun.term == term) {
            begun.has_successor = has_successor;
            if matches!(begun.stage, SealStage::Firing { .. } | SealStage::Closing) {
                begun.late_at = begun.late_at.min(close_by);
            }
            return;
        }
        // A shard that was never led has started nothing.
        self.entering.remove(&shard);
        let close_at = about_to_fire(shards, shard, now);
        let sealing = Sealing {
            term,
            stage: SealStage::Firing {
                close_at: close_at.unwrap_or(now.wall),
            },
            late_at: close_by,
            has_successor,
        };
        self.sealing.insert(shard, sealing);
    }

    fn follow_sealing(&mut self, shards: &mut HeldShards, now: Clocks) {
        let mut n_sealed = self
            .sealing
            .values()
            .filter(|sealing| sealing.is_without_leader())
            .count();
        for (shard, sealing) in &mut self.sealing {
            let was_without_leader = sealing.is_without_leader();
            sealing.advance(shards, *shard, n_sealed < SEALED_MAX, now);
            n_sealed += usize::from(!was_without_leader && sealing.is_without_leader());
            let SealStage::Sealed { at, fired_through } = sealing.stage else {
                continue;
            };
            if fired_through.is_some() && !shards.is_settled(*shard) && now.boot < sealing.late_at {
                continue;
            }
            let (shard, term) = (*shard, sealing.term);
            sealing.stage = SealStage::Reported;
            self.reports.push_back(ShardReport::Sealed {
                shard_term: ShardTerm { shard, term },
                at,
                fired_through,
                written_through: shards.written_through(shard),
            });
        }
    }

    fn release(&mut self, shards: &mut HeldShards, shard: ShardId) {
        self.entering.remove(&shard);
        self.sealing.remove(&shard);
        self.loading.remove(shard);
        self.to_list.remove(shard);
        self.listing.remove(shard);
        shards.release(shard);
    }
}

impl Sealing {
    /// Whether the shard has no leader until its next leader takes over.
    fn is_without_leader(&self) -> bool {
        self.has_successor && matches!(self.stage, SealStage::Sealed { .. } | SealStage::Reported)
    }

    /// Advances through every stage that has nothing to wait for. Without room the shard continues to act until it is
    /// late.
    fn advance(&mut self, shards: &mut HeldShards, shard: ShardId, has_room: bool, now: Clocks) {
        let is_late = now.boot >= self.late_at;
        if let SealStage::Firing { close_at } = self.stage
            && (close_at <= now.wall || is_late)
        {
            self.stage = SealStage::Closing;
            shards.close(shard, now.wall);
        }
        if let SealStage::Closing = self.stage
            && (is_late || has_room || !self.has_successor)
            && (shards.is_on_standby(shard) || shards.is_settled(shard) || is_late)
        {
            if !is_late && let Some(close_at) = about_to_fire(shards, shard, now) {
                self.stage = SealStage::Firing { close_at };
                return;
            }
            let (at, fired_through) = (now.boot, (!shards.is_on_standby(shard)).then_some(now.wall));
            shards.seal(shard, now.wall);
            self.stage = SealStage::Sealed { at, fired_through };
            self.late_at = at + SEAL_TIMEOUT;
        }
    }
}

/// The instant at which a shard is due, if that is soon enough to start its Jobs before the seal.
fn about_to_fire(shards: &mut HeldShards, shard: ShardId, now: Clocks) -> Option<Timestamp> {
    let due = shards.wakeup_of(shard)?.at;
    let left = due.duration_since(now.wall);
    (left > SignedDuration::ZERO && left <= SEAL_CLEARANCE).then_some(due)
}

#[cfg(test)]
mod tests;
