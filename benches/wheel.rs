//! Compares the timer wheel with three alternative structures, with the same operations in the same order.
//!
//! Expected growth per entry: the wheel is constant in every column, except that a million entries do not fit into the
//! caches. The heap grows with log n in insert, move and expire. The map grows with the log of the number of distinct
//! ticks. DelayQueue is a wheel too, on a slab without hashing and with linked slots, which cause cache misses.
//!
//! Each figure is in nanoseconds per entry, the median of the rounds. The rounds of all structures alternate. A round
//! inserts all entries in the order of their numbers, and moves each once, in random order, to a new random tick. One
//! run then expires all entries, waking at each next tick. Another run cancels each entry in random order. Because
//! some structures cancel lazily, `cancel` includes waking until the structure is empty. `life` is
//! insert + move + expire, and `cut` is insert + move + cancel. Keys and numbers, which the owner of an entry would
//! store with it, are prepared outside the measured part.
//!
//! `--test` runs the smallest size once. The `--bench` that cargo passes is ignored.

#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use cronwheel::schedule::wheel::Wheel;
use tokio_util::time::{DelayQueue, delay_queue};

/// The allocator of the release binary.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// A minute of 2026 that is not near the end of a lap of 64 or of 4096 ticks.
const NOW_TICK: u32 = 29_612_345;

fn main() {
    let is_smoke_test = std::env::args().any(|argument| argument == "--test");
    let sizes: &[usize] = if is_smoke_test {
        &[1_000]
    } else {
        &[1_000, 10_000, 100_000, 1_000_000]
    };
    println!("{:>8}  {:<11}  {:<11} {COLUMNS}", "entries", "due", "structure");
    for &n_entries in sizes {
        for due in [Due::OneInstant, Due::SixtyMinutes, Due::Month] {
            let n_rounds = if is_smoke_test {
                1
            } else {
                (1_000_000 / n_entries).clamp(7, 101)
            };
            compare(n_entries, due, n_rounds);
        }
    }
}

const COLUMNS: &str = "  insert    move  expire  cancel |    life     cut";

/// The distribution of due times, in minutes.
#[derive(Clone, Copy)]
enum Due {
    OneInstant,
    SixtyMinutes,
    Month,
}

impl Due {
    fn name(self) -> &'static str {
        match self {
            Due::OneInstant => "one instant",
            Due::SixtyMinutes => "60 minutes",
            Due::Month => "a month",
        }
    }

    /// The tick of an entry before its move, and after.
    fn ticks(self, random: &mut Random) -> [u32; 2] {
        let offsets = match self {
            Due::OneInstant => [24 * 60, 25 * 60],
            Due::SixtyMinutes => [1 + random.below_u32(60), 1 + random.below_u32(60)],
            Due::Month => [1 + random.below_u32(30 * 24 * 60), 1 + random.below_u32(30 * 24 * 60)],
        };
        offsets.map(|offset| NOW_TICK + offset)
    }
}

/// The operations on every structure: ticks by number, and the random orders.
struct Plan {
    ticks: Vec<u32>,
    /// Each number once, with the tick that it moves to.
    moves: Vec<(u32, u32)>,
    cancels: Vec<u32>,
}

impl Plan {
    fn new(n_entries: usize, due: Due, seed: u64) -> Plan {
        let mut random = Random(seed);
        let drawn: Vec<[u32; 2]> = (0..n_entries).map(|_| due.ticks(&mut random)).collect();
        let numbers: Vec<u32> = (0..).take(n_entries).collect();
        let mut moves: Vec<(u32, u32)> = numbers
            .iter()
            .map(|&number| (number, drawn[number as usize][1]))
            .collect();
        let mut cancels = numbers;
        random.shuffle(&mut moves);
        random.shuffle(&mut cancels);
        Plan {
            ticks: drawn.iter().map(|[first, _]| *first).collect(),
            moves,
            cancels,
        }
    }

    /// The tick at which each number expires.
    fn final_ticks(&self) -> Vec<u32> {
        let mut ticks = self.ticks.clone();
        for &(number, tick) in &self.moves {
            ticks[number as usize] = tick;
        }
        ticks
    }
}

/// A structure under test. Numbers are dense from 0.
trait Timers {
    /// The value with which an owner refers to an entry.
    type Handle: Copy;
    fn new(n_entries: usize) -> Self;
    fn insert(&mut self, number: u32, tick: u32) -> Self::Handle;
    fn set(&mut self, handle: Self::Handle, tick: u32);
    fn cancel(&mut self, handle: Self::Handle);
    /// Advances to each next tick until the structure is empty.
    fn drain(&mut self, due: &mut Vec<u32>);
}

/// The durations of insert, move, expire and cancel.
#[derive(Clone, Copy, Default)]
struct Round([Duration; 4]);

fn run<T: Timers>(plan: &Plan, due: &mut Vec<u32>) -> Round {
    let (mut timers, insert, moved) = insert_and_move::<T>(plan).0;
    due.clear();
    let expire = timed(|| timers.drain(due));
    assert_eq!(due.len(), plan.ticks.len());
    let final_ticks = plan.final_ticks();
    assert!(due.is_sorted_by_key(|number| final_ticks[*number as usize]));
    drop(timers);

    let ((mut timers, insert_again, moved_again), handles) = insert_and_move::<T>(plan);
    let handles: Vec<T::Handle> = plan.cancels.iter().map(|&number| handles[number as usize]).collect();
    due.clear();
    let cancel = timed(|| {
        for handle in handles {
            timers.cancel(handle);
        }
        timers.drain(due);
    });
    assert!(due.is_empty());
    Round([(insert + insert_again) / 2, (moved + moved_again) / 2, expire, cancel])
}

type Moved<T> = ((T, Duration, Duration), Vec<<T as Timers>::Handle>);

fn insert_and_move<T: Timers>(plan: &Plan) -> Moved<T> {
    let mut timers = T::new(plan.ticks.len());
    let mut handles = Vec::with_capacity(plan.ticks.len());
    let insert = timed(|| {
        for (number, &tick) in (0..).zip(&plan.ticks) {
            handles.push(timers.insert(number, tick));
        }
    });
    let moves: Vec<(T::Handle, u32)> = plan
        .moves
        .iter()
        .map(|&(number, tick)| (handles[number as usize], tick))
        .collect();
    let relocate = timed(|| {
        for (handle, tick) in moves {
            timers.set(handle, tick);
        }
    });
    ((timers, insert, relocate), handles)
}

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// Runs one round of a structure.
type Runner = fn(&Plan, &mut Vec<u32>) -> Round;

fn compare(n_entries: usize, due: Due, n_rounds: usize) {
    let structures: [(&str, Runner); 4] = [
        ("Wheel", run::<WheelTimers>),
        ("DelayQueue", run::<DelayQueueTimers>),
        ("BinaryHeap", run::<HeapTimers>),
        ("BTreeMap", run::<MapTimers>),
    ];
    let mut rounds: [Vec<Round>; 4] = Default::default();
    let mut out = Vec::with_capacity(n_entries);
    for seed in 1..=n_rounds as u64 {
        let plan = Plan::new(n_entries, due, seed * 0x9E37_79B9);
        for ((_, run), rounds) in structures.iter().zip(&mut rounds) {
            rounds.push(run(&plan, &mut out));
        }
    }
    let mut sums = Vec::new();
    for ((name, _), rounds) in structures.iter().zip(&rounds) {
        let [insert, moved, expire, cancel] = [0, 1, 2, 3].map(|phase| median_ns(rounds, phase, n_entries));
        let [life, cut] = [insert + moved + expire, insert + moved + cancel];
        let due = due.name();
        println!(
            "{n_entries:>8}  {due:<11}  {name:<11} {insert:>8.1}{moved:>8.1}{expire:>8.1}{cancel:>8.1} |{life:>8.1}{cut:>8.1}"
        );
        sums.push([life, cut]);
    }
    let best_other = |which: usize| sums[1..].iter().map(|sums| sums[which]).fold(f64::INFINITY, f64::min);
    let ratios = [0, 1].map(|which| sums[0][which] / best_other(which));
    println!(
        "{:>8}  {:<11}  {:<43} |{:>8.2}{:>8.2}",
        "", "", "Wheel / best other", ratios[0], ratios[1]
    );
}

#[expect(clippy::cast_precision_loss, reason = "counts of entries are far below 2^52")]
fn median_ns(rounds: &[Round], phase: usize, n_entries: usize) -> f64 {
    let mut durations: Vec<Duration> = rounds.iter().map(|round| round.0[phase]).collect();
    durations.sort();
    durations[durations.len() / 2].as_secs_f64() * 1e9 / n_entries as f64
}

struct WheelTimers(Wheel);

impl Timers for WheelTimers {
    type Handle = u32;

    fn new(_: usize) -> Self {
        WheelTimers(Wheel::new(NOW_TICK))
    }

    fn insert(&mut self, number: u32, tick: u32) -> u32 {
        self.0.set(number, tick);
        number
    }

    fn set(&mut self, number: u32, tick: u32) {
        self.0.set(number, tick);
    }

    fn cancel(&mut self, number: u32) {
        self.0.cancel(number);
    }

    fn drain(&mut self, due: &mut Vec<u32>) {
        while let Some(tick) = self.0.next_tick() {
            self.0.advance(tick, due);
        }
    }
}

/// tokio's DelayQueue on a paused clock, with one minute per tick.
struct DelayQueueTimers {
    runtime: tokio::runtime::Runtime,
    start: tokio::time::Instant,
    queue: DelayQueue<u32>,
}

impl DelayQueueTimers {
    fn instant(&self, tick: u32) -> tokio::time::Instant {
        self.start + Duration::from_secs(u64::from(tick - NOW_TICK) * 60)
    }
}

impl Timers for DelayQueueTimers {
    type Handle = delay_queue::Key;

    #[expect(clippy::disallowed_methods, reason = "a paused clock")]
    fn new(_: usize) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let runtime = runtime.expect("a runtime with no I/O needs nothing that could fail");
        let in_runtime = runtime.enter();
        let start = tokio::time::Instant::now();
        let queue = DelayQueue::new();
        drop(in_runtime);
        DelayQueueTimers { runtime, start, queue }
    }

    fn insert(&mut self, number: u32, tick: u32) -> delay_queue::Key {
        let _in_runtime = self.runtime.enter();
        let instant = self.instant(tick);
        self.queue.insert_at(number, instant)
    }

    fn set(&mut self, handle: delay_queue::Key, tick: u32) {
        let _in_runtime = self.runtime.enter();
        let instant = self.instant(tick);
        self.queue.reset_at(&handle, instant);
    }

    fn cancel(&mut self, handle: delay_queue::Key) {
        self.queue.remove(&handle);
    }

    #[expect(clippy::disallowed_methods, reason = "a paused clock")]
    fn drain(&mut self, due: &mut Vec<u32>) {
        let mut context = Context::from_waker(Waker::noop());
        while let Some(next) = self.queue.peek() {
            let next = self.queue.deadline(&next);
            self.runtime
                .block_on(async { tokio::time::advance(next - tokio::time::Instant::now()).await });
            let _in_runtime = self.runtime.enter();
            while let Poll::Ready(Some(expired)) = self.queue.poll_expired(&mut context) {
                due.push(expired.into_inner());
            }
        }
    }
}

/// An entry is live while its generation equals the generation of its number.
struct HeapTimers {
    heap: BinaryHeap<Reverse<(u32, u32, u32)>>,
    generations: Vec<u32>,
}

impl Timers for HeapTimers {
    type Handle = u32;

    fn new(n_entries: usize) -> Self {
        HeapTimers {
            heap: BinaryHeap::new(),
            generations: vec![1; n_entries],
        }
    }

    fn insert(&mut self, number: u32, tick: u32) -> u32 {
        self.heap
            .push(Reverse((tick, number, self.generations[number as usize])));
        number
    }

    fn set(&mut self, number: u32, tick: u32) {
        self.cancel(number);
        self.insert(number, tick);
    }

    fn cancel(&mut self, number: u32) {
        self.generations[number as usize] += 1;
    }

    fn drain(&mut self, due: &mut Vec<u32>) {
        while let Some(Reverse((_, number, generation))) = self.heap.pop() {
            if self.generations[number as usize] == generation {
                due.push(number);
            }
        }
    }
}

/// An entry is live while its generation equals the generation of its number.
struct MapTimers {
    map: BTreeMap<u32, Vec<(u32, u32)>>,
    generations: Vec<u32>,
}

impl Timers for MapTimers {
    type Handle = u32;

    fn new(n_entries: usize) -> Self {
        MapTimers {
            map: BTreeMap::new(),
            generations: vec![1; n_entries],
        }
    }

    fn insert(&mut self, number: u32, tick: u32) -> u32 {
        let generation = self.generations[number as usize];
        self.map.entry(tick).or_default().push((number, generation));
        number
    }

    fn set(&mut self, number: u32, tick: u32) {
        self.cancel(number);
        self.insert(number, tick);
    }

    fn cancel(&mut self, number: u32) {
        self.generations[number as usize] += 1;
    }

    fn drain(&mut self, due: &mut Vec<u32>) {
        while let Some((_, entries)) = self.map.pop_first() {
            let live = entries
                .into_iter()
                .filter(|(number, generation)| self.generations[*number as usize] == *generation);
            due.extend(live.map(|(number, _)| number));
        }
    }
}

/// Xorshift random numbers, so that every run has the same operations.
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

    fn below_u32(&mut self, end: u32) -> u32 {
        u32::try_from(self.below(end.into())).expect("below a number of 32 bits")
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            let other = usize::try_from(self.below(end as u64 + 1)).expect("below a length");
            items.swap(end, other);
        }
    }
}
