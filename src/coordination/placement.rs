//! The desired placement of all shards: a pure function of the live members and the current holders.
//!
//! Every replica computes the same placement from the same facts, without communication. The result is advisory: only
//! the holder of a shard moves it, and other members take a shard without a holder if its target does not
//! ([`Placement::adoption_turn`]). Quotas bound the load (at most one shard more than the share), holders keep their
//! shards within their quotas, and the ring breaks ties. So a new member moves only its own share, and a second
//! placement of the outcome moves nothing.

use super::{Acceptance, MemberRing};
use crate::shard::{ShardId, ShardSet};

/// The inputs of placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Situation {
    /// The order in which shards prefer the members.
    pub ring: MemberRing,
    /// Whether each live member takes shards, in the order in which the members were put on the ring. Quarantined
    /// shards wait for a member that takes shards soon ([`Acceptance::Soon`]). A host that crashed because of them gets
    /// them back, so they crash no other member.
    pub members: Vec<Acceptance>,
    /// The holder of each shard as an index into the members; `None` for a shard that no live member holds.
    pub holders: Vec<Option<usize>>,
    /// Shards on which too many leaders crashed: all are placed on one member, which has no ordinary shards while
    /// another member can take them.
    pub quarantined: ShardSet,
    /// Whether members above their quota give shards to members below theirs. The host of quarantined shards gives its
    /// ordinary shards away in any case.
    pub may_pull: bool,
}

/// The desired placement of each shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    situation: Situation,
    targets: Vec<Option<usize>>,
}

impl Placement {
    /// Computes the placement. While no member takes shards, no shard has a target.
    pub fn desired(situation: Situation) -> Placement {
        let mut draft = Draft::new(&situation);
        draft.quarantine();
        draft.count();
        draft.shed();
        draft.place();
        let targets = draft.targets;
        Placement { situation, targets }
    }

    /// The member that should lead a shard.
    pub fn target(&self, shard: ShardId) -> Option<usize> {
        self.targets[usize::from(shard.0)]
    }

    /// The member to which a member should give one of its shards, if any.
    pub fn move_of(&self, shard: ShardId, member: usize) -> Option<usize> {
        let is_holder = self.situation.holders[usize::from(shard.0)] == Some(member);
        self.target(shard).filter(|target| is_holder && *target != member)
    }

    /// The members that take shards, in the order in which the shard prefers them.
    pub fn takers(&self, shard: ShardId) -> impl Iterator<Item = usize> {
        let takes = move |member: &usize| self.situation.members[*member] == Acceptance::Now;
        self.situation.ring.preference(shard).filter(takes)
    }

    /// The number of turns a member waits before it takes a shard without a holder. The target takes it at once; the
    /// others follow in the order of the ring, regardless of their quotas. `None` for a member that may not own
    /// shards, and for every member except the target of a quarantined shard.
    pub fn adoption_turn(&self, shard: ShardId, member: usize) -> Option<usize> {
        let target = self.target(shard);
        if target == Some(member) {
            return Some(0);
        }
        if self.situation.quarantined.contains(shard) && target.is_some() {
            return None;
        }
        let mut others = self.takers(shard).filter(|other| Some(*other) != target);
        others.position(|other| other == member).map(|turn| turn + 1)
    }
}

/// A placement being computed.
struct Draft<'a> {
    situation: &'a Situation,
    /// Whether each member may be a target of ordinary shards.
    takes: Vec<bool>,
    /// The host of quarantined shards, if other members can take its ordinary shards.
    emptied_host: Option<usize>,
    /// The tentative member of each shard; `None` for a shard that is still to be placed.
    targets: Vec<Option<usize>>,
    quotas: Vec<usize>,
    held: Vec<usize>,
}

impl<'a> Draft<'a> {
    fn new(situation: &'a Situation) -> Draft<'a> {
        let members = situation.members.iter();
        let takes: Vec<bool> = members.map(|acceptance| *acceptance == Acceptance::Now).collect();
        let keeps = |holder: &usize| takes[*holder];
        Draft {
            targets: situation.holders.iter().map(|holder| holder.filter(keeps)).collect(),
            takes,
            situation,
            emptied_host: None,
            quotas: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Places the quarantined shards on one member. Its other shards go to other members, if there are any.
    fn quarantine(&mut self) {
        if self.situation.quarantined.is_empty() {
            return;
        }
        let will_take = |member: &usize| self.situation.members[*member] != Acceptance::No;
        let Some(host) = self.situation.ring.quarantine_hosts().find(will_take) else {
            return;
        };
        for shard in self.situation.quarantined.iter() {
            self.targets[usize::from(shard.0)] = Some(host);
        }
        if self.takes.iter().filter(|takes| **takes).count() > 1 {
            self.takes[host] = false;
            self.emptied_host = Some(host);
        }
    }

    /// Counts the ordinary shards of each member, and computes their quotas.
    fn count(&mut self) {
        self.held = vec![0; self.situation.members.len()];
        let mut n_shards = 0;
        for (shard, target) in (0..).map(ShardId).zip(&self.targets) {
            if self.situation.quarantined.contains(shard) {
                continue;
            }
            n_shards += 1;
            if let Some(target) = *target {
                self.held[target] += 1;
            }
        }
        self.quotas = quotas(n_shards, &self.takes, &self.held);
    }

    /// Removes from each member that gives shards away the shards above its quota, starting with those that prefer it
    /// least.
    fn shed(&mut self) {
        let mut ranked: Vec<(usize, usize, usize)> = Vec::new();
        for (index, target) in self.targets.iter().enumerate() {
            let shard = shard_at(index);
            let Some(member) = *target else { continue };
            if !self.situation.quarantined.contains(shard) && self.excess(member) > 0 {
                let rank = self.situation.ring.rank(shard, member);
                ranked.push((usize::MAX - rank, index, member));
            }
        }
        ranked.sort_unstable();
        for (_, index, member) in ranked {
            if self.excess(member) > 0 {
                self.targets[index] = None;
                self.held[member] -= 1;
            }
        }
    }

    /// The number of shards that a member should give away. The host of quarantined shards gives its ordinary shards away
    /// at any time, so that it crashes with none of them.
    fn excess(&self, member: usize) -> usize {
        if !self.situation.may_pull && self.emptied_host != Some(member) {
            return 0;
        }
        self.held[member].saturating_sub(self.quotas[member])
    }

    /// Gives each unplaced shard to the member furthest below its quota; among equals, to the shard's preference.
    fn place(&mut self) {
        for index in 0..self.targets.len() {
            if self.targets[index].is_some() {
                continue;
            }
            let room = |member: usize| {
                let (quota, held) = (self.quotas[member].cast_signed(), self.held[member].cast_signed());
                self.takes[member].then_some(quota - held)
            };
            let widest = (0..self.takes.len()).filter_map(room).max();
            let mut preference = self.situation.ring.preference(shard_at(index));
            let target = preference.find(|member| widest.is_some() && room(*member) == widest);
            drop(preference);
            if let Some(target) = target {
                self.targets[index] = Some(target);
                self.held[target] += 1;
            }
        }
    }
}

fn shard_at(index: usize) -> ShardId {
    ShardId(u16::try_from(index).unwrap_or(u16::MAX))
}

/// The number of shards that each member should have: an equal share, rounded down. Each remaining shard raises the
/// quota of one member. Members that already have more come first, so that they keep their shards. Members furthest
/// below their quota come next, so that the shards of a leaving member move only once.
fn quotas(n_shards: usize, takes: &[bool], held: &[usize]) -> Vec<usize> {
    let n_takers = takes.iter().filter(|takes| **takes).count();
    if n_takers == 0 {
        return vec![0; takes.len()];
    }
    let (share, n_left) = (n_shards / n_takers, n_shards % n_takers);
    let mut quotas: Vec<usize> = takes.iter().map(|takes| if *takes { share } else { 0 }).collect();
    let mut order: Vec<usize> = (0..takes.len()).filter(|member| takes[*member]).collect();
    order.sort_by_key(|&member| (held[member] <= share, held[member].cast_signed() - share.cast_signed()));
    for member in order.into_iter().take(n_left) {
        quotas[member] += 1;
    }
    quotas
}
