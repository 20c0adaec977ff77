//! One level of the wheel: 64 slots, a bit field of the occupied slots, and the mapping from ticks to slots.
//!
//! A tick is read as six digits of six bits; the highest digit has two. The slot of a timer is given by the highest
//! digit in which its tick differs from `elapsed`: the digit's position is the level, its value the slot. The occupied
//! slots of a level therefore all lie on the lap that contains `elapsed`, ahead of `elapsed`, and before every occupied
//! slot of the level above.

#![allow(
    clippy::cast_possible_truncation,
    reason = "levels and slots are small by construction"
)]

const DIGIT_BITS: u32 = 6;

/// Slots per level.
pub(super) const N_SLOTS: usize = 1 << DIGIT_BITS;

/// Levels that span all ticks.
pub(super) const N_LEVELS: usize = u32::BITS.div_ceil(DIGIT_BITS) as usize;

/// The position of a slot: its level and its index on that level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) level: usize,
    pub(super) slot: usize,
}

impl Address {
    /// The slot of a tick that is not before `elapsed`.
    #[inline]
    pub(super) fn of(tick: u32, elapsed: u32) -> Address {
        let level = ((tick ^ elapsed) | 1).ilog2() / DIGIT_BITS;
        let digit = tick >> (level * DIGIT_BITS);
        Address {
            level: level as usize,
            slot: digit as usize % N_SLOTS,
        }
    }

    /// The first tick of the slot on the lap of its level that contains `elapsed`.
    #[inline]
    pub(super) fn first_tick(self, elapsed: u32) -> u32 {
        let shift = self.shift();
        let lap = (elapsed >> shift) & !(N_SLOTS as u32 - 1);
        (lap | self.slot as u32) << shift
    }

    /// Whether a tick is in the range of the slot that begins with `first_tick`.
    #[inline]
    pub(super) fn covers(self, first_tick: u32, tick: u32) -> bool {
        (tick ^ first_tick) >> self.shift() == 0
    }

    fn shift(self) -> u32 {
        self.level as u32 * DIGIT_BITS
    }
}

/// The ticks for which a slot has listed numbers since it was last empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ticks {
    /// A single tick.
    Same(u32),
    /// Several ticks.
    Mixed,
}

/// A range of ticks.
pub(super) struct Slot {
    /// The numbers listed here, in the order of insertion. Entries may be stale or repeated.
    pub(super) numbers: Vec<u32>,
    pub(super) ticks: Ticks,
}

impl Slot {
    const EMPTY: Slot = Slot {
        numbers: Vec::new(),
        ticks: Ticks::Mixed,
    };
}

/// The 64 slots of a level.
pub(super) struct Level {
    /// One bit for each slot with a non-empty list; bit 0 is slot 0.
    occupied: u64,
    slots: [Slot; N_SLOTS],
}

impl Level {
    pub(super) const EMPTY: Level = Level {
        occupied: 0,
        slots: [const { Slot::EMPTY }; N_SLOTS],
    };

    /// The first slot with a non-empty list, in the order of ticks.
    #[inline]
    pub(super) fn first_occupied(&self) -> Option<usize> {
        (self.occupied != 0).then(|| self.occupied.trailing_zeros() as usize)
    }

    /// Appends a number to the list of a slot.
    #[inline]
    pub(super) fn push(&mut self, slot: usize, number: u32, tick: u32) {
        self.occupied |= 1 << slot;
        let slot = &mut self.slots[slot];
        if slot.numbers.is_empty() {
            slot.ticks = Ticks::Same(tick);
        } else if slot.ticks != Ticks::Same(tick) {
            slot.ticks = Ticks::Mixed;
        }
        slot.numbers.push(number);
    }

    pub(super) fn slot_mut(&mut self, slot: usize) -> &mut Slot {
        &mut self.slots[slot]
    }

    /// Empties a slot and returns its content, memory included: a burst must not leave large lists behind in every
    /// slot.
    pub(super) fn take(&mut self, slot: usize) -> Slot {
        self.occupied &= !(1 << slot);
        std::mem::replace(&mut self.slots[slot], Slot::EMPTY)
    }

    /// Fills an empty slot.
    pub(super) fn put(&mut self, slot: usize, content: Slot) {
        debug_assert!(self.slots[slot].numbers.is_empty(), "slot {slot} is in use");
        self.occupied |= 1 << slot;
        self.slots[slot] = content;
    }

    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        let listed: usize = self.slots.iter().map(|slot| slot.numbers.capacity()).sum();
        listed * size_of::<u32>()
    }
}
