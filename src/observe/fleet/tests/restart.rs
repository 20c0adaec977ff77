//! The history: what a fleet gives to it makes a new fleet equal.

use jiff::SignedDuration;

use super::script::{World, at, facts, run};
use crate::observe::{
    facts::{Creator, Observation, Record, RunResult},
    fleet::{Fleet, FleetConfig, KEPT_SLOTS_MAX},
    view::{Cell, Strip},
};

fn cells(world: &World) -> Strip {
    let day = SignedDuration::from_hours(2);
    world.fleet.strip(world.now - day, world.now, 10, world.now)
}

fn assert_equal_after_restart(name: &str, script: &str) {
    let world = World::of(script);
    let again = world.restarted(50);
    assert_eq!(world.marks(), again.marks(), "marks: {name}");
    assert_eq!(
        world.fleet.tiles(world.now),
        again.fleet.tiles(again.now),
        "tiles: {name}"
    );
    let (before, after) = (cells(&world), cells(&again));
    let row = |strip: &Strip| strip.rows.first().map(|row| row.cells.clone()).unwrap_or_default();
    assert_eq!(row(&before), row(&after), "cells: {name}");
    let (before, after) = (world.detail(), again.detail());
    assert_eq!(before.slots, after.slots, "slots: {name}");
    assert_eq!(before.differences, after.differences, "differences: {name}");
    assert_eq!(before.attention, after.attention, "attention: {name}");
}

#[test]
fn a_fleet_with_the_history_shows_what_the_former_one_showed() {
    for (name, script) in [
        (
            "gone Jobs",
            "10:00:30 watch
             10:01:01 start 10:01
             10:01:20 succeed 10:01
             10:02:01 start 10:02
             10:02:09 fail 10:02
             10:03:30 delete 10:01
             10:03:30 delete 10:02
             10:04:20 start 10:04
             10:04:50 wait",
        ),
        (
            "suspended meanwhile",
            "10:00:30 watch
             10:01:30 suspend
             10:03:30 resume
             10:04:01 start 10:04",
        ),
        (
            "Forbid, then not",
            "10:00:30 watch
             10:00:40 forbid
             10:01:01 start 10:01
             10:03:10 succeed 10:01
             10:03:12 start 10:03
             10:03:20 allow
             10:05:30 wait",
        ),
        (
            "another schedule",
            "10:00:30 watch
             10:01:01 start 10:01
             10:02:10 schedule */2 * * * *
             10:06:20 start 10:06",
        ),
    ] {
        assert_equal_after_restart(name, script);
    }
}

#[test]
fn the_time_between_two_processes_is_not_observed() {
    let mut world = World::of("10:00:30 watch\n10:01:01 start 10:01\n10:01:20 succeed 10:01");
    world.play("10:01:30 wait");
    world.now = at("10:04:30");
    // Whatever ran in the gap is gone, and the cursor tells that something did.
    world.facts.last_schedule_time = Some(at("10:04"));
    world.facts.ttl_seconds_after_finished = Some(0);
    assert_eq!(world.restarted(50).marks(), "s???");
}

#[test]
fn a_job_that_ended_between_two_processes_does_not_run() {
    let mut world = World::of("10:00:30 watch\n10:01:01 start 10:01");
    assert_eq!(world.restarted(50).fleet.tiles(world.now).n_running, 1);
    world.jobs.clear();
    let mut again = world.restarted(50);
    assert_eq!(again.fleet.tiles(world.now).n_running, 0);
    let ends = again.fleet.take_records();
    let is_end = |record: &Record| matches!(record, Record::Run { run, .. } if run.result == RunResult::Gone);
    assert_eq!(ends.iter().filter(|record| is_end(record)).count(), 1);
}

#[test]
fn an_unchanged_job_is_recorded_once() {
    let mut world = World::of("10:00:30 watch\n10:01:01 start 10:01");
    let n_runs = |records: &[Record]| {
        records
            .iter()
            .filter(|record| matches!(record, Record::Run { .. }))
            .count()
    };
    assert_eq!(n_runs(&world.records), 1);
    world.play("10:01:10 unwatch\n10:01:20 watch");
    assert_eq!(n_runs(&world.records), 1);
    let again = world.restarted(50);
    let mut fleet = again.fleet;
    let records = fleet.take_records();
    assert_eq!(n_runs(&records), 0);
    assert!(
        !records.iter().any(|record| matches!(record, Record::Change(_))),
        "{records:?}"
    );
}

#[test]
fn records_tell_of_changes_and_of_the_observation() {
    let mut world = World::of("10:00:30 watch\n10:01:30 suspend\n10:01:40 wait");
    let changes = world.records.iter().filter_map(|record| match record {
        Record::Change(change) => Some((change.at, change.is_suspended)),
        Record::Run { .. } | Record::Freeze(_) | Record::Observation(_) => None,
    });
    let changes: Vec<_> = changes.collect();
    assert_eq!(changes, [(at("10:00:30"), false), (at("10:01:30"), true)]);
    let last = world.records.last();
    let observation = Observation {
        from: at("10:00:30"),
        to: at("10:01:40"),
        namespaces: None,
    };
    assert_eq!(last, Some(&Record::Observation(observation)));
    world.fleet.remove_cron_job(&world.facts.uid, at("10:01:50"));
    let deletion = world.fleet.take_records().into_iter().find_map(|record| match record {
        Record::Change(change) => Some(change.is_deleted),
        Record::Run { .. } | Record::Freeze(_) | Record::Observation(_) => None,
    });
    assert_eq!(deletion, Some(true));
    assert_eq!(
        world
            .fleet
            .rows(&crate::observe::view::Filter::default(), world.now)
            .n_all,
        0
    );
}

#[test]
fn a_long_history_counts_for_a_day_and_keeps_the_last_slots() {
    let mut world = World::new(facts(), 50);
    world.now = at("2026-05-07T12:00:30Z");
    let started = world.now - SignedDuration::from_hours(30);
    let n_minutes = 30 * 60;
    for minute in 0..n_minutes {
        let slot = at("2026-05-06T06:01:00Z") + SignedDuration::from_mins(minute);
        let mut run = run(slot, slot + SignedDuration::from_secs(1));
        (run.result, run.finished) = (RunResult::Failed("x".into()), Some(run.created));
        run.creator = Creator::Cronwheel;
        world.records.push(Record::Run {
            namespace: "shop".into(),
            cron_job_name: "bill".into(),
            run,
        });
    }
    world.records.push(Record::Observation(Observation {
        from: started,
        to: world.now,
        namespaces: None,
    }));
    world.facts.last_schedule_time = Some(at("2026-05-07T12:00:00Z"));
    let again = world.restarted(50);
    let tiles = again.fleet.tiles(again.now);
    // The minute in which the day began counts as a whole.
    assert_eq!((tiles.n_failed, tiles.n_lost), (24 * 60 + 1, 0));
    assert_eq!(again.marks(), "f".repeat(50));
    let overview = again.fleet.overview(again.now);
    assert_eq!(overview.controllers[0].creator, Creator::Cronwheel);
    assert_eq!(overview.controllers[0].n_jobs, 24 * 60 + 1);
    let cell = Cell {
        n_runs: 1,
        n_late: 0,
        n_failed: 1,
        n_lost: 0,
    };
    let strip = again
        .fleet
        .strip(again.now - SignedDuration::from_hours(1), again.now, 1, again.now);
    assert_eq!(strip.rows[0].cells[10], cell);
}

#[test]
fn a_report_keeps_all_slots_of_its_time() {
    let mut world = World::new(facts(), 50);
    world.fleet.keep_since(at("2026-05-02T10:00:00Z"));
    world.play("2026-05-02T10:00:30Z watch\n2026-05-03T10:00:30Z wait");
    world.play("2026-05-03T10:00:40Z start 2026-05-03T10:00:00Z\n2026-05-05T10:00:30Z wait");
    let n_slots = |fleet: &Fleet| {
        let cron_job = fleet.cron_jobs().next().unwrap();
        cron_job.slots().len()
    };
    let n_minutes = 3 * 24 * 60;
    assert_eq!(n_slots(&world.fleet), n_minutes);
    // The same with the history, in one step.
    let mut fleet = Fleet::new(FleetConfig::of_slots(50), world.now);
    fleet.keep_since(at("2026-05-02T10:00:00Z"));
    fleet.load(world.records.clone(), world.now);
    fleet.apply_cron_job(world.facts.clone(), world.now);
    fleet.set_watches_current(true, world.now);
    assert_eq!(n_slots(&fleet), n_minutes);
    assert!(
        !fleet
            .cron_jobs()
            .any(|cron_job| cron_job.is_cut_after(at("2026-05-02T10:01:00Z")))
    );
    // More than there is room for.
    let mut fleet = Fleet::new(FleetConfig::of_slots(50), world.now);
    fleet.keep_since(at("2026-04-01T00:00:00Z"));
    let from = at("2026-04-01T00:00:00Z");
    world.facts.created = from;
    fleet.load(
        [Record::Observation(Observation {
            from,
            to: world.now,
            namespaces: None,
        })],
        world.now,
    );
    fleet.apply_cron_job(world.facts.clone(), world.now);
    fleet.set_watches_current(true, world.now);
    assert_eq!(n_slots(&fleet), KEPT_SLOTS_MAX);
    assert!(fleet.cron_jobs().all(|cron_job| cron_job.is_cut_after(from)));
}
