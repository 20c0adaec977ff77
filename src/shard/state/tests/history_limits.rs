//! B-4: finished Jobs that exceed the limits.

use super::world::{World, at, complete, cron_job, entry, failed, job, manual_job};
use crate::shard::{ConcurrencyPolicy, CronJobRecord, CronJobStatus, DeleteOutcome, JobRecord, ResourceVersion};

/// Successful Jobs of these slots.
fn finished(slots: &[&str]) -> Vec<JobRecord> {
    slots.iter().map(|slot| complete(job("hello", slot), slot)).collect()
}

const FIVE: [&str; 5] = ["09:50:00", "09:52:00", "09:54:00", "09:56:00", "09:58:00"];

fn stored(record: CronJobRecord) -> CronJobRecord {
    let status = CronJobStatus {
        last_successful_time: Some(at("09:58:00")),
        ..record.status.clone()
    };
    CronJobRecord { status, ..record }
}

#[test]
fn b_4_3_the_oldest_successful_jobs_are_deleted_first() {
    let mut world = World::new("09:59:30", vec![stored(cron_job("hello"))], finished(&FIVE));
    world.expect(&["delete hello-29632910", "delete hello-29632912"]);
    world.answer_delete(DeleteOutcome::Deleted);
    world.answer_delete(DeleteOutcome::Deleted);
    world.expect(&[
        "Normal SuccessfulDelete: Deleted job hello-29632910",
        "Normal SuccessfulDelete: Deleted job hello-29632912",
    ]);
}

/// As `cronwheel backfill` starts it: its slot is the oldest, and its start the latest.
#[test]
fn b_4_3_a_backfilled_job_counts_towards_the_limit_by_its_start() {
    let mut jobs = finished(&FIVE[2..]);
    let mut backfilled = complete(job("hello", "09:30:00"), "09:59:00");
    backfilled.started = Some(at("09:58:59"));
    jobs.push(backfilled);
    let mut world = World::new("09:59:30", vec![stored(cron_job("hello"))], jobs);
    let effects = world.effects();
    assert_eq!(
        effects.first().map(String::as_str),
        Some("delete hello-29632914"),
        "{effects:?}"
    );
    assert!(
        !effects.iter().any(|effect| effect.contains("UnexpectedJob")),
        "{effects:?}"
    );
}

#[test]
fn b_4_3_failed_jobs_have_their_own_limit_and_are_deleted_second() {
    let mut jobs = finished(&FIVE[..4]);
    jobs.push(failed(job("hello", "09:51:00")));
    jobs.push(failed(job("hello", "09:53:00")));
    let mut world = World::new("09:59:30", vec![stored(cron_job("hello"))], jobs);
    world.expect(&["delete hello-29632910", "delete hello-29632911"]);
}

#[test]
fn b_4_3_jobs_are_deleted_by_start_time_then_name() {
    let mut jobs = finished(&FIVE);
    jobs[0].started = None;
    jobs[2].started = jobs[1].started;
    let mut world = World::new("09:59:30", vec![stored(cron_job("hello"))], jobs);
    world.expect(&["delete hello-29632912", "delete hello-29632914"]);
}

#[test]
fn b_4_3_a_job_being_replaced_does_not_push_others_out_of_history() {
    let running = job("hello", "09:59:00");
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Replace,
        status: CronJobStatus {
            active: vec![entry(&running)],
            ..stored(cron_job("hello")).status
        },
        ..cron_job("hello")
    };
    let mut jobs = finished(&FIVE[2..]);
    jobs.push(running.clone());
    let mut world = World::new("09:59:30", vec![record], jobs);
    world.advance_to("10:00:00");
    world.expect(&["delete hello-29632919"]);
    world.apply_job(complete(running, "10:00:01"));
    let effects = world.effects();
    assert!(effects.iter().all(|line| !line.starts_with("delete")), "{effects:#?}");
}

#[test]
fn b_4_1_without_limits_all_jobs_are_kept() {
    let record = CronJobRecord {
        successful_jobs_history_limit: None,
        failed_jobs_history_limit: None,
        ..stored(cron_job("hello"))
    };
    World::new("09:59:30", vec![record], finished(&FIVE)).expect(&[]);
}

#[test]
fn b_4_4_manual_runs_count_towards_the_limit() {
    let mut jobs = finished(&FIVE[2..]);
    jobs.push(complete(manual_job("hello", "by-hand"), "09:40:00"));
    let mut world = World::new("09:59:30", vec![stored(cron_job("hello"))], jobs);
    world.expect(&["delete by-hand"]);
}

#[test]
fn b_4_5_a_delete_is_not_repeated_and_404_is_success() {
    let mut world = World::new("09:59:30", vec![stored(cron_job("hello"))], finished(&FIVE[1..]));
    world.expect(&["delete hello-29632912"]);
    world.apply(CronJobRecord {
        starting_deadline_seconds: Some(90),
        resource_version: ResourceVersion(11),
        ..stored(cron_job("hello"))
    });
    world.expect(&[]);
    world.answer_delete(DeleteOutcome::Gone);
    world.expect(&[]);
}

#[test]
fn b_4_4_a_failed_delete_is_reported_and_retried() {
    let mut world = World::new("09:59:30", vec![stored(cron_job("hello"))], finished(&FIVE[1..]));
    world.effects();
    world.answer_delete(DeleteOutcome::Failed {
        message: "webhook says no".into(),
        retry_after: None,
    });
    world.expect(&["Warning FailedDelete: Deleted job: webhook says no"]);
    world.advance_to("09:59:36");
    world.expect(&["delete hello-29632912"]);
}

#[test]
fn b_3_1_history_is_cleaned_when_suspended_deleting_or_unparseable() {
    for record in [
        CronJobRecord {
            is_suspended: true,
            ..stored(cron_job("hello"))
        },
        CronJobRecord {
            is_deleting: true,
            ..stored(cron_job("hello"))
        },
        CronJobRecord {
            schedule: super::world::schedule("nonsense", None),
            ..stored(cron_job("hello"))
        },
    ] {
        let mut world = World::new("09:59:30", vec![record], finished(&FIVE[1..]));
        assert_eq!(world.effects()[0], "delete hello-29632912");
    }
}

/// A CronJob that keeps no completed Job.
fn without_history() -> CronJobRecord {
    CronJobRecord {
        successful_jobs_history_limit: Some(0),
        ..cron_job("hello")
    }
}

#[test]
fn b_4_6_with_limit_zero_a_job_is_deleted_without_a_completed_event() {
    let mut world = World::new("09:59:30", vec![without_history()], vec![job("hello", "09:59:00")]);
    world.expect(&["status last=09:59:00 successful=- active=[hello-29632919]"]);
    world.stored("hello");
    world.apply_job(complete(job("hello", "09:59:00"), "09:59:20"));
    world.expect(&[
        "delete hello-29632919",
        "status last=09:59:00 successful=09:59:20 active=[]",
    ]);
}

/// The watch delivers the whole life of a short Job before the create is answered.
#[test]
fn b_4_6_with_limit_zero_no_job_that_ends_before_the_answer_to_its_create_is_reported() {
    let mut world = World::new("09:59:30", vec![without_history()], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.apply_job(job("hello", "10:00:00"));
    world.apply_job(complete(job("hello", "10:00:00"), "10:00:01"));
    world.expect(&[
        "status last=10:00:00 successful=- active=[hello-29632920]",
        "status last=10:00:00 successful=10:00:01 active=[]",
    ]);
    world.stored("hello");
    world.created();
    world.expect(&[
        "Normal SuccessfulCreate: Created job hello-29632920",
        "delete hello-29632920",
    ]);
}

#[test]
fn no_job_is_deleted_before_its_slot_is_stored() {
    let mut world = World::new("09:59:30", vec![without_history()], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.created();
    world.effects();
    world.apply_job(complete(job("hello", "10:00:00"), "10:00:01"));
    world.expect(&["status last=10:00:00 successful=10:00:01 active=[] urgent"]);
    world.stored("hello");
    world.expect(&["delete hello-29632920"]);
}

#[test]
fn an_unrecorded_finished_job_moves_the_cursor_before_its_deletion() {
    let done = complete(job("hello", "10:00:00"), "10:00:05");
    let mut world = World::new("10:00:30", vec![without_history()], vec![done]);
    world.expect(&["status last=10:00:00 successful=10:00:05 active=[] urgent"]);
    world.stored("hello");
    world.expect(&["delete hello-29632920"]);
}

#[test]
fn b_4_3_a_job_waiting_for_the_cursor_delays_later_deletions() {
    let record = CronJobRecord {
        successful_jobs_history_limit: Some(0),
        failed_jobs_history_limit: Some(0),
        ..cron_job("hello")
    };
    let unrecorded = complete(job("hello", "10:00:00"), "10:00:05");
    let recorded = failed(job("hello", "09:58:00"));
    let mut world = World::new("10:00:30", vec![record], vec![unrecorded, recorded]);
    world.expect(&["status last=10:00:00 successful=10:00:05 active=[] urgent"]);
    world.stored("hello");
    world.expect(&["delete hello-29632920", "delete hello-29632918"]);
}
