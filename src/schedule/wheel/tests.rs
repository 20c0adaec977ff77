//! The wheel against a sorted map that does the same, and each promise of its documentation by name.

use std::collections::BTreeMap;

use super::{
    Address, Entry, TimerKey, Wheel,
    level::{N_LEVELS, N_SLOTS},
};

/// Xorshift, so that a seed gives the same operations everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A distance that is small as often as it is large.
    fn distance(&mut self) -> u64 {
        let n_bits = self.below(65);
        if n_bits == 0 { 0 } else { self.next() >> (64 - n_bits) }
    }
}

/// What the wheel promises, done slowly.
struct Model {
    elapsed: u64,
    n_armed: u64,
    by_tick: BTreeMap<(u64, u64), u32>,
    by_key: BTreeMap<u32, (u64, u64)>,
}

impl Model {
    fn arm(&mut self, tick: u64, key: u32) {
        self.n_armed += 1;
        self.by_tick.insert((tick, self.n_armed), key);
        self.by_key.insert(key, (tick, self.n_armed));
    }

    fn disarm(&mut self, key: u32) -> u64 {
        let position = self.by_key.remove(&key).unwrap();
        self.by_tick.remove(&position);
        position.0
    }

    fn set(&mut self, tick: u64, key: u32) {
        if self.by_key[&key].0 != tick {
            self.disarm(key);
            self.arm(tick, key);
        }
    }

    fn advance(&mut self, now_tick: u64) -> Vec<(u64, u32)> {
        let mut due = Vec::new();
        if now_tick < self.elapsed {
            return due;
        }
        self.elapsed = now_tick;
        while let Some(first) = self.by_tick.first_entry() {
            let ((tick, _), key) = (*first.key(), *first.get());
            if tick > now_tick {
                break;
            }
            due.push((tick, key));
            self.disarm(key);
        }
        due
    }
}

/// A wheel and its model under the same operations.
struct Pair {
    random: Random,
    wheel: Wheel<u32>,
    model: Model,
    /// The keys of all entries that there ever were, by the number that comes out.
    timers: Vec<TimerKey>,
    /// The numbers of those that are armed.
    armed: Vec<u32>,
}

impl Pair {
    fn new(seed: u64, start: u64) -> Pair {
        Pair {
            random: Random(seed),
            wheel: Wheel::new(start),
            model: Model {
                elapsed: start,
                n_armed: 0,
                by_tick: BTreeMap::new(),
                by_key: BTreeMap::new(),
            },
            timers: Vec::new(),
            armed: Vec::new(),
        }
    }

    /// Near `elapsed`, before it or after it, or where others are already.
    fn tick(&mut self) -> u64 {
        let distance = self.random.distance();
        match self.random.below(8) {
            0 => self.wheel.elapsed().saturating_sub(distance),
            1 => self.wheel.elapsed().saturating_add(self.random.below(3)),
            2 => distance,
            3..=5 => self.wheel.elapsed().saturating_add(distance % 10_000),
            _ => self.wheel.elapsed().saturating_add(distance),
        }
    }

    fn any_armed(&mut self) -> Option<usize> {
        let n_armed = self.armed.len() as u64;
        (n_armed > 0).then(|| usize::try_from(self.random.below(n_armed)).unwrap())
    }

    fn insert(&mut self) {
        let tick = self.tick();
        let key = u32::try_from(self.timers.len()).unwrap();
        self.timers.push(self.wheel.insert(tick, key));
        self.model.arm(tick, key);
        self.armed.push(key);
    }

    fn set(&mut self) {
        let tick = self.tick();
        if let Some(position) = self.any_armed() {
            let key = self.armed[position];
            self.wheel.set(self.timers[key as usize], tick);
            self.model.set(tick, key);
        }
    }

    fn cancel(&mut self) {
        if let Some(position) = self.any_armed() {
            let key = self.armed.swap_remove(position);
            assert_eq!(self.wheel.cancel(self.timers[key as usize]), Some(key));
            self.model.disarm(key);
        }
    }

    fn use_stale_key(&mut self) {
        let n_timers = self.timers.len() as u64;
        if n_timers > 0 {
            let key = usize::try_from(self.random.below(n_timers)).unwrap();
            let is_stale = !self.model.by_key.contains_key(&u32::try_from(key).unwrap());
            if is_stale {
                let tick = self.tick();
                self.wheel.set(self.timers[key], tick);
                assert_eq!(self.wheel.cancel(self.timers[key]), None);
            }
        }
    }

    fn advance(&mut self) {
        let now_tick = match self.random.below(16) {
            0 => self.wheel.elapsed().saturating_sub(self.random.distance()),
            1 => self.wheel.elapsed().saturating_add(self.random.distance() >> 8),
            2..=6 => self.wheel.next_tick().unwrap_or(self.wheel.elapsed()),
            _ => self.wheel.elapsed().saturating_add(self.random.below(200)),
        };
        let mut due = Vec::new();
        self.wheel.advance(now_tick, &mut due);
        assert_eq!(due, self.model.advance(now_tick), "advance({now_tick})");
        self.armed.retain(|key| self.model.by_key.contains_key(key));
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..=6 => self.insert(),
            7..=11 => self.set(),
            12..=14 => self.cancel(),
            15 => self.use_stale_key(),
            _ => self.advance(),
        }
        self.check();
    }

    fn check(&self) {
        assert_eq!(self.wheel.elapsed(), self.model.elapsed);
        assert_eq!(self.wheel.len(), self.model.by_key.len());
        assert_eq!(self.wheel.is_empty(), self.model.by_key.is_empty());
        let earliest = self.model.by_tick.first_key_value();
        let earliest = earliest.map(|((tick, _), _)| (*tick).max(self.model.elapsed));
        assert_eq!(self.wheel.next_tick().is_some(), earliest.is_some());
        let (Some(next), Some(earliest)) = (self.wheel.next_tick(), earliest) else {
            return;
        };
        assert!(
            next >= self.model.elapsed && next <= earliest,
            "next {next}, earliest {earliest}"
        );
        if Address::of(earliest, self.model.elapsed).level == 0 {
            assert_eq!(next, earliest, "the lowest level is exact");
        }
    }
}

/// Counts by hand what the wheel keeps as totals and bits.
fn check_invariants(wheel: &Wheel<u32>) {
    let mut n_per_slot = vec![[0u32; N_SLOTS]; N_LEVELS];
    let standing = wheel
        .entries
        .iter()
        .filter(|entry| entry.place != super::Place::NOWHERE);
    for entry in standing {
        let Address { level, slot } = Address::of(entry.tick(), wheel.elapsed);
        n_per_slot[level][slot] += 1;
    }
    let (mut n_entries, mut n_vacant) = (0, 0);
    for (level, n_per_slot) in wheel.levels.iter().zip(&n_per_slot) {
        for (number, n_standing) in n_per_slot.iter().enumerate() {
            let slot = level.slot(number);
            assert_eq!(slot.n_entries, *n_standing, "slot {number}");
            assert_eq!(level.occupied() >> number & 1 == 1, *n_standing > 0, "bit {number}");
            n_entries += slot.n_entries as usize;
            n_vacant += (slot.list.len() - slot.n_entries) as usize;
        }
    }
    assert_eq!((wheel.n_entries, wheel.n_vacant), (n_entries, n_vacant));
}

fn advanced(wheel: &mut Wheel<u32>, now_tick: u64) -> Vec<(u64, u32)> {
    let mut due = Vec::new();
    wheel.advance(now_tick, &mut due);
    due
}

#[test]
fn any_operations_give_what_a_sorted_map_gives() {
    for seed in 1..=40u64 {
        let start = match seed % 4 {
            0 => 0,
            1 => 29_000_000,
            2 => u64::MAX - 5_000,
            _ => (1 << 36) - 70,
        };
        eprintln!("seed {seed}");
        let mut pair = Pair::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), start);
        for step in 0..4_000 {
            pair.step();
            if step % 50 == 0 {
                check_invariants(&pair.wheel);
            }
        }
        let rest = advanced(&mut pair.wheel, u64::MAX);
        assert_eq!(rest, pair.model.advance(u64::MAX));
        assert!(pair.wheel.is_empty());
        check_invariants(&pair.wheel);
    }
}

#[test]
fn a_crowd_gives_what_a_sorted_map_gives() {
    for seed in 1..=10u64 {
        eprintln!("seed {seed}");
        let mut pair = Pair::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), 1_000_000);
        for _ in 0..3 {
            (0..2_000).for_each(|_| pair.insert());
            (0..4_000).for_each(|_| pair.set());
            (0..1_500).for_each(|_| pair.cancel());
            check_invariants(&pair.wheel);
            (0..50).for_each(|_| pair.advance());
            pair.check();
            check_invariants(&pair.wheel);
        }
    }
}

#[test]
fn an_entry_stands_at_the_highest_digit_that_differs() {
    fn check(elapsed: u64, tick: u64, level: usize, slot: usize, first_tick: u64) {
        let address = Address::of(tick, elapsed);
        assert_eq!(address, Address { level, slot }, "{tick} seen from {elapsed}");
        assert_eq!(address.first_tick(elapsed), first_tick, "{tick} seen from {elapsed}");
    }
    check(0, 0, 0, 0, 0);
    check(0, 63, 0, 63, 63);
    check(0, 64, 1, 1, 64);
    check(0, 127, 1, 1, 64);
    check(0, 4_095, 1, 63, 4_032);
    check(0, 4_096, 2, 1, 4_096);
    // The last tick of a lap, and the first of the next one.
    check(63, 64, 1, 1, 64);
    check(64, 65, 0, 1, 65);
    check(127, 128, 1, 2, 128);
    check(4_095, 4_096, 2, 1, 4_096);
    check(4_096, 4_160, 1, 1, 4_160);
    check(262_143, 262_144, 3, 1, 262_144);
    check(10 * 4_096 + 17, 10 * 4_096 + 4_095, 1, 63, 10 * 4_096 + 4_032);
    // One tick apart, across every digit but the highest.
    for level in 1..N_LEVELS {
        let boundary = 1u64 << (6 * level);
        check(boundary - 1, boundary, level, 1, boundary);
        check(boundary, boundary + 1, 0, 1, boundary + 1);
    }
    // The ends of the range.
    check(0, u64::MAX, 10, 15, 15 << 60);
    check(u64::MAX - 1, u64::MAX, 0, 63, u64::MAX);
    check(u64::MAX, u64::MAX, 0, 63, u64::MAX);
    check(1 << 63, u64::MAX, 10, 15, 15 << 60);
    // Overdue: with `elapsed`.
    check(100, 0, 0, 36, 100);
    check(u64::MAX, 0, 0, 63, u64::MAX);
}

#[test]
fn a_step_forward_by_years_hands_out_everything_once_in_order() {
    let mut wheel = Wheel::new(29_000_000);
    let minutes_per_year = 525_960;
    for key in (0..100u32).rev() {
        wheel.insert(29_000_000 + u64::from(key) * minutes_per_year / 2, key);
    }
    let due = advanced(&mut wheel, 29_000_000 + 40 * minutes_per_year);
    let keys: Vec<u32> = due.iter().map(|(_, key)| *key).collect();
    assert_eq!(keys, (0..=80).collect::<Vec<_>>());
    assert_eq!(advanced(&mut wheel, 29_000_000 + 40 * minutes_per_year), []);
    assert_eq!(wheel.len(), 19);
}

#[test]
fn a_step_backward_hands_out_nothing_and_loses_nothing() {
    let mut wheel = Wheel::new(1_000);
    wheel.insert(1_005, 1);
    wheel.insert(1_500, 2);
    assert_eq!(advanced(&mut wheel, 1_010), [(1_005, 1)]);
    assert_eq!(advanced(&mut wheel, 400), []);
    assert_eq!((wheel.elapsed(), wheel.len()), (1_010, 1));
    wheel.insert(450, 3);
    assert_eq!(advanced(&mut wheel, 1_009), []);
    assert_eq!(advanced(&mut wheel, 1_010), [(450, 3)]);
    assert_eq!(advanced(&mut wheel, 1_500), [(1_500, 2)]);
}

#[test]
fn a_tick_in_the_past_comes_out_at_the_next_advance() {
    let mut wheel = Wheel::new(100);
    wheel.insert(100, 1);
    wheel.insert(7, 2);
    wheel.insert(99, 3);
    let moved = wheel.insert(5_000, 4);
    wheel.set(moved, 7);
    assert_eq!(wheel.next_tick(), Some(100));
    assert_eq!(advanced(&mut wheel, 100), [(7, 2), (7, 4), (99, 3), (100, 1)]);
}

#[test]
fn entries_of_one_tick_come_out_in_the_order_of_arming() {
    let mut wheel = Wheel::new(0);
    let timers: Vec<TimerKey> = (0..200).map(|key| wheel.insert(5_000, key)).collect();
    wheel.set(timers[3], 6_000);
    wheel.set(timers[3], 5_000);
    assert_eq!(advanced(&mut wheel, 4_990), []);
    wheel.insert(5_000, 200);
    let due = advanced(&mut wheel, 5_000);
    let keys: Vec<u32> = due.iter().map(|(_, key)| *key).collect();
    let expected: Vec<u32> = (0..200).filter(|key| *key != 3).chain([3, 200]).collect();
    assert_eq!(keys, expected);
}

#[test]
fn setting_the_same_tick_keeps_the_order() {
    let mut wheel = Wheel::new(0);
    let first = wheel.insert(70, 1);
    wheel.insert(70, 2);
    wheel.set(first, 70);
    assert_eq!(advanced(&mut wheel, 70), [(70, 1), (70, 2)]);
}

#[test]
fn a_stale_key_names_nothing() {
    let mut wheel = Wheel::new(0);
    let cancelled = wheel.insert(10, 1);
    assert_eq!(wheel.cancel(cancelled), Some(1));
    let reused = wheel.insert(20, 2);
    assert_eq!(reused.number, cancelled.number, "the place in memory is used again");
    wheel.set(cancelled, 5);
    assert_eq!(wheel.cancel(cancelled), None);
    assert_eq!(advanced(&mut wheel, 20), [(20, 2)]);
    wheel.set(reused, 30);
    assert_eq!(wheel.cancel(reused), None);
    assert_eq!(advanced(&mut wheel, u64::MAX), []);
}

#[test]
fn the_whole_range_of_ticks_is_usable() {
    let mut wheel = Wheel::new(0);
    let year_9999 = 253_402_300_799 / 60;
    let ticks = [u64::MAX, u64::MAX - 1, 1 << 63, year_9999, 1, 0];
    for (key, tick) in (0..).zip(ticks) {
        wheel.insert(tick, key);
    }
    let expected = [
        (0, 5),
        (1, 4),
        (year_9999, 3),
        (1 << 63, 2),
        (u64::MAX - 1, 1),
        (u64::MAX, 0),
    ];
    assert_eq!(advanced(&mut wheel, u64::MAX), expected);
    wheel.insert(u64::MAX, 6);
    assert_eq!(wheel.next_tick(), Some(u64::MAX));
    assert_eq!(advanced(&mut wheel, u64::MAX), [(u64::MAX, 6)]);
}

#[test]
fn who_sleeps_until_the_next_tick_misses_nothing_and_wakes_at_most_once_a_level() {
    let mut random = Random(0x5EED);
    let mut wheel = Wheel::new(12_345);
    for key in 0..500 {
        wheel.insert(12_345 + random.below(1 << 40), key);
    }
    let (mut n_wakeups, mut n_due, mut due) = (0, 0, Vec::new());
    while let Some(next) = wheel.next_tick() {
        n_wakeups += 1;
        wheel.advance(next, &mut due);
        assert!(
            due.iter().all(|(tick, _)| *tick == next),
            "woken at {next}, late for {due:?}"
        );
        n_due += due.len();
        due.clear();
    }
    assert_eq!(n_due, 500);
    assert!(n_wakeups <= 500 * 7, "{n_wakeups}");
}

#[test]
fn the_next_tick_is_exact_where_the_entries_share_it() {
    let mut wheel = Wheel::new(0);
    let early = wheel.insert(5_000, 1);
    wheel.insert(5_100, 2);
    wheel.insert(5_100, 3);
    assert_eq!(wheel.next_tick(), Some(4_096), "two ticks in one slot: its first tick");
    wheel.cancel(early);
    assert_eq!(advanced(&mut wheel, 4_096), []);
    assert_eq!(wheel.next_tick(), Some(5_100));
    assert_eq!(advanced(&mut wheel, 5_099), []);
    assert_eq!(wheel.next_tick(), Some(5_100));
}

#[test]
fn entries_that_move_for_ever_take_no_more_memory() {
    let mut random = Random(0xFEED);
    let mut wheel = Wheel::new(0);
    let timers: Vec<TimerKey> = (0..1_000).map(|key| wheel.insert(1_000_000, key)).collect();
    for n_moved in 0..200_000 {
        wheel.set(timers[n_moved % 1_000], 1_000_000 + random.below(1_000_000));
        assert!(wheel.n_vacant <= 3_000, "{} vacant places", wheel.n_vacant);
    }
    check_invariants(&wheel);
    assert!(wheel.heap_bytes() < 200_000, "{}", wheel.heap_bytes());
    assert_eq!(advanced(&mut wheel, 2_000_000).len(), 1_000);
}

#[test]
fn an_entry_that_is_armed_again_reuses_its_memory() {
    let mut wheel = Wheel::new(0);
    (0..10_000).for_each(|key| {
        wheel.insert(1, key);
    });
    let (mut heap_bytes_after_first, mut due) = (0, Vec::new());
    for minute in 1..=100 {
        due.clear();
        wheel.advance(minute, &mut due);
        assert_eq!(due.len(), 10_000);
        for (_, key) in &due {
            wheel.insert(minute + 1, *key);
        }
        if minute == 1 {
            heap_bytes_after_first = wheel.heap_bytes();
        }
    }
    assert_eq!(wheel.heap_bytes(), heap_bytes_after_first);
}

#[test]
fn an_entry_is_small() {
    assert_eq!(size_of::<Entry<u32>>(), 20);
    assert_eq!(size_of::<TimerKey>(), 8);
    assert_eq!(size_of::<Option<TimerKey>>(), 8);
}
