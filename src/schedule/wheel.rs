//! A hierarchical timer wheel that counts ticks and reads no clock.
//!
//! The caller chooses the length of a tick: a minute for cron instants, some milliseconds for deadlines and
//! back-offs. A timer is identified by a small dense number, the index of the caller's record; each number has at
//! most one timer. Six levels of 64 slots span all 32-bit ticks. With many timers, cache misses dominate, so the table
//! has only 32 bits for each number (decision 003). A timer is listed in the slot that `level` computes, and moves to a
//! lower level when `elapsed` reaches that slot, at most once per level. A slot that holds a single tick moves down as
//! a whole. `level` explains why the first occupied slot of the lowest occupied level is always the next.
//!
//! One table holds the tick of every number and is authoritative. Slot lists may contain stale numbers: moving or
//! cancelling a timer changes the table and leaves the old list alone, so each operation changes one table entry and
//! the end of one list. Stale entries are dropped when their slot is reached, or all at once when the lists hold
//! twice as many entries as the table. This bounds memory at a constant cost per operation.
//!
//! Invariant: a number with a tick is in the list of the slot of that tick, relative to `elapsed`.

mod level;
#[cfg(test)]
mod tests;

use level::{Address, Level, N_LEVELS, Slot, Ticks};

/// The highest tick. Later ticks are clamped to it.
pub const LAST_TICK: u32 = u32::MAX - 1;

/// The tick of a number without a timer.
const UNARMED: u32 = u32::MAX;

/// Stale entries are not cleaned up while the lists hold fewer numbers than this.
const N_LISTED_MIN: usize = 1_024;

/// Timers by tick, at most one for each number.
///
/// Memory: 4 bytes for each number up to the highest ever set, and at most 16 bytes more for its list entries.
pub struct Wheel {
    elapsed: u32,
    levels: Box<[Level]>,
    /// The tick of each number.
    ticks: Vec<u32>,
    n_armed: usize,
    /// Total length of all lists.
    n_listed: usize,
}

impl Wheel {
    /// Creates an empty wheel whose current tick is `now_tick`.
    pub fn new(now_tick: u32) -> Wheel {
        Wheel {
            elapsed: now_tick.min(LAST_TICK),
            levels: (0..N_LEVELS).map(|_| Level::EMPTY).collect(),
            ticks: Vec::new(),
            n_armed: 0,
            n_listed: 0,
        }
    }

    /// Arms or moves the timer of a number. A tick at or before `elapsed` fires at the next `advance` to `elapsed` or
    /// later.
    #[inline]
    pub fn set(&mut self, number: u32, tick: u32) {
        let tick = tick.clamp(self.elapsed, LAST_TICK);
        let index = number as usize;
        if index >= self.ticks.len() {
            self.ticks.resize(index + 1, UNARMED);
        }
        let former = std::mem::replace(&mut self.ticks[index], tick);
        if former == tick {
            return;
        }
        let address = Address::of(tick, self.elapsed);
        if former == UNARMED {
            self.n_armed += 1;
        } else if address == Address::of(former, self.elapsed) {
            self.levels[address.level].slot_mut(address.slot).ticks = Ticks::Mixed;
            return;
        }
        self.n_listed += 1;
        self.levels[address.level].push(address.slot, number, tick);
        if self.n_listed > 2 * self.ticks.len() + N_LISTED_MIN {
            self.rebuild_lists();
        }
    }

    /// Cancels the timer of a number. Returns whether it was armed.
    #[inline]
    pub fn cancel(&mut self, number: u32) -> bool {
        let Some(tick) = self.ticks.get_mut(number as usize) else {
            return false;
        };
        let was_armed = std::mem::replace(tick, UNARMED) != UNARMED;
        self.n_armed -= usize::from(was_armed);
        was_armed
    }

    /// The tick of a number's timer. It is at least the value of `elapsed` when the timer was set.
    pub fn tick(&self, number: u32) -> Option<u32> {
        self.ticks.get(number as usize).copied().filter(|tick| *tick != UNARMED)
    }

    /// Moves the wheel to `now_tick` and appends the numbers of all due timers to `due`, in ascending order of ticks.
    /// The order within a tick is deterministic for the same operations. The cost depends on the number of timers and
    /// the levels that they move down, not on the number of ticks passed.
    ///
    /// An earlier tick than `elapsed` has no effect. After a clock was set back, the caller builds a new wheel.
    pub fn advance(&mut self, now_tick: u32, due: &mut Vec<u32>) {
        let now_tick = now_tick.min(LAST_TICK);
        if now_tick < self.elapsed {
            return;
        }
        while let Some(next) = self.first_occupied() {
            let first_tick = next.first_tick(self.elapsed);
            if first_tick > now_tick {
                break;
            }
            debug_assert!(first_tick >= self.elapsed, "{next:?} is before {}", self.elapsed);
            self.elapsed = first_tick;
            let slot = self.levels[next.level].take(next.slot);
            match slot.ticks {
                _ if next.level == 0 => self.hand_out(&slot.numbers, due),
                Ticks::Same(tick) => self.move_down_whole(slot, tick),
                Ticks::Mixed => self.move_down(&slot.numbers, next),
            }
        }
        self.elapsed = now_tick;
    }

    /// The tick at which to call `advance` next, never before `elapsed`, or `None` if no timer is armed.
    ///
    /// This is exactly the tick of the earliest timer if that timer is on the lowest level's lap of 64 ticks, is
    /// overdue (the result is `elapsed`), or is in a slot that holds a single tick. Otherwise it is the first tick of
    /// the timer's slot, at which `advance` returns nothing yet but moves timers down: at most once per level.
    ///
    /// Takes `&mut self` because it drops the stale entries that it finds.
    pub fn next_tick(&mut self) -> Option<u32> {
        while let Some(next) = self.first_occupied() {
            let first_tick = next.first_tick(self.elapsed);
            let slot = self.levels[next.level].slot_mut(next.slot);
            let n_before = slot.numbers.len();
            while let Some(&last) = slot.numbers.last()
                && !covers(next, first_tick, self.ticks[last as usize])
            {
                slot.numbers.pop();
            }
            self.n_listed -= n_before - slot.numbers.len();
            if !slot.numbers.is_empty() {
                return match slot.ticks {
                    Ticks::Same(tick) if next.level > 0 => Some(tick),
                    Ticks::Same(_) | Ticks::Mixed => Some(first_tick),
                };
            }
            self.levels[next.level].take(next.slot);
        }
        None
    }

    /// The number of armed timers.
    pub fn len(&self) -> usize {
        self.n_armed
    }

    /// Whether no timer is armed.
    pub fn is_empty(&self) -> bool {
        self.n_armed == 0
    }

    /// The current tick: the highest to which the wheel was advanced.
    pub fn elapsed(&self) -> u32 {
        self.elapsed
    }

    /// Heap memory of the wheel in bytes.
    #[cfg(test)]
    fn heap_bytes(&self) -> usize {
        let listed: usize = self.levels.iter().map(Level::heap_bytes).sum();
        size_of::<[Level; N_LEVELS]>() + self.ticks.capacity() * size_of::<u32>() + listed
    }

    /// The first slot with a non-empty list, in the order of ticks.
    fn first_occupied(&self) -> Option<Address> {
        let mut levels = self.levels.iter().enumerate();
        levels.find_map(|(level, slots)| slots.first_occupied().map(|slot| Address { level, slot }))
    }

    #[inline]
    fn list(&mut self, number: u32, tick: u32) {
        let address = Address::of(tick, self.elapsed);
        self.levels[address.level].push(address.slot, number, tick);
    }

    fn hand_out(&mut self, numbers: &[u32], due: &mut Vec<u32>) {
        self.n_listed -= numbers.len();
        for &number in numbers {
            let tick = &mut self.ticks[number as usize];
            if *tick == self.elapsed {
                *tick = UNARMED;
                self.n_armed -= 1;
                due.push(number);
            }
        }
    }

    /// Lists the numbers of a slot that `elapsed` has reached in their new slots, which are on lower levels.
    fn move_down(&mut self, numbers: &[u32], address: Address) {
        self.n_listed -= numbers.len();
        for &number in numbers {
            let tick = self.ticks[number as usize];
            if covers(address, self.elapsed, tick) {
                self.n_listed += 1;
                self.list(number, tick);
            }
        }
    }

    /// [`Wheel::move_down`] for a slot that holds a single tick. The target slot is empty, because this slot was the
    /// one for that tick until `elapsed` reached it.
    fn move_down_whole(&mut self, slot: Slot, tick: u32) {
        let address = Address::of(tick, self.elapsed);
        self.levels[address.level].put(address.slot, slot);
    }

    /// Rebuilds the lists so that each armed number is listed once.
    #[cold]
    fn rebuild_lists(&mut self) {
        for level in &mut self.levels {
            while let Some(slot) = level.first_occupied() {
                level.take(slot);
            }
        }
        self.n_listed = self.n_armed;
        for (number, index) in (0..).zip(0..self.ticks.len()) {
            let tick = self.ticks[index];
            if tick != UNARMED {
                self.list(number, tick);
            }
        }
    }
}

/// Whether a tick is armed and belongs in the slot that begins with `first_tick`.
fn covers(address: Address, first_tick: u32, tick: u32) -> bool {
    tick != UNARMED && address.covers(first_tick, tick)
}
