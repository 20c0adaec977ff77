//! The desired placement of all shards: a pure function of the members and the current holders.
//!
//! Every replica computes the same placement from the same facts, without communication. The result is advisory: only
//! the holder of a shard moves it, and other members take a vacant shard if its target does not
//! ([`Placement::adoption_turn`]). Quotas bound the load (at most one shard more than the share), holders keep their
//! shards within their quotas, and the ring breaks ties. So a new member moves only its own share, and a second
//! placement of the outcome moves nothing.

use std::collections::BTreeMap;

use super::{Acceptance, MemberRing};
use crate::shard::ShardId;

/// The inputs of placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementInputs {
    /// The members, and the order in which shards prefer them.
    pub ring: MemberRing,
    /// Whether each member of the ring takes shards.
    pub acceptances: Vec<Acceptance>,
    /// The pod uid of the holder of each shard; `None` for a vacant shard.
    pub holders: Vec<Option<Box<str>>>,
    /// Whether members above their quota give shards to members below theirs.
    pub may_rebalance: bool,
}

/// The desired placement of each shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    inputs: PlacementInputs,
    /// For each shard, an index into the members of the ring.
    targets: Vec<Option<usize>>,
}

/// Members are named by their pod uids.
impl Placement {
    /// Computes the placement. While no member takes shards, no shard has a target.
    pub fn desired(inputs: PlacementInputs) -> Placement {
        let mut draft = Draft::new(&inputs);
        draft.count();
        draft.release_excess();
        draft.place();
        let targets = draft.targets;
        Placement { inputs, targets }
    }

    /// The number of members, including those that take no shards.
    pub fn n_members(&self) -> usize {
        self.inputs.ring.members().len()
    }

    /// The member that should lead a shard.
    pub fn target(&self, shard: ShardId) -> Option<&str> {
        let target = self.targets[usize::from(shard.0)]?;
        Some(&self.inputs.ring.members()[target])
    }

    /// The member to which a member should give one of its shards, if any.
    pub fn move_of(&self, shard: ShardId, member: &str) -> Option<&str> {
        let holder = self.inputs.holders[usize::from(shard.0)].as_deref();
        self.target(shard)
            .filter(|target| holder == Some(member) && *target != member)
    }

    /// The members that take shards, in the order in which the shard prefers them.
    pub fn takers(&self, shard: ShardId) -> impl Iterator<Item = &str> {
        let PlacementInputs { ring, acceptances, .. } = &self.inputs;
        let takers = ring
            .preference(shard)
            .filter(|member| acceptances[*member] == Acceptance::Now);
        takers.map(|member| &*ring.members()[member])
    }

    /// The number of turns a member waits before it takes a vacant shard. The target takes it at once; the others follow
    /// in the order of the ring, regardless of their quotas. `None` for a member that takes no shards.
    pub fn adoption_turn(&self, shard: ShardId, member: &str) -> Option<usize> {
        let target = self.target(shard);
        if target == Some(member) {
            return Some(0);
        }
        let mut others = self.takers(shard).filter(|other| Some(*other) != target);
        others.position(|other| other == member).map(|turn| turn + 1)
    }
}

/// A placement being computed. Members are indices into those of the ring.
struct Draft<'a> {
    inputs: &'a PlacementInputs,
    /// Whether each member may be a target.
    takes: Vec<bool>,
    /// The tentative member of each shard; `None` for a shard that is still to be placed.
    targets: Vec<Option<usize>>,
    quotas: Vec<usize>,
    held: Vec<usize>,
}

impl<'a> Draft<'a> {
    fn new(inputs: &'a PlacementInputs) -> Draft<'a> {
        let takes: Vec<bool> = inputs.acceptances.iter().map(|it| *it == Acceptance::Now).collect();
        let members = inputs.ring.members().iter().enumerate();
        let indices: BTreeMap<&str, usize> = members.map(|(index, member)| (&**member, index)).collect();
        let kept_by = |holder: &Option<Box<str>>| {
            let holder = *indices.get(holder.as_deref()?)?;
            takes[holder].then_some(holder)
        };
        Draft {
            targets: inputs.holders.iter().map(kept_by).collect(),
            takes,
            inputs,
            quotas: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Counts the shards of each member, and computes their quotas.
    fn count(&mut self) {
        self.held = vec![0; self.takes.len()];
        for target in self.targets.iter().flatten() {
            self.held[*target] += 1;
        }
        self.quotas = quotas(self.targets.len(), &self.takes, &self.held);
    }

    /// Removes from each member the shards above its quota, starting with those that prefer it least.
    fn release_excess(&mut self) {
        if !self.inputs.may_rebalance {
            return;
        }
        let mut ranked: Vec<(usize, usize, usize)> = Vec::new();
        for (index, target) in self.targets.iter().enumerate() {
            let shard = shard_at(index);
            let Some(member) = *target else { continue };
            if self.excess(member) > 0 {
                let rank = self.inputs.ring.rank(shard, member);
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

    /// The number of shards above a member's quota.
    fn excess(&self, member: usize) -> usize {
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
            let mut preference = self.inputs.ring.preference(shard_at(index));
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
