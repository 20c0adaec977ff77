//! A set of shards as a bit field: small enough for an annotation at any shard count.

use super::{Bucket, ShardCount, ShardId};

const WORD_BITS: u16 = 64;
const N_WORDS: usize = (Bucket::COUNT / WORD_BITS) as usize;

/// A set of shards, ordered by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardSet {
    words: [u64; N_WORDS],
}

impl ShardSet {
    /// The empty set.
    pub const EMPTY: ShardSet = ShardSet { words: [0; N_WORDS] };

    /// All shards of any shard count, and the one shard of a replica with `--alone`.
    pub const EVERY: ShardSet = ShardSet {
        words: [u64::MAX; N_WORDS],
    };

    /// The set of all shards.
    pub fn all(count: ShardCount) -> ShardSet {
        count.shards().collect()
    }

    /// Inserts a shard. Returns whether it was absent. A number beyond every shard count is ignored.
    pub fn insert(&mut self, shard: ShardId) -> bool {
        self.change(shard, true)
    }

    /// Removes a shard. Returns whether it was present.
    pub fn remove(&mut self, shard: ShardId) -> bool {
        self.change(shard, false)
    }

    fn change(&mut self, shard: ShardId, is_in: bool) -> bool {
        let Some(word) = self.words.get_mut(usize::from(shard.0 / WORD_BITS)) else {
            return false;
        };
        let bit = 1 << (shard.0 % WORD_BITS);
        let was_in = *word & bit != 0;
        *word = if is_in { *word | bit } else { *word & !bit };
        was_in != is_in
    }

    /// Whether the shard is in the set.
    pub fn contains(&self, shard: ShardId) -> bool {
        let word = self.words.get(usize::from(shard.0 / WORD_BITS));
        word.is_some_and(|word| word & (1 << (shard.0 % WORD_BITS)) != 0)
    }

    /// Whether the set is a subset of another.
    pub fn is_within(&self, other: &ShardSet) -> bool {
        self.words
            .iter()
            .zip(other.words)
            .all(|(word, theirs)| word & !theirs == 0)
    }

    /// The number of shards in the set.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// The shards of the set, in order.
    pub fn iter(&self) -> impl Iterator<Item = ShardId> {
        let words = (0..).step_by(usize::from(WORD_BITS)).zip(self.words);
        let words = words.filter(|(_, word)| *word != 0);
        words.flat_map(|(first, word)| {
            let bits = (0..WORD_BITS).filter(move |bit| word & (1 << bit) != 0);
            bits.map(move |bit| ShardId(first + bit))
        })
    }

    /// Formats the set as hexadecimal digits, four shards per digit, shard 0 first. The length in bytes is a quarter of
    /// the shard count.
    pub fn to_hex(&self, count: ShardCount) -> String {
        let digit = |first: u16| {
            let bits = (0..4).filter(|at| self.contains(ShardId(first + at)));
            let value = bits.fold(0, |value, at| value | (8 >> at));
            char::from_digit(value, 16).unwrap_or('0')
        };
        (0..count.get()).step_by(4).map(digit).collect()
    }

    /// Parses the digits of [`ShardSet::to_hex`]. Returns `None` if their number does not fit the count or one is
    /// invalid.
    pub fn from_hex(text: &str, count: ShardCount) -> Option<ShardSet> {
        if text.len() != usize::from(count.get().div_ceil(4)) {
            return None;
        }
        let mut set = ShardSet::EMPTY;
        for (first, digit) in (0..).step_by(4).zip(text.chars()) {
            let value = digit.to_digit(16)?;
            for at in (0..4).filter(|at| value & (8 >> at) != 0) {
                set.insert(ShardId(first + at));
            }
        }
        Some(set)
    }
}

impl FromIterator<ShardId> for ShardSet {
    fn from_iter<I: IntoIterator<Item = ShardId>>(shards: I) -> ShardSet {
        let mut set = ShardSet::EMPTY;
        for shard in shards {
            set.insert(shard);
        }
        set
    }
}
