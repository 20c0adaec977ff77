//! Slots without a known Job that must not read as lost: each of them can make a reader start a Job twice.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::script::{World, at, facts, run, schedule};
use crate::{
    observe::{
        facts::{Observation, Record, Run, RunResult},
        slot::SlotOutcome,
    },
    schedule::{ConcurrencyPolicy, CronJobSchedule, Zone},
    shard::Uid,
};

fn succeeded(slot: Timestamp) -> Run {
    let mut job = run(slot, slot + SignedDuration::from_secs(1));
    (job.result, job.finished) = (RunResult::Succeeded, Some(job.created));
    job
}

#[test]
fn a_slow_list_after_a_restart_invents_no_lost_runs() {
    let mut world = World::new(facts(), 50);
    world.now = at("2026-05-06T12:00:30Z");
    let first = at("2026-05-05T12:01:00Z");
    // A minutely CronJob that lost 30 runs in a day.
    for minute in (0..24 * 60).filter(|minute| minute % 48 != 7) {
        world.records.push(Record::Run {
            namespace: "shop".into(),
            cron_job_name: "bill".into(),
            run: succeeded(first + SignedDuration::from_mins(minute)),
        });
    }
    world.records.push(Record::Observation(Observation {
        from: first,
        to: world.now,
        namespaces: None,
    }));
    world.facts.last_schedule_time = Some(at("2026-05-06T12:00:00Z"));
    let (at_once, slowly) = (world.restarted(50), world.restarted_slowly(50));
    assert_eq!(at_once.fleet.tiles(at_once.now).n_lost, 30);
    assert_eq!(slowly.fleet.tiles(slowly.now), at_once.fleet.tiles(at_once.now));
    assert_eq!(slowly.marks(), at_once.marks());
}

#[test]
fn jobs_that_are_listed_late_count_too() {
    let mut world = World::new(facts(), 50);
    world.facts.successful_jobs_history_limit = 200;
    for minute in (0..90).filter(|minute| *minute != 20 && *minute != 85) {
        let slot = at("08:31") + SignedDuration::from_mins(minute);
        world.jobs.insert(slot, succeeded(slot));
    }
    let (at_once, slowly) = (world.restarted(50), world.restarted_slowly(50));
    assert_eq!(at_once.fleet.tiles(at_once.now).n_lost, 2);
    assert_eq!(slowly.fleet.tiles(slowly.now), at_once.fleet.tiles(at_once.now));
    assert_eq!(slowly.marks(), at_once.marks());
    let mut fleet = slowly.fleet;
    assert_eq!(fleet.take_records().len(), 88 + 2);
}

const HELD: &str = "10:00:30 watch
    10:00:40 forbid
    10:01:01 start 10:01
    10:05:30 wait";

#[test]
fn slots_that_a_job_held_stay_held_after_its_unseen_end() {
    let mut world = World::of(HELD);
    world.now = at("10:09:30");
    world.jobs.clear();
    // The Job ended between 10:05:30 and 10:09:30. The slot 10:09 can start now.
    let mut again = world.restarted(50);
    assert_eq!(again.marks(), "?---????d");
    let SlotOutcome::Started { finished, result, .. } = again.slot("10:01").outcome else {
        panic!("a Job: {:?}", again.slot("10:01"))
    };
    assert_eq!((finished, result), (None, RunResult::Gone));
    again.records.append(&mut again.fleet.take_records());
    assert_eq!(again.restarted(50).marks(), "?---????d", "after another restart");
    again.play("10:09:31 start 10:09\n10:09:35 wait");
    assert_eq!(again.marks(), "?---????r");
    again.play("10:10:30 wait\n10:11:00 wait");
    assert_eq!(again.marks(), "?---????r--");
}

#[test]
fn a_job_that_left_while_the_process_was_stopped_explains_nothing() {
    let mut world = World::of(HELD);
    world.play("10:05:30 unwatch");
    world.jobs.clear();
    world.play("10:07:40 watch\n10:07:46 wait");
    // 10:06 was held for some time, or lost. Nobody knows when the Job ended.
    assert_eq!(world.marks(), "?---??l");
    assert_eq!(world.slot("10:01").run_time(), None);
    assert_eq!(world.slot("10:06").outcome, SlotOutcome::NotObserved);
    world.play("10:08:00 wait");
    assert_eq!(world.marks(), "?---??Ld");
}

#[test]
fn a_long_job_holds_slots_beyond_those_that_are_kept() {
    let mut world = World::of(HELD);
    world.play("12:30:30 wait");
    world.now = at("12:35:30");
    let again = world.restarted(50);
    assert_eq!(again.fleet.tiles(again.now).n_lost, 0, "the Job runs");
    world.jobs.clear();
    let mut again = world.restarted(50);
    for name in ["the Job is gone", "after another restart"] {
        assert_eq!(again.fleet.tiles(again.now).n_lost, 0, "{name}");
        assert_eq!(again.marks(), format!("{}?????d", "-".repeat(44)), "{name}");
        again.records.append(&mut again.fleet.take_records());
        again = again.restarted(50);
    }
}

#[test]
fn replaced_jobs_leave_no_proof() {
    let mut world = World::new(facts(), 50);
    world.facts.concurrency_policy = ConcurrencyPolicy::Replace;
    world.jobs.insert(at("09:50"), succeeded(at("09:50")));
    world.jobs.insert(at("10:00"), run(at("10:00"), at("10:00:01")));
    world.play("10:00:30 watch");
    assert_eq!(world.marks(), "s?????????r");
}

#[test]
fn jobs_started_by_hand_count_for_the_history_limits() {
    let mut world = World::new(facts(), 50);
    world.facts.schedule = schedule("0 * * * *");
    let slot = at("2026-05-04T14:00:00Z");
    let mut failed = succeeded(slot);
    failed.result = RunResult::Failed("BackoffLimitExceeded".into());
    world.jobs.insert(slot, failed);
    for created in ["10:00:10", "10:00:12", "10:00:14"] {
        let mut by_hand = succeeded(at(created));
        (by_hand.slot, by_hand.job_uid) = (None, Uid::new(created));
        world.jobs.insert(at(created), by_hand);
    }
    world.play("10:00:30 watch");
    assert_eq!(world.marks(), format!("f{}", "?".repeat(20)));
}

#[test]
fn jobs_of_a_deleted_cron_job_do_not_pile_up() {
    let mut world = World::of("10:00:30 watch\n10:01:01 start 10:01");
    world.fleet.remove_cron_job(&world.facts.uid, world.now);
    // Each Job that the garbage collector deletes is changed once more.
    for minute in 0..60 {
        let slot = at("09:00") + SignedDuration::from_mins(minute);
        world.fleet.apply_run(run(slot, slot), world.now);
        if minute % 2 == 0 {
            world.fleet.remove_run(&run(slot, slot).job_uid, world.now);
        }
    }
    assert_eq!(world.fleet.early_runs.len(), 30);
    // The deletion of the others came while nothing watched.
    world.fleet.set_watches_current(false, at("11:00"));
    world.fleet.retain_runs(&BTreeSet::new(), Some("shop"), at("11:01"));
    world.fleet.set_watches_current(true, at("11:01"));
    assert_eq!(world.fleet.early_runs.len(), 0);
}

#[test]
fn schedules_of_the_history_use_the_default_zone() {
    let default_zone = Zone::load("Europe/Berlin").unwrap();
    let in_berlin = |text: &str| CronJobSchedule::new(text, None, &default_zone);
    let mut world = World::new(facts(), 50);
    world.facts.schedule = in_berlin("30 10 * * *");
    world.facts.last_schedule_time = None;
    world.play(
        "2026-05-01T12:00:00Z watch
         2026-05-02T12:00:00Z wait",
    );
    world.facts.schedule = in_berlin("30 11 * * *");
    world.play("2026-05-02T12:00:10Z resume\n2026-05-03T12:00:00Z wait");
    world.facts.schedule = in_berlin("30 10 * * *");
    world.play("2026-05-03T12:00:10Z resume\n2026-05-04T12:00:00Z wait");
    let slots = |world: &World| world.detail().slots.iter().map(|slot| slot.at).collect::<Vec<_>>();
    let expected = [
        "2026-05-01T08:30:00Z",
        "2026-05-02T08:30:00Z",
        "2026-05-03T09:30:00Z",
        "2026-05-04T08:30:00Z",
    ]
    .map(at);
    assert_eq!(slots(&world), expected);
    assert_eq!(slots(&world.restarted(50)), expected);
}

#[test]
fn no_record_is_dropped() {
    let mut world = World::of("10:00:30 watch\n10:00:40 unwatch");
    let n_changes = 200_000;
    for second in 0..=n_changes {
        let mut by_hand = run(at("10:00"), at("10:00"));
        (by_hand.slot, by_hand.job_uid) = (None, Uid::new("by-hand"));
        by_hand.finished = Some(at("10:00") + SignedDuration::from_secs(second));
        world.fleet.apply_run(by_hand, world.now);
    }
    let n_records = world.fleet.take_records().len();
    assert_eq!(n_records, usize::try_from(n_changes).unwrap() + 1);
}
