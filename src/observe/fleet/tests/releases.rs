//! Slots that a suspension or a freeze held back, after its end: the latest one starts then, and can be late and lost.

use jiff::SignedDuration;

use super::script::{World, at, facts, run, with_options};
use crate::{
    kube_api::objects::resumption::Resumption,
    observe::{
        facts::{Creator, Run, RunResult},
        slot::{Doubt, LossReason, SkipCause, SlotOutcome},
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

/// A CronJob every minute of cronwheel, with its run of 10:00, that was changed at 10:05:08, before anybody watched.
fn changed_unseen(options: &str, resumption: Option<Resumption>) -> World {
    let mut facts = facts();
    facts.schedule = with_options("* * * * *", options);
    (facts.spec_changed, facts.resumption) = (Some(at("10:05:08")), resumption);
    let mut world = World::new(facts, 50);
    let job = Run {
        creator: Creator::Cronwheel,
        result: RunResult::Succeeded,
        finished: Some(at("10:00:09")),
        ..run(at("10:00"), at("10:00:01"))
    };
    world.jobs.insert(at("10:00"), job);
    world.play("10:05:20 cronwheel\n10:05:20 watch");
    world
}

#[test]
fn slots_before_a_resumption_that_nobody_saw_are_skipped_by_their_option() {
    let changed = at("10:05:08");
    let (resumed, perhaps) = (Resumption::At(changed), Resumption::Perhaps(changed));
    let skipped = SlotOutcome::Skipped(SkipCause::Resumed);
    let doubt = SlotOutcome::Undecided(Doubt::Suspension(changed));
    for (options, resumption, outcome) in [
        ("on-resume=skip", Some(resumed), skipped.clone()),
        ("missed-runs=skip", Some(resumed), skipped.clone()),
        ("missed-runs=all 3; on-resume=skip", Some(resumed), skipped.clone()),
        ("on-resume=skip", Some(perhaps), doubt),
        ("on-resume=skip", None, SlotOutcome::NotObserved),
        (
            "missed-runs=skip; on-resume=latest",
            Some(resumed),
            SlotOutcome::NotObserved,
        ),
        ("", Some(resumed), SlotOutcome::NotObserved),
    ] {
        let mut world = changed_unseen(options, resumption);
        for slot in ["10:01", "10:04", "10:05"] {
            assert_eq!(world.slot(slot).outcome, outcome, "{options} {resumption:?} {slot}");
        }
        // Later runs, for which history removes the Job of 10:00, and another suspension.
        world.play("10:06:01 start 10:06\n10:06:09 succeed 10:06\n10:06:10 delete 10:00");
        world.facts.resumption = None;
        world.play("10:06:20 suspend\n10:06:30 wait");
        // What was changed then is no longer known.
        let is_forgotten = matches!(outcome, SlotOutcome::Undecided(_));
        let outcome = if is_forgotten {
            SlotOutcome::NotObserved
        } else {
            outcome
        };
        assert_eq!(world.slot("10:04").outcome, outcome, "{options} {resumption:?}");
        assert_eq!(world.fleet.tiles(world.now).n_lost, 0, "{options} {resumption:?}");
    }
}

#[test]
fn a_slot_before_a_run_of_the_same_time_is_lost_whatever_was_resumed_later() {
    let mut world = changed_unseen("on-resume=skip", Some(Resumption::At(at("10:05:08"))));
    world.play("10:05:30 unwatch");
    let job = Run {
        creator: Creator::Cronwheel,
        ..run(at("10:03"), at("10:03:01"))
    };
    world.jobs.insert(at("10:03"), job);
    let again = world.restarted(50);
    let outcomes = ["10:02", "10:04"].map(|slot| again.slot(slot).outcome);
    assert_eq!(
        outcomes,
        [SlotOutcome::NotObserved, SlotOutcome::Skipped(SkipCause::Resumed)]
    );
}

#[test]
fn the_end_of_a_freeze_that_nobody_saw_is_no_loss_and_no_lateness() {
    // Frozen for some time, and thawed at 10:05:08.
    let frozen = |options: &str| {
        let mut facts = facts();
        facts.schedule = with_options("* * * * *", options);
        let mut world = World::new(facts, 50);
        (world.annotations, world.annotated) = ("freeze-until=2026-05-05T10:05:08Z".to_owned(), at("10:05:08"));
        let job = |slot: &str, created: &str| Run {
            creator: Creator::Cronwheel,
            result: RunResult::Succeeded,
            finished: Some(at(created)),
            ..run(at(slot), at(created))
        };
        world.jobs.insert(at("10:00"), job("10:00", "10:00:01"));
        if options.is_empty() {
            world.jobs.insert(at("10:05"), job("10:05", "10:05:09"));
        }
        world.facts.last_schedule_time = world.jobs.keys().next_back().copied();
        world.play("10:05:20 namespaces\n10:05:20 watch\n10:05:40 wait");
        world
    };
    let until = at("10:05:08");
    let skip = frozen("on-resume=skip");
    for slot in ["10:01", "10:05"] {
        let outcome = skip.slot(slot).outcome;
        assert_eq!(outcome, SlotOutcome::Undecided(Doubt::Freeze(until)), "{slot}");
    }
    let latest = frozen("");
    assert_eq!(latest.slot("10:05").lateness(), Some(SignedDuration::from_secs(1)));
    assert_eq!(
        latest.slot("10:04").outcome,
        SlotOutcome::Undecided(Doubt::Freeze(until))
    );
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
