//! A fleet of members and their shards. Placements take effect at once.

use std::collections::BTreeMap;

use cronwheel::{
    coordination::{Acceptance, MemberRing, Placement, PlacementInputs},
    shard::{ShardCount, ShardId},
};

use super::Random;

/// A member of the fleet.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) identity: String,
    pub(super) revision: String,
    pub(super) acceptance: Acceptance,
}

/// The result of a rollout.
#[derive(Debug, Default)]
pub(super) struct Rollout {
    pub(super) moves: usize,
    pub(super) moves_of_one_shard_max: usize,
    /// The maximum load during the rollout, in shares.
    pub(super) worst_load: f64,
}

/// Members sorted by identity, and the holder of each shard.
#[derive(Clone, Debug)]
pub(super) struct Fleet {
    pub(super) count: ShardCount,
    pub(super) members: Vec<Member>,
    pub(super) holders: Vec<Option<String>>,
    random: u64,
}

impl Fleet {
    pub(super) fn new(count: ShardCount, seed: u64) -> Fleet {
        Fleet {
            count,
            members: Vec::new(),
            holders: vec![None; count.get().into()],
            random: seed,
        }
    }

    /// Adds a member with a random Pod uid.
    pub(super) fn join(&mut self, revision: &str) {
        let mut random = Random::new(self.random);
        let identity = format!("{:016x}", random.next());
        self.random = random.next();
        self.members.push(Member {
            identity,
            revision: revision.to_owned(),
            acceptance: Acceptance::Now,
        });
        self.members.sort_by(|a, b| a.identity.cmp(&b.identity));
    }

    pub(super) fn remove(&mut self, identity: &str) {
        self.members.retain(|member| member.identity != identity);
    }

    fn indices(&self) -> Vec<Option<usize>> {
        let places: BTreeMap<&str, usize> = self
            .members
            .iter()
            .enumerate()
            .map(|(at, member)| (member.identity.as_str(), at))
            .collect();
        self.holders
            .iter()
            .map(|holder| places.get(holder.as_deref()?).copied())
            .collect()
    }

    fn ring(&self) -> MemberRing {
        let members = self.members.iter().map(|member| member.identity.as_str().into());
        MemberRing::new(members.collect(), self.count)
    }

    fn placement(&self, may_rebalance: bool) -> Placement {
        let holder = |holder: &Option<String>| holder.as_deref().map(Into::into);
        Placement::desired(PlacementInputs {
            ring: self.ring(),
            acceptances: self.members.iter().map(|member| member.acceptance).collect(),
            holders: self.holders.iter().map(holder).collect(),
            may_rebalance,
        })
    }

    /// Applies a placement. Returns the shards that moved.
    fn apply(&mut self, placement: &Placement) -> Vec<ShardId> {
        let mut moved = Vec::new();
        for (shard, holder) in self.count.shards().zip(&mut self.holders) {
            let target = placement.target(shard);
            let target = target.map(str::to_owned);
            if target.is_some() && *holder != target {
                *holder = target;
                moved.push(shard);
            }
        }
        moved
    }

    /// Members take free shards, and no member gives any away. Returns the shards that moved.
    fn take_free_returning_moves(&mut self) -> Vec<ShardId> {
        self.apply(&self.placement(false))
    }

    /// Members take free shards, and no member gives any away. Returns the number of moves.
    pub(super) fn take_free(&mut self) -> usize {
        self.take_free_returning_moves().len()
    }

    /// Members take free shards. After the settle window, overloaded members give shards away. Returns the number of
    /// moves.
    pub(super) fn settle(&mut self) -> usize {
        self.take_free() + self.apply(&self.placement(true)).len()
    }

    /// The number of shards that each member holds.
    pub(super) fn held(&self) -> Vec<usize> {
        let mut held = vec![0; self.members.len()];
        for holder in self.indices().into_iter().flatten() {
            held[holder] += 1;
        }
        held
    }

    /// The maximum load of a member, in shares.
    #[expect(clippy::cast_precision_loss, reason = "numbers of shards and members are small")]
    pub(super) fn load_max(&self, n_members: usize) -> f64 {
        let most = self.held().into_iter().max().unwrap_or(0);
        most as f64 * n_members as f64 / self.holders.len() as f64
    }

    pub(super) fn roll_out(&mut self, revision: &str) -> Rollout {
        let former = self.members[0].revision.clone();
        self.roll_out_some(revision, &former, self.members.len())
    }

    /// Replaces this many members of a revision one by one: a new member joins, then an old member drains and leaves.
    pub(super) fn roll_out_some(&mut self, revision: &str, former: &str, n_replaced: usize) -> Rollout {
        let mut n_moves = vec![0; self.holders.len()];
        let n_members = self.members.len();
        let mut worst_load: f64 = 0.0;
        for _ in 0..n_replaced {
            self.join(revision);
            let mut moved = self.take_free_returning_moves();
            let Some(leaver) = self.members.iter_mut().find(|member| member.revision == former) else {
                break;
            };
            leaver.acceptance = Acceptance::No;
            let identity = leaver.identity.clone();
            moved.extend(self.take_free_returning_moves());
            self.remove(&identity);
            worst_load = worst_load.max(self.load_max(n_members));
            for shard in moved {
                n_moves[usize::from(shard.0)] += 1;
            }
        }
        Rollout {
            moves: n_moves.iter().sum(),
            moves_of_one_shard_max: n_moves.into_iter().max().unwrap_or(0),
            worst_load,
        }
    }

    /// The turn of each member to take a shard without a holder.
    pub(super) fn adoption_turns(&self, shard: ShardId) -> Vec<Option<usize>> {
        let mut fleet = self.clone();
        fleet.holders[usize::from(shard.0)] = None;
        let placement = fleet.placement(false);
        let turns = fleet
            .members
            .iter()
            .map(|member| placement.adoption_turn(shard, &member.identity));
        turns.collect()
    }
}
