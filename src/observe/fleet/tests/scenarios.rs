//! What becomes of slots.

use jiff::SignedDuration;

use super::script::{World, at, facts, run, schedule};
use crate::{
    observe::{
        facts::RunResult,
        slot::{Ended, LossReason, Shadow, SkipCause, SlotOutcome},
    },
    schedule::{ConcurrencyPolicy, CronJobSchedule, Zone},
};

const WATCHED: &str = "10:00:30 watch\n";

fn check(name: &str, script: &str, expected: &str) {
    let world = World::of(&[WATCHED, script].concat());
    assert_eq!(world.marks(), expected, "{name}");
}

#[test]
fn a_slot_is_due_then_late_then_lost() {
    for (until, expected) in [
        // The cursor tells of the slot 10:00.
        ("10:00:59", "?"),
        ("10:01:00", "d"),
        ("10:01:05", "d"),
        ("10:01:06", "l"),
        ("10:01:59", "l"),
        ("10:02:00", "Ld"),
    ] {
        check(until, &format!("{until} wait"), expected);
    }
}

#[test]
fn a_job_speaks_for_its_slot() {
    check("running", "10:01:01 start 10:01", "r");
    check("succeeded", "10:01:01 start 10:01\n10:01:20 succeed 10:01", "s");
    check("failed", "10:01:01 start 10:01\n10:01:20 fail 10:01", "f");
    check("late", "10:01:06 start 10:01\n10:01:20 succeed 10:01", "l");
    check("late and failed", "10:01:06 start 10:01\n10:01:20 fail 10:01", "f");
    check("deleted", "10:01:01 start 10:01\n10:01:20 delete 10:01", "-");
    check(
        "deleted later",
        "10:01:01 start 10:01\n10:01:20 succeed 10:01\n10:01:30 delete 10:01",
        "s",
    );
}

#[test]
fn a_late_arrival_repairs_a_lost_slot() {
    let mut world = World::of(&[WATCHED, "10:03:10 wait"].concat());
    assert_eq!(world.marks(), "LLl");
    assert_eq!(world.fleet.tiles(world.now).n_lost, 2);
    world.play("10:03:20 start 10:02");
    assert_eq!(world.marks(), "Lll");
    let tiles = world.fleet.tiles(world.now);
    assert_eq!((tiles.n_lost, tiles.n_late), (1, 1));
}

#[test]
fn a_slot_is_superseded_once_a_later_one_starts() {
    let mut world = World::of(&[WATCHED, "10:03:10 wait"].concat());
    let reason = |world: &World, slot| world.slot(slot).outcome;
    assert_eq!(reason(&world, "10:01"), SlotOutcome::Lost(LossReason::NotStarted));
    world.play("10:03:20 start 10:03");
    for slot in ["10:01", "10:02"] {
        assert_eq!(
            reason(&world, slot),
            SlotOutcome::Lost(LossReason::Superseded),
            "{slot}"
        );
    }
    assert_eq!(world.marks(), "LLl");
}

#[test]
fn a_deadline_closes_a_slot_before_the_next_one() {
    let script = "10:00:40 deadline 20\n";
    for (until, expected) in [
        ("10:01:21 wait", "l"),
        ("10:01:22 wait", "L"),
        ("10:01:22 start 10:01", "l"),
    ] {
        check(until, &[script, until].concat(), expected);
    }
    let world = World::of(&[WATCHED, script, "10:01:30 wait"].concat());
    assert_eq!(
        world.slot("10:01").outcome,
        SlotOutcome::Lost(LossReason::DeadlineExceeded)
    );
    // cronwheel does not lose a run to its own latency.
    assert_eq!(world.slot("10:01").with_cronwheel, Some(Shadow::Starts));
    // A deadline beyond the next slot changes nothing.
    let world = World::of(&[WATCHED, "10:00:40 deadline 300\n", "10:02:30 wait"].concat());
    assert_eq!(world.slot("10:01").outcome, SlotOutcome::Lost(LossReason::NotStarted));
}

#[test]
fn a_suspended_cron_job_skips_its_slots() {
    let script = "10:01:01 start 10:01
        10:01:10 succeed 10:01
        10:01:30 suspend
        10:03:30 resume
        10:04:01 start 10:04
        10:05:30 wait";
    check("suspended for two slots", script, "s-Lrl");
    check("suspended at the slot", "10:01:03 suspend\n10:01:30 wait", "-");
    check("suspended while late", "10:01:20 suspend\n10:02:30 wait", "L-");
    // The most recent slot starts after the suspension, in time.
    let world = World::of(&[WATCHED, "10:00:40 suspend\n10:02:40 resume\n10:02:41 start 10:02"].concat());
    assert_eq!(world.marks(), "-r");
    assert_eq!(world.slot("10:02").lateness(), Some(SignedDuration::from_secs(1)));
    let resumed = Shadow::StartsAfter(SignedDuration::from_secs(40), Ended::Suspension);
    assert_eq!(world.slot("10:02").with_cronwheel, Some(resumed));
    let held = Some(Shadow::Holds("B-6.3: the CronJob is suspended"));
    assert_eq!(world.slot("10:01").with_cronwheel, held);
}

#[test]
fn forbid_holds_slots_while_a_job_runs() {
    let script = "10:00:40 forbid
        10:01:01 start 10:01
        10:03:30 wait";
    let mut world = World::of(&[WATCHED, script].concat());
    assert_eq!(world.marks(), "r--");
    let held = SlotOutcome::Skipped(SkipCause::HeldByForbid {
        job_name: run(at("10:01"), at("10:01")).job_name,
    });
    assert_eq!(world.slot("10:02").outcome, held);
    // The Job ends, and the most recent slot starts after it: not late.
    world.play("10:03:40 succeed 10:01");
    assert_eq!(world.marks(), "s-d");
    world.play("10:03:41 start 10:03");
    assert_eq!(world.marks(), "s-r");
    assert_eq!(world.slot("10:03").lateness(), Some(SignedDuration::from_secs(1)));
    assert_eq!(
        world.slot("10:03").with_cronwheel,
        Some(Shadow::StartsAfter(SignedDuration::from_secs(40), Ended::Job))
    );
    assert!(matches!(world.slot("10:02").with_cronwheel, Some(Shadow::Holds(_))));
    // A slot that nobody starts after the Job is late, and lost at last.
    let mut world = World::of(&[WATCHED, script].concat());
    world.play("10:03:40 succeed 10:01\n10:03:50 wait");
    assert_eq!(world.marks(), "s-l");
    world.play("10:04:00 wait");
    assert_eq!(world.marks(), "s-Ld");
}

#[test]
fn without_forbid_a_running_job_holds_nothing() {
    check("allow", "10:01:01 start 10:01\n10:03:30 wait", "rLl");
    let script = "10:00:40 forbid\n10:01:01 start 10:01\n10:02:30 allow\n10:04:00 wait";
    check("Forbid at one slot", script, "r-Ld");
}

#[test]
fn a_new_schedule_closes_the_open_slot() {
    let world = World::of(&[WATCHED, "10:01:10 schedule */5 * * * *\n10:05:06 start 10:05"].concat());
    assert_eq!(world.marks(), "-l");
    assert_eq!(
        world.slot("10:01").outcome,
        SlotOutcome::Skipped(SkipCause::ScheduleChanged)
    );
    // Slots that were lost before stay lost.
    let world = World::of(&[WATCHED, "10:02:10 schedule */5 * * * *\n10:02:20 wait"].concat());
    assert_eq!(world.marks(), "L-");
    // The built-in controller may start a past slot of the new schedule.
    let world = World::of(&[WATCHED, "10:02:10 schedule 1-59/2 * * * *\n10:02:20 start 10:01"].concat());
    assert_eq!(world.marks(), "l-");
}

#[test]
fn kept_jobs_and_the_cursor_tell_of_slots_before_the_observation() {
    let mut old = World::new(facts(), 50);
    old.facts.last_schedule_time = Some(at("09:57"));
    for (slot, seconds) in [("09:54", 1), ("09:57", 1)] {
        let mut job = run(at(slot), at(slot) + SignedDuration::from_secs(seconds));
        (job.result, job.finished) = (RunResult::Succeeded, Some(job.created));
        old.jobs.insert(at(slot), job);
    }
    old.play("10:00:30 watch");
    // Two kept Jobs are fewer than three, so the Jobs of 09:55 and 09:56 would exist. Later ones are after the cursor.
    assert_eq!(old.marks(), "sLLsLLl");
    let mut limited = World::new(facts(), 50);
    limited.facts.last_schedule_time = Some(at("09:57"));
    limited.facts.successful_jobs_history_limit = 1;
    limited.jobs = old.jobs.clone();
    limited.play("10:00:30 watch");
    assert_eq!(limited.marks(), "s??sLLl");
    // What was proven stays so when the cursor moves on.
    limited.play("10:00:40 start 10:00\n10:01:02 start 10:01");
    assert_eq!(limited.marks(), "s??sLLlr");
}

#[test]
fn a_suspension_of_unknown_age_covers_all_slots_after_the_cursor() {
    let mut world = World::new(facts(), 50);
    world.facts.last_schedule_time = Some(at("09:57"));
    world.facts.is_suspended = true;
    world.play("10:00:30 watch");
    assert_eq!(world.marks(), "---");
}

#[test]
fn slots_before_a_change_of_the_spec_are_not_lost() {
    let mut world = World::new(facts(), 50);
    world.facts.last_schedule_time = Some(at("09:57"));
    world.facts.spec_changed = Some(at("09:58:30"));
    world.play("10:00:30 watch");
    // The change may have been one of the image. Nobody knows.
    assert_eq!(world.marks(), "?Ll");
}

#[test]
fn a_suspension_that_nobody_watched_loses_no_run() {
    let watched = "10:00:30 watch\n10:01:01 start 10:01\n10:01:20 succeed 10:01\n10:01:30 wait";
    for is_restarted in [true, false] {
        // Suspended at 10:02:30 and resumed at 10:04:30, while nobody watched.
        let mut world = World::of(watched);
        world.facts.spec_changed = Some(at("10:04:30"));
        let marks = resumed(world, is_restarted).marks().replace('?', "-");
        assert_eq!(marks, "s---Ll", "restarted: {is_restarted}");
        // Suspended since 10:02:30.
        let mut world = World::of(watched);
        (world.facts.spec_changed, world.facts.is_suspended) = (Some(at("10:02:30")), true);
        let marks = resumed(world, is_restarted).marks().replace('?', "-");
        assert_eq!(marks, "s-----", "restarted: {is_restarted}");
    }
    // A change while the watches are current leaves what was proven before.
    let mut world = World::of(&[watched, "\n10:01:30 unwatch"].concat());
    world.play("10:04:40 watch\n10:05:10 wait");
    assert_eq!(world.marks(), "sLLLl");
    world.facts.spec_changed = Some(at("10:05:15"));
    world.play("10:05:15 suspend\n10:05:20 wait");
    assert_eq!(world.marks(), "sLLLl");
}

/// The cluster at 10:06:10, watched again by a new process or by the same one.
fn resumed(mut world: World, is_restarted: bool) -> World {
    if is_restarted {
        world.now = at("10:06:10");
        return world.restarted(50);
    }
    world.fleet.set_watches_current(false, world.now);
    world.play("10:06:10 watch");
    world
}

#[test]
fn a_gap_between_two_observations_claims_nothing_that_it_cannot_prove() {
    let script = "10:01:01 start 10:01
        10:01:20 succeed 10:01
        10:01:30 unwatch
        10:05:30 wait";
    let mut world = World::of(&[WATCHED, script].concat());
    assert_eq!(world.marks(), "s????");
    // In the gap the Job of 10:04 ran, and is gone. The cursor tells of it.
    world.facts.last_schedule_time = Some(at("10:04"));
    world.facts.ttl_seconds_after_finished = Some(0);
    world.play("10:05:40 watch");
    assert_eq!(world.marks(), "s???l");
    // With the kept Jobs, the others are lost for certain.
    let mut kept = World::of(&[WATCHED, script].concat());
    kept.jobs.insert(at("10:04"), run(at("10:04"), at("10:04:02")));
    kept.facts.last_schedule_time = Some(at("10:04"));
    kept.play("10:05:40 watch");
    assert_eq!(kept.marks(), "sLLrl");
}

#[test]
fn a_job_that_disappears_in_a_gap_was_deleted_or_had_ended() {
    let mut world = World::of(&[WATCHED, "10:01:01 start 10:01\n10:01:30 unwatch"].concat());
    world.jobs.clear();
    world.play("10:01:50 watch");
    assert_eq!(world.marks(), "?");
    assert_eq!(world.fleet.tiles(world.now).n_running, 0);
}

#[test]
fn jobs_are_named_by_the_minute() {
    let mut world = World::new(facts(), 50);
    world.facts.schedule = schedule("@every 20s");
    world.play("10:00:30 watch\n10:01:01 start 10:01");
    // The slots 10:00:20 and 10:00:40 share the minute of the last Job, which nobody saw.
    world.play("10:01:50 wait");
    assert_eq!(world.marks(), "--r--");
    assert_eq!(
        world.slot("10:01:20").outcome,
        SlotOutcome::Skipped(SkipCause::SameMinute)
    );
    assert!(matches!(world.slot("10:01:20").with_cronwheel, Some(Shadow::Holds(_))));
}

#[test]
fn an_interval_follows_the_cursor() {
    let mut world = World::new(facts(), 50);
    world.facts.schedule = schedule("@every 2m");
    world.facts.last_schedule_time = Some(at("10:00:10"));
    world.play("10:00:30 watch\n10:02:11 start 10:02:10");
    let next = |world: &World| world.detail().next_slots[0].at;
    assert_eq!(next(&world), at("10:04:10"));
    // The built-in controller moves the grid when it is late.
    world.play("10:04:40 start 10:04:25");
    assert_eq!(next(&world), at("10:06:25"));
}

#[test]
fn slots_at_clock_changes_are_those_of_the_engine() {
    let berlin = |text: &str| CronJobSchedule::new(text, Some("Europe/Berlin"), &Zone::utc());
    // On 25 October 02:30 comes twice; on 29 March there is no 02:30.
    for (schedule, now, expected) in [
        (
            "30 2 * * *",
            "2026-10-25T12:00:00Z",
            vec!["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"],
        ),
        ("30 2 * * *", "2026-03-29T12:00:00Z", vec![]),
    ] {
        let mut world = World::new(facts(), 50);
        world.facts.schedule = berlin(schedule);
        world.facts.created = at(now) - SignedDuration::from_hours(15);
        world.facts.last_schedule_time = None;
        world.play(&format!("{now} watch"));
        let slots: Vec<_> = world.detail().slots.iter().map(|slot| slot.at).collect();
        let expected: Vec<_> = expected.into_iter().map(at).collect();
        assert_eq!(slots, expected, "{schedule} until {now}");
    }
    let mut world = World::new(facts(), 50);
    world.facts.schedule = berlin("0 12 * * *");
    world.play("2026-10-20T12:00:00Z watch");
    let detail = world.detail();
    let [change] = detail.clock_changes.as_slice() else {
        panic!("one change: {:?}", detail.clock_changes)
    };
    assert_eq!(
        (change.at, change.forward_seconds),
        (at("2026-10-25T01:00:00Z"), -3_600)
    );
}

#[test]
fn a_cron_job_that_is_new_has_no_slots_before_its_creation() {
    let mut world = World::new(facts(), 50);
    world.facts.created = at("10:02:20");
    world.facts.last_schedule_time = None;
    world.play("10:00:30 watch");
    world.play("10:04:30 wait");
    assert_eq!(world.marks(), "Ll");
}

#[test]
fn a_second_job_of_a_slot_is_told_with_it_and_one_without_a_slot_apart() {
    let mut world = World::of(&[WATCHED, "10:01:01 start 10:01"].concat());
    let mut second = run(at("10:01"), at("10:01:02"));
    second.job_uid = crate::shard::Uid::new("second");
    let mut by_hand = run(at("10:01"), at("10:01:03"));
    (by_hand.job_uid, by_hand.slot) = (crate::shard::Uid::new("by-hand"), None);
    world.fleet.apply_run(second, world.now);
    world.fleet.apply_run(by_hand, world.now);
    assert_eq!(world.marks(), "r");
    let others: Vec<String> = world
        .detail()
        .other_runs
        .iter()
        .map(|run| run.job_uid.to_string())
        .collect();
    assert_eq!(others, ["by-hand"]);
    assert_eq!(world.slot("10:01").other_jobs, [run(at("10:01"), at("10:01")).job_name]);
    assert_eq!(world.fleet.tiles(world.now).n_running, 3);
}

#[test]
fn jobs_before_their_cron_job_are_kept_for_it() {
    let mut world = World::new(facts(), 50);
    world.fleet.apply_run(run(at("10:00"), at("10:00:02")), world.now);
    world.jobs.insert(at("10:00"), run(at("10:00"), at("10:00:02")));
    world.play("10:00:30 watch");
    assert_eq!(world.marks(), "r");
}

#[test]
fn slots_beyond_the_maximum_are_dropped_and_still_count() {
    let mut world = World::new(facts(), 3);
    world.play(WATCHED);
    for minute in 1..=8 {
        world.now = at(&format!("10:{minute:02}:01"));
        world.start(at(&format!("10:{minute:02}")));
    }
    assert_eq!(world.marks(), "rrr");
    assert_eq!(world.fleet.tiles(world.now).n_running, 8);
    // The end of a Job whose slot was dropped counts once.
    world.play("10:08:20 fail 10:02\n10:08:30 unwatch\n10:08:40 watch");
    let tiles = world.fleet.tiles(world.now);
    assert_eq!((tiles.n_running, tiles.n_failed), (7, 1));
    assert_eq!(world.facts.concurrency_policy, ConcurrencyPolicy::Allow);
}
