//! Tests of the figures that the board derives from watch events.

use super::*;
use crate::{
    schedule::Zone,
    shard::{
        ConcurrencyPolicy, CronJobIdentity, CronJobSchedule, ResourceVersion, Scope, ShardLabels, state::test_record,
    },
};

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
    let slot = at(slot);
    Input::JobApplied(Box::new(JobRecord {
        uid: uid(name),
        namespace: "default".into(),
        name: name.into(),
        resource_version: ResourceVersion(1),
        controller: Some(uid("owner")),
        scheduled: Some(slot),
        finish,
        started: None,
        completed: None,
        is_created_by_cronwheel: false,
        shard_labels: ShardLabels::default(),
    }))
}

/// Returns the names of CronJobs with their next runs, without the time until then.
fn next_runs(board: &mut Board, now: &str) -> Vec<String> {
    let figures = board.figures(at(now), 10);
    let rows = figures.next_runs.iter();
    rows.map(|[cron_job, _, next_run]| {
        let instant = next_run.rsplit(", ").next().unwrap();
        format!("{cron_job} {}", instant.trim_end_matches(" UTC"))
    })
    .collect()
}

/// Returns the numbers of running, complete and failed Jobs.
fn jobs(board: &mut Board, now: &str) -> (usize, u64, u64) {
    let figures = board.figures(at(now), 10);
    (figures.n_running, figures.n_complete, figures.n_failed)
}

#[test]
fn next_runs_are_sorted_and_advance_with_time() {
    let mut board = Board::default();
    for (name, schedule) in [("hourly", "0 * * * *"), ("b", "* * * * *"), ("a", "* * * * *")] {
        board.take(applied(cron_job(name, schedule)), at("10:00:30"));
    }
    assert_eq!(
        next_runs(&mut board, "10:00:30"),
        ["default/a 10:01", "default/b 10:01", "default/hourly 11:00"]
    );
    assert_eq!(next_runs(&mut board, "10:01:00")[0], "default/a 10:02");
    let figures = board.figures(at("10:59:59"), 1);
    assert_eq!((figures.n_cron_jobs, figures.next_runs.len()), (3, 1));
    assert_eq!(
        next_runs(&mut board, "10:59:59").last().unwrap(),
        "default/hourly 11:00"
    );
}

#[test]
fn next_runs_follow_schedule_changes_and_deletions() {
    let mut board = Board::default();
    board.take(applied(cron_job("a", "* * * * *")), at("10:00:30"));
    board.take(applied(cron_job("a", "30 12 * * *")), at("10:00:31"));
    assert_eq!(next_runs(&mut board, "10:00:31"), ["default/a 12:30"]);
    board.take(
        Input::CronJobDeleted(cron_job("a", "").identity.uid.clone()),
        at("10:00:32"),
    );
    assert_eq!(next_runs(&mut board, "10:00:32"), [""; 0]);
    assert_eq!(board.figures(at("10:00:32"), 10), Figures::default());
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
    board.take(
        Input::list_begun(WatchedResource::CronJobs, Scope::Cluster),
        at("10:00:40"),
    );
    board.take(applied(anew), at("10:00:40"));
    board.take(
        Input::list_done(WatchedResource::CronJobs, Scope::Cluster),
        at("10:00:40"),
    );
    assert_eq!(next_runs(&mut board, "10:00:40"), ["default/a 10:01"]);
}

#[test]
fn b_9_1_every_counts_from_the_last_slot_or_the_creation() {
    let mut board = Board::default();
    let mut record = cron_job("a", "@every 45s");
    record.status.last_schedule_time = None;
    record.created = at("10:00:10");
    board.take(applied(record.clone()), at("10:00:20"));
    assert_eq!(next_runs(&mut board, "10:00:20"), ["default/a 10:00:55"]);
    assert_eq!(next_runs(&mut board, "10:00:55"), ["default/a 10:01:40"]);
    record.status.last_schedule_time = Some(at("10:00:55"));
    board.take(applied(record), at("10:03:00"));
    assert_eq!(next_runs(&mut board, "10:03:00"), ["default/a 10:03:10"]);
}

#[test]
fn suspended_and_never_due_cron_jobs_are_listed_as_such() {
    let mut suspended = cron_job("suspended", "* * * * *");
    suspended.is_suspended = true;
    let mut zoneless = cron_job("zoneless", "* * * * *");
    zoneless.schedule = CronJobSchedule::new("* * * * *", Some("Mars/Base"), &Zone::utc());
    let mut board = Board::default();
    for record in [
        suspended,
        zoneless,
        cron_job("bad", "* * *"),
        cron_job("never", "0 0 30 2 *"),
    ] {
        board.take(applied(record), at("10:00:00"));
    }
    let figures = board.figures(at("10:00:00"), 10);
    assert_eq!((figures.n_cron_jobs, figures.n_suspended, figures.n_never), (4, 1, 3));
    assert_eq!(
        next_runs(&mut board, "10:00:00"),
        [
            "default/bad never",
            "default/never never",
            "default/suspended suspended",
            "default/zoneless never"
        ]
    );
    let mut awake = cron_job("suspended", "* * * * *");
    awake.identity = Arc::new(CronJobIdentity {
        namespace: "shop".into(),
        ..(*awake.identity).clone()
    });
    awake.schedule = CronJobSchedule::new("* * * * *", Some("Asia/Tokyo"), &Zone::utc());
    board.take(applied(awake), at("10:00:01"));
    let figures = board.figures(at("10:00:01"), 10);
    assert_eq!((figures.n_cron_jobs, figures.n_suspended), (4, 0));
    assert_eq!(
        figures.next_runs[0],
        ["shop/suspended", "* * * * * Asia/Tokyo", "in 59s, 19:01 JST"]
    );
}

#[test]
fn a_cron_job_blocked_by_forbid_shows_the_running_job() {
    let mut board = Board::default();
    let mut record = cron_job("a", "* * * * *");
    record.concurrency_policy = ConcurrencyPolicy::Forbid;
    let owner = record.identity.uid.clone();
    board.take(applied(record), at("10:00:00"));
    let run = |finish| {
        let Input::JobApplied(record) = job("a-1", "10:01:00", finish) else {
            panic!("no Job")
        };
        Input::JobApplied(Box::new(JobRecord {
            controller: Some(owner.clone()),
            ..*record
        }))
    };
    board.take(run(None), at("10:01:00"));
    assert_eq!(board.figures(at("10:01:59"), 10).n_blocked, 0);
    assert_eq!(next_runs(&mut board, "10:02:00"), ["default/a Forbid: a-1 runs"]);
    assert_eq!(board.figures(at("10:02:00"), 10).n_blocked, 1);
    board.take(run(Some(Finish::Complete)), at("10:02:10"));
    assert_eq!(board.figures(at("10:02:10"), 10).n_blocked, 0);
    assert_eq!(next_runs(&mut board, "10:02:10"), ["default/a 10:03"]);
}

#[test]
fn slots_are_shown_in_the_zone_of_their_cron_job() {
    let mut board = Board::default();
    let mut record = cron_job("owner", "* * * * *");
    record.identity = Arc::new(CronJobIdentity {
        uid: uid("owner"),
        ..(*record.identity).clone()
    });
    record.schedule = CronJobSchedule::new("* * * * *", Some("Europe/Berlin"), &Zone::utc());
    board.take(applied(record), at("09:59:00"));
    board.take(job("a-1", "10:00:00", None), at("10:00:00"));
    assert_eq!(board.figures(at("10:00:01"), 10).latest_jobs[0][1], "12:00 CEST");
}

#[test]
fn hints_use_the_first_existing_cron_job() {
    let mut board = Board::default();
    assert_eq!(board.figures(at("10:00:00"), 0).subject, None);
    board.take(applied(cron_job("first", "0 3 * * *")), at("10:00:00"));
    board.take(applied(cron_job("second", "* * * * *")), at("10:00:00"));
    let name = |board: &mut Board| board.figures(at("10:00:00"), 0).subject.map(|subject| subject.name);
    assert_eq!(name(&mut board).as_deref(), Some("first"));
    let first = cron_job("first", "").identity.uid.clone();
    board.take(Input::CronJobDeleted(first), at("10:00:00"));
    assert_eq!(name(&mut board).as_deref(), Some("second"));
}

#[test]
fn job_counts_ignore_repeated_events() {
    let mut board = Board::default();
    board.take(job("a-1", "10:00:00", None), at("10:00:00.002"));
    board.take(job("b-1", "10:00:00", None), at("10:00:00.002"));
    assert_eq!(jobs(&mut board, "10:00:01"), (2, 0, 0));
    board.take(job("a-1", "10:00:00", Some(Finish::Complete)), at("10:00:02"));
    board.take(job("a-1", "10:00:00", Some(Finish::Complete)), at("10:00:03"));
    assert_eq!(jobs(&mut board, "10:00:04"), (1, 1, 0));
    board.take(job("b-1", "10:00:00", Some(Finish::Failed)), at("10:00:05"));
    board.take(Input::JobDeleted(uid("a-1")), at("10:00:06"));
    board.take(Input::JobDeleted(uid("a-1")), at("10:00:06"));
    assert_eq!(jobs(&mut board, "10:00:07"), (0, 1, 1));
}

#[test]
fn a_deleted_job_is_not_running() {
    let mut board = Board::default();
    board.take(job("a-1", "10:00:00", None), at("10:00:00.002"));
    board.take(Input::JobDeleted(uid("a-1")), at("10:00:01"));
    assert_eq!(jobs(&mut board, "10:00:02"), (0, 0, 0));
    let latest = board.figures(at("10:00:02"), 10).latest_jobs;
    assert_eq!((&*latest[0][0], &*latest[0][2]), ("default/a-1", "Deleted"));
}

#[test]
fn starts_count_for_a_minute_and_are_listed_newest_first() {
    let mut board = Board::default();
    board.take(job("a-1", "10:00:00", None), at("10:00:00"));
    board.take(job("a-2", "10:00:30", None), at("10:00:30"));
    // Another event of the same Job is not another start.
    board.take(job("a-1", "10:00:00", Some(Finish::Failed)), at("10:00:40"));
    assert_eq!(board.figures(at("10:00:59"), 10).n_starts, 2);
    let figures = board.figures(at("10:01:00"), 10);
    assert_eq!(figures.n_starts, 1);
    let latest: Vec<_> = figures
        .latest_jobs
        .iter()
        .map(|[name, _, state]| (name.as_str(), state.as_str()))
        .collect();
    assert_eq!(latest, [("default/a-2", "Running"), ("default/a-1", "Failed")]);
    for number in 0..2 * LATEST_MAX {
        board.take(job(&format!("b-{number}"), "10:01:00", None), at("10:01:00"));
    }
    assert_eq!(board.figures(at("10:01:00"), usize::MAX).latest_jobs.len(), LATEST_MAX);
}

#[test]
fn b_5_1_manual_jobs_are_counted_but_are_no_starts() {
    fn without(input: Input, change: impl FnOnce(&mut JobRecord)) -> Input {
        let Input::JobApplied(mut record) = input else {
            return input;
        };
        change(&mut record);
        Input::JobApplied(record)
    }
    let mut board = Board::default();
    let manual = without(job("manual", "10:00:00", None), |job| job.scheduled = None);
    let foreign = without(job("foreign", "10:00:00", None), |job| job.controller = None);
    board.take(manual, at("10:00:00"));
    board.take(foreign, at("10:00:00"));
    assert_eq!(jobs(&mut board, "10:00:01"), (1, 0, 0));
    let figures = board.figures(at("10:00:01"), 10);
    assert_eq!((figures.n_starts, figures.latest_jobs), (0, Vec::new()));
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
    assert_eq!(
        next_runs(&mut board, "10:00:10"),
        ["default/b 10:01", "default/c 10:01"]
    );
    assert_eq!(jobs(&mut board, "10:00:10"), (1, 0, 0));
}
