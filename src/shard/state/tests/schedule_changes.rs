//! B-2.2 and its difference: a changed schedule is decided at once and starts no slot from before the change.

use super::world::{World, at, cron_job, schedule, schedule_with};
use crate::shard::{CreateOutcome, CronJobRecord, CronJobStatus, InstantOutcome, ResourceVersion};

fn hourly() -> CronJobRecord {
    CronJobRecord {
        schedule: schedule("0 * * * *", None),
        status: CronJobStatus {
            last_schedule_time: Some(at("10:00:00")),
            ..CronJobStatus::default()
        },
        ..cron_job("hello")
    }
}

fn changed(text: &str) -> CronJobRecord {
    CronJobRecord {
        schedule: schedule(text, None),
        resource_version: ResourceVersion(11),
        ..hourly()
    }
}

#[test]
fn b_2_3_a_slot_of_the_new_schedule_before_the_change_is_not_started() {
    let mut world = World::new("10:59:00", vec![hourly()], vec![]);
    world.apply(changed("30 * * * *"));
    world.advance_to("11:29:59");
    world.expect(&[]);
    world.advance_to("11:30:00");
    world.expect(&["create hello-29633010 for 2026-05-05T11:30:00Z"]);
}

#[test]
fn b_2_3_an_earlier_schedule_fires_earlier() {
    let mut world = World::new("10:10:30", vec![hourly()], vec![]);
    world.apply(changed("*/15 * * * *"));
    world.advance_to("10:15:00");
    world.expect(&["create hello-29632935 for 2026-05-05T10:15:00Z"]);
}

#[test]
fn b_2_3_after_a_restart_the_new_schedule_applies_to_the_past() {
    let mut world = World::new("10:59:00", vec![changed("30 * * * *")], vec![]);
    world.expect(&["create hello-29632950 for 2026-05-05T10:30:00Z"]);
}

#[test]
fn b_2_2_a_change_to_an_unparseable_schedule_emits_both_events() {
    let mut world = World::new("10:10:30", vec![hourly()], vec![]);
    world.apply(changed("nonsense"));
    world.expect(&[
        "Warning UnParseableCronJobSchedule: unparseable schedule for cronjob: nonsense",
        "Warning UnparseableSchedule: unparseable schedule: \"nonsense\" : expected exactly 5 fields, found 1: [nonsense]",
    ]);
    assert_eq!(world.shard.next_wakeup(), None);
}

#[test]
fn a_time_zone_change_is_a_schedule_change() {
    let mut world = World::new("10:10:30", vec![hourly()], vec![]);
    world.apply(CronJobRecord {
        schedule: schedule("0 12 * * *", Some("Europe/Berlin")),
        ..changed("")
    });
    world.advance_to("2026-05-06T09:59:59Z");
    world.expect(&[]);
    world.advance_to("2026-05-06T10:00:00Z");
    world.expect(&["create hello-29634360 for 2026-05-06T12:00:00+02:00"]);
}

#[test]
fn a_schedule_change_ends_the_open_slot() {
    let suspended = CronJobRecord {
        is_suspended: true,
        ..hourly()
    };
    let mut world = World::new("10:10:30", vec![suspended], vec![]);
    world.advance_to("11:00:30");
    assert_eq!(world.shard.outcome_counts().open_instants, 1);
    world.apply(changed("30 * * * *"));
    world.expect(&[]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::ScheduleChanged), 1);
}

#[test]
fn slots_of_the_new_schedule_before_the_change_are_not_counted() {
    let mut world = World::new("10:30:30", vec![hourly()], vec![]);
    world.apply(changed("* * * * *"));
    world.jump_to("10:33:30");
    world.expect(&["create hello-29632953 for 2026-05-05T10:33:00Z"]);
    assert_eq!(world.shard.outcome_counts().due_instants, 3);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Superseded), 2);
}

#[test]
fn a_create_in_flight_survives_a_schedule_change() {
    let mut world = World::new("10:59:00", vec![hourly()], vec![]);
    world.advance_to("11:00:00");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
    world.apply(changed("30 * * * *"));
    world.created_all();
    world.advance_to("11:30:00");
    world.expect(&["create hello-29633010 for 2026-05-05T11:30:00Z"]);
}

#[test]
fn slots_before_the_change_do_not_hide_later_ones_under_missed_runs_all() {
    let record = |text: &str, version: u64| CronJobRecord {
        schedule: schedule_with(text, &[("missed-runs", "all")], 0),
        resource_version: ResourceVersion(version),
        ..hourly()
    };
    let mut world = World::new("10:35:00", vec![record("0 * * * *", 10)], vec![]);
    world.apply(record("*/10 * * * *", 11));
    world.advance_to("10:39:59");
    world.expect(&[]);
    world.advance_to("10:40:00");
    world.expect(&["create hello-29632960 for 2026-05-05T10:40:00Z"]);
}

/// A CronJob of every full hour whose suspension from 06:00 to 10:30 has ended under `on-resume: all 2`, with the create of
/// the first slot.
fn resumed() -> (World, impl Fn(&str, u64) -> CronJobRecord) {
    let record = |text: &str, version| CronJobRecord {
        schedule: schedule_with(text, &[("on-resume", "all 2")], 0),
        resource_version: ResourceVersion(version),
        status: CronJobStatus {
            last_schedule_time: Some(at("06:00:00")),
            ..CronJobStatus::default()
        },
        ..cron_job("hello")
    };
    let suspended = CronJobRecord {
        is_suspended: true,
        ..record("0 * * * *", 10)
    };
    let mut world = World::new("06:30:00", vec![suspended], vec![]);
    world.advance_to("10:30:00");
    world.apply(record("0 * * * *", 11));
    world.expect(&["create hello-29632860 for 2026-05-05T09:00:00Z"]);
    (world, record)
}

#[test]
fn a_schedule_change_ends_the_catch_up_after_a_suspension() {
    for (changed, next, created) in [
        (
            "15,45 * * * *",
            "10:45:00",
            "create hello-29632965 for 2026-05-05T10:45:00Z",
        ),
        (
            "@every 15m",
            "10:45:00",
            "create hello-29632965 for 2026-05-05T10:45:00Z",
        ),
        (
            "0 * * * 0-6",
            "11:00:00",
            "create hello-29632980 for 2026-05-05T11:00:00Z",
        ),
    ] {
        let (mut world, record) = resumed();
        world.now = at("10:30:20");
        world.apply(record(changed, 12));
        world.expect(&["withdraw the create of hello"]);
        world.now = at("10:30:21");
        world.answer_create(CreateOutcome::Withdrawn);
        world.expect(&[]);
        assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::ScheduleChanged), 1);
        world.advance_to(&(at(next) - jiff::SignedDuration::from_secs(1)).to_string());
        world.expect(&[]);
        world.advance_to(next);
        world.expect(&[created]);
    }
}

#[test]
fn a_catch_up_after_a_suspension_goes_on_after_a_withdrawal_without_a_schedule_change() {
    let (mut world, record) = resumed();
    world.now = at("10:30:20");
    world.apply(CronJobRecord {
        starting_deadline_seconds: Some(100_000),
        ..record("0 * * * *", 12)
    });
    world.expect(&["withdraw the create of hello"]);
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&["create hello-29632860 for 2026-05-05T09:00:00Z"]);
    world.created();
    world.advance_to("10:30:30");
    let effects = world.effects();
    let next = "create hello-29632920 for 2026-05-05T10:00:00Z".to_owned();
    assert!(effects.contains(&next), "{effects:?}");
}
