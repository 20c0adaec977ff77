//! Shards and the terms of their leadership.

/// The number of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u16);

/// One unbroken period of leadership of a shard; a later one has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl Term {
    /// The first leadership of a shard since the installation exists.
    pub const FIRST: Term = Term(1);
}

/// The shard and the term in which an effect was decided. The effect may be performed in this term only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardTerm {
    /// The shard.
    pub shard: ShardId,
    /// The term.
    pub term: Term,
}
