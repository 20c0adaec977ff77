//! Shards, and the terms in which they are led.

/// The number of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

/// One unbroken period of leadership of a shard; a later one has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

/// Under what an effect was decided: it may be performed in that term of that shard, and in no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardTerm {
    /// The shard.
    pub shard: ShardId,
    /// The term.
    pub term: Term,
}
