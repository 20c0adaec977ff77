//! Options change when slots start, where cronwheel runs the CronJob.

use jiff::SignedDuration;

use super::script::{World, at, facts, with_options};
use crate::observe::{
    slot::{Doubt, LossReason, Shadow, SkipCause, SlotOutcome},
    view::{Filter, Next, NextSlot, StateFilter},
};

/// A CronJob that cronwheel runs with options, every minute or by another schedule.
fn world(schedule: &str, options: &str, script: &str) -> World {
    let mut facts = facts();
    facts.schedule = with_options(schedule, options);
    let mut world = World::new(facts, 50);
    world.play("10:00:30 watch\n10:00:30 cronwheel");
    world.play(script);
    world
}

fn spread(script: &str) -> World {
    world("* * * * *", "spread=31s", script)
}

#[test]
fn a_spread_slot_is_due_late_and_lost_by_its_start() {
    for (until, expected) in [
        ("10:00:59", "?"),
        ("10:01:00", "d"),
        ("10:01:35", "d"),
        ("10:01:36", "l"),
        ("10:02:29", "ld"),
        ("10:02:30", "Ld"),
    ] {
        assert_eq!(spread(&format!("{until} wait")).marks(), expected, "{until}");
    }
}

#[test]
fn a_spread_run_is_on_time_at_its_offset() {
    let world = spread("10:01:31 start 10:01");
    let slot = world.slot("10:01");
    assert_eq!(slot.lateness(), Some(SignedDuration::from_secs(1)));
    assert_eq!(
        (slot.held_until, slot.with_cronwheel),
        (Some(at("10:01:30")), Some(Shadow::Starts))
    );
    assert_eq!(
        (world.marks(), world.fleet.tiles(world.now).n_late),
        ("r".to_owned(), 0)
    );
    assert_eq!(world.detail().differences, [""; 0]);

    let world = spread("10:01:36 start 10:01");
    assert_eq!(world.slot("10:01").lateness(), Some(SignedDuration::from_secs(6)));
    assert_eq!(
        (world.marks(), world.fleet.tiles(world.now).n_late),
        ("l".to_owned(), 1)
    );
    // Another window, or another clock: earlier than computed is not late.
    assert_eq!(spread("10:01:20 start 10:01").marks(), "r");
}

#[test]
fn a_deadline_counts_from_the_start() {
    for (until, expected) in [("10:01:51", "l"), ("10:01:52", "L")] {
        let world = spread(&format!("10:00:40 deadline 20\n{until} wait"));
        assert_eq!(world.marks(), expected, "{until}");
    }
}

#[test]
fn the_next_run_is_that_of_a_slot_that_waits() {
    let world = spread("10:01:10 wait");
    let next = |slot, start| NextSlot {
        at: at(slot),
        start: at(start),
    };
    let detail = world.detail();
    assert_eq!(
        detail.next_slots[..2],
        [next("10:01", "10:01:30"), next("10:02", "10:02:30")]
    );
    assert_eq!(detail.row.next, Next::At(at("10:01:30")));
    assert_eq!(spread("10:01:40 wait").detail().row.next, Next::At(at("10:02:30")));
    let hourly = self::world("0 * * * *", "spread=31m", "11:20 wait");
    assert_eq!(hourly.detail().row.next, Next::At(at("11:30:59")));
}

#[test]
fn the_built_in_controller_ignores_options() {
    let mut facts = facts();
    facts.schedule = with_options("* * * * *", "spread=31s");
    let mut world = World::new(facts, 50);
    world.play("10:00:30 watch\n10:01:01 start 10:01\n10:02:06 wait");
    assert_eq!(world.marks(), "rl");
    let warning = "the built-in controller creates the Jobs of this CronJob and ignores its options";
    assert_eq!(world.detail().option_warnings, [warning]);
    // From the first Job of cronwheel on, they count.
    world.play("10:02:10 cronwheel\n10:03:31 start 10:03\n10:04:20 wait");
    assert_eq!(world.marks(), "rLrd");
    assert_eq!(world.detail().option_warnings, [""; 0]);
}

#[test]
fn options_that_cannot_be_read_are_warnings() {
    let world = world("* * * * *", "spread=soon; pass-scheduled-time=true", "10:00:40 wait");
    let detail = world.detail();
    assert_eq!(
        detail.options,
        ["pass-scheduled-time: the Pods get the time of the slot as an annotation"]
    );
    let [warning] = detail.option_warnings.as_slice() else {
        panic!("{:?}", detail.option_warnings)
    };
    assert!(
        warning.starts_with("annotation cronwheel.dev/spread is \"soon\": "),
        "{warning}"
    );
}

#[test]
fn skipped_missed_slots_are_not_lost() {
    let hourly = |until: &str| world("0 * * * *", "missed-runs=skip", &format!("{until} wait"));
    for (until, expected) in [("11:00:06", "l"), ("11:01:01", "l"), ("11:01:02", "-")] {
        assert_eq!(hourly(until).marks(), expected, "{until}");
    }
    let world = hourly("11:01:02");
    assert_eq!(world.slot("11:00").outcome, SlotOutcome::Skipped(SkipCause::Missed));
    assert_eq!(world.fleet.tiles(world.now).n_lost, 0);
}

#[test]
fn a_slot_that_waited_under_forbid_is_not_missed() {
    let script = "10:00:40 forbid\n11:00:01 start 11:00\n12:30 succeed 11:00\n";
    let hourly = |until: &str| world("0 * * * *", "missed-runs=skip", &format!("{script}{until} wait"));
    for (until, expected) in [("12:30:05", "sd"), ("12:31:01", "sl"), ("12:31:02", "s-")] {
        assert_eq!(hourly(until).marks(), expected, "{until}");
    }
}

#[test]
fn a_suspension_with_skip_has_its_own_reason() {
    let script = "10:00:40 suspend\n10:02:30 resume\n10:02:40 wait";
    let world = world("* * * * *", "on-resume=skip", script);
    for slot in ["10:01", "10:02"] {
        let outcome = world.slot(slot).outcome;
        assert_eq!(outcome, SlotOutcome::Skipped(SkipCause::Resumed), "{slot}");
    }
}

#[test]
fn under_all_older_slots_stay_open_until_they_are_among_the_last_no_more() {
    let mut world = world("* * * * *", "missed-runs=all 3", "10:03:10 wait");
    assert_eq!(
        (world.marks(), world.fleet.tiles(world.now).n_lost),
        ("lll".to_owned(), 0)
    );
    world.play("10:03:20 start 10:01\n10:03:30 succeed 10:01");
    assert_eq!(world.marks(), "lll");
    world.play("10:05 wait");
    assert_eq!(
        (world.marks(), world.fleet.tiles(world.now).n_lost),
        ("lLlld".to_owned(), 1)
    );
    // The oldest starts first, so none before this one will.
    world.play("10:05:10 start 10:04");
    assert_eq!(world.slot("10:03").outcome, SlotOutcome::Lost(LossReason::Superseded));
    assert_eq!(world.marks(), "lLLll");
}

#[test]
fn a_change_of_options_does_not_change_what_was() {
    let mut world = world("* * * * *", "", "10:01:01 start 10:01\n10:01:10 options spread=31s");
    assert_eq!(world.slot("10:01").lateness(), Some(SignedDuration::from_secs(1)));
    world.play("10:02:31 start 10:02\n10:02:40 schedule * * * * *");
    assert_eq!(world.slot("10:02").lateness(), Some(SignedDuration::from_secs(1)));
    assert_eq!(world.marks(), "rr");
}

#[test]
fn a_change_of_the_schedule_does_not_end_a_slot_that_waits_for_its_start() {
    let script = "10:01:10 schedule 30 * * * *\n10:01:40 wait";
    assert_eq!(spread(script).marks(), "l");
    assert_eq!(world("* * * * *", "", script).marks(), "-");
}

#[test]
fn the_list_is_filtered_by_starts() {
    let world = world("0 * * * *", "spread=31m", "10:20 wait");
    let n_matching = |filter: Filter| world.fleet.rows(&Filter { limit: 9, ..filter }, world.now).n_matching;
    let between = |from, to| Filter {
        slots_between: Some((at(from), at(to))),
        ..Filter::default()
    };
    assert_eq!(n_matching(between("11:30", "11:31")), 1);
    assert_eq!(n_matching(between("11:00", "11:01")), 1);
    assert_eq!(n_matching(between("11:31", "11:59")), 0);
    let due = || Filter {
        state: Some(StateFilter::Due),
        ..Filter::default()
    };
    assert_eq!(n_matching(due()), 1);
    let starts = |minute| {
        world
            .fleet
            .forecast()
            .n_starts_between(at(minute), at(minute) + SignedDuration::from_mins(1))
    };
    assert_eq!((starts("11:00"), starts("11:30")), (0, 1));
}

#[test]
fn a_restart_shows_the_same() {
    let mut world = spread("10:01:31 start 10:01\n10:02:40 wait");
    world.records.append(&mut world.fleet.take_records());
    let again = world.restarted(50);
    assert_eq!((again.marks(), world.marks()), ("rl".to_owned(), "rl".to_owned()));
}

#[test]
fn a_slot_that_a_calendar_may_exclude_is_not_lost() {
    let hourly = |options| world("0 * * * *", options, "12:00:01 wait");
    assert_eq!(
        hourly("").slot("11:00").outcome,
        SlotOutcome::Lost(LossReason::NotStarted)
    );
    let world = hourly("not-on=holidays");
    let doubt = SlotOutcome::Undecided(Doubt::Calendar("holidays".into()));
    assert_eq!(world.slot("11:00").outcome, doubt);
    let tiles = world.fleet.tiles(world.now);
    assert_eq!((tiles.n_lost, tiles.n_late_now), (0, 0));
}
