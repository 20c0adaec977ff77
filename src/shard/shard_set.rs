//! A set of shards as a bit field.

use super::{Bucket, ShardId};

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
