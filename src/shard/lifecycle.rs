//! What an election wants of the shards of a replica, carried out: list, warm, lead, seal, let go.
//!
//! A shard is led only when it knows enough: everything that a consistent list found which began after it was ours to
//! lead, or, where it was handed over, everything that its last leader wrote and went by, in what was loaded or shown by
//! our own watches. A shard to be sealed goes on to act until what it has begun is answered and stored, as long as that may
//! take: nobody acts for it from the seal on. A sealed shard is reported when it is at rest or has had its time. Whoever
//! drives this performs the effects of the shards, makes the lists and passes the reports on; `now` is given.

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

/// A sealed shard waits no longer than this for the answers and statuses that were not there before.
pub const SEAL_TIMEOUT: Duration = Duration::from_secs(2);

/// A shard that is due within this fires first and is sealed then, so that nobody has to fire it while it moves.
const SEAL_CLEARANCE: SignedDuration = SignedDuration::from_millis(200);

/// Shards that are sealed and not let go at a time. Nobody leads them meanwhile: one at a time makes each wait short.
const SEALED_MAX: usize = 1;

/// For so long our watches may take to show what the last leader wrote; then the shard is listed beside them.
const WATCH_PATIENCE: Duration = Duration::from_millis(500);

/// The two times: of schedules, and of durations.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// The shards' time.
    pub wall: Timestamp,
    /// The boot clock.
    pub boot: BootInstant,
}

/// See the module.
#[derive(Debug, Default)]
pub struct ShardLifecycle {
    is_synced_told: bool,
    /// Those that are to be led when they know enough.
    entering: BTreeMap<ShardId, Entering>,
    sealing: BTreeMap<ShardId, Sealing>,
    /// Those whose loading is to be reported.
    warming: ShardSet,
    /// Those that the next list is to be of.
    to_list: ShardSet,
    /// Whether one of them must know everything that there is.
    must_be_consistent: bool,
    is_listing: bool,
    /// Those that the list that is going on is of, and that still want it.
    listing: ShardSet,
    reports: VecDeque<ShardReport>,
}

#[derive(Clone, Copy, Debug)]
struct Entering {
    term: Term,
    /// What it is enough to have seen; nothing where the list alone decides.
    written: Option<ResourceVersions>,
    /// When it is listed beside that; none where it has been, or is.
    list_at: Option<BootInstant>,
}

#[derive(Clone, Copy, Debug)]
struct Sealing {
    term: Term,
    stage: SealStage,
    /// When the next stage is not waited for any more.
    late_at: BootInstant,
    /// Whether another member will lead it.
    has_successor: bool,
}

/// How far a shard is that is to fire nothing more.
#[derive(Clone, Copy, Debug)]
enum SealStage {
    /// It fires what is due shortly first.
    Firing { close_at: Timestamp },
    /// It acts, and leaves nothing lying.
    Closing,
    /// It fires nothing more, and has fired everything up to here; nothing where it was never led.
    Sealed {
        at: BootInstant,
        fired_through: Option<Timestamp>,
    },
    /// It has been reported as sealed, and is held until its Lease names another holder.
    Reported,
}

impl ShardLifecycle {
    /// Takes in what the election wants.
    pub fn command(&mut self, shards: &mut HeldShards, command: ShardCommand, now: Clocks) {
        match command {
            ShardCommand::Load(wanted) => {
                for shard in wanted.iter() {
                    self.warming.insert(shard);
                    // What its leader writes last is looked for when it is handed over.
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

    /// The shards that are to be listed now, if no list is going on. What is found is told to [`ShardLifecycle::take_listed`], and
    /// the end to [`ShardLifecycle::listed`].
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

    /// The list that is going on begins again: what it found so far may be old.
    pub fn list_again(&mut self, shards: &mut HeldShards, now: Clocks) {
        for shard in self.listing.iter() {
            shards.stand_by(shard, now.wall);
        }
    }

    /// Takes in an object that the list found.
    pub fn take_listed(&self, shards: &mut HeldShards, listed: Listed, now: Clocks) {
        let shard = shards.shard_of(listed.cron_job());
        if self.listing.contains(shard) {
            shards.take_listed(listed, now.wall);
        }
    }

    /// Takes in that the list leaves a scope out, as the API server does not permit it. The shards are led without it; the
    /// watch of the scope lists it for them once it is permitted.
    pub fn leave_out(&self, shards: &mut HeldShards, scope: &Scope) {
        shards.leave_out(&self.listing, scope);
    }

    /// Takes in that the list is complete, of what was written up to these versions.
    pub fn listed(&mut self, shards: &mut HeldShards, through: &ResourceVersions, now: Clocks) {
        self.is_listing = false;
        let listed = std::mem::take(&mut self.listing);
        shards.end_list(&listed, through, now.wall);
        for shard in listed.iter() {
            if self.warming.remove(shard) {
                self.reports.push_back(ShardReport::Loaded(shard));
            }
        }
        self.follow(shards, now);
    }

    /// Does what has become possible: after every turn, and at [`ShardLifecycle::next_wakeup`].
    pub fn follow(&mut self, shards: &mut HeldShards, now: Clocks) {
        if !self.is_synced_told && shards.are_permitted_watches_synced() {
            self.is_synced_told = true;
            self.reports.push_back(ShardReport::Synced);
        }
        self.follow_entering(shards, now);
        self.follow_sealing(shards, now);
    }

    /// What the election is to be told next.
    pub fn poll_report(&mut self) -> Option<ShardReport> {
        self.reports.pop_front()
    }

    /// Puts a report back that could not be passed on.
    pub fn put_back(&mut self, report: ShardReport) {
        self.reports.push_front(report);
    }

    /// When time alone will next make something possible; it may be early, never late.
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

    /// Begins to load a shard. One that the list that is going on is of needs the next one: that one began before. For one
    /// that is ours to lead everything that was written before is to be in it.
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
            // Whatever it was, it is not what this term begins with.
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
                // It is being loaded still; then it has its time.
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

    /// Begins to seal a shard, or shortens what one has that is not sealed yet.
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
        // One that has not begun to fire has fired nothing.
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
        self.warming.remove(shard);
        self.to_list.remove(shard);
        self.listing.remove(shard);
        shards.release(shard);
    }
}

impl Sealing {
    /// Whether it waits for another member to lead it.
    fn is_without_leader(&self) -> bool {
        self.has_successor && matches!(self.stage, SealStage::Sealed { .. } | SealStage::Reported)
    }

    /// Goes as many stages further as there is nothing to wait for. Without room it acts until it is late.
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

/// When a shard is due, if that is so soon that it should fire before it is sealed.
fn about_to_fire(shards: &mut HeldShards, shard: ShardId, now: Clocks) -> Option<Timestamp> {
    let due = shards.wakeup_of(shard)?.at;
    let left = due.duration_since(now.wall);
    (left > SignedDuration::ZERO && left <= SEAL_CLEARANCE).then_some(due)
}

#[cfg(test)]
mod tests;
