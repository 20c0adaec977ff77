//! A set of minutes.

/// The minutes in which a chain of activations starts a Job, one bit for each.
#[derive(Clone, Debug)]
pub(super) struct MinuteSet {
    bits: Box<[u64]>,
    /// Number of starts in each minute, if slots have seconds; otherwise empty.
    counts: Box<[u8]>,
}

impl MinuteSet {
    pub(super) fn new(n_minutes: usize, is_by_second: bool) -> MinuteSet {
        MinuteSet {
            bits: vec![0; n_minutes.div_ceil(64)].into(),
            counts: vec![0; if is_by_second { n_minutes } else { 0 }].into(),
        }
    }

    pub(super) fn insert(&mut self, place: usize) {
        self.bits[place / 64] |= 1 << (place % 64);
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn has(&self, place: usize) -> bool {
        self.bits[place / 64] >> (place % 64) & 1 == 1
    }

    pub(super) fn n_starts(&self, place: usize) -> u32 {
        let count = self.counts.get(place).copied().map(u32::from);
        count.unwrap_or_else(|| u32::from(self.has(place)))
    }

    pub(super) fn places(&self) -> impl Iterator<Item = usize> {
        self.bits.iter().enumerate().flat_map(|(word, bits)| {
            let rest = std::iter::successors(Some(*bits), |bits| Some(bits & bits.wrapping_sub(1)));
            let bits = rest.take_while(|bits| *bits != 0);
            bits.map(move |bits| word * 64 + bits.trailing_zeros() as usize)
        })
    }
}
