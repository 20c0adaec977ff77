//! Tests of the decision as a table, rule by rule. The tests of shards cover whole scenarios.

use super::*;
use crate::schedule::Zone;

fn at(text: &str) -> Timestamp {
    let text = if text.len() <= 13 {
        format!("2026-05-05T{text}Z")
    } else {
        text.to_owned()
    };
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

struct Case {
    schedule: CronJobSchedule,
    is_suspended: bool,
    last: Option<&'static str>,
    deadline_secs: Option<i64>,
    policy: ConcurrencyPolicy,
    n_active_jobs: usize,
    changed: Option<&'static str>,
    resumed: Option<&'static str>,
    busy_since: Option<&'static str>,
    armed: Option<&'static str>,
    was_awaited: bool,
}

fn case(text: &str) -> Case {
    Case {
        schedule: CronJobSchedule::new(text, None, &Zone::utc()),
        is_suspended: false,
        last: Some("09:00:00"),
        deadline_secs: None,
        policy: ConcurrencyPolicy::Allow,
        n_active_jobs: 0,
        changed: None,
        resumed: None,
        busy_since: None,
        armed: None,
        was_awaited: false,
    }
}

fn verdict(case: &Case, now: &str) -> Verdict {
    let facts = Facts {
        schedule: &case.schedule,
        is_deleting: false,
        is_suspended: case.is_suspended,
        created: at("2026-01-01T00:00:00Z"),
        last_schedule_time: case.last.map(at),
        starting_deadline_seconds: case.deadline_secs,
        concurrency_policy: case.policy,
        n_active_jobs: case.n_active_jobs,
        is_active_slot: &|_| false,
        schedule_changed: case.changed.map(at),
        frozen_until: None,
        resumed: case.resumed.map(at),
        busy_since: case.busy_since.map(at),
        armed: case.armed.map(at),
        was_awaited: case.was_awaited,
    };
    decide(&facts, at(now))
}

fn check(case: &Case, now: &str, expected: &str) {
    let verdict = verdict(case, now);
    let time = |slot: Timestamp| slot.strftime("%T").to_string();
    let decision = match verdict.decision {
        Decision::Start { slot, replaces } => format!("{} {}", if replaces { "replace" } else { "start" }, time(slot)),
        Decision::Skip(SkipReason::DeadlineExceeded(slot)) => format!("late {}", time(slot)),
        Decision::Skip(SkipReason::ScheduleChanged(slot)) => format!("changed {}", time(slot)),
        Decision::Skip(SkipReason::HeldByForbid(slot)) => format!("forbidden {}", time(slot)),
        Decision::Skip(SkipReason::Missed(slot)) => format!("missed {}", time(slot)),
        Decision::Skip(SkipReason::Resumed(slot)) => format!("resumed {}", time(slot)),
        Decision::Skip(reason) => format!("{reason:?}"),
    };
    let next = verdict.next.map_or("-".to_owned(), time);
    assert_eq!(
        format!("{decision}, next {next}"),
        expected,
        "{} at {now}",
        case.schedule.text
    );
}

#[test]
fn b_9_5_before_the_slot_nothing_is_due() {
    check(&case("0 * * * *"), "09:59:59.999", "NotDue, next 10:00:00");
}

#[test]
fn b_9_4_the_latest_slot_starts() {
    check(&case("0 * * * *"), "10:00:00", "start 10:00:00, next 11:00:00");
    check(&case("*/10 * * * *"), "10:25:00", "start 10:20:00, next 10:30:00");
}

#[test]
fn an_armed_slot_does_not_change_the_verdict() {
    for now in ["09:59:00", "10:00:00", "10:00:01", "10:59:59", "11:00:00", "13:30:00"] {
        for is_suspended in [false, true] {
            let plain = Case {
                is_suspended,
                ..case("0 * * * *")
            };
            let armed = Case {
                armed: Some("10:00:00"),
                was_awaited: true,
                is_suspended,
                ..case("0 * * * *")
            };
            assert_eq!(verdict(&plain, now), verdict(&armed, now), "{now}");
        }
    }
}

#[test]
fn b_10_3_and_b_10_4_concurrency_policy_decides_about_a_running_job() {
    let with = |policy| Case {
        policy,
        n_active_jobs: 1,
        ..case("0 * * * *")
    };
    check(
        &with(ConcurrencyPolicy::Allow),
        "10:00:01",
        "start 10:00:00, next 11:00:00",
    );
    check(
        &with(ConcurrencyPolicy::Forbid),
        "10:00:01",
        "forbidden 10:00:00, next 11:00:00",
    );
    check(
        &with(ConcurrencyPolicy::Replace),
        "10:00:01",
        "replace 10:00:00, next 11:00:00",
    );
    let idle = Case {
        policy: ConcurrencyPolicy::Replace,
        ..case("0 * * * *")
    };
    check(&idle, "10:00:01", "start 10:00:00, next 11:00:00");
}

#[test]
fn b_9_7_deadlines() {
    let with = |deadline_secs| Case {
        deadline_secs: Some(deadline_secs),
        ..case("0 * * * *")
    };
    check(&with(60), "10:01:00", "start 10:00:00, next 11:00:00");
    check(&with(60), "10:01:00.001", "late 10:00:00, next 11:00:00");
    check(&with(5), "10:00:05", "start 10:00:00, next 11:00:00");
    check(&with(5), "10:00:05.001", "late 10:00:00, next 11:00:00");
    check(&with(0), "10:00:00", "start 10:00:00, next 11:00:00");
    let held = Case {
        armed: Some("10:00:00"),
        was_awaited: true,
        ..with(0)
    };
    check(&held, "10:00:10", "start 10:00:00, next 11:00:00");
    check(&held, "10:00:10.001", "late 10:00:00, next 11:00:00");
    let every = Case {
        deadline_secs: Some(60),
        ..case("@every 20m")
    };
    check(&every, "10:00:30", "start 10:00:00, next 10:20:00");
    check(&every, "10:01:30", "late 10:00:00, next 10:20:00");
}

#[test]
fn b_2_2_a_slot_before_a_schedule_change_is_not_started() {
    let changed = Case {
        changed: Some("10:30:00"),
        ..case("*/15 * * * *")
    };
    check(&changed, "10:29:59", "changed 10:15:00, next 10:30:00");
    check(&changed, "10:30:00", "start 10:30:00, next 10:45:00");
}

#[test]
fn b_9_2_more_than_100_missed_slots_are_reported() {
    let minutely = case("* * * * *");
    assert!(!verdict(&minutely, "10:40:00").is_many_missed);
    assert!(verdict(&minutely, "10:41:00").is_many_missed);
}

#[test]
fn passed_slots_are_counted() {
    for (slot, expected) in [("09:01:00", 0), ("09:02:00", 1), ("10:40:00", 99), ("19:00:00", 599)] {
        assert_eq!(
            count_between(&case("* * * * *").schedule, at("09:00:00"), at(slot)),
            expected,
            "{slot}"
        );
    }
}
