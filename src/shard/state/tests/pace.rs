//! Missed runs under `all` start at a pace (O-4), and runs at their time do not wait.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::world::{World, at, complete, cron_job, hourly, job, schedule_with};
use crate::{
    schedule::after,
    shard::{ConcurrencyPolicy, CronJobRecord, CronJobStatus, InstantOutcome, JobRecord, ResourceVersion},
};

/// Missed runs of other CronJobs reserve the next twenty seconds.
fn reserve_twenty_seconds(world: &World) {
    for _ in 0..100 {
        world.shard.catch_up_pace.reserve(world.now);
    }
}

/// A CronJob that has missed 07:00 to 10:00 and starts the last three. Its first run waits from 10:59:50 until 11:00:10.
fn waiting() -> World {
    let mut world = World::on_standby("10:59:50", vec![hourly(&[("missed-runs", "all 3")])], vec![]);
    reserve_twenty_seconds(&world);
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
fn o_4_a_missed_run_that_waits_does_not_start_when_the_next_slot_is_due() {
    let mut world = World::new("10:59:50", vec![hourly(&[("missed-runs", "all 3")])], vec![]);
    assert_eq!(slots(&mut world), ["08:00:00"]);
    reserve_twenty_seconds(&world);
    world.created();
    assert_eq!(world.effects().len(), 2, "an Event and the status");
    world.advance_to("11:00:00");
    world.expect(&[]);
    world.advance_to("11:00:10.1");
    world.expect(&[]);
    world.advance_to("11:00:10.2");
    assert_eq!(slots(&mut world), ["09:00:00"]);
    created(&mut world);
    world.advance_to("11:00:10.4");
    assert_eq!(slots(&mut world), ["10:00:00"]);
    // 11:00 was not missed: it came while the CronJob waited.
    created(&mut world);
    assert_eq!(slots(&mut world), ["11:00:00"]);
    created(&mut world);
    world.advance_to("12:00:00");
    assert_eq!(slots(&mut world), ["12:00:00"]);
    assert!(world.creates[0].is_on_time);
}

#[test]
fn o_4_a_cron_job_keeps_its_place_when_a_later_slot_takes_the_turn() {
    let mut world = waiting();
    world.advance_to("11:00:00");
    world.expect(&[]);
    assert_eq!(
        world.shard.outcome_counts().outcome(InstantOutcome::Superseded),
        2,
        "07:00 and 08:00"
    );
    reserve_twenty_seconds(&world);
    world.advance_to("11:00:09.9");
    world.expect(&[]);
    world.advance_to("11:00:10");
    assert_eq!(slots(&mut world), ["09:00:00"]);
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
    let mut world = waiting();
    world.advance_to("11:00:10");
    assert_eq!(slots(&mut world), ["09:00:00"]);
    reserve_twenty_seconds(&world);
    world.refused("quota");
    world.effects();
    world.advance_to("11:00:10.3");
    assert_eq!(slots(&mut world), ["09:00:00"]);
}

#[test]
fn o_4_a_suspension_ends_the_wait_and_the_place() {
    let record = |is_suspended, version| CronJobRecord {
        is_suspended,
        resource_version: ResourceVersion(version),
        ..hourly(&[("missed-runs", "all 3")])
    };
    let mut world = waiting();
    world.advance_to("10:59:55");
    world.apply(record(true, 11));
    world.advance_to("11:00:12");
    reserve_twenty_seconds(&world);
    world.apply(record(false, 12));
    world.expect(&[]);
    world.advance_to("11:00:31.9");
    world.expect(&[]);
    world.advance_to("11:00:32");
    assert_eq!(slots(&mut world), ["09:00:00"]);
}

#[test]
fn o_4_a_clock_that_is_set_back_ends_the_wait() {
    let mut world = waiting();
    world.jump_to("10:50:00");
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
    reserve_twenty_seconds(&world);
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
    let starts = run_until(&mut world, "10:12:30");
    let is_late = |start: &&Start| start.slot < start.at;
    let last_late = starts.iter().filter(is_late).map(|start| start.at).max();
    // Every two minutes each CronJob has a turn. At the fourth one, no missed slot is left that starts.
    assert!(last_late.is_some_and(|last| last < at("10:08:30")), "{last_late:?}");
    // Each run that has its turn is followed by at most five that came meanwhile.
    let busiest = busiest_second(starts.iter().filter(is_late));
    assert!(busiest <= 5 * 6, "{busiest} in a second");
    let is_missed = |start: &&Start| start.slot < at("10:00:30");
    let busiest = busiest_second(starts.iter().filter(is_missed));
    assert!(busiest <= 6, "{busiest} in a second");
    for minute in 9..12 {
        let slot = after(at("10:00:00"), SignedDuration::from_mins(minute));
        let on_time = starts.iter().filter(|start| start.slot == slot && start.at == slot);
        assert_eq!(on_time.count(), N_CRON_JOBS, "{slot}");
    }
}
