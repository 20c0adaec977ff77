//! Tests, as tables, of each kind of trouble for CronJobs in every state.

use super::*;
use crate::schedule::Zone;

fn at(text: &str) -> Timestamp {
    format!("2026-05-{text}Z")
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The state of a CronJob, by its status and its Jobs.
#[derive(Clone, Copy)]
struct Case {
    schedule: &'static str,
    time_zone: Option<&'static str>,
    is_stopped: bool,
    started: Option<&'static str>,
    succeeded: Option<&'static str>,
    failed_start: Option<&'static str>,
    pending: Option<&'static str>,
    is_held_back: bool,
    threshold: Option<(Threshold, &'static str)>,
}

/// An hourly CronJob that was created at 05T00:30 and has not run yet.
const NEVER_RUN: Case = Case {
    schedule: "0 * * * *",
    time_zone: None,
    is_stopped: false,
    started: None,
    succeeded: None,
    failed_start: None,
    pending: None,
    is_held_back: false,
    threshold: None,
};

/// The CronJob after a run at 10:00 that succeeded at 10:05.
const HAS_RUN: Case = Case {
    started: Some("05T10:00:00"),
    succeeded: Some("05T10:05:00"),
    ..NEVER_RUN
};

const SUSPENDED: Case = Case {
    is_stopped: true,
    ..HAS_RUN
};

/// The run at 10:00 is active; the run before succeeded.
const HELD_BACK: Case = Case {
    succeeded: Some("05T09:05:00"),
    is_held_back: true,
    ..HAS_RUN
};

impl Case {
    /// The kinds of trouble at an instant, each with the time of day when it began.
    fn at(&self, now: &str) -> Vec<String> {
        let schedule = CronJobSchedule::new(self.schedule, self.time_zone, &Zone::utc());
        let created = at("05T00:30:00");
        let [started, succeeded, failed_start, pending] =
            [self.started, self.succeeded, self.failed_start, self.pending].map(|text| text.map(at));
        let mut thresholds = TroubleThresholds::default();
        if let Some((threshold, value)) = self.threshold {
            thresholds.set(threshold, value);
        }
        let after_start = Activations::after(&schedule, started.unwrap_or(created));
        let facts = TroubleFacts {
            is_stopped: self.is_stopped,
            is_unschedulable: schedule.parsed.is_err() || matches!(schedule.zone, Some(Err(_))),
            created,
            last_schedule_time: started,
            last_successful_time: succeeded,
            after_start: (self.is_held_back || pending.is_some()).then_some(after_start),
            after_success: Activations::after(&schedule, succeeded.unwrap_or(created)),
            failed_start,
            pending,
            is_held_back: self.is_held_back,
            thresholds,
        };
        let found = troubles(&facts, at(now));
        let named = TroubleKind::ALL.into_iter().zip(found);
        named
            .filter_map(|(kind, since)| Some(format!("{} {}", kind.as_str(), &since?.to_string()[8..19])))
            .collect()
    }
}

fn check(name: &str, case: Case, expected: &[(&str, &[&str])]) {
    for (now, expected) in expected {
        assert_eq!(case.at(now), *expected, "{name} at {now}");
    }
}

#[test]
fn failing_is_a_failed_job_without_a_later_success() {
    let failed = |failed_start, case| Case { failed_start, ..case };
    let since = ["failing 05T11:00:00"];
    for (name, case, expected) in [
        ("none failed", HAS_RUN, &[][..]),
        ("the last failed", failed(Some("05T11:00:00"), HAS_RUN), &since),
        ("a later one succeeded", failed(Some("05T10:00:00"), HAS_RUN), &[]),
        (
            "the run before ended in the second of the start",
            failed(Some("05T10:05:00"), HAS_RUN),
            &["failing 05T10:05:00"],
        ),
        (
            "never a success",
            failed(Some("05T01:00:00"), NEVER_RUN),
            &["failing 05T01:00:00"],
        ),
        ("suspended", failed(Some("05T11:00:00"), SUSPENDED), &[]),
        (
            "held back by a manual run",
            failed(
                Some("05T10:30:00"),
                Case {
                    is_held_back: true,
                    ..HAS_RUN
                },
            ),
            &["failing 05T10:30:00"],
        ),
    ] {
        assert_eq!(
            case.at(if case.succeeded.is_none() {
                "05T01:10:00"
            } else {
                "05T11:10:00"
            }),
            expected,
            "{name}"
        );
    }
}

#[test]
fn a_run_is_late_ten_minutes_or_a_period_after_it_was_first_due() {
    let pending = |pending, case| Case {
        pending: Some(pending),
        ..case
    };
    let hourly = pending("05T11:00:00", HAS_RUN);
    check(
        "hourly",
        hourly,
        &[
            ("05T11:00:00", &[]),
            ("05T11:09:59", &[]),
            ("05T11:10:00", &["late 05T11:00:00"]),
        ],
    );
    let minutely = |slot, started| Case {
        schedule: "* * * * *",
        started: Some(started),
        ..pending(slot, HAS_RUN)
    };
    check(
        "minutely, the first slot",
        minutely("05T10:06:00", "05T10:05:00"),
        &[("05T10:06:59", &[])],
    );
    // A new slot replaces the slot every minute, but the trouble began with the first.
    check(
        "minutely, a later slot",
        minutely("05T10:07:00", "05T10:05:00"),
        &[("05T10:07:00", &["late 05T10:06:00"])],
    );
    check(
        "never run",
        pending("05T01:00:00", NEVER_RUN),
        &[("05T01:09:00", &[]), ("05T01:10:00", &["late 05T01:00:00"])],
    );
    check("suspended", pending("05T11:00:00", SUSPENDED), &[("05T11:30:00", &[])]);
    check("nothing is due", HAS_RUN, &[("05T10:59:59", &[])]);
    let soon = Case {
        threshold: Some((Threshold::Late, "30")),
        ..hourly
    };
    check(
        "a threshold",
        soon,
        &[("05T11:00:29", &[]), ("05T11:00:30", &["late 05T11:00:00"])],
    );
    let much_later = Case {
        threshold: Some((Threshold::Late, "7200")),
        ..pending("05T12:00:00", HAS_RUN)
    };
    check(
        "a long threshold",
        much_later,
        &[
            ("05T12:59:59", &[]),
            ("05T13:00:00", &["late 05T11:00:00", "no_success 05T13:00:00"]),
        ],
    );
}

#[test]
fn a_cron_job_is_without_success_from_the_third_activation_after_the_last() {
    let since = ["no_success 05T13:00:00"];
    check(
        "hourly",
        HAS_RUN,
        &[("05T12:59:59", &[]), ("05T13:00:00", &since), ("09T00:00:00", &since)],
    );
    check(
        "never run",
        NEVER_RUN,
        &[("05T02:59:59", &[]), ("05T03:00:00", &["no_success 05T03:00:00"])],
    );
    check("suspended", SUSPENDED, &[("09T00:00:00", &[])]);
    // The last activation was on Friday the 8th; the weekend has none.
    let weekdays = Case {
        schedule: "0 9 * * 1-5",
        succeeded: Some("08T09:05:00"),
        ..HAS_RUN
    };
    check(
        "weekdays",
        weekdays,
        &[("13T08:59:59", &[]), ("13T09:00:00", &["no_success 13T09:00:00"])],
    );
    let every = Case {
        schedule: "@every 90s",
        ..HAS_RUN
    };
    check(
        "@every",
        every,
        &[("05T10:09:29", &[]), ("05T10:09:30", &["no_success 05T10:09:30"])],
    );
    let early = Case {
        threshold: Some((Threshold::NoSuccess, "600")),
        ..HAS_RUN
    };
    check(
        "a threshold",
        early,
        &[("05T10:14:59", &[]), ("05T10:15:00", &["no_success 05T10:15:00"])],
    );
    check(
        "never run, with a threshold",
        Case {
            succeeded: None,
            ..early
        },
        &[("05T00:40:00", &["no_success 05T00:40:00"])],
    );
}

#[test]
fn a_cron_job_is_blocked_from_the_third_run_held_back() {
    let without_success = "no_success 05T12:00:00";
    check(
        "Forbid",
        HELD_BACK,
        &[
            ("05T11:59:59", &[]),
            ("05T12:59:59", &[without_success]),
            ("05T13:00:00", &[without_success, "blocked 05T13:00:00"]),
        ],
    );
    check(
        "no Job is running",
        Case {
            is_held_back: false,
            ..HELD_BACK
        },
        &[("05T13:00:00", &[without_success])],
    );
    check(
        "suspended",
        Case {
            is_stopped: true,
            ..HELD_BACK
        },
        &[("05T13:00:00", &[])],
    );
    let soon = Case {
        threshold: Some((Threshold::Blocked, "60")),
        ..HELD_BACK
    };
    check(
        "a threshold",
        soon,
        &[("05T11:00:59", &[]), ("05T11:01:00", &["blocked 05T11:01:00"])],
    );
    let never = Case {
        is_held_back: true,
        ..NEVER_RUN
    };
    check(
        "held back before the first run",
        never,
        &[
            ("05T02:59:59", &[]),
            ("05T03:00:00", &["no_success 05T03:00:00", "blocked 05T03:00:00"]),
        ],
    );
}

#[test]
fn a_cron_job_without_activations_is_invalid_and_at_most_failing() {
    let invalid = Case {
        failed_start: Some("05T10:30:00"),
        pending: Some("05T11:00:00"),
        is_held_back: true,
        ..HAS_RUN
    };
    let expected: &[&str] = &["failing 05T10:30:00", "invalid 05T10:00:00"];
    for (schedule, time_zone) in [
        ("nonsense", None),
        ("0 * * * *", Some("Mars/Olympus")),
        ("0 0 31 2 *", None),
    ] {
        let case = Case {
            schedule,
            time_zone,
            ..invalid
        };
        check(schedule, case, &[("05T13:00:00", expected)]);
        check(
            "suspended",
            Case {
                is_stopped: true,
                ..case
            },
            &[("05T13:00:00", &[])],
        );
        check(
            "never run",
            Case {
                schedule,
                time_zone,
                ..NEVER_RUN
            },
            &[("05T00:31:00", &["invalid 05T00:30:00"])],
        );
    }
    check(
        "yearly",
        Case {
            schedule: "0 0 29 2 *",
            ..HAS_RUN
        },
        &[("05T13:00:00", &[])],
    );
}

#[test]
fn a_threshold_is_a_whole_number_of_seconds() {
    for (value, is_valid) in [
        ("1", true),
        ("4294967295", true),
        ("4294967296", false),
        ("0", false),
        ("-1", false),
        ("90m", false),
        ("", false),
        (" 60", false),
    ] {
        let mut thresholds = TroubleThresholds::default();
        thresholds.set(Threshold::NoSuccess, value);
        assert_eq!(thresholds.get(Threshold::NoSuccess).is_some(), is_valid, "{value:?}");
        assert_eq!(
            thresholds.invalid(),
            (!is_valid).then_some(Threshold::NoSuccess),
            "{value:?}"
        );
    }
    let mut thresholds = TroubleThresholds::default();
    for threshold in [Threshold::Blocked, Threshold::Late, Threshold::NoSuccess] {
        thresholds.set(threshold, "x");
    }
    assert_eq!(
        thresholds.invalid(),
        Some(Threshold::Late),
        "whatever the order of the annotations"
    );
}

#[test]
fn activations_are_24_bytes_and_belong_to_one_instant() {
    assert_eq!(size_of::<Activations>(), 24);
    let schedule = CronJobSchedule::new("0 * * * *", None, &Zone::utc());
    let activations = Activations::after(&schedule, at("05T10:30:00"));
    assert_eq!(activations.first.get(), Some(at("05T11:00:00")));
    assert_eq!(activations.third.get(), Some(at("05T13:00:00")));
    assert!(activations.are_after(at("05T10:30:00")) && !activations.are_after(at("05T10:31:00")));
}
