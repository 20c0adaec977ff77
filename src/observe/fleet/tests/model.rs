//! Random events, and a naive computation from all of them at once: both give the same marks, cells and tiles.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::script::{World, at, facts, letter, schedule};
use crate::{
    observe::{facts::RunResult, slot::Mark, view::Cell},
    schedule::ConcurrencyPolicy,
};

const N_SEEDS: u64 = 12;
const N_MINUTES: i64 = 150;
const N_SLOTS_MAX: usize = 40;

/// A `SplitMix64` generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        i64::try_from((mixed ^ (mixed >> 31)) % bound.unsigned_abs()).unwrap()
    }

    fn is_one_in(&mut self, n: i64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Clone, Debug)]
enum Event {
    Start(Timestamp),
    End(Timestamp, RunResult),
    Suspend(bool),
    Policy(ConcurrencyPolicy),
    Deadline(Option<i64>),
    Wait,
}

/// A day of a CronJob, with no more than one event in a second.
fn events(random: &mut Random) -> BTreeMap<Timestamp, Event> {
    let mut events = BTreeMap::new();
    let mut add = |mut time: Timestamp, event: Event| {
        while events.contains_key(&time) {
            time += SignedDuration::from_secs(1);
        }
        events.insert(time, event);
        time
    };
    let seconds = SignedDuration::from_secs;
    for minute in 1..=N_MINUTES {
        let slot = at("10:00") + SignedDuration::from_mins(minute);
        if !random.is_one_in(5) {
            let lateness = if random.is_one_in(4) {
                random.below(400)
            } else {
                random.below(4)
            };
            let created = add(slot + seconds(lateness), Event::Start(slot));
            let result = match random.below(10) {
                0 => RunResult::Failed("DeadlineExceeded".into()),
                1 => RunResult::Deleted,
                _ => RunResult::Succeeded,
            };
            let run_time = if random.is_one_in(6) {
                random.below(600)
            } else {
                random.below(50)
            };
            add(created + seconds(1 + run_time), Event::End(slot, result));
        }
        let sometime = slot + seconds(random.below(60));
        match random.below(40) {
            0 | 1 => {
                add(sometime, Event::Suspend(true));
            }
            2..=6 => {
                add(sometime, Event::Suspend(false));
            }
            7..=10 => {
                add(sometime, Event::Policy(ConcurrencyPolicy::Forbid));
            }
            11 | 12 => {
                add(sometime, Event::Policy(ConcurrencyPolicy::Allow));
            }
            13 => {
                add(sometime, Event::Deadline(Some(random.below(90))));
            }
            14 => {
                add(sometime, Event::Deadline(None));
            }
            _ => {
                add(sometime, Event::Wait);
            }
        }
    }
    events
}

fn act(world: &mut World, now: Timestamp, event: &Event) {
    world.now = now;
    let apply = |world: &mut World| world.fleet.apply_cron_job(world.facts.clone(), now);
    match event {
        Event::Start(slot) => world.start(*slot),
        Event::End(slot, RunResult::Deleted) => {
            let job = world.jobs.remove(slot).unwrap();
            world.fleet.remove_run(&job.job_uid, now);
        }
        Event::End(slot, result) => world.end(*slot, result.clone()),
        Event::Suspend(is_suspended) => {
            world.facts.is_suspended = *is_suspended;
            apply(world);
        }
        Event::Policy(policy) => {
            world.facts.concurrency_policy = *policy;
            apply(world);
        }
        Event::Deadline(seconds) => {
            world.facts.starting_deadline_seconds = *seconds;
            apply(world);
        }
        Event::Wait => world.fleet.advance(now),
    }
}

/// A Job of the model.
struct Job {
    slot: Timestamp,
    created: Timestamp,
    end: Option<(Timestamp, RunResult)>,
}

/// Everything that happened until an instant.
struct Model {
    now: Timestamp,
    jobs: Vec<Job>,
    /// The fields of the spec from each change on.
    fields: Vec<(Timestamp, Fields)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    is_suspended: bool,
    policy: ConcurrencyPolicy,
    deadline_seconds: Option<i64>,
}

impl Model {
    fn new(events: &BTreeMap<Timestamp, Event>, now: Timestamp) -> Model {
        let mut jobs: Vec<Job> = Vec::new();
        let mut last = Fields {
            is_suspended: false,
            policy: ConcurrencyPolicy::Allow,
            deadline_seconds: None,
        };
        let mut fields = vec![(at("10:00"), last)];
        for (time, event) in events.range(..=now) {
            match event {
                Event::Start(slot) => jobs.push(Job {
                    slot: *slot,
                    created: *time,
                    end: None,
                }),
                Event::End(slot, result) => {
                    let job = jobs.iter_mut().find(|job| job.slot == *slot).unwrap();
                    job.end = Some((*time, result.clone()));
                }
                Event::Suspend(is_suspended) => last.is_suspended = *is_suspended,
                Event::Policy(policy) => last.policy = *policy,
                Event::Deadline(seconds) => last.deadline_seconds = *seconds,
                Event::Wait => {}
            }
            if fields.last().is_some_and(|(_, fields)| *fields != last) {
                fields.push((*time, last));
            }
        }
        Model { now, jobs, fields }
    }

    fn fields(&self, at: Timestamp) -> Fields {
        let past = self.fields.iter().rev().find(|(from, _)| *from <= at);
        past.unwrap().1
    }

    fn was_suspended(&self, slot: Timestamp) -> bool {
        let shortly_after = slot + SignedDuration::from_secs(5);
        let next = self.fields.iter().find(|(from, _)| *from > slot);
        let is_next = next.is_some_and(|(from, fields)| fields.is_suspended && *from <= shortly_after);
        self.fields(slot).is_suspended || is_next
    }

    fn resumed(&self, slot: Timestamp) -> Option<Timestamp> {
        let resumed = self
            .fields
            .iter()
            .find(|(from, fields)| *from > slot && !fields.is_suspended);
        resumed.map(|(from, _)| *from).filter(|_| self.was_suspended(slot))
    }

    fn deadline(&self, slot: Timestamp) -> Option<Timestamp> {
        let seconds = self.fields(slot).deadline_seconds;
        seconds.map(|seconds| slot + SignedDuration::from_secs(seconds + 2))
    }

    fn closes(&self, slot: Timestamp) -> Timestamp {
        let next = slot + SignedDuration::from_mins(1);
        self.deadline(slot).map_or(next, |deadline| deadline.min(next))
    }

    /// The end of the suspension of a slot, if the slot can start then.
    fn released(&self, slot: Timestamp) -> Option<Timestamp> {
        let mut released = self.resumed(slot)?;
        while self.was_suspended(released) {
            released = self.resumed(released)?;
        }
        let late = SignedDuration::from_secs(5);
        Some(released).filter(|released| *released + late < self.closes(slot))
    }

    /// The end of the Job that Forbid waits for at a slot that can start then, `Timestamp::MAX` while it runs.
    fn held_until(&self, slot: Timestamp, start: Timestamp) -> Option<Timestamp> {
        let policy = self.fields(slot).policy;
        let earlier = self.jobs.iter().filter(|job| {
            let latest_creation = start + SignedDuration::from_secs(5);
            policy == ConcurrencyPolicy::Forbid && job.slot < slot && job.created <= latest_creation
        });
        let ends = earlier.map(|job| job.end.as_ref().map_or(Timestamp::MAX, |(end, _)| *end));
        ends.filter(|end| *end > start).max()
    }

    fn mark(&self, slot: Timestamp) -> Mark {
        let late = SignedDuration::from_secs(5);
        if let Some(job) = self.jobs.iter().find(|job| job.slot == slot) {
            let startable = self.startable(slot, job.created, self.held_until(slot, slot));
            let is_late = job.created.duration_since(startable) > late;
            return match &job.end {
                Some((_, RunResult::Failed(_))) => Mark::Failed,
                _ if is_late => Mark::Late,
                None => Mark::Running,
                Some((_, RunResult::Deleted)) => Mark::Skipped,
                Some(_) => Mark::Succeeded,
            };
        }
        let released = self.released(slot);
        let start = released.unwrap_or(slot);
        let held = self.held_until(slot, start);
        let closes = self.closes(slot);
        let is_suspended = self.was_suspended(slot) && released.is_none();
        if is_suspended || held.is_some_and(|end| end.saturating_add(late).unwrap() >= closes) {
            return Mark::Skipped;
        }
        if self.now >= closes {
            return Mark::Lost;
        }
        let startable = held.unwrap_or(start);
        if self.now.duration_since(startable) > late {
            Mark::Late
        } else {
            Mark::Due
        }
    }

    fn startable(&self, slot: Timestamp, created: Timestamp, held: Option<Timestamp>) -> Timestamp {
        let resumed = self.resumed(slot);
        let latest = created + SignedDuration::from_secs(1);
        let held = held.into_iter().chain(resumed).filter(|held| *held <= latest);
        held.max().map_or(slot, |held| held.min(created))
    }

    fn cell(&self, slot: Timestamp) -> Cell {
        let mark = self.mark(slot);
        let job = self.jobs.iter().find(|job| job.slot == slot);
        let is_late = job.is_some_and(|job| {
            let startable = self.startable(slot, job.created, self.held_until(slot, slot));
            job.created.duration_since(startable) > SignedDuration::from_secs(5)
        });
        Cell {
            n_runs: job.is_some().into(),
            n_late: is_late.into(),
            n_failed: (mark == Mark::Failed).into(),
            n_lost: 0,
        }
    }

    /// The cells of the minutes of slots. A loss is in the minute in which the slot was given up.
    fn cells(&self, slots: &[Timestamp]) -> Vec<Cell> {
        let mut cells: Vec<Cell> = slots.iter().map(|slot| self.cell(*slot)).collect();
        for slot in slots.iter().filter(|slot| self.mark(**slot) == Mark::Lost) {
            let given_up = self.closes(*slot).duration_since(slots[0]).as_mins();
            cells[usize::try_from(given_up).unwrap()].n_lost += 1;
        }
        cells
    }
}

fn compare(seed: u64, world: &World, events: &BTreeMap<Timestamp, Event>) {
    let now = world.now;
    let model = Model::new(events, now);
    let first = at("10:01");
    let slots = std::iter::successors(Some(first), |slot| Some(*slot + SignedDuration::from_mins(1)));
    let slots: Vec<Timestamp> = slots.take_while(|slot| *slot <= now).collect();
    let marks: String = slots.iter().map(|slot| letter(model.mark(*slot))).collect();
    let kept = &marks[marks.len().saturating_sub(N_SLOTS_MAX)..];
    assert_eq!(world.marks(), kept, "seed {seed} at {now}");
    let cells = model.cells(&slots);
    let strip = world.fleet.strip(first, now + SignedDuration::from_mins(1), 10, now);
    let found = strip.rows.first().map(|row| row.cells.clone()).unwrap_or_default();
    for (place, cell) in cells.iter().enumerate() {
        let found = found.get(place).copied().unwrap_or_default();
        assert_eq!(found, *cell, "seed {seed} at {now}: slot {}", slots[place]);
    }
    let tiles = world.fleet.tiles(now);
    let sum = |count: fn(&Cell) -> u32| cells.iter().map(|cell| u64::from(count(cell))).sum::<u64>();
    assert_eq!(
        tiles.n_failed,
        sum(|cell| cell.n_failed),
        "failed, seed {seed} at {now}"
    );
    assert_eq!(tiles.n_lost, sum(|cell| cell.n_lost), "lost, seed {seed} at {now}");
    assert_eq!(tiles.n_late, sum(|cell| cell.n_late), "late, seed {seed} at {now}");
    let n_running = model.jobs.iter().filter(|job| job.end.is_none()).count();
    assert_eq!(tiles.n_running, n_running, "running, seed {seed} at {now}");
}

#[test]
fn random_events_give_what_a_computation_from_scratch_gives() {
    for seed in 0..N_SEEDS {
        let mut random = Random(seed);
        let events = events(&mut random);
        let mut world = World::new(facts(), N_SLOTS_MAX);
        world.facts.schedule = schedule("* * * * *");
        world.play("10:00:30 watch");
        for (time, event) in &events {
            act(&mut world, *time, event);
            world.fleet.advance(*time);
            if random.is_one_in(10) {
                compare(seed, &world, &events);
            }
        }
        compare(seed, &world, &events);
        assert_restart(seed, &mut world, &events);
    }
}

/// A new process with the history shows the same, and goes on to do so.
fn assert_restart(seed: u64, world: &mut World, events: &BTreeMap<Timestamp, Event>) {
    world.records.append(&mut world.fleet.take_records());
    let again = world.restarted(N_SLOTS_MAX);
    compare(seed, &again, events);
}
