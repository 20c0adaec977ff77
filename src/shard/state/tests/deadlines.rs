//! B-9.7, B-10.1 and the design's interpretation of them: the latest time at which a slot may start.

use super::world::{World, at, cron_job, schedule};
use crate::shard::{CreateOutcome, CronJobRecord, CronJobStatus, InstantOutcome, JobTemplate};

const MISSED: &str = "Warning MissSchedule: Missed scheduled time to start a job: Tue, 05 May 2026 10:00:00 +0000";
const STARTED: &str = "create hello-29632920 for 2026-05-05T10:00:00Z";

fn with_deadline(secs: i64) -> CronJobRecord {
    CronJobRecord {
        starting_deadline_seconds: Some(secs),
        ..cron_job("hello")
    }
}

/// Checks the effects for the slot of 10:00 if the controller starts at `now`.
fn check_cold(secs: i64, now: &str, expected: &[&str]) {
    let hourly = CronJobRecord {
        schedule: schedule("0 * * * *", None),
        status: CronJobStatus {
            last_schedule_time: Some(at("09:00:00")),
            ..CronJobStatus::default()
        },
        ..with_deadline(secs)
    };
    let mut world = World::new(now, vec![hourly], vec![]);
    assert_eq!(world.effects(), expected, "deadline {secs} s at {now}");
}

#[test]
fn a_slot_may_start_until_its_deadline_and_not_after() {
    check_cold(300, "10:04:59", &[STARTED]);
    check_cold(300, "10:05:00", &[STARTED]);
    check_cold(300, "10:05:00.001", &[MISSED]);
    check_cold(300, "10:59:59", &[MISSED]);
    check_cold(5, "10:00:05", &[STARTED]);
    check_cold(5, "10:00:06", &[MISSED]);
    check_cold(0, "10:00:00", &[STARTED]);
    check_cold(0, "10:00:01", &[MISSED]);
}

#[test]
fn b_9_7_deadline_zero_tolerates_a_late_wake_up() {
    let mut world = World::new("09:59:30", vec![with_deadline(0)], vec![]);
    world.jump_to("10:00:00.250");
    world.expect(&[STARTED]);
}

#[test]
fn b_9_7_deadline_zero_misses_the_slot_after_a_long_sleep() {
    let mut world = World::new("09:59:30", vec![with_deadline(0)], vec![]);
    world.jump_to("10:00:10.001");
    world.expect(&[MISSED]);
}

#[test]
fn b_9_7_every_with_a_deadline_below_its_period_fires_on_its_grid() {
    let every = CronJobRecord {
        schedule: schedule("@every 10m", None),
        ..with_deadline(60)
    };
    let mut world = World::new("09:59:30", vec![every], vec![]);
    world.advance_to("10:08:59");
    world.expect(&[]);
    world.advance_to("10:09:00");
    world.expect(&["create hello-29632929 for 2026-05-05T10:09:00Z"]);
}

#[test]
fn b_9_7_every_keeps_its_grid_after_a_missed_deadline() {
    let every = CronJobRecord {
        schedule: schedule("@every 10m", None),
        ..with_deadline(60)
    };
    let mut world = World::new("10:20:30", vec![every], vec![]);
    world.expect(&["Warning MissSchedule: Missed scheduled time to start a job: Tue, 05 May 2026 10:19:00 +0000"]);
    world.advance_to("10:29:00");
    world.expect(&["create hello-29632949 for 2026-05-05T10:29:00Z"]);
}

#[test]
fn b_10_1_a_missed_slot_is_reported_once() {
    let mut world = World::new("10:00:30", vec![with_deadline(20)], vec![]);
    world.expect(&[MISSED]);
    world.apply(CronJobRecord {
        successful_jobs_history_limit: Some(1),
        resource_version: crate::shard::ResourceVersion(11),
        ..with_deadline(20)
    });
    world.expect(&[]);
    assert_eq!(
        world.shard.outcome_counts().outcome(InstantOutcome::DeadlineExceeded),
        1
    );
}

#[test]
fn b_9_7_a_create_expires_at_its_deadline_but_not_within_ten_seconds() {
    for (secs, expires) in [
        (0, "10:00:10.000000001"),
        (3, "10:00:10.000000001"),
        (30, "10:00:30.000000001"),
        (300, "10:01:00"),
    ] {
        let mut world = World::new("09:59:30", vec![with_deadline(secs)], vec![]);
        world.advance_to("10:00:00");
        world.effects();
        assert_eq!(
            world.creates[0].expires_at,
            Some(at(&format!("2026-05-05T{expires}Z"))),
            "{secs} s"
        );
        assert_eq!(
            world.creates[0].wanted_by,
            at("10:00:00") + jiff::SignedDuration::from_secs(secs)
        );
    }
}

#[test]
fn a_create_is_retried_within_ten_seconds_despite_deadline_zero() {
    let mut world = World::new("09:59:30", vec![with_deadline(0)], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.refused("no");
    world.effects();
    world.advance_to("10:00:01");
    world.expect(&[STARTED]);
}

#[test]
fn a_create_that_expires_at_its_deadline_is_reported_as_missed() {
    let mut world = World::new("09:59:30", vec![with_deadline(30)], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.advance_to("10:00:31");
    world.answer_create(CreateOutcome::Withdrawn);
    world.expect(&[MISSED]);
}

#[test]
fn without_a_deadline_the_next_slot_is_the_deadline_of_a_create() {
    let mut world = World::new("09:59:30", vec![cron_job("hello")], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    assert_eq!(world.creates[0].wanted_by, at("10:01:00"));
}

#[test]
fn a_job_may_be_stored_until_the_next_slot_or_its_deadline() {
    #[track_caller]
    fn check(name: &str, record: CronJobRecord, store_by: Option<&str>) {
        let mut world = World::new("09:59:30", vec![record], vec![]);
        world.advance_to("10:00:00");
        world.effects();
        assert_eq!(world.creates[0].store_by, store_by.map(at), "{name}");
    }
    let with_ttl = |seconds| {
        let record = cron_job("hello");
        let template = JobTemplate {
            ttl_seconds_after_finished: Some(seconds),
            ..(*record.template).clone()
        };
        CronJobRecord {
            template: template.into(),
            ..record
        }
    };
    // The time is two seconds before the instant, within the clock tolerance.
    check("the next slot", cron_job("hello"), Some("10:00:58"));
    check("a deadline", with_deadline(30), Some("2026-05-05T10:00:28.000000001Z"));
    check("a late deadline", with_deadline(300), Some("10:00:58"));
    check("a TTL of a minute", with_ttl(60), Some("10:00:58"));
    check("a shorter TTL", with_ttl(59), None);
    let limits = [(Some(0), Some(1)), (Some(1), Some(0))];
    for (successful_jobs_history_limit, failed_jobs_history_limit) in limits {
        let record = CronJobRecord {
            successful_jobs_history_limit,
            failed_jobs_history_limit,
            ..cron_job("hello")
        };
        check("a history limit of 0", record, None);
    }
}
