//! Tests of the lines of runs, and of their rate.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    controller::tests::captured_log::CapturedLog,
    shard::{InstantOutcome, LoggedRuns, ShardId, ShardTerm, Term, Uid, run_log::WAITING_MAX},
};

fn at(text: &str) -> Timestamp {
    format!("2026-05-05T{text}Z").parse().unwrap()
}

fn run(outcome: InstantOutcome, end: RunEnd) -> EndedRun {
    EndedRun {
        shard_term: Some(ShardTerm {
            shard: ShardId(7),
            term: Term(3),
        }),
        cron_job: Arc::new(CronJobIdentity {
            namespace: "shop".into(),
            name: "backup".into(),
            uid: Uid::new("1"),
        }),
        outcome,
        end,
    }
}

#[test]
fn each_kind_of_end_has_its_line() {
    let captured = CapturedLog::begin();
    let lost = |slots, error: Option<&str>, next| RunEnd::Lost {
        slots,
        error: error.map(Into::into),
        next,
    };
    let one = LostSlots::One(at("10:00:00"));
    let between = LostSlots::Between {
        after: at("09:59:00"),
        before: at("10:30:00"),
        n_slots: 30,
    };
    let started = RunEnd::Started {
        slot: at("10:00:00"),
        job: "backup-29632920".into(),
        lateness: Some(SignedDuration::from_millis(250)),
    };
    let asked = RunEnd::Asked {
        token: "t1".into(),
        job: "backup-run-x7kd2m".into(),
    };
    for (outcome, end, parts) in [
        (
            InstantOutcome::RefusedDueToTenant,
            lost(one, Some("exceeded quota"), Some(at("10:01:00"))),
            &[
                "WARN",
                "a run was lost",
                "slot=2026-05-05T10:00:00Z",
                "n_slots=1",
                r#"namespace="shop" cronjob="backup" outcome="refused""#,
                r#"reason="the API server refused its Job" error="exceeded quota""#,
                "next=2026-05-05T10:01:00Z shard=7 term=3",
            ][..],
        ),
        (
            InstantOutcome::Superseded,
            lost(between, None, Some(at("10:30:00"))),
            &[
                "runs were lost",
                "after=2026-05-05T09:59:00Z before=2026-05-05T10:30:00Z n_slots=30",
            ],
        ),
        (
            InstantOutcome::Created,
            started,
            &[
                "INFO",
                "a run started",
                r#"outcome="created" lateness_seconds=0.25 job="backup-29632920" shard=7 term=3"#,
            ],
        ),
        (
            InstantOutcome::Created,
            asked,
            &[
                "INFO",
                "a run that was asked for started",
                r#"outcome="created" token="t1" job="backup-run-x7kd2m" shard=7 term=3"#,
            ],
        ),
    ] {
        log(&run(outcome, end));
        let line = captured.take();
        for part in parts {
            assert!(line.contains(part), "{part}: {line}");
        }
    }
}

#[test]
fn a_hundred_lines_a_second_are_written_and_the_others_wait_or_are_counted() {
    let captured = CapturedLog::begin();
    let ended = EndedRuns::new(LoggedRuns::Lost);
    for _ in 0..WAITING_MAX + 5 {
        let end = RunEnd::Lost {
            slots: LostSlots::One(at("10:00:00")),
            error: None,
            next: None,
        };
        ended.add(run(InstantOutcome::Superseded, end));
    }
    let mut runs = RunLog::default();
    let begun = BootInstant::after_boot(Duration::from_mins(1));
    runs.write(&ended, begun);
    let text = captured.take();
    assert_eq!(text.matches("a run was lost").count(), 100);
    assert_eq!(text.matches("n_runs=5").count(), 1, "{text}");
    runs.write(&ended, begun + Duration::from_millis(999));
    assert_eq!(captured.take(), "");
    runs.write(&ended, begun + Duration::from_secs(1));
    assert_eq!(captured.n_lines_with("a run was lost"), 100);
    runs.end(&ended);
    assert_eq!(captured.n_lines_with(&format!("n_runs={}", WAITING_MAX - 200)), 1);
}
