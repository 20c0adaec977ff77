//! A set of shards as bits: small enough to write into an annotation, whatever the number of shards.

use super::{Bucket, ShardCount, ShardId};

const WORD_BITS: u16 = 64;
const N_WORDS: usize = (Bucket::COUNT / WORD_BITS) as usize;

/// A set of shards, in order of their numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardSet {
    words: [u64; N_WORDS],
}

impl ShardSet {
    /// No shard.
    pub const EMPTY: ShardSet = ShardSet { words: [0; N_WORDS] };

    /// Every shard there is.
    pub fn all(count: ShardCount) -> ShardSet {
        count.shards().collect()
    }

    /// Puts a shard in; whether it was not there. A number beyond every shard count is not taken.
    pub fn insert(&mut self, shard: ShardId) -> bool {
        self.change(shard, true)
    }

    /// Takes a shard out; whether it was there.
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

    /// Whether a shard is in it.
    pub fn contains(&self, shard: ShardId) -> bool {
        let word = self.words.get(usize::from(shard.0 / WORD_BITS));
        word.is_some_and(|word| word & (1 << (shard.0 % WORD_BITS)) != 0)
    }

    /// Whether all of it is in another.
    pub fn is_within(&self, other: &ShardSet) -> bool {
        self.words
            .iter()
            .zip(other.words)
            .all(|(word, theirs)| word & !theirs == 0)
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|word| *word == 0)
    }

    /// Its shards in order.
    pub fn iter(&self) -> impl Iterator<Item = ShardId> {
        (0..)
            .step_by(usize::from(WORD_BITS))
            .zip(self.words)
            .flat_map(|(first, word)| Bits(word).map(move |bit| ShardId(first + bit)))
    }

    /// As hexadecimal digits, four shards to a digit, shard 0 first: a quarter of the shard count in bytes.
    pub fn to_hex(&self, count: ShardCount) -> String {
        let digit = |first: u16| {
            let bits = (0..4).filter(|at| self.contains(ShardId(first + at)));
            let value = bits.fold(0, |value, at| value | (8 >> at));
            char::from_digit(value, 16).unwrap_or('0')
        };
        (0..count.get()).step_by(4).map(digit).collect()
    }

    /// From those digits; none where there are not as many as the count asks for, or others than digits.
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

/// The bits that are set in a word, lowest first.
struct Bits(u64);

impl Iterator for Bits {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        let bit = u16::try_from(self.0.trailing_zeros())
            .ok()
            .filter(|bit| *bit < WORD_BITS)?;
        self.0 &= self.0 - 1;
        Some(bit)
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
