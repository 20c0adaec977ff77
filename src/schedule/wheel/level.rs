//! One level of the wheel: 64 slots, the bit field of those that hold entries, and the way from ticks to slots.
//!
//! A tick is read as eleven digits of six bits. The slot of an entry is the highest digit in which its tick differs from
//! `elapsed`: the digit's position gives the level, its value the slot. So the occupied slots of a level all lie on the
//! lap that `elapsed` is in, behind it, and every one of them before those of the level above.

#![allow(
    clippy::cast_possible_truncation,
    reason = "levels and slots are small by construction"
)]

use super::blocks::List;

const DIGIT_BITS: u32 = 6;

/// How many slots a level has.
pub(super) const N_SLOTS: usize = 1 << DIGIT_BITS;

/// How many levels span all of `u64`; the slots of the highest are 2^60 ticks wide and only 16 of them can be reached.
pub(super) const N_LEVELS: usize = u64::BITS.div_ceil(DIGIT_BITS) as usize;

/// Which slot of which level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) level: usize,
    pub(super) slot: usize,
}

impl Address {
    /// Where an entry for `tick` stands. An overdue one stands in the slot of `elapsed` itself, in the lowest level.
    #[inline]
    pub(super) fn of(tick: u64, elapsed: u64) -> Address {
        let tick = tick.max(elapsed);
        let level = ((tick ^ elapsed) | 1).ilog2() / DIGIT_BITS;
        let digit = tick >> (level * DIGIT_BITS);
        Address {
            level: level as usize,
            slot: digit as usize % N_SLOTS,
        }
    }

    /// The first tick of the slot, on the lap of its level that `elapsed` is in.
    #[inline]
    pub(super) fn first_tick(self, elapsed: u64) -> u64 {
        let shift = self.level as u32 * DIGIT_BITS;
        let lap = (elapsed >> shift) & !(N_SLOTS as u64 - 1);
        (lap | self.slot as u64) << shift
    }
}

/// The ticks of the entries that a slot has seen since it was empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ticks {
    /// All the same one.
    Same(u64),
    /// Several, or none yet.
    Mixed,
}

/// The entries of a stretch of ticks.
#[derive(Clone, Copy)]
pub(super) struct Slot {
    /// The numbers of the entries, and of some that left.
    pub(super) list: List,
    /// How many entries stand here.
    pub(super) n_entries: u32,
    /// Their ticks.
    pub(super) ticks: Ticks,
}

impl Slot {
    const EMPTY: Slot = Slot {
        list: List::EMPTY,
        n_entries: 0,
        ticks: Ticks::Mixed,
    };
}

/// Sixty-four slots.
pub(super) struct Level {
    /// One bit for each slot with entries, the lowest for slot 0.
    occupied: u64,
    slots: [Slot; N_SLOTS],
}

impl Level {
    pub(super) const EMPTY: Level = Level {
        occupied: 0,
        slots: [Slot::EMPTY; N_SLOTS],
    };

    /// The first slot that holds entries, in the order of ticks.
    #[inline]
    pub(super) fn first_occupied(&self) -> Option<usize> {
        (self.occupied != 0).then(|| self.occupied.trailing_zeros() as usize)
    }

    /// Counts an entry in, and gives the slot that it belongs in.
    #[inline]
    pub(super) fn enter(&mut self, slot: usize, tick: u64) -> &mut Slot {
        self.occupied |= 1 << slot;
        let slot = &mut self.slots[slot];
        if slot.n_entries == 0 {
            slot.ticks = Ticks::Same(tick);
        } else if slot.ticks != Ticks::Same(tick) {
            slot.ticks = Ticks::Mixed;
        }
        slot.n_entries += 1;
        slot
    }

    /// Counts an entry out, and gives the slot that it left.
    #[inline]
    pub(super) fn leave(&mut self, slot: usize) -> &mut Slot {
        let left = &mut self.slots[slot];
        left.n_entries -= 1;
        if left.n_entries == 0 {
            self.occupied &= !(1 << slot);
        }
        left
    }

    pub(super) fn slot(&self, slot: usize) -> &Slot {
        &self.slots[slot]
    }

    /// Empties a slot and gives what it held.
    pub(super) fn take(&mut self, slot: usize) -> Slot {
        self.occupied &= !(1 << slot);
        std::mem::replace(&mut self.slots[slot], Slot::EMPTY)
    }

    /// Fills an empty slot.
    pub(super) fn put(&mut self, slot: usize, content: Slot) {
        debug_assert_eq!(self.slots[slot].n_entries, 0, "slot {slot} is in use");
        self.occupied |= 1 << slot;
        self.slots[slot] = content;
    }

    #[cfg(test)]
    pub(super) fn occupied(&self) -> u64 {
        self.occupied
    }
}
