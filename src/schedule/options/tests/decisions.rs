//! Which slot starts by the options: after an outage, a suspension, a wait.

use super::*;

/// A CronJob with these annotations, and what is known about it.
struct Case {
    schedule: &'static str,
    annotations: &'static [(&'static str, &'static str)],
    last: &'static str,
    deadline_seconds: Option<i64>,
    policy: ConcurrencyPolicy,
    n_active_jobs: usize,
    resumed: Option<&'static str>,
    busy_since: Option<&'static str>,
    armed: Option<&'static str>,
}

const HOURLY: Case = Case {
    schedule: "0 * * * *",
    annotations: &[],
    last: "04:00:00",
    deadline_seconds: None,
    policy: ConcurrencyPolicy::Allow,
    n_active_jobs: 0,
    resumed: None,
    busy_since: None,
    armed: None,
};

impl Case {
    /// The decision and the next slot at an instant. The hash puts the CronJob into the middle of its window.
    fn at(&self, now: &str) -> String {
        let get = |name: &str| {
            let named = |(option, _): &&(&str, &str)| name.strip_prefix("cronwheel.dev/") == Some(option);
            self.annotations.iter().find(named).map(|(_, value)| *value)
        };
        let schedule =
            CronJobSchedule::new(self.schedule, None, &Zone::utc()).with_options("hello", get, u64::MAX / 2 + 1);
        assert_eq!(schedule.options().invalid, []);
        let facts = Facts {
            schedule: &schedule,
            is_deleting: false,
            is_suspended: false,
            created: "2026-01-01T00:00:00Z".parse().unwrap(),
            last_schedule_time: Some(at(self.last)),
            starting_deadline_seconds: self.deadline_seconds,
            concurrency_policy: self.policy,
            n_active_jobs: self.n_active_jobs,
            is_active_slot: &|_| false,
            schedule_changed: None,
            frozen_until: None,
            resumed: self.resumed.map(at),
            busy_since: self.busy_since.map(at),
            armed: self.armed.map(at),
            was_awaited: self.armed.is_some(),
        };
        let verdict = decide(&facts, at(now));
        let time = |slot: Timestamp| slot.strftime("%T").to_string();
        let decision = match verdict.decision {
            Decision::Start { slot, .. } => format!("start {}", time(slot)),
            Decision::Skip(SkipReason::Missed(slot)) => format!("missed {}", time(slot)),
            Decision::Skip(SkipReason::Resumed(slot)) => format!("resumed {}", time(slot)),
            Decision::Skip(SkipReason::DeadlineExceeded(slot)) => format!("late {}", time(slot)),
            Decision::Skip(SkipReason::HeldByForbid(slot)) => format!("forbidden {}", time(slot)),
            Decision::Skip(reason) => format!("{reason:?}"),
        };
        format!("{decision}, next {}", verdict.next.map_or("-".to_owned(), time))
    }
}

#[test]
fn a_spread_slot_starts_its_offset_later_and_keeps_its_deadline() {
    let spread = Case {
        annotations: &[("spread", "10m")],
        last: "09:00:00",
        armed: Some("10:00:00"),
        deadline_seconds: Some(30),
        ..HOURLY
    };
    for (now, expected) in [
        ("10:00:00", "NotDue, next 10:00:00"),
        ("10:04:59.999", "NotDue, next 10:00:00"),
        ("10:05:00", "start 10:00:00, next 11:00:00"),
        ("10:05:30", "start 10:00:00, next 11:00:00"),
        ("10:05:30.001", "late 10:00:00, next 11:00:00"),
    ] {
        assert_eq!(spread.at(now), expected, "{now}");
    }
}

#[test]
fn after_an_outage_the_rule_chooses_the_slots() {
    for (rule, now, expected) in [
        ("latest", "09:30:00", "start 09:00:00, next 10:00:00"),
        ("skip", "09:30:00", "missed 09:00:00, next 10:00:00"),
        ("skip", "09:01:00", "missed 09:00:00, next 10:00:00"),
        ("skip", "09:00:59.999", "start 09:00:00, next 10:00:00"),
        ("all", "09:30:00", "start 05:00:00, next 10:00:00"),
        ("all 3", "09:30:00", "start 07:00:00, next 10:00:00"),
        ("all 3", "05:30:00", "start 05:00:00, next 06:00:00"),
        ("all 3", "04:59:59", "NotDue, next 05:00:00"),
    ] {
        let annotations: &'static [(&str, &str)] = match rule {
            "latest" => &[("missed-runs", "latest")],
            "skip" => &[("missed-runs", "skip")],
            "all" => &[("missed-runs", "all")],
            _ => &[("missed-runs", "all 3")],
        };
        assert_eq!(Case { annotations, ..HOURLY }.at(now), expected, "{rule} at {now}");
    }
}

#[test]
fn the_deadline_limits_all_missed_slots() {
    let hours = |deadline_seconds| Case {
        annotations: &[("missed-runs", "all 10")],
        deadline_seconds: Some(deadline_seconds),
        ..HOURLY
    };
    assert_eq!(hours(3 * 3600).at("09:30:00"), "start 07:00:00, next 10:00:00");
    assert_eq!(hours(60).at("09:30:00"), "late 09:00:00, next 10:00:00");
}

#[test]
fn all_slots_of_an_interval_keep_its_grid() {
    let every = Case {
        schedule: "@every 90m",
        annotations: &[("missed-runs", "all 2")],
        ..HOURLY
    };
    // 05:30, 07:00, 08:30.
    assert_eq!(every.at("09:30:00"), "start 07:00:00, next 10:00:00");
}

#[test]
fn under_replace_only_the_latest_slot_starts() {
    let replace = Case {
        annotations: &[("missed-runs", "all")],
        policy: ConcurrencyPolicy::Replace,
        ..HOURLY
    };
    assert_eq!(replace.at("09:30:00"), "start 09:00:00, next 10:00:00");
}

#[test]
fn a_slot_that_forbid_held_back_was_not_missed() {
    let forbid = |n_active_jobs, busy_since| Case {
        annotations: &[("missed-runs", "skip")],
        policy: ConcurrencyPolicy::Forbid,
        n_active_jobs,
        busy_since,
        ..HOURLY
    };
    for (n_active_jobs, busy_since, expected) in [
        (1, Some("08:30:00"), "forbidden 09:00:00, next 10:00:00"),
        (0, Some("08:30:00"), "start 09:00:00, next 10:00:00"),
        (0, Some("09:00:59"), "start 09:00:00, next 10:00:00"),
        // It was missed before the Job began.
        (0, Some("09:01:00"), "missed 09:00:00, next 10:00:00"),
        (1, Some("09:01:00"), "missed 09:00:00, next 10:00:00"),
        (0, None, "missed 09:00:00, next 10:00:00"),
    ] {
        assert_eq!(
            forbid(n_active_jobs, busy_since).at("09:30:00"),
            expected,
            "{busy_since:?}"
        );
    }
}

#[test]
fn after_a_suspension_on_resume_chooses_among_the_slots_until_then() {
    for (annotations, resumed, expected) in [
        (&[("on-resume", "skip")] as &[_], "09:29:00", "resumed 09:00:00"),
        (&[("on-resume", "skip")], "08:30:00", "start 09:00:00"),
        (&[("on-resume", "all 2")], "09:29:00", "start 08:00:00"),
        (&[("on-resume", "all 2")], "08:30:00", "start 07:00:00"),
        (
            &[("on-resume", "latest"), ("missed-runs", "skip")],
            "09:29:00",
            "start 09:00:00",
        ),
        (
            &[("on-resume", "latest"), ("missed-runs", "skip")],
            "08:30:00",
            "missed 09:00:00",
        ),
        (
            &[("on-resume", "skip"), ("missed-runs", "all")],
            "07:30:00",
            "start 08:00:00",
        ),
        (
            &[("on-resume", "none"), ("missed-runs", "skip")],
            "09:29:00",
            "resumed 09:00:00",
        ),
        (&[("missed-runs", "all 2")], "09:29:00", "start 08:00:00"),
    ] {
        let case = Case {
            annotations,
            resumed: Some(resumed),
            ..HOURLY
        };
        assert_eq!(
            case.at("09:30:00"),
            format!("{expected}, next 10:00:00"),
            "{annotations:?} at {resumed}"
        );
    }
}

#[test]
fn on_resume_also_judges_a_slot_that_starts_at_its_deadline_or_later() {
    // The second one was armed, and its deadline is then ten seconds (B-9.7).
    for (armed, now) in [(None, "09:00:05"), (Some("09:00:00"), "09:00:09")] {
        for (annotations, expected) in [
            (&[("on-resume", "skip")] as &[_], "resumed 09:00:00"),
            (&[("on-resume", "latest")], "start 09:00:00"),
            (&[("missed-runs", "all 2")], "start 09:00:00"),
        ] {
            let case = Case {
                annotations,
                armed,
                deadline_seconds: Some(5),
                resumed: Some("09:00:04"),
                ..HOURLY
            };
            let expected = format!("{expected}, next 10:00:00");
            assert_eq!(case.at(now), expected, "{annotations:?} at {now}");
        }
    }
    let late = Case {
        annotations: &[("on-resume", "skip")],
        armed: Some("09:00:00"),
        deadline_seconds: Some(5),
        resumed: Some("09:00:04"),
        ..HOURLY
    };
    assert_eq!(late.at("09:00:11"), "late 09:00:00, next 10:00:00");
}
