//! The order in which a shard prefers the members: a consistent-hash ring of members.
//!
//! A member that joins or leaves changes the order for few shards. The ring does not balance; `placement` does.

use std::hash::{Hash, Hasher};

use hashring::HashRing;

use crate::shard::{ShardCount, ShardId, hash::StableHashBuilder};

/// Tokens of one member on the ring. With 64 tokens, a member has many successors, so its shards do not all prefer
/// the same other member.
pub(super) const TOKENS_PER_MEMBER: u16 = 64;

/// One token of a member.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    /// The identity of the member, and the number of the token.
    key: Key<'a>,
    member: usize,
}

impl Hash for Token<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// A key on the ring: a name, a zero byte, and a number in big-endian order.
#[derive(Clone, Copy, Debug)]
struct Key<'a>(&'a str, u16);

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.0.as_bytes());
        state.write(&[0]);
        state.write(&self.1.to_be_bytes());
    }
}

/// The ring, evaluated once for each shard. It names its members by their index.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberRing {
    members: Vec<Box<str>>,
    /// The members of the tokens, clockwise from the lookup position of shard 0.
    clockwise: Vec<usize>,
    /// The position at which each shard's walk begins.
    shard_starts: Vec<usize>,
}

impl MemberRing {
    /// Builds a ring. Members should be sorted and distinct, so that all replicas build the same one.
    pub fn new(members: Vec<Box<str>>, count: ShardCount) -> MemberRing {
        let tokens = members.iter().enumerate().flat_map(|(member, identity)| {
            (0..TOKENS_PER_MEMBER).map(move |number| Token {
                key: Key(identity, number),
                member,
            })
        });
        let mut ring = HashRing::with_hasher(StableHashBuilder);
        ring.batch_add(tokens.collect());
        // The limit exceeds the number of tokens, so the result is the whole ring.
        let clockwise = ring.get_with_replicas(&Key("shard", 0), usize::MAX).unwrap_or_default();
        let mut places = vec![0; clockwise.len()];
        for (place, token) in clockwise.iter().enumerate() {
            places[token_index(token)] = place;
        }
        let start = |shard: ShardId| {
            let first = ring.get(&Key("shard", shard.0)).map(token_index);
            first.map_or(0, |index| places[index])
        };
        MemberRing {
            shard_starts: count.shards().map(start).collect(),
            clockwise: clockwise.iter().map(|token| token.member).collect(),
            members,
        }
    }

    /// The members.
    pub fn members(&self) -> &[Box<str>] {
        &self.members
    }

    /// The members in the order in which a shard prefers them; each once.
    pub fn preference(&self, shard: ShardId) -> impl Iterator<Item = usize> {
        self.walk(self.shard_starts[usize::from(shard.0)])
    }

    /// The position of a member in a shard's order of preference; the number of members if it is not on the ring.
    pub fn rank(&self, shard: ShardId, member: usize) -> usize {
        self.preference(shard)
            .position(|preferred| preferred == member)
            .unwrap_or(self.members.len())
    }

    /// Walks clockwise from a position and yields each member at its first token.
    fn walk(&self, start: usize) -> impl Iterator<Item = usize> {
        let (before, from_start) = self.clockwise.split_at(start);
        let mut is_seen = vec![false; self.members.len()];
        let is_first = move |member: &usize| !std::mem::replace(&mut is_seen[*member], true);
        from_start
            .iter()
            .chain(before)
            .copied()
            .filter(is_first)
            .take(self.members.len())
    }
}

/// The index of a token by member and number.
fn token_index(token: &Token<'_>) -> usize {
    token.member * usize::from(TOKENS_PER_MEMBER) + usize::from(token.key.1)
}

#[cfg(test)]
mod tests;
