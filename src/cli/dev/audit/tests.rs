//! Tests of the run counts that the audit derives from watch events.

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    cli::dev::board::Board,
    schedule::{
        Zone,
        options::{Calendar, NamespaceOptions},
    },
    shard::{
        CalendarUpdate, CronJobSchedule, Finish, Input, JobCreator, JobRecord, NamespaceUpdate, ResourceVersion, Scope,
        state::test_record,
    },
};

/// The deletion of a Job.
fn gone(job: &str) -> Input {
    Input::JobDeleted {
        job: Uid::new(job),
        cron_job: Uid::new("owner"),
    }
}

fn at(time: &str) -> Timestamp {
    format!("2026-05-05T{time}Z").parse().unwrap()
}

/// A minutely CronJob with changed fields.
fn cron_job(change: impl FnOnce(&mut CronJobRecord)) -> CronJobRecord {
    let mut record = test_record("a");
    record.status.last_schedule_time = None;
    record.created = at("10:00:00");
    change(&mut record);
    record
}

fn applied(record: CronJobRecord) -> Input {
    Input::CronJobApplied(Box::new(record))
}

/// A Job of the CronJob with this uid for a slot.
fn job(uid: &str, slot: &str, finish: Option<Finish>) -> Input {
    Input::JobApplied(Box::new(JobRecord {
        uid: Uid::new(uid),
        namespace: "default".into(),
        name: uid.into(),
        resource_version: ResourceVersion(1),
        controller: Some(test_record("a").identity.uid.clone()),
        scheduled: Some(at(slot)),
        finish,
        started: None,
        completed: None,
        creator: JobCreator::Unknown,
        run_token: None,
    }))
}

/// Applies the CronJob at 10:00:10 and each item at its time to a board that is updated every second, and compares
/// the counts at the end.
#[track_caller]
fn check(record: CronJobRecord, items: Vec<(&str, Input)>, until: &str, expected: RunCounts) {
    let mut board = Board::default();
    let mut now = at("10:00:10");
    board.take(applied(record), now);
    let mut items = items.into_iter().peekable();
    while now < at(until) {
        now += SignedDuration::from_secs(1);
        while let Some((time, item)) = items.next_if(|(time, _)| at(time) <= now) {
            board.take(item, at(time));
        }
        board.figures(now);
    }
    let figures = board.figures(now);
    assert_eq!(figures.runs, expected);
    let n_findings = |problem| {
        figures
            .findings
            .iter()
            .filter(|finding| finding.problem == problem)
            .count() as u64
    };
    let found = [Problem::Missed, Problem::Doubled].map(n_findings);
    assert_eq!(found, [expected.missed, expected.doubled], "{figures:?}");
}

const NONE: RunCounts = RunCounts {
    started: 0,
    held_back: 0,
    waiting: 0,
    missed: 0,
    doubled: 0,
};

#[test]
fn a_slot_without_a_job_is_missed_at_the_next_slot() {
    check(cron_job(|_| {}), vec![], "10:00:59", NONE);
    let waiting = RunCounts { waiting: 1, ..NONE };
    check(cron_job(|_| {}), vec![], "10:01:59", waiting);
    let missed = RunCounts { missed: 1, ..waiting };
    check(cron_job(|_| {}), vec![], "10:02:01", missed);
    let started = RunCounts { started: 1, ..NONE };
    let items = vec![("10:01:00.003", job("1", "10:01:00", None))];
    check(cron_job(|_| {}), items, "10:01:59", started);
}

#[test]
fn a_starting_deadline_ends_the_wait() {
    let record = || cron_job(|record| record.starting_deadline_seconds = Some(10));
    let missed = RunCounts { missed: 1, ..NONE };
    check(record(), vec![], "10:01:10", missed);
    let waiting = RunCounts { waiting: 1, ..NONE };
    check(record(), vec![], "10:01:09", waiting);
}

#[test]
fn a_short_starting_deadline_allows_ten_seconds_of_lateness() {
    for deadline_seconds in [0, 9] {
        let record = || cron_job(|record| record.starting_deadline_seconds = Some(deadline_seconds));
        let waiting = RunCounts { waiting: 1, ..NONE };
        check(record(), vec![], "10:01:09", waiting);
        let missed = RunCounts { missed: 1, ..NONE };
        check(record(), vec![], "10:01:10", missed);
    }
}

#[test]
fn a_job_observed_late_is_not_missed() {
    let items = vec![
        ("10:03:30", job("1", "10:01:00", None)),
        ("10:03:30", job("2", "10:02:00", None)),
        ("10:03:30", job("3", "10:03:00", None)),
    ];
    let started = RunCounts { started: 3, ..NONE };
    check(cron_job(|_| {}), items, "10:03:40", started);
}

#[test]
fn a_second_job_of_a_slot_doubles_it() {
    let items = vec![
        ("10:01:00", job("1", "10:01:00", None)),
        ("10:01:01", job("1", "10:01:00", Some(Finish::Complete))),
        ("10:01:02", gone("1")),
        ("10:01:03", job("2", "10:01:00", None)),
    ];
    let expected = RunCounts {
        started: 1,
        doubled: 1,
        ..NONE
    };
    check(cron_job(|_| {}), items, "10:01:59", expected);
}

#[test]
fn a_slot_that_is_started_after_later_ones_is_neither_missed_nor_doubled() {
    let items = |latest: &'static str| {
        vec![
            // 10:01 is missed and 10:02 is missed; both are backfilled, and so is one from before the audit.
            ("10:03:00", job("3", "10:03:00", None)),
            ("10:03:30", job("1", "10:01:00", None)),
            ("10:03:31", job("2", "10:02:00", None)),
            ("10:03:32", job("0", "09:59:00", None)),
            ("10:03:33", job("again", latest, None)),
        ]
    };
    let expected = RunCounts {
        started: 4,
        doubled: 1,
        ..NONE
    };
    for doubled in ["09:59:00", "10:01:00", "10:03:00"] {
        check(cron_job(|_| {}), items(doubled), "10:03:50", expected);
    }
}

#[test]
fn a_slot_that_was_held_back_counts_as_started_once_it_has_a_job() {
    let forbid = |record: &mut CronJobRecord| record.concurrency_policy = ConcurrencyPolicy::Forbid;
    let items = vec![
        ("10:01:00", job("1", "10:01:00", None)),
        ("10:03:10", job("1", "10:01:00", Some(Finish::Complete))),
        ("10:03:10", job("3", "10:03:00", None)),
        ("10:03:20", job("2", "10:02:00", None)),
    ];
    check(cron_job(forbid), items, "10:03:50", RunCounts { started: 3, ..NONE });
}

#[test]
fn forbid_holds_slots_back_only_while_a_job_runs() {
    let forbid = |record: &mut CronJobRecord| record.concurrency_policy = ConcurrencyPolicy::Forbid;
    let items = || {
        vec![
            ("10:01:00", job("1", "10:01:00", None)),
            ("10:03:30", job("1", "10:01:00", Some(Finish::Complete))),
            ("10:03:30", job("3", "10:03:00", None)),
            ("10:03:40", job("3", "10:03:00", Some(Finish::Complete))),
        ]
    };
    let expected = RunCounts {
        started: 2,
        held_back: 1,
        ..NONE
    };
    check(cron_job(forbid), items(), "10:03:59", expected);
    let missed = RunCounts {
        missed: 1,
        waiting: 1,
        ..expected
    };
    check(cron_job(forbid), items(), "10:05:01", missed);
    let allowed = RunCounts {
        held_back: 0,
        missed: 1,
        ..expected
    };
    check(cron_job(|_| {}), items(), "10:03:59", allowed);
}

#[test]
fn a_slot_in_the_minute_of_a_job_is_held_back_by_its_name() {
    let record = cron_job(|record| record.schedule = CronJobSchedule::new("@every 20s", None, &Zone::utc()));
    let items = vec![
        ("10:00:20", job("1", "10:00:20", None)),
        ("10:00:45", gone("other")),
        ("10:01:00", job("2", "10:01:00", None)),
    ];
    let expected = RunCounts {
        started: 2,
        held_back: 1,
        ..NONE
    };
    check(record, items, "10:01:10", expected);
}

/// The namespace has this annotation and no other.
fn annotated(name: &'static str, value: &'static str) -> Input {
    let options = NamespaceOptions::read(|annotation| (annotation == name).then_some(value));
    Input::NamespaceUpdated(NamespaceUpdate::Selected {
        name: "default".into(),
        options: options.map(Box::new),
    })
}

fn frozen_until(end: &'static str) -> Input {
    annotated("cronwheel.dev/freeze-until", end)
}

/// A CronJob with one option.
fn with_option(schedule: &str, option: &'static str, value: &'static str) -> CronJobRecord {
    let schedule = CronJobSchedule::new(schedule, None, &Zone::utc());
    let get = |annotation: &str| (annotation.strip_prefix("cronwheel.dev/") == Some(option)).then_some(value);
    cron_job(|record| record.schedule = schedule.with_options("a", get, 0))
}

#[test]
fn a_freeze_holds_slots_back() {
    let frozen = || frozen_until("2026-05-05T10:02:30Z");
    let items = || vec![("10:00:20", frozen())];
    let expected = RunCounts {
        held_back: 1,
        waiting: 1,
        ..NONE
    };
    check(cron_job(|_| {}), items(), "10:02:40", expected);
    // At its end the latest slot starts.
    let items = vec![("10:00:20", frozen()), ("10:02:30", job("2", "10:02:00", None))];
    let expected = RunCounts {
        held_back: 1,
        started: 1,
        ..NONE
    };
    check(cron_job(|_| {}), items, "10:02:40", expected);
    // One that begins while a slot waits holds it back, and one that is removed holds the next slot no more.
    let items = vec![
        ("10:01:10", frozen()),
        ("10:01:20", annotated("cronwheel.dev/freeze-until", "none")),
    ];
    let expected = RunCounts {
        held_back: 1,
        missed: 1,
        waiting: 1,
        ..NONE
    };
    check(cron_job(|_| {}), items, "10:03:10", expected);
}

#[test]
fn the_calendar_of_a_cron_job_excludes_its_slots() {
    let record = || with_option("* * * * *", "not-on", "holidays");
    let update = |update| Input::CalendarUpdated(Box::new(update));
    let calendar = |dates: &'static str| {
        update(CalendarUpdate::Applied {
            namespace: "default".into(),
            name: "holidays".into(),
            calendar: Ok(Calendar::read([("dates", dates)].into_iter()).unwrap().into()),
        })
    };
    let items = vec![
        ("10:00:20", update(CalendarUpdate::ListBegun(Scope::Cluster))),
        ("10:00:20", calendar("2026-05-05")),
        ("10:00:20", update(CalendarUpdate::ListDone(Scope::Cluster))),
        ("10:02:30", calendar("2026-05-06")),
    ];
    let waiting = RunCounts { waiting: 1, ..NONE };
    check(record(), items, "10:03:30", waiting);
}

#[test]
fn a_starting_deadline_counts_from_the_offset_of_the_slot() {
    let record = || {
        let mut record = with_option("0 * * * *", "spread", "30m");
        record.starting_deadline_seconds = Some(10);
        record
    };
    let mut hourly = record();
    hourly.schedule = CronJobSchedule::new("0 * * * *", None, &Zone::utc());
    let inherited = vec![("10:00:20", annotated("cronwheel.dev/spread", "30m"))];
    for (record, items) in [(record(), vec![]), (hourly, inherited)] {
        let waiting = RunCounts { waiting: 1, ..NONE };
        check(record.clone(), items.clone(), "11:00:30", waiting);
        let missed = RunCounts { missed: 1, ..NONE };
        check(record, items, "11:30:15", missed);
    }
}

#[test]
fn a_slot_with_seconds_is_not_held_back_by_a_job_of_its_minute() {
    let record = with_option("* * * * *", "schedule", "*/20 * * * * *");
    let items = vec![
        ("10:00:20", job("1", "10:00:20", None)),
        ("10:01:00", job("2", "10:01:00", None)),
    ];
    let expected = RunCounts {
        started: 2,
        missed: 1,
        ..NONE
    };
    check(record, items, "10:01:10", expected);
}

#[test]
fn slots_before_a_change_or_deletion_are_not_counted() {
    let suspended = || applied(cron_job(|record| record.is_suspended = true));
    check(cron_job(|_| {}), vec![("10:01:00.001", suspended())], "10:09:00", NONE);
    let deletion = Input::CronJobDeleted(test_record("a").identity.uid.clone());
    check(cron_job(|_| {}), vec![("10:01:00.001", deletion)], "10:09:00", NONE);
    // A status update does not change the schedule.
    let status_update = applied(cron_job(|record| {
        record.status.last_schedule_time = Some(at("10:00:00"));
    }));
    let waiting = RunCounts { waiting: 1, ..NONE };
    check(
        cron_job(|_| {}),
        vec![("10:01:00.001", status_update)],
        "10:01:30",
        waiting,
    );
}

#[test]
fn only_the_latest_findings_are_kept() {
    let mut board = Board::default();
    board.take(applied(cron_job(|_| {})), at("10:00:10"));
    let figures = board.figures(at("10:00:10"));
    assert_eq!(figures.findings, []);
    for minute in 1..=20 {
        board.figures(at(&format!("10:{minute:02}:00")));
    }
    let figures = board.figures(at("10:20:30"));
    assert_eq!(figures.runs.missed, 19);
    let slots: Vec<Timestamp> = figures.findings.iter().map(|finding| finding.slot).collect();
    assert_eq!((slots.len(), slots[0]), (FINDINGS_MAX, at("10:19:00")), "newest first");
}
