//! What namespaces say: freezes, defaults of options, and calendars.

use jiff::SignedDuration;

use super::script::{World, at, facts, run, with_options};
use crate::{
    observe::{
        facts::{Creator, Run},
        fleet::{Fleet, FleetConfig},
        slot::{Doubt, Ended, LossReason, Shadow, SkipCause, SlotOutcome},
        view::{Filter, Next, StateFilter},
    },
    schedule::thaw::Thaw,
    shard::Uid,
};

/// A CronJob that cronwheel runs, every minute or by another schedule, in a namespace that is known.
fn world(schedule: &str, options: &str, script: &str) -> World {
    let mut facts = facts();
    facts.schedule = with_options(schedule, options);
    let mut world = World::new(facts, 50);
    world.play("10:00:30 namespaces\n10:00:30 watch\n10:00:30 cronwheel");
    world.play(script);
    world
}

fn frozen(until: &str, reason: &str) -> SlotOutcome {
    SlotOutcome::Skipped(SkipCause::Frozen {
        until: at(until),
        reason: reason.into(),
    })
}

const FREEZE: &str = "namespace freeze-until=2026-05-05T10:04:30Z; freeze-reason=year end";

#[test]
fn slots_of_a_freeze_are_frozen_and_not_lost() {
    let script = format!("10:01:01 start 10:01\n10:01:30 {FREEZE}\n10:03:20 wait");
    let world = world("* * * * *", "", &script);
    assert_eq!(world.marks(), "r--");
    for slot in ["10:02", "10:03"] {
        let slot = world.slot(slot);
        assert_eq!(slot.outcome, frozen("10:04:30", "year end"));
        let text = slot.outcome.absence().unwrap();
        assert_eq!(text, "in a freeze of the namespace until 5 May 10:04:30 UTC: year end");
        assert_eq!(slot.with_cronwheel, Some(Shadow::Holds("O-7: the namespace is frozen")));
    }
    let detail = world.detail();
    assert_eq!(detail.row.next, Next::Frozen(at("10:04:30")));
    assert_eq!(detail.next_slots[0].at, at("10:05"));
    let thaw = Thaw {
        until: at("10:04:30"),
        n_held_back: 1,
        starts: vec![at("10:04")],
    };
    assert_eq!(detail.thaw, Some(thaw));
    let forecast = world.fleet.forecast();
    assert_eq!(
        ["10:03", "10:04", "10:05"].map(|minute| forecast.starts("shop", at(minute))),
        [0, 1, 1]
    );
    let expected = "freeze: nothing starts before 5 May 10:04:30 UTC: year end";
    assert_eq!(detail.options, [expected]);
    let tiles = world.fleet.tiles(world.now);
    assert_eq!((tiles.n_lost, tiles.n_late_now, detail.attention.len()), (0, 0, 0));
    let n_matching = |state| {
        let filter = Filter {
            state: Some(state),
            limit: 9,
            ..Filter::default()
        };
        world.fleet.rows(&filter, world.now).n_matching
    };
    assert_eq!((n_matching(StateFilter::Frozen), n_matching(StateFilter::Due)), (1, 1));
    let named = world.fleet.frozen_namespaces(world.now);
    assert_eq!(named, [("shop".into(), at("10:04:30"), "year end".into())]);
}

#[test]
fn a_freeze_without_an_end_is_shown_as_one() {
    let script = "10:01:30 namespace freeze-until=9999-12-31T23:59:59Z\n10:03:20 wait";
    let world = world("* * * * *", "", script);
    let detail = world.detail();
    assert_eq!(detail.row.next, Next::Frozen(at("9999-12-30T22:00:00Z")));
    assert!(detail.next_slots.is_empty());
    assert_eq!(detail.options, ["freeze: nothing starts before 30 Dec 9999 22:00 UTC"]);
    assert_eq!(world.slot("10:02").outcome, frozen("9999-12-30T22:00:00Z", ""));
}

#[test]
fn a_frozen_cron_job_is_due_if_something_starts_within_the_hour() {
    // It runs daily at noon, and last on the day before; it is 10:02.
    for (options, until, expected) in [
        ("", "10:30:00", (1, 1)),
        ("on-resume=skip", "10:30:00", (0, 0)),
        ("", "11:30:00", (0, 0)),
        ("on-resume=skip", "12:00:00", (0, 0)),
    ] {
        let script = format!("10:01:00 namespace freeze-until=2026-05-05T{until}Z\n10:02:00 wait");
        let mut facts = facts();
        facts.schedule = with_options("0 12 * * *", options);
        facts.last_schedule_time = Some("2026-05-03T12:00:00Z".parse().unwrap());
        let mut world = World::new(facts, 50);
        world.play("10:00:30 namespaces\n10:00:30 watch\n10:00:30 cronwheel");
        world.play(&script);
        let n_matching = |filter: Filter| world.fleet.rows(&Filter { limit: 9, ..filter }, world.now).n_matching;
        let due = n_matching(Filter {
            state: Some(StateFilter::Due),
            ..Filter::default()
        });
        let at_end = n_matching(Filter {
            slots_between: Some((at("10:30"), at("10:31"))),
            ..Filter::default()
        });
        assert_eq!((due, at_end), expected, "{options} until {until}");
    }
}

#[test]
fn after_a_freeze_lateness_counts_from_its_end() {
    let thawed = Shadow::StartsAfter(SignedDuration::from_secs(40), Ended::Freeze);
    for (end, created, with_cronwheel) in [
        ("10:04:30 wait", "10:04:32", None),
        ("10:03:40 namespace ", "10:03:42", Some(thawed)),
    ] {
        let script = format!("10:01:01 start 10:01\n10:01:30 {FREEZE}\n{end}\n{created} start 10:03");
        let world = world("* * * * *", "", &script);
        let slot = world.slot("10:03");
        assert_eq!(slot.lateness(), Some(SignedDuration::from_secs(2)), "{end}");
        assert_eq!(slot.with_cronwheel, with_cronwheel, "{end}");
        assert_eq!(world.detail().attention.len(), 0, "{end}");
        assert_eq!(world.detail().differences, [""; 0], "{end}");
        assert!(world.fleet.frozen_namespaces(world.now).is_empty(), "{end}");
    }
}

#[test]
fn a_slot_from_before_the_freeze_stays_lost() {
    let script = format!("10:01:30 {FREEZE}\n10:03:20 wait");
    let world = world("* * * * *", "", &script);
    assert_eq!(world.slot("10:01").outcome, SlotOutcome::Lost(LossReason::NotStarted));
    // One that is due when it begins is withdrawn.
    let script = "10:01:03 namespace freeze-until=2026-05-05T11:00:00Z\n10:01:20 wait";
    assert_eq!(
        self::world("* * * * *", "", script).slot("10:01").outcome,
        frozen("11:00", "")
    );
}

#[test]
fn the_built_in_controller_ignores_a_freeze() {
    let mut world = World::new(facts(), 50);
    world.play("10:00:30 namespaces\n10:00:30 watch\n10:01:01 start 10:01");
    world.play(&format!("10:01:30 {FREEZE}\n10:03:20 wait"));
    assert_eq!(world.slot("10:02").outcome, SlotOutcome::Lost(LossReason::NotStarted));
    assert_eq!(world.detail().row.next, Next::At(at("10:04")));
}

#[test]
fn the_object_dates_a_freeze_that_nobody_saw_begin() {
    // The status proves that no slot after 10:00 had a Job.
    let mut world = World::new(facts(), 50);
    (world.annotations, world.annotated) = (FREEZE.replace("namespace ", ""), at("10:01:30"));
    world.play("10:03:20 cronwheel\n10:03:20 namespaces\n10:03:20 watch\n10:03:30 wait");
    assert_eq!(world.slot("10:03").outcome, frozen("10:04:30", "year end"));
    assert_eq!(world.slot("10:02").outcome, frozen("10:04:30", "year end"));
    let doubt = SlotOutcome::Undecided(Doubt::Freeze(at("10:04:30")));
    assert_eq!(world.slot("10:01").outcome, doubt);
    assert_eq!(world.fleet.tiles(world.now).n_lost, 0);
}

#[test]
fn a_freeze_that_still_holds_makes_no_slot_late() {
    // The slot of 10:02 was due before the freeze is known to have begun.
    for (until, doubt, n_late) in [("10:04:30", true, 0), ("10:02:45", false, 1)] {
        let mut world = World::new(facts(), 50);
        world.annotations = format!("freeze-until=2026-05-05T{until}Z");
        world.annotated = at("10:02:30");
        world.play("10:02:40 cronwheel\n10:02:40 namespaces\n10:02:50 watch\n10:02:50 wait");
        let expected = if doubt {
            SlotOutcome::Undecided(Doubt::Freeze(at(until)))
        } else {
            SlotOutcome::Open
        };
        assert_eq!(world.slot("10:02").outcome, expected, "until {until}");
        let n_late_now = world.fleet.tiles(world.now).n_late_now;
        assert_eq!(
            (n_late_now, world.detail().attention.len()),
            (n_late, n_late),
            "until {until}"
        );
    }
}

#[test]
fn a_job_of_cronwheel_proves_that_no_freeze_held_before() {
    let mut world = World::new(facts(), 50);
    world.annotations = "freeze-until=2026-05-05T10:06:00Z".to_owned();
    world.annotated = at("10:04:30");
    world.play("10:01:01 cronwheel\n10:01:01 start 10:01\n10:03:01 start 10:03");
    world.play("10:05:20 namespaces\n10:05:20 watch\n10:05:20 wait");
    assert_eq!(world.slot("10:02").outcome, SlotOutcome::Lost(LossReason::Superseded));
    assert_eq!(
        world.slot("10:04").outcome,
        SlotOutcome::Undecided(Doubt::Freeze(at("10:06")))
    );
    assert_eq!(world.slot("10:05").outcome, frozen("10:06", ""));
}

#[test]
fn freezes_outlive_a_restart_and_their_annotation() {
    let script = format!("10:01:01 start 10:01\n10:01:30 {FREEZE}\n10:03:20 wait\n10:03:30 namespace \n10:03:40 wait");
    let world = world("* * * * *", "", &script);
    let mut again = world.restarted(50);
    again.play("10:03:50 cronwheel\n10:03:50 namespaces\n10:03:50 wait");
    // The latest slot could start at the end.
    assert_eq!(again.marks(), "r-l");
    assert_eq!(again.slot("10:02").outcome, frozen("10:03:30", "year end"));
}

#[test]
fn a_thaw_that_nobody_saw_leaves_a_doubt() {
    let script = format!("10:01:01 start 10:01\n10:01:30 {FREEZE}\n10:02:20 wait");
    let mut world = world("* * * * *", "", &script);
    world.play("10:02:20 unwatch\n10:02:20 blind");
    world.annotations.clear();
    world.play("10:04:10 namespaces\n10:04:10 watch\n10:04:20 wait");
    assert_eq!(world.slot("10:02").outcome, frozen("10:04:10", "year end"));
    assert_eq!(
        world.slot("10:03").outcome,
        SlotOutcome::Undecided(Doubt::Freeze(at("10:04:10")))
    );
}

/// An hourly CronJob. In a window of ten minutes its offset is 34 s.
fn hourly(options: &str, script: &str) -> World {
    world("0 * * * *", options, script)
}

#[test]
fn a_default_of_the_namespace_counts_for_lateness() {
    let script = "10:00:40 namespace spread=10m\n11:00:35 start 11:00";
    let world = hourly("", script);
    assert_eq!(world.slot("11:00").lateness(), Some(SignedDuration::from_secs(1)));
    assert_eq!(world.detail().next_slots[0].start, at("12:00:34"));
    // `none` switches it off.
    let world = hourly("spread=none", script);
    assert_eq!(world.slot("11:00").lateness(), Some(SignedDuration::from_secs(35)));
}

#[test]
fn a_change_of_a_default_does_not_change_what_was() {
    let script = "11:00:01 start 11:00\n11:00:40 namespace spread=10m\n12:00:35 start 12:00\n12:10 namespace";
    let world = hourly("", script);
    for slot in ["11:00", "12:00"] {
        assert_eq!(
            world.slot(slot).lateness(),
            Some(SignedDuration::from_secs(1)),
            "{slot}"
        );
    }
}

#[test]
fn a_default_that_becomes_known_later_counts_for_all_slots() {
    let mut facts = facts();
    facts.schedule = with_options("0 * * * *", "");
    let mut world = World::new(facts, 50);
    world.play("10:00:30 watch\n10:00:30 cronwheel\n11:00:35 start 11:00");
    assert_eq!(world.slot("11:00").lateness(), Some(SignedDuration::from_secs(35)));
    world.annotations = "spread=10m".to_owned();
    world.play("11:01 namespaces");
    assert_eq!(world.slot("11:00").lateness(), Some(SignedDuration::from_secs(1)));
}

#[test]
fn slots_on_the_dates_of_a_calendar_are_excluded() {
    let script = "10:00:40 calendar 2026-05-06 Founders Day\n2026-05-07T10:00:20Z wait";
    let world = world("0 9 * * *", "not-on=holidays", script);
    let slot = world.slot("2026-05-06T09:00:00Z");
    let excluded = SlotOutcome::Skipped(SkipCause::Excluded {
        calendar: "holidays".into(),
        note: "Founders Day".into(),
    });
    assert_eq!(slot.outcome, excluded);
    let text = slot.outcome.absence().unwrap();
    assert_eq!(text, "the calendar holidays excludes the date: Founders Day");
    assert!(matches!(slot.with_cronwheel, Some(Shadow::Holds(text)) if text.starts_with("O-11")));
    let tiles = world.fleet.tiles(world.now);
    assert_eq!((tiles.n_lost, tiles.n_late_now), (0, 1), "the slot of 7 May is late");
}

#[test]
fn an_excluded_slot_supersedes_none() {
    let script = "10:00:40 calendar 2026-05-07\n2026-05-07T10:00:20Z wait";
    let world = world("0 9 * * *", "not-on=holidays", script);
    assert_eq!(world.slot("2026-05-06T09:00:00Z").outcome, SlotOutcome::Open);
    assert_eq!(world.detail().row.next, Next::At(at("2026-05-08T09:00:00Z")));
    assert_eq!(world.detail().next_slots[0].at, at("2026-05-08T09:00:00Z"));
}

#[test]
fn a_calendar_is_unknown_until_it_is_listed() {
    let mut world = world("* * * * *", "not-on=holidays", "10:02:10 wait");
    let doubt = SlotOutcome::Undecided(Doubt::Calendar("holidays".into()));
    assert!(world.fleet.needs_calendars());
    assert_eq!((world.slot("10:01").outcome, world.marks()), (doubt, "??".to_owned()));
    // One that is missing has no dates.
    world.play("10:02:20 calendar ");
    assert_eq!(world.slot("10:01").outcome, SlotOutcome::Lost(LossReason::NotStarted));
    let [warning] = &world.detail().option_warnings[..] else {
        panic!("{:?}", world.detail().option_warnings)
    };
    assert!(warning.contains("no ConfigMap of this name"), "{warning}");
    world.play("10:02:30 calendar 2026-05-05");
    assert_eq!(world.slot("10:01").outcome, SlotOutcome::Lost(LossReason::NotStarted));
    world.play("10:03:10 wait");
    assert!(matches!(
        world.slot("10:03").outcome,
        SlotOutcome::Skipped(SkipCause::Excluded { .. })
    ));
}

#[test]
fn forbid_waits_for_jobs_without_a_slot_that_count() {
    for (creator, options, expected) in [
        (Creator::Cronwheel, "", 'h'),
        (Creator::Other("kubectl-create".into()), "", 'L'),
        (Creator::Other("kubectl-create".into()), "manual-jobs=count", 'h'),
    ] {
        let mut world = world("* * * * *", options, "10:00:40 forbid");
        let by_hand = Run {
            job_uid: Uid::new("by-hand"),
            job_name: "bill-run-abcdef".into(),
            slot: None,
            creator,
            ..run(at("10:00"), at("10:00:50"))
        };
        world.fleet.apply_run(by_hand, at("10:00:50"));
        world.play("10:02:10 wait");
        let outcome = world.slot("10:01").outcome;
        let is_held = matches!(outcome, SlotOutcome::Skipped(SkipCause::HeldByForbid { .. }));
        assert_eq!(is_held, expected == 'h', "{outcome:?}");
    }
}

#[test]
fn limits_are_told() {
    let config = FleetConfig {
        n_cron_jobs_max: 1,
        n_jobs_max: 1,
        ..FleetConfig::of_slots(50)
    };
    let mut fleet = Fleet::new(config, at("10:00"));
    fleet.apply_cron_job(facts(), at("10:00"));
    fleet.apply_cron_job(facts(), at("10:01"));
    fleet.apply_run(run(at("10:00"), at("10:00")), at("10:01"));
    assert!(fleet.limits_reached().is_empty());
    let mut other = facts();
    (other.uid, other.name) = (Uid::new("other"), "other".into());
    fleet.apply_cron_job(other, at("10:01"));
    fleet.apply_run(run(at("10:01"), at("10:01")), at("10:01"));
    let expected = [
        "The limit of 1 CronJobs is reached: others are left out. Select namespaces by -n.",
        "The limit of 1 Jobs is reached: others are left out, and their slots may seem to have none. Select namespaces \
         by -n.",
    ];
    assert_eq!(fleet.limits_reached(), expected);
}
