//! Missed runs under `all` start at a pace (O-4), and runs at their time do not wait.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::world::{World, at, complete, cron_job, hourly, job, schedule_with, uid};
use crate::{
    schedule::after,
    shard::{ConcurrencyPolicy, CronJobRecord, CronJobStatus, InstantOutcome, JobRecord, ResourceVersion},
};

/// Missed runs of other CronJobs reserve the next seconds.
fn reserve_seconds(world: &World, seconds: u32) {
    for _ in 0..5 * seconds {
        world.shard.catch_up_pace.reserve(world.now);
    }
}

/// A CronJob that has missed 07:00 to 10:00 and starts the last three. It is 10:40, and its first run waits so long.
fn waiting(seconds: u32) -> World {
    let mut world = World::on_standby("10:40:00", vec![hourly(&[("missed-runs", "all 3")])], vec![]);
    reserve_seconds(&world, seconds);
    world.lead();
    world.expect(&[]);
    world
}

/// The times of day of the slots that are created since the last call.
fn slots(world: &mut World) -> Vec<String> {
    world.effects();
    let slots = world.creates.iter().map(|order| order.slot.strftime("%T").to_string());
    slots.collect()
}

/// Lets the only create succeed.
fn created(world: &mut World) {
    world.created();
    world.effects();
}

#[test]
fn o_4_when_a_slot_becomes_due_the_oldest_run_starts_in_its_stead_and_the_place_stays() {
    let mut world = waiting(30 * 60);
    world.advance_to("10:59:59.9");
    world.expect(&[]);
    world.advance_to("11:00:00");
    assert_eq!(slots(&mut world), ["09:00:00"]);
    assert_eq!(
        world.shard.outcome_counts().outcome(InstantOutcome::Superseded),
        2,
        "07:00 and 08:00"
    );
    reserve_seconds(&world, 20);
    created(&mut world);
    world.advance_to("11:09:59.9");
    world.expect(&[]);
    world.advance_to("11:10:00");
    assert_eq!(slots(&mut world), ["10:00:00"]);
    // 11:00 came while the CronJob waited. Its place is behind those of the others.
    created(&mut world);
    world.advance_to("11:10:20.1");
    world.expect(&[]);
    world.advance_to("11:10:20.2");
    assert_eq!(slots(&mut world), ["11:00:00"]);
    created(&mut world);
    world.advance_to("12:00:00");
    assert_eq!(slots(&mut world), ["12:00:00"]);
    assert!(world.creates[0].is_on_time);
}

#[test]
fn o_4_slots_that_came_meanwhile_do_not_start_all_at_once() {
    let record = CronJobRecord {
        schedule: schedule_with("* * * * *", &[("missed-runs", "all 100")], 0),
        status: CronJobStatus {
            last_schedule_time: Some(at("09:57:00")),
            ..CronJobStatus::default()
        },
        ..cron_job("hello")
    };
    let mut world = World::on_standby("10:00:30", vec![record], vec![]);
    reserve_seconds(&world, 30 * 60);
    world.lead();
    let starts = run_until(&mut world, "10:40:00");
    let slots: Vec<Timestamp> = starts.iter().map(|start| start.slot).collect();
    let all: Vec<Timestamp> = (0..=42)
        .map(|minute| after(at("09:58:00"), SignedDuration::from_mins(minute)))
        .collect();
    assert_eq!(slots, all);
    assert_eq!(busiest_second(starts.iter()), 3, "the three places of the missed runs");
    let on_time = starts.iter().filter(|start| start.slot == start.at);
    assert_eq!(on_time.count(), 10, "10:31 to 10:40");
}

#[test]
fn o_4_a_run_at_its_time_ends_the_wait() {
    let record = CronJobRecord {
        schedule: schedule_with("* * * * *", &[("missed-runs", "all 1")], 0),
        ..hourly(&[])
    };
    let mut world = World::on_standby("10:00:30", vec![record], vec![]);
    reserve_seconds(&world, 30 * 60);
    world.lead();
    assert_eq!(run_until(&mut world, "10:10:30").len(), 10, "10:01 to 10:10");
    let owner = world.shard.index.find_cron_job(&uid("hello")).unwrap();
    assert_eq!(world.shard.index.cron_job(owner).place(), None);
}

#[test]
fn o_4_the_answer_to_a_run_that_was_asked_for_does_not_end_the_wait() {
    let options = [("missed-runs", "all 8"), ("run-now", "t1")];
    let mut world = World::new("10:30:00", vec![hourly(&options)], vec![]);
    assert_eq!(slots(&mut world), ["07:00:00"]);
    created(&mut world);
    assert_eq!(world.creates.len(), 1);
    assert!(world.creates[0].run_token.is_some());
    created(&mut world);
    world.stored("hello");
    world.expect(&[]);
    world.advance_to("10:30:00.2");
    assert_eq!(slots(&mut world), ["08:00:00"]);
}

#[test]
fn o_4_a_refused_missed_run_keeps_its_place() {
    let mut world = waiting(20);
    world.advance_to("10:40:20");
    assert_eq!(slots(&mut world), ["08:00:00"]);
    reserve_seconds(&world, 20);
    world.refused("quota");
    world.effects();
    world.advance_to("10:40:20.3");
    assert_eq!(slots(&mut world), ["08:00:00"]);
}

#[test]
fn o_4_a_suspension_ends_the_wait_and_the_place() {
    let record = |is_suspended, version| CronJobRecord {
        is_suspended,
        resource_version: ResourceVersion(version),
        ..hourly(&[("missed-runs", "all 3")])
    };
    let mut world = waiting(30 * 60);
    world.advance_to("10:59:55");
    world.apply(record(true, 11));
    world.advance_to("11:10:12");
    reserve_seconds(&world, 20);
    world.apply(record(false, 12));
    world.expect(&[]);
    world.advance_to("11:10:31.9");
    world.expect(&[]);
    world.advance_to("11:10:32");
    assert_eq!(slots(&mut world), ["09:00:00"]);
}

#[test]
fn o_4_a_clock_that_is_set_back_ends_the_wait() {
    let mut world = waiting(20);
    world.jump_to("10:30:00");
    assert_eq!(slots(&mut world), ["08:00:00"]);
}

#[test]
fn o_4_a_run_that_forbid_held_back_starts_when_the_one_before_it_has_ended() {
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        ..hourly(&[("missed-runs", "all 3")])
    };
    let mut world = World::new("10:30:00", vec![record], vec![]);
    assert_eq!(slots(&mut world), ["08:00:00"]);
    created(&mut world);
    reserve_seconds(&world, 20);
    world.advance_to("10:30:05");
    let ended = JobRecord {
        resource_version: ResourceVersion(30),
        ..job("hello", "08:00:00")
    };
    world.apply_job(complete(ended, "10:30:05"));
    assert_eq!(slots(&mut world), ["09:00:00"]);
}

/// A create, and the slot that it is for.
struct Start {
    slot: Timestamp,
    at: Timestamp,
}

/// Answers every create at once until an instant.
fn run_until(world: &mut World, until: &str) -> Vec<Start> {
    let mut starts = Vec::new();
    loop {
        world.effects();
        while let Some(order) = world.creates.first() {
            starts.push(Start {
                slot: order.slot,
                at: world.now,
            });
            created(world);
        }
        let next = world.shard.next_wakeup().filter(|next| *next <= at(until));
        let Some(next) = next else { return starts };
        world.now = world.now.max(next);
        world.shard.handle_timeout(world.now);
    }
}

/// The largest number of these starts within a second.
fn busiest_second<'a>(starts: impl Iterator<Item = &'a Start>) -> usize {
    let mut counts = BTreeMap::new();
    for start in starts {
        *counts.entry(start.at.as_second()).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

#[test]
fn o_4_after_an_outage_more_cron_jobs_than_the_pace_serves_in_a_period_run_at_their_time_again() {
    const N_CRON_JOBS: usize = 600;
    let cron_jobs = (0..N_CRON_JOBS).map(|number| CronJobRecord {
        schedule: schedule_with("* * * * *", &[("missed-runs", "all 5")], 0),
        status: CronJobStatus {
            last_schedule_time: Some(at("09:50:00")),
            ..CronJobStatus::default()
        },
        ..cron_job(&format!("job-{number}"))
    });
    let mut world = World::new("10:00:30", cron_jobs.collect(), vec![]);
    let starts = run_until(&mut world, "10:13:30");
    let is_late = |start: &&Start| start.slot < start.at;
    let last_late = starts.iter().filter(is_late).map(|start| start.at).max();
    // Every two minutes each CronJob has a place. At the fifth one, no missed slot is left.
    assert!(last_late.is_some_and(|last| last < at("10:10:30")), "{last_late:?}");
    // Nothing starts beyond what becomes due, at full minutes, and the pace.
    let (at_minutes, between): (Vec<_>, Vec<_>) = starts.iter().partition(|start| start.at.as_second() % 60 == 0);
    let busiest = busiest_second(between.into_iter());
    assert!(busiest <= 6, "{busiest} in a second");
    let busiest = busiest_second(at_minutes.into_iter());
    assert!(busiest <= N_CRON_JOBS + 6, "{busiest} in a second");
    for minute in 11..14 {
        let slot = after(at("10:00:00"), SignedDuration::from_mins(minute));
        let on_time = starts.iter().filter(|start| start.slot == slot && start.at == slot);
        assert_eq!(on_time.count(), N_CRON_JOBS, "{slot}");
    }
}
