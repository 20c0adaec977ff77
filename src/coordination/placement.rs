//! Where each shard should be: a pure function of the live members and who holds what.
//!
//! Every replica computes the same from the same facts, and none needs another's word for it. What it says is a wish: only
//! the holder of a shard moves it, and what nobody holds is taken by whoever sees it. Quotas bound the load (at most one
//! shard more than the share), holders keep what they have within them, and the ring breaks ties; so a member that comes
//! moves its own share and nothing else, and a second look at the outcome moves nothing.

use super::MemberRing;
use crate::shard::{ShardId, ShardSet};

/// A live member as placement sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Whether it gives away all that it has, and takes nothing: it drains, or may not own, or not yet.
    pub is_leaving: bool,
    /// Whether it takes nothing yet and soon will: quarantined shards wait for such a one, so that a host that they killed
    /// gets them back and no other dies of them.
    pub is_coming: bool,
}

/// Whether members that have too much give to members that have too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pull {
    /// They do.
    Allowed,
    /// The members changed a moment ago, and may again.
    Settling,
    /// Two revisions are live: what moves now would move again when the other one goes.
    Rollout,
    /// A member gives its shards away, which changes who has too little.
    Drain,
}

impl Pull {
    /// The rule: after the settle window, with one revision live and nobody leaving.
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

/// What placement is computed from.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// The order in which shards prefer the members.
    pub ring: &'a MemberRing,
    /// The live members, in the order in which they were put on the ring.
    pub members: &'a [Candidate],
    /// Who holds each shard, an index into the members; none for a shard that nobody live holds.
    pub holders: &'a [Option<usize>],
    /// Shards that killed their owners: all on one member, which carries nothing else.
    pub quarantined: &'a ShardSet,
    /// Whether members with too much give.
    pub pull: Pull,
}

/// Where each shard should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    targets: Vec<Option<usize>>,
}

impl Placement {
    /// Computes it. No member is a target while all are leaving.
    pub fn desired(situation: &Situation<'_>) -> Placement {
        let mut draft = Draft::new(situation);
        draft.quarantine();
        if situation.pull == Pull::Allowed {
            draft.shed();
        }
        draft.place();
        Placement { targets: draft.targets }
    }

    /// The member that a shard should be at.
    pub fn target(&self, shard: ShardId) -> Option<usize> {
        self.targets.get(usize::from(shard.0)).copied().flatten()
    }

    /// What a member should give away and to whom, in order of the shards.
    pub fn moves_from(&self, member: usize, holders: &[Option<usize>]) -> Vec<(ShardId, usize)> {
        let pairs = (0..).map(ShardId).zip(holders.iter().zip(&self.targets));
        let moves = pairs.filter_map(|(shard, (holder, target))| {
            let target = (*target)?;
            (*holder == Some(member) && target != member).then_some((shard, target))
        });
        moves.collect()
    }

    /// How long a member waits, in turns, before it takes a shard that nobody holds: the target takes it at once, the
    /// others follow in the order of the ring, whatever their quotas. None for one that may not own, and for all but the
    /// target of a quarantined shard.
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

/// A placement in the making.
struct Draft<'a> {
    situation: &'a Situation<'a>,
    /// Who may be a target of ordinary shards.
    takes: Vec<bool>,
    /// Where each shard is for now; none is to be placed.
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

    /// Puts the quarantined shards on one member. Others take over what else that one has, if there are others.
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

    /// Counts what each has of the ordinary shards, and the quotas of these.
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

    /// Takes from each member what is above its quota: first the shards that prefer it least.
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

    /// Gives each shard that is nowhere to the member furthest below its quota; of equals the one that it prefers.
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

/// How many shards each member should have: an equal share, rounded down, and what is left over one each: first to those
/// that have more already, so that they need not give, then to those that are furthest below, so that what a leaver gives
/// goes where it can stay.
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
