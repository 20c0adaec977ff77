//! Two CronJobs in one measured minute, and the figures that result.

use super::*;
use crate::generator::Load;

const MINUTE: i64 = 100;

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(MINUTE * 60_000 + milliseconds).unwrap()
}

fn request(verb: &str, resource: &str, name: &str, milliseconds: i64) -> Request {
    Request {
        verb: verb.into(),
        resource: resource.into(),
        namespace: if name.starts_with("load-00000") {
            "run-0"
        } else {
            "run-1"
        }
        .into(),
        name: name.into(),
        code: if verb == "create" { 201 } else { 200 },
        received: at(milliseconds),
        answered: at(milliseconds),
    }
}

fn figures(requests: &[Request]) -> Figures {
    let cron_jobs = Load::minutely("run".into(), 2, 2, 3).cron_jobs();
    Figures::of(&Evidence {
        cron_jobs: &cron_jobs,
        has_audit_log: true,
        slots: &Slots::starting_at(at(0), 0, 1),
        requests,
        end: at(90_000),
        window: (at(-1_000), at(59_000)),
        cpu: Duration::from_millis(10),
        peak_memory_kib: 2_048,
    })
}

fn check(requests: &[Request], expected: &[(Column, Option<f64>)]) {
    let figures = figures(requests);
    for (column, expected) in expected {
        assert_eq!(figures.columns.get(column).copied(), *expected, "{column:?}");
    }
}

#[test]
fn punctual_runs_have_all_figures() {
    let requests = [
        request("create", "jobs", "load-00000-100", 2),
        request("create", "jobs", "load-00001-100", 1_500),
        request("create", "events", "load-00000.1", 3),
        request("update", "cronjobs/status", "load-00000", 12),
        request("update", "cronjobs/status", "load-00001", 2_500),
        // Before the measured period, and after it.
        request("delete", "jobs", "load-00000-98", -2_000),
        request("delete", "jobs", "load-00000-99", 59_500),
    ];
    check(
        &requests,
        &[
            (Column::LatenessP50Ms, Some(2.0)),
            (Column::LatenessP99Ms, Some(1_500.0)),
            (Column::FirstOfMinuteMs, Some(2.0)),
            (Column::LastOfMinuteMs, Some(1_500.0)),
            (Column::Missed, Some(0.0)),
            (Column::WritesPerRun, Some(2.0)),
            (Column::EventWritesPerRun, Some(0.5)),
            (Column::AllWritesPerRun, Some(2.5)),
            (Column::CpuMsPerRun, Some(5.0)),
            (Column::PeakMemoryMib, Some(2.0)),
            (Column::StatusAgeP99Ms, Some(1_000.0)),
        ],
    );
    let figures = figures(&requests);
    assert_eq!(figures.expected, 2);
    assert_eq!((figures.creates_by_second[0], figures.creates_by_second[1]), (1, 1));
    assert_eq!(figures.writes_per_run.get("update cronjobs/status"), Some(&1.0));
    assert_eq!(figures.writes_per_run.get("delete jobs"), None);
    assert_eq!(figures.lateness_curve.first(), Some(&(0.0, 2.0)));
    assert_eq!(figures.lateness_curve.last(), Some(&(1.0, 1_500.0)));
}

#[test]
fn missed_run_is_late_by_the_whole_window() {
    check(
        &[request("create", "jobs", "load-00000-100", 2)],
        &[
            (Column::LatenessP50Ms, Some(2.0)),
            (Column::LatenessP99Ms, Some(90_000.0)),
            (Column::LastOfMinuteMs, Some(90_000.0)),
            (Column::Missed, Some(1.0)),
            (Column::StatusAgeP99Ms, None),
        ],
    );
}

#[test]
fn a_controller_that_creates_nothing_has_no_costs_per_run() {
    check(
        &[],
        &[
            (Column::LatenessP50Ms, Some(90_000.0)),
            (Column::FirstOfMinuteMs, Some(90_000.0)),
            (Column::Missed, Some(2.0)),
            (Column::WritesPerRun, None),
            (Column::CpuMsPerRun, None),
        ],
    );
}

#[test]
fn doubles_and_overlaps_are_counted() {
    check(
        &[
            request("create", "jobs", "load-00000-99", -500),
            request("create", "jobs", "load-00000-100", 2),
            request("create", "jobs", "load-00001-100", 2),
            request("create", "jobs", "load-00001-100", 3_500),
        ],
        &[(Column::Doubled, Some(1.0)), (Column::Overlaps, Some(1.0))],
    );
}

#[test]
fn runs_late_by_a_minute_or_more_share_the_last_second() {
    let late = figures(&[
        request("create", "jobs", "load-00000-100", 60_000),
        request("create", "jobs", "load-00001-100", 75_000),
    ]);
    assert_eq!(late.creates_by_second.len(), 61);
    assert_eq!(late.creates_by_second.last(), Some(&2));
}

#[test]
fn unstored_status_is_as_old_as_the_window() {
    check(
        &[
            request("update", "cronjobs/status", "load-00000", 1),
            request("create", "jobs", "load-00000-100", 2),
        ],
        &[(Column::StatusAgeP99Ms, Some(89_998.0))],
    );
}

#[test]
fn refused_writes_are_counted_separately_and_in_total() {
    let mut refused = request("create", "leases", "cronwheel", 5);
    refused.code = 409;
    let figures = figures(&[request("create", "jobs", "load-00000-100", 2), refused]);
    assert_eq!(figures.writes_per_run.get("create leases, answered 409"), Some(&1.0));
    assert_eq!(figures.columns.get(&Column::WritesPerRun), Some(&2.0));
}
