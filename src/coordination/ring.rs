//! The order in which a shard prefers the members: a consistent-hash ring on which only members stand.
//!
//! A member that comes or goes changes the order for few shards. The ring balances nothing; `placement` does.

use std::hash::{Hash, Hasher};

use hashring::HashRing;

use crate::shard::{ShardCount, ShardId, hash::StableHashBuilder};

/// Places of one member on the ring. Enough that a member's successors are many: its shards do not all prefer one other.
pub const TOKENS_PER_MEMBER: u16 = 64;

/// One place of a member. Its hash is that of the bytes `identity 0 token`, the token's number with its high byte first.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    identity: &'a str,
    member: usize,
    number: u16,
}

impl Hash for Token<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.identity.as_bytes());
        state.write(&[0]);
        state.write(&self.number.to_be_bytes());
    }
}

/// What looks for a place: a name, and a number with its high byte first.
struct Key<'a>(&'a str, u16);

impl Hash for Key<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.0.as_bytes());
        state.write(&[0]);
        state.write(&self.1.to_be_bytes());
    }
}

/// The ring, read off once for each shard: members are indices into the list that it was made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberRing {
    n_members: usize,
    /// The members of the tokens, clockwise from where the host of the quarantine is looked for.
    clockwise: Vec<usize>,
    /// Where each shard's walk begins.
    shard_starts: Vec<usize>,
}

impl MemberRing {
    /// Puts members on a ring. Their identities should be sorted and differ, so that all replicas make the same one.
    pub fn new(identities: &[&str], count: ShardCount) -> MemberRing {
        let tokens = identities.iter().enumerate().flat_map(|(member, identity)| {
            (0..TOKENS_PER_MEMBER).map(move |number| Token {
                identity,
                member,
                number,
            })
        });
        let mut ring = HashRing::with_hasher(StableHashBuilder);
        ring.batch_add(tokens.collect());
        // More successors than there are tokens: the whole ring once, from where the host of the quarantine is looked for.
        let clockwise = ring
            .get_with_replicas(&Key("quarantine", 0), usize::MAX)
            .unwrap_or_default();
        let mut places = vec![0; clockwise.len()];
        for (place, token) in clockwise.iter().enumerate() {
            if let Some(slot) = places.get_mut(token_index(token)) {
                *slot = place;
            }
        }
        let start = |shard: ShardId| {
            let first = ring.get(&Key("shard", shard.0)).map(token_index);
            first.and_then(|index| places.get(index).copied()).unwrap_or(0)
        };
        MemberRing {
            n_members: identities.len(),
            shard_starts: count.shards().map(start).collect(),
            clockwise: clockwise.iter().map(|token| token.member).collect(),
        }
    }

    /// How many members stand on it.
    pub fn n_members(&self) -> usize {
        self.n_members
    }

    /// The members in the order in which a shard prefers them; each once.
    pub fn preference(&self, shard: ShardId) -> impl Iterator<Item = usize> {
        let start = self.shard_starts.get(usize::from(shard.0));
        self.walk(start.copied().unwrap_or(0))
    }

    /// The members in the order in which they would be host to quarantined shards.
    pub fn quarantine_hosts(&self) -> impl Iterator<Item = usize> {
        self.walk(0)
    }

    /// How far down a member stands in the order of a shard; the number of members if it is none of them.
    pub fn rank(&self, shard: ShardId, member: usize) -> usize {
        self.preference(shard)
            .position(|preferred| preferred == member)
            .unwrap_or(self.n_members)
    }

    /// Clockwise from a place, each member where its first token stands.
    fn walk(&self, start: usize) -> impl Iterator<Item = usize> {
        let (before, from_start) = self.clockwise.split_at_checked(start).unwrap_or_default();
        let mut is_seen = vec![false; self.n_members];
        let is_first = move |member: &usize| {
            is_seen
                .get_mut(*member)
                .is_some_and(|is_seen| !std::mem::replace(is_seen, true))
        };
        from_start
            .iter()
            .chain(before)
            .copied()
            .filter(is_first)
            .take(self.n_members)
    }
}

/// A token by member and number.
fn token_index(token: &Token<'_>) -> usize {
    token.member * usize::from(TOKENS_PER_MEMBER) + usize::from(token.number)
}

#[cfg(test)]
mod tests;
