//! A hierarchical timer wheel that knows ticks, not clocks.
//!
//! What a tick is, is for the user to say: a minute for cron instants, some milliseconds for deadlines and back-offs.
//! Timers are named by small dense numbers that the user has anyway (the places of its records), one timer a number.
//! Six levels of 64 slots span all ticks of 32 bits: the narrow table is half of its speed where timers are many. A timer
//! is listed in the slot that `level` gives it and moves down when `elapsed` reaches that slot, at most once for each
//! level; a slot that has only seen one tick moves down whole. See `level` for why the first occupied slot of the lowest
//! occupied level is always the next.
//!
//! The truth is one table, the tick of every number. Slots only list numbers that may be theirs: a timer that is moved or
//! cancelled changes its place in the table and leaves the old list alone, so each operation touches one word and the end
//! of one list. What a list holds beyond the truth is dropped when its slot is reached, or all at once when lists hold
//! twice as much as the table, which bounds memory and costs a constant per operation.
//!
//! Invariant: a number with a tick is in the list of the slot of that tick, seen from `elapsed`.

mod level;
#[cfg(test)]
mod tests;

use level::{Address, Level, N_LEVELS, Slot, Ticks};

/// The highest tick; what is set for later comes out then.
pub const LAST_TICK: u32 = u32::MAX - 1;

/// The tick of a number without a timer.
const UNARMED: u32 = u32::MAX;

/// Lists are short of this many numbers before it is worth to look at what they hold in vain.
const N_LISTED_MIN: usize = 1_024;

/// Timers by tick, at most one for each number.
///
/// Memory is 4 bytes for each number up to the highest ever set, and at most 16 for what lists hold of it.
pub struct Wheel {
    elapsed: u32,
    levels: Box<[Level]>,
    /// The tick of each number.
    ticks: Vec<u32>,
    n_armed: usize,
    /// Numbers in all lists.
    n_listed: usize,
}

impl Wheel {
    /// An empty wheel that stands at a tick.
    pub fn new(now_tick: u32) -> Wheel {
        Wheel {
            elapsed: now_tick.min(LAST_TICK),
            levels: (0..N_LEVELS).map(|_| Level::EMPTY).collect(),
            ticks: Vec::new(),
            n_armed: 0,
            n_listed: 0,
        }
    }

    /// Arms the timer of a number, or moves it. A tick at or before `elapsed` comes out at the next `advance` that does
    /// not go backward.
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
            self.list_anew();
        }
    }

    /// Takes a timer off; says whether there was one.
    #[inline]
    pub fn cancel(&mut self, number: u32) -> bool {
        let Some(tick) = self.ticks.get_mut(number as usize) else {
            return false;
        };
        let was_armed = std::mem::replace(tick, UNARMED) != UNARMED;
        self.n_armed -= usize::from(was_armed);
        was_armed
    }

    /// The tick that a number's timer is set for: not before the tick at which the wheel stood when it was set.
    pub fn tick(&self, number: u32) -> Option<u32> {
        self.ticks.get(number as usize).copied().filter(|tick| *tick != UNARMED)
    }

    /// Moves the wheel to a tick and appends the numbers of all timers that are due to `due`, in ascending order of ticks.
    /// Within a tick the order is the same for the same operations. The cost depends on the timers and the levels that
    /// they move down, not on the ticks that are passed over.
    ///
    /// Going backward hands out nothing and changes nothing. Who wants the ticks of a clock that was set back builds the
    /// wheel anew.
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

    /// The tick at which to call `advance` next, never before `elapsed`, or nothing if no timer is armed.
    ///
    /// It is the tick of the earliest timer, exactly, if that is on the lowest level's lap of 64 ticks, is overdue (then it
    /// is `elapsed`), or is in a slot that has only seen one tick. Otherwise it is the first tick of its slot, at which
    /// `advance` hands out nothing yet but moves timers down: at most once for each level.
    ///
    /// What no longer counts is dropped on the way, which is why the wheel changes.
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

    /// How many timers are armed.
    pub fn len(&self) -> usize {
        self.n_armed
    }

    /// Whether no timer is armed.
    pub fn is_empty(&self) -> bool {
        self.n_armed == 0
    }

    /// The tick at which the wheel stands: the highest that it was advanced to.
    pub fn elapsed(&self) -> u32 {
        self.elapsed
    }

    /// The memory that the wheel takes on the heap, in bytes.
    pub fn heap_bytes(&self) -> usize {
        let listed: usize = self.levels.iter().map(Level::heap_bytes).sum();
        size_of::<[Level; N_LEVELS]>() + self.ticks.capacity() * size_of::<u32>() + listed
    }

    /// The first slot with a list, in the order of ticks.
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

    /// Lists the numbers of a slot that `elapsed` has reached where they belong from here on, which is lower.
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

    /// The same for a slot that has only seen one tick. Where that belongs nothing is listed yet: until now, this slot was
    /// where it belonged.
    fn move_down_whole(&mut self, slot: Slot, tick: u32) {
        let address = Address::of(tick, self.elapsed);
        self.levels[address.level].put(address.slot, slot);
    }

    /// Lists each armed number once.
    #[cold]
    fn list_anew(&mut self) {
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

/// Whether a number with this tick, or with none, belongs in the slot that begins with `first_tick`.
fn covers(address: Address, first_tick: u32, tick: u32) -> bool {
    tick != UNARMED && address.covers(first_tick, tick)
}
