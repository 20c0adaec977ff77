//! Compares the wheel with a sorted map. Each guarantee in its documentation has a test of that name.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Address, LAST_TICK, N_LISTED_MIN, UNARMED, Wheel,
    level::{N_LEVELS, N_SLOTS},
};

/// Xorshift, so that a seed gives the same operations on every machine.
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

    /// A number below `end`.
    fn below_u32(&mut self, end: u32) -> u32 {
        u32::try_from(self.below(end.into())).unwrap()
    }

    /// A random distance with a uniformly distributed number of bits.
    fn distance(&mut self) -> u32 {
        let n_bits = self.below(33);
        u32::try_from(self.below(1 << n_bits)).unwrap()
    }
}

/// A slow reference model of the wheel.
struct Model {
    elapsed: u32,
    by_tick: BTreeSet<(u32, u32)>,
    ticks: BTreeMap<u32, u32>,
}

impl Model {
    fn cancel(&mut self, number: u32) -> bool {
        let tick = self.ticks.remove(&number);
        tick.is_some_and(|tick| self.by_tick.remove(&(tick, number)))
    }

    fn set(&mut self, number: u32, tick: u32) {
        self.cancel(number);
        let tick = tick.clamp(self.elapsed, LAST_TICK);
        self.ticks.insert(number, tick);
        self.by_tick.insert((tick, number));
    }

    /// Returns due timers in the order of ticks, and of numbers within a tick.
    fn advance(&mut self, now_tick: u32) -> Vec<(u32, u32)> {
        let now_tick = now_tick.min(LAST_TICK);
        let mut due = Vec::new();
        if now_tick < self.elapsed {
            return due;
        }
        self.elapsed = now_tick;
        while let Some(&(tick, number)) = self.by_tick.first()
            && tick <= now_tick
        {
            due.push((tick, number));
            self.cancel(number);
        }
        due
    }
}

/// A wheel and its model, which get the same operations.
struct Pair {
    random: Random,
    wheel: Wheel,
    model: Model,
    n_numbers: u32,
}

impl Pair {
    fn new(seed: u64, start: u32, n_numbers: u32) -> Pair {
        Pair {
            random: Random(seed),
            wheel: Wheel::new(start),
            model: Model {
                elapsed: start.min(LAST_TICK),
                by_tick: BTreeSet::new(),
                ticks: BTreeMap::new(),
            },
            n_numbers,
        }
    }

    /// A tick near `elapsed`, before or after it, or anywhere.
    fn tick(&mut self) -> u32 {
        let distance = self.random.distance();
        match self.random.below(8) {
            0 => self.wheel.elapsed().saturating_sub(distance),
            1 => self.wheel.elapsed().saturating_add(self.random.below_u32(3)),
            2 => distance,
            3..=5 => self.wheel.elapsed().saturating_add(distance % 10_000),
            _ => self.wheel.elapsed().saturating_add(distance),
        }
    }

    fn number(&mut self) -> u32 {
        self.random.below_u32(self.n_numbers)
    }

    fn set(&mut self) {
        let (number, tick) = (self.number(), self.tick());
        self.wheel.set(number, tick);
        self.model.set(number, tick);
    }

    fn cancel(&mut self) {
        let number = self.number();
        assert_eq!(self.wheel.cancel(number), self.model.cancel(number));
    }

    fn advance(&mut self) {
        let now_tick = match self.random.below(16) {
            0 => self.wheel.elapsed().saturating_sub(self.random.distance()),
            1 => self.wheel.elapsed().saturating_add(self.random.distance() >> 8),
            2..=6 => self.wheel.next_tick().unwrap_or(self.wheel.elapsed()),
            _ => self.wheel.elapsed().saturating_add(self.random.below_u32(200)),
        };
        self.advance_to(now_tick);
    }

    fn advance_to(&mut self, now_tick: u32) {
        let ticks = self.model.ticks.clone();
        let mut due: Vec<(u32, u32)> = advanced(&mut self.wheel, now_tick)
            .into_iter()
            .map(|number| (ticks[&number], number))
            .collect();
        assert!(due.is_sorted_by_key(|(tick, _)| *tick), "{due:?}");
        due.sort_unstable();
        assert_eq!(due, self.model.advance(now_tick), "advance({now_tick})");
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..=11 => self.set(),
            12..=14 => self.cancel(),
            _ => self.advance(),
        }
        self.check();
    }

    fn check(&mut self) {
        assert_eq!(self.wheel.elapsed(), self.model.elapsed);
        assert_eq!(self.wheel.len(), self.model.ticks.len());
        assert_eq!(self.wheel.is_empty(), self.model.ticks.is_empty());
        let number = self.number();
        assert_eq!(self.wheel.tick(number), self.model.ticks.get(&number).copied());
        let earliest = self.model.by_tick.first().map(|(tick, _)| *tick);
        let next = self.wheel.next_tick();
        assert_eq!(next.is_some(), earliest.is_some());
        let (Some(next), Some(earliest)) = (next, earliest) else {
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

/// Recounts the totals and bits that the wheel stores, and checks that every number is in its list.
fn check_invariants(wheel: &mut Wheel) {
    let mut n_listed = 0;
    for level in 0..N_LEVELS {
        let first_occupied = wheel.levels[level].first_occupied();
        let occupied = (0..N_SLOTS).find(|slot| !wheel.levels[level].slot_mut(*slot).numbers.is_empty());
        assert_eq!(first_occupied, occupied, "level {level}");
        n_listed += (0..N_SLOTS)
            .map(|slot| wheel.levels[level].slot_mut(slot).numbers.len())
            .sum::<usize>();
    }
    assert_eq!(wheel.n_listed, n_listed);
    assert!(n_listed <= 2 * wheel.ticks.len() + N_LISTED_MIN, "{n_listed}");
    let mut n_armed = 0;
    for (number, tick) in (0..).zip(wheel.ticks.clone()) {
        if tick != UNARMED {
            n_armed += 1;
            let Address { level, slot } = Address::of(tick, wheel.elapsed);
            assert!(wheel.levels[level].slot_mut(slot).numbers.contains(&number), "{number}");
        }
    }
    assert_eq!(wheel.n_armed, n_armed);
}

fn advanced(wheel: &mut Wheel, now_tick: u32) -> Vec<u32> {
    let mut due = Vec::new();
    wheel.advance(now_tick, &mut due);
    due
}

#[test]
fn random_operations_match_a_sorted_map() {
    for seed in 1..=40u64 {
        let start = match seed % 4 {
            0 => 0,
            1 => 29_000_000,
            2 => LAST_TICK - 5_000,
            _ => (1 << 30) - 70,
        };
        eprintln!("seed {seed}");
        let mut pair = Pair::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), start, 3 << (seed % 8));
        for step in 0..4_000 {
            pair.step();
            if step % 50 == 0 {
                check_invariants(&mut pair.wheel);
            }
        }
        pair.advance_to(u32::MAX);
        assert!(pair.wheel.is_empty());
        check_invariants(&mut pair.wheel);
    }
}

#[test]
fn many_timers_match_a_sorted_map() {
    for seed in 1..=10u64 {
        eprintln!("seed {seed}");
        let mut pair = Pair::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15), 1_000_000, 2_000);
        for _ in 0..3 {
            (0..12_000).for_each(|_| pair.set());
            (0..1_500).for_each(|_| pair.cancel());
            check_invariants(&mut pair.wheel);
            (0..50).for_each(|_| pair.advance());
            pair.check();
            check_invariants(&mut pair.wheel);
        }
    }
}

#[test]
fn a_timer_is_stored_at_the_highest_differing_digit() {
    fn check(elapsed: u32, tick: u32, level: usize, slot: usize, first_tick: u32) {
        let address = Address::of(tick, elapsed);
        assert_eq!(address, Address { level, slot }, "{tick} seen from {elapsed}");
        assert_eq!(address.first_tick(elapsed), first_tick, "{tick} seen from {elapsed}");
        assert!(address.covers(first_tick, tick));
    }
    check(0, 0, 0, 0, 0);
    check(0, 63, 0, 63, 63);
    check(0, 64, 1, 1, 64);
    check(0, 127, 1, 1, 64);
    check(0, 4_095, 1, 63, 4_032);
    check(0, 4_096, 2, 1, 4_096);
    // The last tick of a lap and the first of the next.
    check(63, 64, 1, 1, 64);
    check(64, 65, 0, 1, 65);
    check(127, 128, 1, 2, 128);
    check(4_095, 4_096, 2, 1, 4_096);
    check(4_096, 4_160, 1, 1, 4_160);
    check(262_143, 262_144, 3, 1, 262_144);
    check(10 * 4_096 + 17, 10 * 4_096 + 4_095, 1, 63, 10 * 4_096 + 4_032);
    // One tick apart, across every digit except the highest.
    for level in 1..N_LEVELS {
        let boundary = 1u32 << (6 * level);
        check(boundary - 1, boundary, level, 1, boundary);
        check(boundary, boundary + 1, 0, 1, boundary + 1);
    }
    // The end of the range.
    check(0, LAST_TICK, 5, 3, 3 << 30);
    check(LAST_TICK - 1, LAST_TICK, 0, 62, LAST_TICK);
    check(LAST_TICK, LAST_TICK, 0, 62, LAST_TICK);
}

#[test]
fn advancing_by_years_returns_each_timer_once_in_order() {
    let mut wheel = Wheel::new(29_000_000);
    let minutes_per_year = 525_960;
    for number in (0..100u32).rev() {
        wheel.set(number, 29_000_000 + number * (minutes_per_year / 2));
    }
    let due = advanced(&mut wheel, 29_000_000 + 40 * minutes_per_year);
    assert_eq!(due, (0..=80).collect::<Vec<_>>());
    assert!(advanced(&mut wheel, 29_000_000 + 40 * minutes_per_year).is_empty());
    assert_eq!(wheel.len(), 19);
}

#[test]
fn a_backward_step_returns_nothing_and_loses_nothing() {
    let mut wheel = Wheel::new(1_000);
    wheel.set(1, 1_005);
    wheel.set(2, 1_500);
    assert_eq!(advanced(&mut wheel, 1_010), [1]);
    assert!(advanced(&mut wheel, 400).is_empty());
    assert_eq!((wheel.elapsed(), wheel.len()), (1_010, 1));
    wheel.set(3, 450);
    assert!(advanced(&mut wheel, 1_009).is_empty());
    assert_eq!(advanced(&mut wheel, 1_010), [3]);
    assert_eq!(advanced(&mut wheel, 1_500), [2]);
}

#[test]
fn a_timer_in_the_past_fires_at_the_next_advance() {
    let mut wheel = Wheel::new(100);
    wheel.set(1, 7);
    wheel.set(2, 5_000);
    wheel.set(2, 99);
    assert_eq!(wheel.next_tick(), Some(100));
    assert_eq!(advanced(&mut wheel, 100), [1, 2]);
}

#[test]
fn a_timer_set_repeatedly_fires_once() {
    let mut wheel = Wheel::new(0);
    for tick in [70, 200, 70, 71, 70] {
        wheel.set(4, tick);
    }
    assert!(advanced(&mut wheel, 69).is_empty());
    assert_eq!(advanced(&mut wheel, 200), [4]);
    assert!(advanced(&mut wheel, u32::MAX).is_empty());
}

#[test]
fn a_cancelled_timer_does_not_fire() {
    let mut wheel = Wheel::new(0);
    wheel.set(1, 10);
    wheel.set(2, 20);
    assert!(wheel.cancel(1));
    assert!(!wheel.cancel(1) && !wheel.cancel(77));
    assert_eq!(wheel.next_tick(), Some(20));
    assert!(wheel.cancel(2));
    assert_eq!(wheel.next_tick(), None);
    assert!(advanced(&mut wheel, 100).is_empty());
}

#[test]
fn the_whole_range_of_ticks_is_usable() {
    let mut wheel = Wheel::new(0);
    for (number, tick) in (0..).zip([LAST_TICK, LAST_TICK - 1, 1 << 31, 1 << 30, 1, 0]) {
        wheel.set(number, tick);
    }
    assert_eq!(advanced(&mut wheel, LAST_TICK - 1), [5, 4, 3, 2, 1]);
    wheel.set(6, u32::MAX);
    assert_eq!(wheel.tick(6), Some(LAST_TICK));
    assert_eq!(wheel.next_tick(), Some(LAST_TICK));
    assert_eq!(advanced(&mut wheel, u32::MAX), [0, 6]);
}

#[test]
fn sleeping_until_next_tick_fires_every_timer_on_time() {
    let mut random = Random(0x5EED);
    let mut wheel = Wheel::new(12_345);
    let ticks: Vec<u32> = (0..500).map(|_| 12_345 + random.below_u32(1 << 31)).collect();
    for (number, &tick) in (0..).zip(&ticks) {
        wheel.set(number, tick);
    }
    let (mut n_wakeups, mut n_due) = (0, 0);
    while let Some(next) = wheel.next_tick() {
        n_wakeups += 1;
        for number in advanced(&mut wheel, next) {
            assert_eq!(ticks[number as usize], next, "late");
            n_due += 1;
        }
    }
    assert_eq!(n_due, 500);
    assert!(n_wakeups <= 500 * 6, "{n_wakeups}");
}

#[test]
fn next_tick_is_exact_for_a_wheel_slot_with_one_tick() {
    let mut wheel = Wheel::new(0);
    wheel.set(1, 5_000);
    wheel.set(2, 5_100);
    wheel.set(3, 5_100);
    assert_eq!(wheel.next_tick(), Some(4_096), "two ticks in one slot: its first tick");
    wheel.cancel(1);
    assert!(advanced(&mut wheel, 4_096).is_empty());
    assert_eq!(wheel.next_tick(), Some(5_100));
    assert!(advanced(&mut wheel, 5_099).is_empty());
    assert_eq!(wheel.next_tick(), Some(5_100));
}

#[test]
fn moving_timers_does_not_leak_memory() {
    let mut random = Random(0xFEED);
    let mut wheel = Wheel::new(0);
    for n_moved in 0..200_000 {
        wheel.set(n_moved % 1_000, 1_000_000 + random.below_u32(1_000_000));
    }
    check_invariants(&mut wheel);
    assert!(wheel.heap_bytes() < 100_000, "{}", wheel.heap_bytes());
    assert_eq!(advanced(&mut wheel, 2_000_000).len(), 1_000);
}

#[test]
fn a_burst_of_timers_does_not_leak_memory() {
    let mut wheel = Wheel::new(0);
    (0..10_000).for_each(|number| wheel.set(number, 1));
    let heap_bytes = wheel.heap_bytes();
    for minute in 1..=200 {
        for number in advanced(&mut wheel, minute) {
            wheel.set(number, minute + 1);
        }
        assert!(wheel.heap_bytes() <= heap_bytes, "{}", wheel.heap_bytes());
    }
    assert_eq!(wheel.len(), 10_000);
}
