//! The desired placement of all shards: a pure function of the live members and the current holders.
//!
//! Every replica computes the same placement from the same facts, without communication. The result is advisory: only
//! the holder of a shard moves it, and a shard without a holder is taken by the first replica that observes it. Quotas
//! bound the load (at most one shard more than the share), holders keep their shards within their quotas, and the ring
//! breaks ties. So a new member moves only its own share, and a second placement of the outcome moves nothing.

use super::MemberRing;
use crate::shard::{ShardId, ShardSet};

/// A live member, as input of the placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Whether the member gives all its shards away and takes none: it drains, or may not own shards (yet).
    pub is_leaving: bool,
    /// Whether the member takes no shards yet but soon will. Quarantined shards wait for such a member: a host that
    /// crashed because of them gets them back, so they crash no other member.
    pub is_coming: bool,
}

/// Whether members above their quota give shards to members below theirs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pull {
    /// They give shards.
    Allowed,
    /// They give none: the members changed recently and may change again.
    Settling,
    /// They give none: two revisions are live, and a shard that moves now would move again when one revision ends.
    Rollout,
    /// They give none: a member gives its shards away, which changes the quotas.
    Drain,
}

impl Pull {
    /// Allowed after the settle window, with one revision live and no member leaving.
    pub fn when(is_settled: bool, n_revisions: usize, is_anyone_leaving: bool) -> Pull {
        if is_anyone_leaving {
            Pull::Drain
        } else if n_revisions > 1 {
            Pull::Rollout
        } else if is_settled {
            Pull::Allowed
        } else {
            Pull::Settling
        }
    }
}

/// The inputs of placement.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The order in which shards prefer the members.
    pub ring: &'a MemberRing,
    /// The live members, in the order in which they were put on the ring.
    pub members: &'a [Candidate],
    /// The holder of each shard as an index into the members; `None` for a shard that no live member holds.
    pub holders: &'a [Option<usize>],
    /// Shards on which too many leaders crashed: all are placed on one member, which has no ordinary shards while
    /// another member can take them.
    pub quarantined: &'a ShardSet,
    /// Whether members above their quota give shards away.
    pub pull: Pull,
}

/// The desired placement of each shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    targets: Vec<Option<usize>>,
}

impl Placement {
    /// Computes the placement. While all members are leaving, no shard has a target.
    pub fn desired(situation: &Situation<'_>) -> Placement {
        let mut draft = Draft::new(situation);
        draft.quarantine();
        if situation.pull == Pull::Allowed {
            draft.shed();
        }
        draft.place();
        Placement { targets: draft.targets }
    }

    /// The member that should lead a shard.
    pub fn target(&self, shard: ShardId) -> Option<usize> {
        self.targets.get(usize::from(shard.0)).copied().flatten()
    }

    /// The shards that a member should give away, with their targets, ordered by shard.
    pub fn moves_from(&self, member: usize, holders: &[Option<usize>]) -> Vec<(ShardId, usize)> {
        let pairs = (0..).map(ShardId).zip(holders.iter().zip(&self.targets));
        let moves = pairs.filter_map(|(shard, (holder, target))| {
            let target = (*target)?;
            (*holder == Some(member) && target != member).then_some((shard, target))
        });
        moves.collect()
    }

    /// The number of turns a member waits before it takes a shard without a holder. The target takes it at once; the
    /// others follow in the order of the ring, regardless of their quotas. `None` for a member that may not own
    /// shards, and for every member except the target of a quarantined shard.
    pub fn adoption_turn(&self, shard: ShardId, member: usize, situation: &Situation<'_>) -> Option<usize> {
        let target = self.target(shard);
        if target == Some(member) {
            return Some(0);
        }
        if situation.quarantined.contains(shard) && target.is_some() {
            return None;
        }
        let takes = |member: &usize| {
            situation
                .members
                .get(*member)
                .is_some_and(|candidate| !candidate.is_leaving)
        };
        let mut others = situation
            .ring
            .preference(shard)
            .filter(|other| Some(*other) != target)
            .filter(takes);
        others.position(|other| other == member).map(|turn| turn + 1)
    }
}

/// A placement being computed.
struct Draft<'a> {
    situation: &'a Situation<'a>,
    /// Whether each member may be a target of ordinary shards.
    takes: Vec<bool>,
    /// The tentative member of each shard; `None` for a shard that is still to be placed.
    targets: Vec<Option<usize>>,
    quotas: Vec<usize>,
    held: Vec<usize>,
}

impl<'a> Draft<'a> {
    fn new(situation: &'a Situation<'a>) -> Draft<'a> {
        let takes: Vec<bool> = situation
            .members
            .iter()
            .map(|candidate| !candidate.is_leaving)
            .collect();
        let keeps = |holder: &usize| takes.get(*holder).copied().unwrap_or(false);
        let mut draft = Draft {
            targets: situation.holders.iter().map(|holder| holder.filter(keeps)).collect(),
            takes,
            situation,
            quotas: Vec::new(),
            held: Vec::new(),
        };
        draft.count();
        draft
    }

    /// Places the quarantined shards on one member. Its other shards go to other members, if there are any.
    fn quarantine(&mut self) {
        if self.situation.quarantined.is_empty() {
            return;
        }
        let candidates = self.situation.members;
        let will_take = |member: &usize| {
            candidates
                .get(*member)
                .is_some_and(|candidate| !candidate.is_leaving || candidate.is_coming)
        };
        let Some(host) = self.situation.ring.quarantine_hosts().find(will_take) else {
            return;
        };
        for shard in self.situation.quarantined.iter() {
            if let Some(target) = self.targets.get_mut(usize::from(shard.0)) {
                *target = Some(host);
            }
        }
        if self.takes.iter().filter(|takes| **takes).count() > 1
            && let Some(takes) = self.takes.get_mut(host)
        {
            *takes = false;
        }
        self.count();
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
            if let Some(held) = target.and_then(|target| self.held.get_mut(target)) {
                *held += 1;
            }
        }
        self.quotas = quotas(n_shards, &self.takes, &self.held);
    }

    /// Removes from each member the shards above its quota, starting with the shards that prefer it least.
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
            if self.excess(member) == 0 {
                continue;
            }
            if let (Some(target), Some(held)) = (self.targets.get_mut(index), self.held.get_mut(member)) {
                *target = None;
                *held -= 1;
            }
        }
    }

    fn excess(&self, member: usize) -> usize {
        let [held, quota] = [&self.held, &self.quotas].map(|counts| counts.get(member).copied().unwrap_or(0));
        held.saturating_sub(quota)
    }

    /// Gives each unplaced shard to the member furthest below its quota; among equals, to the shard's preference.
    fn place(&mut self) {
        for index in 0..self.targets.len() {
            if self.targets.get(index).is_none_or(Option::is_some) {
                continue;
            }
            let room = |member: &usize| {
                let takes = self.takes.get(*member).copied().unwrap_or(false);
                let [quota, held] = [&self.quotas, &self.held].map(|counts| counts.get(*member).copied().unwrap_or(0));
                takes.then(|| quota.cast_signed() - held.cast_signed())
            };
            let widest = (0..self.takes.len()).filter_map(|member| room(&member)).max();
            let mut preference = self.situation.ring.preference(shard_at(index));
            let target = preference.find(|member| widest.is_some() && room(member) == widest);
            drop(preference);
            if let (Some(slot), Some(target)) = (self.targets.get_mut(index), target) {
                *slot = Some(target);
                if let Some(held) = self.held.get_mut(target) {
                    *held += 1;
                }
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
