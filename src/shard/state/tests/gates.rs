//! B-6: the checks before scheduling.

use super::world::{World, at, cron_job, schedule};
use std::sync::Arc;

use crate::shard::{CronJobRecord, CronJobStatus, InstantOutcome, JobTemplate, ResourceVersion};

#[test]
fn b_6_1_a_cron_job_being_deleted_starts_nothing() {
    let deleting = CronJobRecord {
        is_deleting: true,
        ..cron_job("hello")
    };
    let mut world = World::new("10:00:30", vec![deleting], vec![]);
    world.advance_to("10:05:00");
    world.expect(&[]);
}

#[test]
fn b_6_2_an_unknown_zone_is_reported_once_even_when_suspended() {
    let bad = CronJobRecord {
        schedule: schedule("* * * * *", Some("Mars/Base")),
        is_suspended: true,
        ..cron_job("hello")
    };
    let mut world = World::new("10:00:30", vec![bad.clone()], vec![]);
    world.expect(&["Warning UnknownTimeZone: invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base"]);
    world.apply(CronJobRecord {
        is_suspended: false,
        resource_version: ResourceVersion(11),
        ..bad
    });
    world.advance_to("10:05:00");
    world.expect(&[]);
}

#[test]
fn b_6_3_suspended_slots_start_nothing_and_are_counted() {
    let suspended = CronJobRecord {
        is_suspended: true,
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![suspended], vec![]);
    world.advance_to("10:03:30");
    world.expect(&[]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Suspended), 3);
    assert_eq!(world.shard.outcome_counts().open_instants, 1);
}

#[test]
fn b_6_6_resuming_starts_the_latest_slot_once() {
    let suspended = CronJobRecord {
        is_suspended: true,
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![suspended.clone()], vec![]);
    world.advance_to("10:03:30");
    world.apply(CronJobRecord {
        is_suspended: false,
        resource_version: ResourceVersion(11),
        ..suspended
    });
    world.expect(&["create hello-29632923 for 2026-05-05T10:03:00Z"]);
    world.created_all();
    assert_eq!(world.shard.outcome_counts().due_instants, 4);
}

#[test]
fn b_6_6_every_keeps_its_grid_while_suspended() {
    let every = |is_suspended: bool, version: u64| CronJobRecord {
        schedule: schedule("@every 10m", None),
        is_suspended,
        resource_version: ResourceVersion(version),
        ..cron_job("hello")
    };
    // The start time is not on the grid of 09:59, 10:09, 10:19.
    let mut world = World::new("10:01:30", vec![every(true, 10)], vec![]);
    world.advance_to("10:12:30");
    world.expect(&[]);
    assert_eq!(world.shard.outcome_counts().due_instants, 1);
    world.apply(every(false, 11));
    world.expect(&["create hello-29632929 for 2026-05-05T10:09:00Z"]);
}

#[test]
fn b_16_4_no_slot_is_due_before_a_future_cursor_while_suspended() {
    let suspended = CronJobRecord {
        is_suspended: true,
        status: CronJobStatus {
            last_schedule_time: Some(at("10:03:00")),
            ..CronJobStatus::default()
        },
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![suspended], vec![]);
    world.advance_to("10:03:30");
    assert_eq!(world.shard.outcome_counts().due_instants, 0);
    world.advance_to("10:04:30");
    assert_eq!(world.shard.outcome_counts().due_instants, 1);
    world.expect(&[
        "Warning LastScheduleTimeInFuture: status.lastScheduleTime 2026-05-05T10:03:00Z is in the future: \
                    no job starts before then; correct it in the status subresource",
    ]);
}

#[test]
fn b_6_6_resuming_starts_nothing_when_the_deadline_has_passed() {
    let suspended = CronJobRecord {
        is_suspended: true,
        starting_deadline_seconds: Some(20),
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![suspended.clone()], vec![]);
    world.advance_to("10:00:30");
    world.apply(CronJobRecord {
        is_suspended: false,
        resource_version: ResourceVersion(11),
        ..suspended
    });
    world.expect(&["Warning MissSchedule: Missed scheduled time to start a job: Tue, 05 May 2026 10:00:00 +0000"]);
    // Its tenant suspended it, so the slot is not lost.
    let counts = world.shard.outcome_counts();
    assert_eq!(counts.outcome(InstantOutcome::Suspended), 1);
    assert_eq!(counts.outcome(InstantOutcome::DeadlineExceeded), 0);
}

#[test]
fn b_6_4_an_unparseable_schedule_is_reported_once() {
    let bad = CronJobRecord {
        schedule: schedule("* * * *", None),
        ..cron_job("hello")
    };
    let mut world = World::new("10:00:30", vec![bad.clone()], vec![]);
    world.expect(&[
        "Warning UnparseableSchedule: unparseable schedule: \"* * * *\" : expected exactly 5 fields, found 4: [* * * *]",
    ]);
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(11),
        starting_deadline_seconds: Some(5),
        ..bad
    });
    world.expect(&[]);
}

#[test]
fn b_6_5_a_schedule_without_activations_is_reported_once() {
    let get = |name: &str| (name == "cronwheel.dev/schedule").then_some("0 0 0 30 2 *");
    for (schedule, named) in [
        (schedule("0 0 31 2 *", None), "0 0 31 2 *"),
        (
            schedule("0 * * * *", None).with_options("hello", get, 0),
            "annotation cronwheel.dev/schedule",
        ),
    ] {
        let never = CronJobRecord {
            schedule,
            ..cron_job("hello")
        };
        let mut world = World::new("10:00:30", vec![never], vec![]);
        let why = "time difference between two schedules is less than 1 second";
        world.expect(&[&format!("Warning InvalidSchedule: invalid schedule: {named} : {why}")]);
        assert_eq!(world.shard.next_wakeup(), None);
    }
}

#[test]
fn b_7_1_a_zone_in_the_schedule_is_reported_once_and_used() {
    let legacy = CronJobRecord {
        schedule: schedule("TZ=Europe/Berlin 0 12 * * *", None),
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![legacy], vec![]);
    let effects = world.effects();
    assert_eq!(effects.len(), 1, "{effects:#?}");
    assert!(effects[0].starts_with(
        "Warning UnsupportedSchedule: CRON_TZ or TZ used in schedule \"TZ=Europe/Berlin 0 12 * * *\" is not"
    ));
    world.advance_to("10:00:00");
    // The annotation is in UTC, since `spec.timeZone` is unset.
    world.expect(&["create hello-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn deleting_a_cron_job_ends_its_open_slot() {
    let record = CronJobRecord {
        is_suspended: true,
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record.clone()], vec![]);
    world.advance_to("10:00:30");
    world.apply(CronJobRecord {
        is_deleting: true,
        resource_version: ResourceVersion(11),
        ..record
    });
    world.expect(&[]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Deleted), 1);
    assert_eq!(world.shard.outcome_counts().open_instants, 0);
}

#[test]
fn b_9_a_cron_job_last_run_years_ago_starts_its_latest_slot() {
    let old = CronJobRecord {
        status: CronJobStatus {
            last_schedule_time: Some(at("2001-01-01T00:00:00Z")),
            ..CronJobStatus::default()
        },
        created: at("2000-01-01T00:00:00Z"),
        ..cron_job("hello")
    };
    let mut world = World::new("10:00:30", vec![old], vec![]);
    assert_eq!(world.effects()[1], "create hello-29632920 for 2026-05-05T10:00:00Z");
}

#[test]
fn reserved_template_annotations_are_reported_once() {
    let template = JobTemplate {
        had_reserved_annotations: true,
        ..JobTemplate::clone(&cron_job("hello").template)
    };
    let record = CronJobRecord {
        template: Arc::new(template),
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record.clone()], vec![]);
    world.expect(&[
        "Warning ReservedAnnotations: jobTemplate annotations that begin with cronwheel.dev/ are reserved: \
                    jobs are created without them",
    ]);
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(31),
        is_suspended: true,
        ..record
    });
    world.expect(&[]);
}
