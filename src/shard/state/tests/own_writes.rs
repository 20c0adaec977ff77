//! B-5.3 and its difference: a replica applies its writes before the watch delivers them; the watch event has no
//! effect.

use jiff::SignedDuration;

use super::world::{World, at, complete, cron_job, job, schedule};
use crate::shard::{CronJobRecord, CronJobStatus, ResourceVersion, StatusOutcome};

fn fired() -> World {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.created();
    world.effects();
    world
}

#[test]
fn b_3_3_the_echo_of_a_created_job_changes_nothing() {
    let mut world = fired();
    world.apply_job(job("hello", "10:00:00"));
    world.expect(&[]);
}

#[test]
fn b_5_3_an_event_with_an_older_status_keeps_the_pending_cursor() {
    let mut world = fired();
    let renamed_label = CronJobRecord {
        resource_version: ResourceVersion(11),
        ..cron_job("hello")
    };
    world.apply(renamed_label);
    // The write is rebuilt on the new version, with the pending cursor instead of the stored one.
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
    assert_eq!(
        world.pending_write("hello").map(|write| write.resource_version),
        Some(ResourceVersion(11))
    );
}

#[test]
fn b_3_3_the_echo_of_a_status_write_changes_nothing() {
    let echo = |world: &World| CronJobRecord {
        status: world.pending_write("hello").expect("a write").status.clone(),
        resource_version: ResourceVersion(101),
        ..cron_job("hello")
    };
    let mut before = fired();
    let seen = echo(&before);
    before.apply(seen.clone());
    before.expect(&[]);
    before.stored("hello");
    before.expect(&[]);
    let mut after = fired();
    after.stored("hello");
    after.apply(seen);
    after.expect(&[]);
    after.advance_to("10:00:59");
    after.expect(&[]);
}

#[test]
fn an_event_older_than_the_stored_status_is_ignored() {
    let mut world = fired();
    world.stored("hello");
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(50),
        is_suspended: true,
        ..cron_job("hello")
    });
    world.expect(&[]);
    world.advance_to("10:01:00");
    world.expect(&["create hello-29632921 for 2026-05-05T10:01:00Z"]);
}

#[test]
fn b_13_2_a_conflicting_write_is_rebuilt_on_the_next_event() {
    let mut world = fired();
    world.answer_status("hello", StatusOutcome::Conflict);
    world.expect(&[]);
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(12),
        ..cron_job("hello")
    });
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
}

#[test]
fn a_conflicting_write_is_rebuilt_if_its_event_came_first() {
    let mut world = fired();
    let first = world.pending_write("hello").expect("a write").status.clone();
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(12),
        ..cron_job("hello")
    });
    world.effects();
    world.answer(crate::shard::OrderAnswer::Status {
        cron_job: super::world::uid("hello"),
        sent: Box::new(first),
        answer: StatusOutcome::Conflict,
    });
    world.advance_to("10:00:06");
    assert_eq!(world.effects().len(), 1);
}

#[test]
fn b_13_2_a_failed_status_write_is_retried() {
    let mut world = fired();
    world.answer_status(
        "hello",
        StatusOutcome::Failed {
            message: "no".into(),
            retry_after: None,
        },
    );
    world.expect(&[]);
    world.advance_to("10:00:06");
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
}

#[test]
fn a_status_write_that_keeps_failing_is_reported_about_once_an_hour() {
    let mut world = fired();
    let mut reports = Vec::new();
    for _ in 0..121 {
        let message = "cronjobs.batch \"hello\" is forbidden".into();
        let retry_after = None;
        world.answer_status("hello", StatusOutcome::Failed { message, retry_after });
        reports.push(world.effects());
        let later = world.now.saturating_add(SignedDuration::from_secs(45)).unwrap();
        world.jump_to(&later.to_string());
        world.effects();
    }
    let warning = "Warning FailedStatusUpdate: Error updating status: cronjobs.batch \"hello\" is forbidden; until an \
                   update succeeds lastScheduleTime is out of date and finished jobs are kept";
    assert_eq!(reports.concat(), [warning]);
}

/// Counts how many times the status is emitted until the given time if the API server refuses each write.
fn refused_until(world: &mut World, until: &str) -> usize {
    let mut n_writes = 0;
    while world.now < at(until) {
        if world.pending_write("hello").is_some() {
            n_writes += 1;
            let message = "etcdserver: request is too large".into();
            let retry_after = None;
            world.answer_status("hello", StatusOutcome::Failed { message, retry_after });
        }
        let second_later = world
            .now
            .saturating_add(SignedDuration::from_secs(1))
            .expect("an instant");
        world.advance_to(&second_later.to_string());
        world.effects();
    }
    n_writes
}

#[test]
fn b_13_2_a_refused_status_write_backs_off() {
    let hourly = CronJobRecord {
        schedule: schedule("0 * * * *", None),
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![hourly], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.created();
    world.effects();
    let first_half_minute = refused_until(&mut world, "10:00:30");
    assert!((4..=6).contains(&first_half_minute), "{first_half_minute}");
    let later_minutes = refused_until(&mut world, "10:10:30");
    assert!((15..=26).contains(&later_minutes), "{later_minutes}");
    // After a stored status, the next failure counts as the first.
    world.advance_to("10:11:30");
    world.effects();
    world.stored("hello");
    let ended = complete(job("hello", "10:00:00"), "10:11:00");
    world.apply_job(ended);
    world.effects();
    let again = refused_until(&mut world, "10:12:00");
    assert!((4..=7).contains(&again), "{again}");
}

#[test]
fn a_cursor_moved_back_by_another_writer_returns_to_the_running_job() {
    let mut world = fired();
    world.stored("hello");
    world.effects();
    let moved = CronJobStatus {
        last_schedule_time: Some(at("09:30:00")),
        ..CronJobStatus::default()
    };
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(200),
        status: moved,
        ..cron_job("hello")
    });
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
}

#[test]
fn b_16_4_a_cursor_moved_back_by_another_writer_is_followed() {
    let mut world = fired();
    world.apply_job(complete(job("hello", "10:00:00"), "10:00:05"));
    world.effects();
    world.stored("hello");
    let moved = CronJobStatus {
        last_schedule_time: Some(at("09:30:00")),
        ..CronJobStatus::default()
    };
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(200),
        status: moved,
        ..cron_job("hello")
    });
    assert_eq!(world.effects()[0], "create hello-29632920 for 2026-05-05T10:00:00Z");
}

#[test]
fn a_deleted_cron_job_leaves_no_timers() {
    let mut world = fired();
    world.input(crate::shard::Input::CronJobDeleted(super::world::uid("hello")));
    assert_eq!(world.shard.sizes().wheel_entries, 0);
    world.advance_to("10:05:00");
    world.expect(&[]);
    world.stored("hello");
    world.expect(&[]);
}

#[test]
fn an_unsent_status_write_is_retried_after_a_delay() {
    let mut world = fired();
    world.answer_status("hello", StatusOutcome::Abandoned);
    world.expect(&[]);
    world.advance_to("10:00:02");
    world.expect(&["status last=10:00:00 successful=- active=[hello-29632920]"]);
}
