//! A hierarchical timer wheel that knows ticks, not clocks.
//!
//! What a tick is, is for the user to say: a minute for cron instants, some milliseconds for deadlines and back-offs.
//! Eleven levels of 64 slots span every `u64`, so no tick is too far. An entry stands in the slot that `level` gives it and
//! moves down when `elapsed` reaches that slot, at most once for each level; a slot whose entries share one tick moves
//! down whole. See `level` for why the first occupied slot of the lowest occupied level is always the next.
//!
//! A slot lists the numbers of its entries in blocks (`blocks`). An entry that moves or leaves only takes back its *place*;
//! its number stays in the old list and counts no more, since the entry names another place. So an operation touches one
//! entry and the end of one list, and the order of a list is the order of arming. A slot that empties is cleared at once; one
//! that has become mostly vacant is rewritten while the wheel holds more vacant places than entries, which keeps them below
//! twice the most entries ever held, at a constant cost per operation.
//!
//! Invariants: every entry stands in the slot of its tick and `elapsed`; the bit of a slot is set just when it has entries.

#![allow(
    clippy::cast_possible_truncation,
    reason = "the tick is cut in two halves on purpose"
)]

mod blocks;
mod level;
#[cfg(test)]
mod tests;

use std::num::NonZeroU32;

use blocks::{Blocks, Place, Stack};
use level::{Address, Level, N_LEVELS, Slot, Ticks};

/// Names one entry from `insert` until it comes out or is cancelled; after that it names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerKey {
    number: u32,
    generation: NonZeroU32,
}

/// An entry or a free one. The tick is split so that the struct needs no padding.
struct Entry<K> {
    tick_high: u32,
    tick_low: u32,
    place: Place,
    generation: NonZeroU32,
    key: K,
}

impl<K> Entry<K> {
    fn tick(&self) -> u64 {
        u64::from(self.tick_high) << 32 | u64::from(self.tick_low)
    }

    fn stand_at(&mut self, tick: u64, place: Place) {
        self.tick_high = (tick >> 32) as u32;
        self.tick_low = tick as u32;
        self.place = place;
    }

    /// Ends the entry: its place and its key name nothing from here on.
    fn end(&mut self) {
        self.place = Place::NOWHERE;
        self.generation = self.generation.checked_add(1).unwrap_or(NonZeroU32::MIN);
    }
}

/// Entries by tick. `K` is what comes out when an entry is due: something small, such as the number of a record.
///
/// Memory is that of the most entries ever held at once: 24 bytes an entry for a `K` of four, plus what vectors reserve.
pub struct Wheel<K> {
    elapsed: u64,
    levels: Box<[Level]>,
    entries: Vec<Entry<K>>,
    free: Stack,
    blocks: Blocks,
    n_entries: usize,
    /// Numbers in the lists of slots that count no more.
    n_vacant: usize,
}

impl<K: Copy> Wheel<K> {
    /// An empty wheel that stands at a tick.
    pub fn new(now_tick: u64) -> Self {
        Wheel {
            elapsed: now_tick,
            levels: (0..N_LEVELS).map(|_| Level::EMPTY).collect(),
            entries: Vec::new(),
            free: Stack::EMPTY,
            blocks: Blocks::new(),
            n_entries: 0,
            n_vacant: 0,
        }
    }

    /// Arms an entry. A tick at or before `elapsed` comes out at the next `advance` that does not go backward.
    pub fn insert(&mut self, tick: u64, key: K) -> TimerKey {
        let number = match self.blocks.pop_top(&mut self.free) {
            Some(number) => number,
            None => self.add_entry(key),
        };
        let place = self.enter(tick, number);
        let entry = &mut self.entries[number as usize];
        entry.key = key;
        entry.stand_at(tick, place);
        let generation = entry.generation;
        self.n_entries += 1;
        TimerKey { number, generation }
    }

    /// Moves an entry to another tick, behind those that are armed for it. The same tick leaves it where it is; a key
    /// that names nothing does nothing.
    pub fn set(&mut self, timer: TimerKey, tick: u64) {
        let Some(tick_before) = self.entry(timer).map(|entry| entry.tick()) else {
            return;
        };
        if tick_before == tick {
            return;
        }
        let place = self.enter(tick, timer.number);
        self.entries[timer.number as usize].stand_at(tick, place);
        self.leave(tick_before);
    }

    /// Takes an entry off and gives back what it would have handed out, or nothing if the key names nothing.
    pub fn cancel(&mut self, timer: TimerKey) -> Option<K> {
        let entry = self.entry(timer)?;
        let (tick, key) = (entry.tick(), entry.key);
        entry.end();
        self.n_entries -= 1;
        self.leave(tick);
        self.blocks.push_top(&mut self.free, timer.number);
        Some(key)
    }

    /// Moves the wheel to a tick and appends all that is due, each entry with its tick, to `due`: in ascending order of
    /// ticks, and within a tick in the order of arming. The cost depends on the entries and the levels they move down,
    /// not on the ticks that are passed over.
    ///
    /// Going backward hands out nothing and changes nothing: what is armed meanwhile for a tick before `elapsed` comes out
    /// when `elapsed` is reached again. Who wants the ticks of a clock that was set back builds the wheel anew.
    pub fn advance(&mut self, now_tick: u64, due: &mut Vec<(u64, K)>) {
        if now_tick < self.elapsed {
            return;
        }
        while let Some(next) = self.next_address() {
            let first_tick = next.first_tick(self.elapsed);
            if first_tick > now_tick {
                break;
            }
            debug_assert!(first_tick >= self.elapsed, "{next:?} is before {}", self.elapsed);
            self.elapsed = first_tick;
            let slot = self.levels[next.level].take(next.slot);
            if next.level == 0 {
                self.hand_out(slot, due);
            } else {
                self.move_down(slot);
            }
        }
        self.elapsed = now_tick;
    }

    /// The tick at which to call `advance` next, never before `elapsed`, or nothing if the wheel is empty.
    ///
    /// It is the tick of the earliest entry, exactly, if that is within 64 ticks on the lowest level's lap, is overdue (then it
    /// is `elapsed`), or stands in a slot whose entries share one tick. Otherwise it is the first tick of the earliest
    /// entry's slot, at which `advance` hands out nothing yet but moves the slot's entries down: at most once for each level.
    pub fn next_tick(&self) -> Option<u64> {
        let next = self.next_address()?;
        let first_tick = next.first_tick(self.elapsed);
        match self.levels[next.level].slot(next.slot).ticks {
            Ticks::Same(tick) if next.level > 0 => Some(tick),
            Ticks::Same(_) | Ticks::Mixed => Some(first_tick),
        }
    }

    /// How many entries are armed.
    pub fn len(&self) -> usize {
        self.n_entries
    }

    /// Whether no entry is armed.
    pub fn is_empty(&self) -> bool {
        self.n_entries == 0
    }

    /// The tick at which the wheel stands: the highest that it was advanced to.
    pub fn elapsed(&self) -> u64 {
        self.elapsed
    }

    /// The memory that the wheel takes on the heap, in bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of::<[Level; N_LEVELS]>() + self.entries.capacity() * size_of::<Entry<K>>() + self.blocks.heap_bytes()
    }

    fn entry(&mut self, timer: TimerKey) -> Option<&mut Entry<K>> {
        let entry = self.entries.get_mut(timer.number as usize)?;
        (entry.generation == timer.generation).then_some(entry)
    }

    #[cold]
    fn grow(&mut self) {
        self.entries.reserve(1);
    }

    fn add_entry(&mut self, key: K) -> u32 {
        if self.entries.len() == self.entries.capacity() {
            self.grow();
        }
        let number = u32::try_from(self.entries.len()).expect("four billion timers do not fit in memory");
        self.entries.push(Entry {
            tick_high: 0,
            tick_low: 0,
            place: Place::NOWHERE,
            generation: NonZeroU32::MIN,
            key,
        });
        number
    }

    /// The first occupied slot in the order of ticks.
    fn next_address(&self) -> Option<Address> {
        let mut levels = self.levels.iter().enumerate();
        levels.find_map(|(level, slots)| slots.first_occupied().map(|slot| Address { level, slot }))
    }

    fn enter(&mut self, tick: u64, number: u32) -> Place {
        let address = Address::of(tick, self.elapsed);
        let slot = self.levels[address.level].enter(address.slot, tick);
        self.blocks.push(&mut slot.list, number)
    }

    /// Counts an entry out of the slot of a tick, when its place is already another.
    fn leave(&mut self, tick: u64) {
        let address = Address::of(tick, self.elapsed);
        let slot = self.levels[address.level].leave(address.slot);
        self.n_vacant += 1;
        if slot.n_entries == 0 {
            self.n_vacant -= slot.list.len() as usize;
            self.blocks.clear(&mut slot.list);
        } else if self.n_vacant > self.n_entries && slot.list.wastes_blocks(slot.n_entries) {
            self.rewrite(address);
        }
    }

    /// Lists the entries of a slot anew, without vacant places.
    #[cold]
    fn rewrite(&mut self, address: Address) {
        let mut slot = self.levels[address.level].take(address.slot);
        self.n_vacant -= (slot.list.len() - slot.n_entries) as usize;
        let mut list = std::mem::replace(&mut slot.list, blocks::List::EMPTY);
        while let Some(taken) = self.blocks.take_first(&mut list) {
            for (place, number) in taken.iter() {
                let entry = &mut self.entries[number as usize];
                if entry.place == place {
                    entry.place = self.blocks.push(&mut slot.list, number);
                }
            }
        }
        debug_assert_eq!(slot.list.len(), slot.n_entries, "{address:?} lost count");
        self.levels[address.level].put(address.slot, slot);
    }

    /// Puts the entries of a slot that `elapsed` has reached where they stand from here on, which is lower.
    fn move_down(&mut self, mut slot: Slot) {
        if let Ticks::Same(tick) = slot.ticks {
            let address = Address::of(tick, self.elapsed);
            self.levels[address.level].put(address.slot, slot);
            return;
        }
        self.n_vacant -= (slot.list.len() - slot.n_entries) as usize;
        while let Some(taken) = self.blocks.take_first(&mut slot.list) {
            for (place, number) in taken.iter() {
                let entry = &self.entries[number as usize];
                if entry.place == place {
                    let place = self.enter(entry.tick(), number);
                    self.entries[number as usize].place = place;
                }
            }
        }
    }

    fn hand_out(&mut self, mut slot: Slot, due: &mut Vec<(u64, K)>) {
        self.n_vacant -= (slot.list.len() - slot.n_entries) as usize;
        self.n_entries -= slot.n_entries as usize;
        let n_before = due.len();
        due.reserve(slot.n_entries as usize);
        while let Some(taken) = self.blocks.take_first(&mut slot.list) {
            for (place, number) in taken.iter() {
                let entry = &mut self.entries[number as usize];
                if entry.place == place {
                    due.push((entry.tick(), entry.key));
                    entry.end();
                    self.blocks.push_top(&mut self.free, number);
                }
            }
        }
        if slot.ticks == Ticks::Mixed {
            // Only overdue entries differ in tick here; the sort is stable, so the order of arming stays.
            due[n_before..].sort_by_key(|(tick, _)| *tick);
        }
    }
}
