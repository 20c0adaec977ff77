//! Slots that a suspension or a freeze held back, after its end: the latest one starts then, and can be late and lost.

use jiff::SignedDuration;

use super::script::{World, at, facts, with_options};
use crate::{
    observe::{
        facts::{Creator, RunResult},
        slot::{LossReason, SkipCause, SlotOutcome},
    },
    schedule::ConcurrencyPolicy,
};

/// The marks of a CronJob every minute that was suspended at 10:00:40, by its options and the rest of a script.
fn marks(options: &str, script: &str) -> String {
    let mut facts = facts();
    facts.schedule = with_options("* * * * *", options);
    let mut world = World::new(facts, 50);
    world.play("10:00:30 watch\n10:00:40 suspend");
    world.play(script);
    world.marks()
}

#[test]
fn the_latest_slot_of_a_suspension_is_due_at_its_end() {
    let resumed = "10:02:20 resume\n";
    for (script, expected) in [
        ("10:02:19 wait", "--"),
        ("10:02:20 resume", "-d"),
        ("10:02:20 resume\n10:02:25 wait", "-d"),
        ("10:02:20 resume\n10:02:26 wait", "-l"),
        ("10:02:20 resume\n10:02:50 suspend\n10:02:51 wait", "-l"),
        ("10:02:20 resume\n10:03:00 wait", "-Ld"),
        ("10:02:20 resume\n10:02:21 start 10:02\n10:03:00 wait", "-rd"),
        // Too late to start it before the next one.
        ("10:02:56 resume\n10:03:00 wait", "--d"),
        // The deadline passed meanwhile, or passes afterwards.
        ("10:01:50 deadline 10\n10:02:20 resume\n10:02:50 wait", "--"),
        ("10:01:50 deadline 30\n10:02:20 resume\n10:02:33 wait", "-L"),
        // The schedule changed meanwhile.
        ("10:02:10 schedule */5 * * * *\n10:02:20 resume\n10:02:40 wait", "--"),
        // It was resumed for a moment.
        ("10:02:20 resume\n10:02:22 suspend\n10:02:40 wait", "--"),
        (
            "10:02:20 resume\n10:02:22 suspend\n10:02:40 resume\n10:02:50 wait",
            "-l",
        ),
    ] {
        assert_eq!(marks("", script), expected, "{script}");
    }
    for (options, script, expected) in [
        ("on-resume=skip", "10:02:50 wait", "--"),
        ("missed-runs=skip", "10:02:50 wait", "--"),
        ("missed-runs=skip; on-resume=latest", "10:02:50 wait", "-l"),
        ("on-resume=all 2", "10:02:50 wait", "ll"),
        (
            "on-resume=all 2",
            "10:02:21 start 10:01\n10:02:21 start 10:02\n10:02:50 wait",
            "rr",
        ),
    ] {
        let script = [resumed, script].concat();
        assert_eq!(marks(options, &script), expected, "{options}: {script}");
    }
}

#[test]
fn a_slot_that_nobody_starts_after_a_suspension_needs_attention() {
    let mut daily = facts();
    daily.schedule = with_options("0 2 * * *", "");
    daily.last_schedule_time = Some(at("2026-05-05T02:00:00Z"));
    let mut world = World::new(daily, 50);
    world.play("10:00:30 watch\n11:00 suspend\n2026-05-06T02:05:00Z resume\n2026-05-06T02:05:20Z wait");
    let slot = world.slot("2026-05-06T02:00:00Z");
    assert_eq!(
        (slot.outcome, slot.held_until),
        (SlotOutcome::Open, Some(at("2026-05-06T02:05:00Z")))
    );
    assert_eq!(world.fleet.tiles(world.now).n_late_now, 1);
    world.play("2026-05-07T02:00:10Z wait");
    let lost = SlotOutcome::Lost(LossReason::NotStarted);
    assert_eq!(world.slot("2026-05-06T02:00:00Z").outcome, lost);
    assert_eq!(world.detail().attention[0].trouble.as_str(), "lost");
}

#[test]
fn a_job_that_held_the_slot_at_the_end_of_a_suspension_counts() {
    let script =
        "10:00:30 watch\n10:00:40 forbid\n10:01:01 start 10:01\n10:01:30 suspend\n10:03:20 resume\n10:03:30 wait";
    let mut world = World::of(script);
    assert_eq!(world.marks(), "r--");
    world.play("10:03:40 succeed 10:01\n10:03:50 wait");
    assert_eq!(world.marks(), "s-l");
    assert_eq!(world.slot("10:03").held_until, Some(at("10:03:40")));
}

#[test]
fn an_end_of_a_suspension_that_nobody_saw_claims_nothing() {
    let mut world = World::of("10:00:30 watch\n10:00:40 suspend\n10:01:30 unwatch");
    // Resumed at 10:02:20, and the Job of 10:02 came and went.
    world.facts.is_suspended = false;
    world.facts.spec_changed = Some(at("10:02:20"));
    world.facts.last_schedule_time = Some(at("10:02"));
    world.play("10:02:40 watch\n10:02:50 wait");
    assert_eq!(world.marks(), "-?");
}

#[test]
fn the_latest_slot_of_a_freeze_is_due_at_its_end() {
    let frozen = |script: &str| {
        let mut world = World::new(facts(), 50);
        world.play("10:00:30 namespaces\n10:00:30 watch\n10:00:30 cronwheel");
        world.play("10:00:40 namespace freeze-until=2026-05-05T10:02:20Z");
        world.play(script);
        world
    };
    for (script, expected) in [
        ("10:02:19 wait", "--"),
        ("10:02:20 wait", "-d"),
        ("10:02:26 wait", "-l"),
        ("10:03:00 wait", "-Ld"),
        ("10:02:21 start 10:02", "-r"),
        ("10:01:40 namespace \n10:01:50 wait", "l"),
        ("10:02:10 suspend\n10:02:40 wait", "--"),
        ("10:02:10 suspend\n10:02:40 resume\n10:02:46 wait", "-l"),
    ] {
        assert_eq!(frozen(script).marks(), expected, "{script}");
    }
    // The built-in controller ignores it.
    let mut world = World::new(facts(), 50);
    world.play("10:00:30 namespaces\n10:00:30 watch\n10:00:40 namespace freeze-until=2026-05-05T10:02:20Z");
    world.play("10:01:01 start 10:01\n10:02:10 wait");
    assert_eq!(world.marks(), "rl");
}

#[test]
fn a_change_before_the_first_list_is_no_lateness_of_the_controller() {
    // Resumed, or given another schedule, when its object says.
    for (changed, lateness_seconds) in [
        (None, 2_244),
        (Some("07:37:24"), 0),
        (Some("07:37:25"), 0),
        (Some("07:30:00"), 444),
        (Some("06:30:00"), 2_244),
        (Some("07:40:00"), 2_244),
    ] {
        let mut daily = facts();
        daily.schedule = with_options("0 7 * * *", "");
        daily.last_schedule_time = Some(at("07:00"));
        daily.spec_changed = changed.map(at);
        let mut world = World::new(daily, 50);
        world.now = at("07:37:24");
        world.start(at("07:00"));
        world.end(at("07:00"), RunResult::Succeeded);
        world.play("08:00 watch");
        let lateness = world.slot("07:00").lateness();
        assert_eq!(
            lateness,
            Some(SignedDuration::from_secs(lateness_seconds)),
            "{changed:?}"
        );
        let is_late = lateness_seconds > 5;
        assert_eq!(world.detail().attention.len(), usize::from(is_late), "{changed:?}");
        let controllers = world.fleet.overview(world.now).controllers;
        assert_eq!(controllers[0].creator, Creator::BuiltIn);
        assert_eq!(controllers[0].lateness_p50, lateness, "{changed:?}");
    }
}

#[test]
fn a_change_in_a_gap_is_no_lateness_of_the_controller() {
    // Suspended and resumed while nobody watched.
    let mut world = World::of("10:00:30 watch\n10:00:40 unwatch");
    world.facts.spec_changed = Some(at("10:01:40"));
    world.play("10:01:41 start 10:01\n10:01:50 watch");
    assert_eq!(world.slot("10:01").lateness(), Some(SignedDuration::from_secs(1)));
    // The watches saw that nothing but the template changed.
    let mut world = World::of("10:00:30 watch");
    world.facts.spec_changed = Some(at("10:01:40"));
    world.play("10:01:40 resume\n10:01:41 start 10:01");
    assert_eq!(world.slot("10:01").lateness(), Some(SignedDuration::from_secs(41)));
}

#[test]
fn a_slot_that_a_suspension_held_back_is_skipped_by_its_option_alone() {
    let mut world = World::new(facts(), 50);
    world.facts.concurrency_policy = ConcurrencyPolicy::Replace;
    world.play("10:00:30 watch\n10:00:40 suspend\n10:03:20 resume\n10:03:30 wait");
    let suspended = SlotOutcome::Skipped(SkipCause::Suspended);
    assert_eq!(
        [world.slot("10:01").outcome, world.slot("10:02").outcome],
        [suspended.clone(), suspended]
    );
    assert_eq!(world.slot("10:03").outcome, SlotOutcome::Open);
}
