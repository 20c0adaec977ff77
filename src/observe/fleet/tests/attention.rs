//! The sentences of attention, and the differences to cronwheel.

use jiff::Timestamp;

use super::script::{World, at, facts, schedule, with_options};
use crate::{
    observe::view::{Attention, Trouble},
    schedule::{CronJobSchedule, Zone},
};

const WATCHED: &str = "10:00:30 watch\n";

fn attention(world: &World) -> Option<Attention> {
    let all = world.fleet.overview(world.now).attention;
    assert!(all.len() <= 1, "{all:?}");
    assert_eq!(all, world.detail().attention);
    all.into_iter().next()
}

#[track_caller]
fn check(script: &str, expected: Option<(Trouble, Option<Timestamp>, &str)>) {
    let world = World::of(&[WATCHED, script].concat());
    let found = attention(&world);
    let found = found
        .as_ref()
        .map(|found| (found.trouble, found.since, found.reason.as_str()));
    assert_eq!(found, expected);
}

#[test]
fn each_trouble_has_its_sentence() {
    check("10:01:02 start 10:01\n10:01:09 succeed 10:01", None);
    check(
        "10:05:40 start 10:05",
        Some((
            Trouble::Lost,
            Some(at("10:01")),
            "lost 4 runs between 10:01 and 10:04 UTC: the controller was late and started a later slot instead",
        )),
    );
    check(
        "10:02:01 start 10:02",
        Some((
            Trouble::Lost,
            Some(at("10:01")),
            "lost a run at 10:01 UTC: the controller was late and started a later slot instead",
        )),
    );
    check(
        "10:01:40 wait",
        Some((
            Trouble::Late,
            Some(at("10:01")),
            "the run of 10:01 UTC has not started for 40 s",
        )),
    );
    check(
        "10:01:40 start 10:01\n10:02:50 start 10:02",
        Some((Trouble::Late, Some(at("10:01")), "last 2 runs started up to 50 s late")),
    );
    check(
        "10:01:01 start 10:01
         10:01:10 fail 10:01
         10:02:01 start 10:02
         10:02:10 fail 10:02
         10:02:30 wait",
        Some((
            Trouble::Failed,
            Some(at("10:01:10")),
            "last 2 runs failed: BackoffLimitExceeded",
        )),
    );
    check(
        "10:00:40 forbid
         10:01:01 start 10:01
         10:11:01 wait",
        Some((
            Trouble::Blocked,
            Some(at("10:02")),
            "Forbid: Job bill-29632921 has run for 10 m",
        )),
    );
    check(
        "10:00:40 forbid
         10:01:01 start 10:01
         10:01:30 hinder 10:01 foregroundDeletion
         10:02:10 wait",
        Some((
            Trouble::Blocked,
            Some(at("10:02")),
            "Forbid: Job bill-29632921 is being deleted and held by finalizer foregroundDeletion",
        )),
    );
    // A Job that runs a little longer than the period is no trouble yet.
    check("10:00:40 forbid\n10:01:01 start 10:01\n10:02:10 wait", None);
}

#[test]
fn a_failure_after_a_loss_is_the_present_trouble() {
    check(
        "10:02:01 start 10:02\n10:02:10 succeed 10:02\n10:03:01 start 10:03\n10:03:10 fail 10:03",
        Some((
            Trouble::Failed,
            Some(at("10:03:10")),
            "the last run failed: BackoffLimitExceeded",
        )),
    );
}

#[test]
fn a_loss_is_past_a_day_after_it_was_given_up() {
    let mut world = World::new(facts(), 50);
    world.facts.schedule = schedule("0 10 * * *");
    world.facts.last_schedule_time = Some(at("2026-05-04T10:00:00Z"));
    world.play("10:00:30 watch\n2026-05-06T10:00:01Z start 2026-05-06T10:00:00Z");
    assert_eq!(attention(&world).map(|found| found.trouble), Some(Trouble::Lost));
    world.play("2026-05-06T11:00:00Z succeed 2026-05-06T10:00:00Z\n2026-05-07T10:00:01Z start 2026-05-07T10:00:00Z");
    assert_eq!(attention(&world), None);
    assert_eq!(world.marks(), "Lsr");
}

#[test]
fn a_schedule_that_never_matches_is_named() {
    for (text, options, expected) in [
        ("0 0 30 2 *", "", "0 0 30 2 *: "),
        ("61 * * * *", "", "the schedule 61 * * * * is invalid: "),
        (
            "0 * * * *",
            "schedule=0 0 3 30 2 *",
            "annotation cronwheel.dev/schedule: no such date; ",
        ),
        (
            "0 * * * *",
            "schedule=0 0 3 1 1 * 2020",
            "annotation cronwheel.dev/schedule: no later date; ",
        ),
    ] {
        let mut world = World::new(facts(), 50);
        world.facts.schedule = with_options(text, options);
        world.play(WATCHED);
        let found = attention(&world).expect("trouble");
        assert_eq!(
            (found.trouble, found.since),
            (Trouble::Never, Some(world.facts.created))
        );
        assert!(
            found.reason.starts_with(expected) && found.reason.ends_with("it never runs"),
            "{}",
            found.reason
        );
    }
}

#[test]
fn three_periods_without_success_are_trouble() {
    let mut world = World::new(facts(), 50);
    world.facts.last_successful_time = Some(at("10:00:20"));
    world.play(WATCHED);
    for minute in 1..=3 {
        assert_eq!(attention(&world), None, "at {minute}");
        world.play(&format!(
            "10:{minute:02}:01 start 10:{minute:02}\n10:{minute:02}:09 delete 10:{minute:02}"
        ));
    }
    let found = attention(&world).expect("trouble");
    assert_eq!(
        (found.trouble, found.reason.as_str()),
        (Trouble::NoSuccess, "no run has succeeded since 10:00:20 UTC")
    );
    assert_eq!(found.last_success, Some(at("10:00:20")));
}

#[test]
fn differences_name_what_cronwheel_would_have_done() {
    let mut world = World::new(facts(), 50);
    world.facts.schedule = CronJobSchedule::new("* * * * *", Some("Europe/Berlin"), &Zone::utc());
    world.facts.spec_changed = Some(world.facts.created);
    world.play(
        "10:00:30 watch
         10:01:01 start 10:01
         10:07:10 start 10:06
         10:07:15 start 10:07
         10:08:01 start 10:08
         10:10:01 start 10:10",
    );
    assert_eq!(world.marks(), "rLLLLllrLr");
    assert_eq!(
        world.detail().differences,
        [
            "12:02 to 12:05: lost; cronwheel would have started all 4 of them at their slots",
            "12:06 to 12:07: started up to 1 m 10 s late; cronwheel would have started both of them at their slots",
            "12:09: lost; cronwheel would have started it at its slot",
        ]
    );
}
