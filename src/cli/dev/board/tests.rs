//! Tests of the figures that the board derives from watch events.

use std::sync::Arc;

use super::*;
use crate::{
    schedule::Zone,
    shard::{CronJobIdentity, CronJobSchedule, Finish, JobCreator, ResourceVersion, Scope, state::test_record},
};

/// The deletion of a Job.
fn gone(job: &str) -> Input {
    Input::JobDeleted {
        job: uid(job),
        cron_job: uid("owner"),
    }
}

fn at(time: &str) -> Timestamp {
    format!("2026-05-05T{time}Z").parse().unwrap()
}

fn uid(name: &str) -> Uid {
    Uid::new(name)
}

fn cron_job(name: &str, schedule: &str) -> CronJobRecord {
    let mut record = test_record(name);
    record.schedule = CronJobSchedule::new(schedule, None, &Zone::utc());
    record
}

fn applied(record: CronJobRecord) -> Input {
    Input::CronJobApplied(Box::new(record))
}

fn job(name: &str, slot: &str, finish: Option<Finish>) -> Input {
    job_with(name, slot, finish, |_| {})
}

fn job_with(name: &str, slot: &str, finish: Option<Finish>, change: impl FnOnce(&mut JobRecord)) -> Input {
    let mut record = JobRecord {
        uid: uid(name),
        namespace: "default".into(),
        name: name.into(),
        resource_version: ResourceVersion(1),
        controller: Some(uid("owner")),
        scheduled: Some(at(slot)),
        finish,
        started: None,
        completed: None,
        creator: JobCreator::Unknown,
        run_token: None,
    };
    change(&mut record);
    Input::JobApplied(Box::new(record))
}

/// Returns the number of slots that became due within the last minute.
fn n_due(board: &mut Board, now: &str) -> usize {
    board.figures(at(now)).n_due
}

/// Returns the numbers of starts within the last minute and of running Jobs.
fn jobs(board: &mut Board, now: &str) -> (usize, usize) {
    let figures = board.figures(at(now));
    (figures.n_started, figures.n_running)
}

#[test]
fn due_slots_count_for_a_minute() {
    let mut board = Board::default();
    for (name, schedule) in [("hourly", "0 * * * *"), ("b", "* * * * *"), ("a", "* * * * *")] {
        board.take(applied(cron_job(name, schedule)), at("10:58:30"));
    }
    assert_eq!(n_due(&mut board, "10:58:59"), 0);
    assert_eq!(n_due(&mut board, "10:59:00"), 2);
    assert_eq!(n_due(&mut board, "10:59:59"), 2);
    assert_eq!(n_due(&mut board, "11:00:00"), 3);
    assert_eq!(n_due(&mut board, "11:00:59"), 3);
}

#[test]
fn due_slots_follow_changes_and_deletions() {
    let mut board = Board::default();
    board.take(applied(cron_job("a", "* * * * *")), at("10:00:30"));
    board.take(applied(cron_job("a", "3 10 * * *")), at("10:00:31"));
    assert_eq!(n_due(&mut board, "10:01:00"), 0);
    assert_eq!(n_due(&mut board, "10:03:00"), 1);
    let mut suspended = cron_job("a", "* * * * *");
    suspended.is_suspended = true;
    board.take(applied(suspended), at("10:03:30"));
    assert_eq!(n_due(&mut board, "10:04:30"), 0);
    board.take(applied(cron_job("a", "* * * * *")), at("10:05:30"));
    let uid = cron_job("a", "").identity.uid.clone();
    board.take(Input::CronJobDeleted(uid), at("10:05:40"));
    assert_eq!(board.figures(at("10:06:40")), Figures::default());
}

#[test]
fn schedules_that_never_match_are_never_due() {
    let mut zoneless = cron_job("zoneless", "* * * * *");
    zoneless.schedule = CronJobSchedule::new("* * * * *", Some("Mars/Base"), &Zone::utc());
    let mut board = Board::default();
    for record in [zoneless, cron_job("bad", "* * *"), cron_job("never", "0 0 30 2 *")] {
        board.take(applied(record), at("10:00:00"));
    }
    assert_eq!(n_due(&mut board, "10:01:00"), 0);
}

#[test]
fn a_relist_replaces_a_recreated_cron_job() {
    let mut board = Board::default();
    board.take(applied(cron_job("a", "* * * * *")), at("10:00:30"));
    let mut anew = cron_job("a", "* * * * *");
    anew.identity = Arc::new(CronJobIdentity {
        uid: uid("anew"),
        ..(*anew.identity).clone()
    });
    for input in [
        Input::list_begun(WatchedResource::CronJobs, Scope::Cluster),
        applied(anew),
        Input::list_done(WatchedResource::CronJobs, Scope::Cluster),
    ] {
        board.take(input, at("10:00:40"));
    }
    assert_eq!(n_due(&mut board, "10:01:00"), 1);
}

#[test]
fn b_9_1_every_counts_from_the_last_slot_or_the_creation() {
    let mut board = Board::default();
    let mut record = cron_job("a", "@every 45s");
    record.status.last_schedule_time = None;
    record.created = at("10:00:10");
    board.take(applied(record.clone()), at("10:00:20"));
    assert_eq!(n_due(&mut board, "10:00:54"), 0);
    assert_eq!(n_due(&mut board, "10:00:55"), 1);
    record.status.last_schedule_time = Some(at("10:00:55"));
    board.take(applied(record), at("10:03:00"));
    assert_eq!(n_due(&mut board, "10:03:09"), 0);
    assert_eq!(n_due(&mut board, "10:03:10"), 1);
}

#[test]
fn starts_count_for_a_minute_and_running_jobs_until_they_end() {
    let mut board = Board::default();
    board.take(job("a-1", "10:00:00", None), at("10:00:00.002"));
    board.take(job("b-1", "10:00:00", None), at("10:00:30"));
    assert_eq!(jobs(&mut board, "10:00:31"), (2, 2));
    // Another event of the same Job is not another start.
    for time in ["10:00:40", "10:00:41"] {
        board.take(job("a-1", "10:00:00", Some(Finish::Complete)), at(time));
    }
    assert_eq!(jobs(&mut board, "10:00:59"), (2, 1));
    assert_eq!(jobs(&mut board, "10:01:00"), (1, 1));
    board.take(gone("a-1"), at("10:01:10"));
    board.take(gone("b-1"), at("10:01:10"));
    assert_eq!(jobs(&mut board, "10:01:30"), (0, 0));
}

#[test]
fn b_5_1_manual_jobs_run_but_are_no_starts() {
    let mut board = Board::default();
    let manual = job_with("manual", "10:00:00", None, |job| job.scheduled = None);
    let foreign = job_with("foreign", "10:00:00", None, |job| job.controller = None);
    board.take(manual, at("10:00:00"));
    board.take(foreign, at("10:00:00"));
    assert_eq!(jobs(&mut board, "10:00:01"), (0, 1));
}

#[test]
fn a_relist_removes_absent_objects() {
    let mut board = Board::default();
    let scope = || Scope::Cluster;
    for name in ["a", "b", "c"] {
        board.take(applied(cron_job(name, "* * * * *")), at("10:00:00"));
    }
    board.take(job("a-1", "10:00:00", None), at("10:00:00"));
    board.take(job("b-1", "10:00:00", None), at("10:00:00"));
    for input in [
        Input::list_begun(WatchedResource::CronJobs, scope()),
        applied(cron_job("b", "* * * * *")),
        Input::CronJobUndecodable(cron_job("c", "").identity.uid.clone()),
        Input::list_done(WatchedResource::CronJobs, scope()),
        Input::list_begun(WatchedResource::Jobs, scope()),
        Input::JobUndecodable(uid("b-1")),
        Input::list_done(WatchedResource::Jobs, scope()),
    ] {
        board.take(input, at("10:00:10"));
    }
    assert_eq!(jobs(&mut board, "10:00:20"), (2, 1));
    assert_eq!(n_due(&mut board, "10:01:00"), 2);
}
