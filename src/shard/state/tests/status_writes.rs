//! B-13: the content of status writes, and when none is needed.

use super::world::{World, at, complete, cron_job, entry, job};
use crate::shard::{CronJobRecord, CronJobStatus};

#[test]
fn b_13_1_nothing_is_written_when_nothing_changed() {
    let running = job("hello", "09:59:00");
    let status = CronJobStatus {
        active: vec![entry(&running)],
        ..cron_job("hello").status
    };
    let record = CronJobRecord {
        status,
        ..cron_job("hello")
    };
    World::new("09:59:30", vec![record], vec![running]).expect(&[]);
}

#[test]
fn b_13_1_a_run_that_ends_before_the_flush_is_one_status_write() {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.created();
    world.apply_job(job("hello", "10:00:00"));
    world.apply_job(complete(job("hello", "10:00:00"), "10:00:00"));
    world.effects();
    let write = world.pending_write("hello").expect("one merged write");
    assert_eq!(write.status.last_schedule_time, Some(at("10:00:00")));
    assert_eq!(write.status.last_successful_time, Some(at("10:00:00")));
    assert!(write.status.active.is_empty());
    world.stored("hello");
    world.expect(&[]);
}

#[test]
fn b_13_3_unknown_status_fields_are_preserved() {
    let unknown: Option<Box<str>> = Some(",\"nextScheduleTime\":\"2026-05-05T10:00:00Z\"".into());
    let status = CronJobStatus {
        unknown_members: unknown.clone(),
        ..cron_job("hello").status
    };
    let mut world = World::new(
        "09:59:30",
        vec![CronJobRecord {
            status,
            ..cron_job("hello")
        }],
        vec![],
    );
    world.advance_to("10:00:00");
    world.effects();
    world.created();
    world.effects();
    assert_eq!(
        world.pending_write("hello").expect("a write").status.unknown_members,
        unknown
    );
}
