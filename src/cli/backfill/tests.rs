//! Plans of slots and Jobs, arguments, and what a person sees.

use clap::Parser as _;
use jiff::Timestamp;

use super::{
    plan::{Known, Plan},
    *,
};
use crate::{
    cli::args::{Cli, Command},
    observe::{
        facts::RunResult,
        slot::{Doubt, LossReason, SkipCause, Slot, SlotOutcome},
    },
    shard::{Uid, naming::job_name},
};

fn at(text: &str) -> Timestamp {
    format!("2026-11-27T{text}Z").parse().unwrap()
}

fn slot(text: &str, outcome: SlotOutcome) -> Slot {
    Slot {
        other_jobs: Vec::new(),
        at: at(text),
        held_until: None,
        outcome,
        with_cronwheel: None,
    }
}

fn started(text: &str, result: RunResult) -> Slot {
    let job_name = job_name("load", at(text));
    slot(
        text,
        SlotOutcome::Started {
            job_uid: Uid::new(text),
            job_name,
            created: at(text),
            finished: None,
            result,
            is_backfilled: false,
            replaced_by: None,
        },
    )
}

fn lost(text: &str) -> Slot {
    slot(text, SlotOutcome::Lost(LossReason::NotStarted))
}

/// What is known of `load` with these slots, which has no seconds and no cursor.
fn known<'a>(slots: &'a [Slot], running: &'a [Box<str>]) -> Known<'a> {
    Known {
        name: "load",
        slots,
        running,
        policy: ConcurrencyPolicy::Allow,
        cursor: None,
        has_seconds: false,
        has_unknown: false,
    }
}

/// The plan as text: its numbers, the Jobs that run, and the slots that start.
fn planned(slots: &[Slot], running: &[&str], policy: ConcurrencyPolicy, has_unknown: bool) -> (String, String) {
    let running: Vec<Box<str>> = running.iter().map(|name| (*name).into()).collect();
    let plan = Plan::new(&Known {
        policy,
        has_unknown,
        ..known(slots, &running)
    });
    let names: Vec<&str> = plan.start.iter().map(|start| &*start.job_name).collect();
    let running = plan.running.join(" ");
    (
        plan.summary(),
        format!("running [{running}], start [{}]", names.join(" ")),
    )
}

#[test]
fn every_slot_without_a_job_starts() {
    let held = SkipCause::HeldByForbid { job_name: "a".into() };
    let slots = [
        lost("02:00:00"),
        started("02:01:00", RunResult::Succeeded),
        slot("02:02:00", SlotOutcome::Skipped(SkipCause::Suspended)),
        slot("02:03:00", SlotOutcome::Skipped(held)),
        slot("02:04:00", SlotOutcome::Open),
        started("02:05:00", RunResult::Deleted),
    ];
    let (summary, plan) = planned(&slots, &[], ConcurrencyPolicy::Allow, false);
    assert_eq!(summary, "4 slots to start, 2 have a Job");
    assert_eq!(
        plan,
        "running [], start [load-29929080 load-29929082 load-29929083 load-29929084]"
    );
}

#[test]
fn slots_on_excluded_dates_never_start() {
    let excluded = SkipCause::Excluded {
        calendar: "holidays".into(),
        note: "".into(),
    };
    let slots = [slot("02:00:00", SlotOutcome::Skipped(excluded)), lost("02:01:00")];
    for has_unknown in [false, true] {
        let (summary, plan) = planned(&slots, &[], ConcurrencyPolicy::Allow, has_unknown);
        assert_eq!(
            summary,
            "1 slot to start, 1 is left out because the calendar excludes the date"
        );
        assert_eq!(plan, "running [], start [load-29929081]");
    }
}

#[test]
fn unknown_slots_start_on_request_only() {
    let slots = [slot("02:00:00", SlotOutcome::NotObserved), lost("02:01:00")];
    let (summary, plan) = planned(&slots, &[], ConcurrencyPolicy::Allow, false);
    assert_eq!(
        summary,
        "1 slot to start, 1 may have had a Job that the cluster no longer keeps (--include-unknown starts these too)"
    );
    assert_eq!(plan, "running [], start [load-29929081]");
    let doubt = Doubt::Calendar("holidays".into());
    let undecided = [slot("02:00:00", SlotOutcome::Undecided(doubt)), lost("02:01:00")];
    let (_, plan) = planned(&undecided, &[], ConcurrencyPolicy::Allow, false);
    assert_eq!(plan, "running [], start [load-29929081]");
    let perhaps_frozen = SlotOutcome::Undecided(Doubt::Freeze(at("02:30:00")));
    let (_, plan) = planned(
        &[slot("02:00:00", perhaps_frozen)],
        &[],
        ConcurrencyPolicy::Allow,
        false,
    );
    assert_eq!(plan, "running [], start [load-29929080]");
    let (summary, plan) = planned(&slots, &[], ConcurrencyPolicy::Allow, true);
    assert_eq!(summary, "2 slots to start");
    assert_eq!(plan, "running [], start [load-29929080 load-29929081]");
}

#[test]
fn the_slot_of_the_cursor_had_a_job() {
    let slots = [lost("02:00:00"), lost("02:01:00")];
    for (has_unknown, expected) in [
        (false, &["load-29929080"][..]),
        (true, &["load-29929080", "load-29929081"]),
    ] {
        let plan = Plan::new(&Known {
            cursor: Some(at("02:01:00")),
            has_unknown,
            ..known(&slots, &[])
        });
        let names: Vec<&str> = plan.start.iter().map(|start| &*start.job_name).collect();
        assert_eq!(names, expected);
        assert_eq!(plan.n_unknown, usize::from(!has_unknown));
    }
}

#[test]
fn a_minute_has_one_job() {
    let slots = [
        started("02:00:00", RunResult::Succeeded),
        lost("02:00:20"),
        lost("02:01:10"),
        slot("02:01:30", SlotOutcome::Skipped(SkipCause::SameMinute)),
        lost("02:01:50"),
    ];
    let (summary, plan) = planned(&slots, &[], ConcurrencyPolicy::Allow, false);
    assert_eq!(summary, "1 slot to start, 1 has a Job");
    assert_eq!(plan, "running [], start [load-29929081]");
}

#[test]
fn o_5_5_each_second_has_a_job_if_the_schedule_has_seconds() {
    let slots = [lost("02:00:00"), lost("02:00:15"), lost("02:00:30")];
    let plan = Plan::new(&Known {
        has_seconds: true,
        ..known(&slots, &[])
    });
    assert_eq!(plan.summary(), "3 slots to start");
    let lines: Vec<String> = plan.lines().collect();
    let why = lost("02:00:00").outcome.absence().unwrap();
    let line = |second| format!("would start load-29929080-{second} for 2026-11-27T02:00:{second}Z: {why}");
    assert_eq!(lines, ["00", "15", "30"].map(line));
}

#[test]
fn jobs_that_run_take_places() {
    let slots = [started("02:00:00", RunResult::Running), lost("02:01:00")];
    let running = ["load-29929080", "by-hand"];
    for (policy, expected) in [
        (ConcurrencyPolicy::Allow, "load-29929080"),
        (ConcurrencyPolicy::Forbid, "load-29929080 by-hand"),
        (ConcurrencyPolicy::Replace, "load-29929080 by-hand"),
    ] {
        let (_, plan) = planned(&slots, &running, policy, false);
        assert_eq!(plan, format!("running [{expected}], start [load-29929081]"));
    }
}

#[test]
fn the_rest_of_a_plan_includes_unknown_slots_unless_one_was_left_out() {
    let slots = [
        slot("02:00:00", SlotOutcome::NotObserved),
        lost("02:01:00"),
        started("02:02:00", RunResult::Succeeded),
        lost("02:03:00"),
    ];
    let plan = Plan::new(&known(&slots, &[]));
    let rest = |number| {
        plan.rest(number, at("03:00:00"))
            .map(|meant| (meant.from, meant.has_unknown))
    };
    assert_eq!(rest(0), Some((at("02:01:00"), false)));
    assert_eq!(rest(1), Some((at("02:03:00"), true)));
    assert_eq!(rest(2), None);
}

fn args(arguments: &[&str]) -> Result<BackfillArgs, clap::Error> {
    let line = [&["cronwheel", "backfill"], arguments].concat();
    let Command::Backfill(args) = Cli::try_parse_from(line)?.command else {
        panic!("not backfill");
    };
    Ok(args)
}

#[test]
fn arguments_have_bounds() {
    let fine = args(&["load", "--from", "6h"]).unwrap();
    assert_eq!(args(&["cronjob/load", "--from", "1d"]).unwrap().name, "load");
    assert_eq!(
        (fine.parallel, fine.to, fine.dry_run, fine.yes),
        (1, None, false, false)
    );
    for (arguments, expected) in [
        (
            &["shop/load", "--from", "6h"][..],
            "for a CronJob in a namespace write load -n shop",
        ),
        (&["load"], "--from <TIME>"),
        (&["load", "--from", "6x"], "or give a duration before now, such as 6h"),
        (&["load", "--from", "6h", "--to", "soon"], "no instant in RFC 3339"),
        (&["load", "--from", "6h", "--parallel", "0"], "0 is not in 1..=50"),
        (&["load", "--from", "6h", "--parallel", "51"], "51 is not in 1..=50"),
        (&["Load", "--from", "6h"], "write a name as Kubernetes has it"),
    ] {
        let error = args(arguments).unwrap_err().to_string();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}

#[test]
fn many_jobs_start_only_after_a_yes() {
    let name = CronJobName {
        namespace: "shop".into(),
        name: "load".into(),
    };
    let confirmed = |flags: &[&str], n_start, answer: Option<&str>| {
        let args = args(&[&["load", "--from", "6h"], flags].concat()).unwrap();
        let mut output = Vec::new();
        let console = Console::new(&mut output, false);
        let mut console = match answer {
            Some(answer) => console.with_answers(answer.as_bytes()),
            None => console,
        };
        let confirmed = confirm(&args, &name, n_start, &mut console);
        drop(console);
        let error = confirmed.err().map(|error| error.to_string());
        (String::from_utf8(output).unwrap(), error)
    };
    let question = "Start 21 Jobs of CronJob shop/load? [y/N] ";
    let nothing = (String::new(), None);
    assert_eq!(confirmed(&[], 20, None), nothing);
    assert_eq!(confirmed(&["--yes"], 21, None), nothing);
    assert_eq!(confirmed(&[], 21, Some("y\n")), (question.to_owned(), None));
    for answer in ["n\n", "\n", "", "yesterday\n"] {
        let refused = Some("not confirmed; nothing was started".to_owned());
        assert_eq!(
            confirmed(&[], 21, Some(answer)),
            (question.to_owned(), refused),
            "{answer:?}"
        );
    }
    let refused = "21 Jobs are more than 20, and standard input is no terminal to ask for a confirmation; add --yes";
    assert_eq!(confirmed(&[], 21, None), (String::new(), Some(refused.to_owned())));
}

#[test]
fn a_terminal_shows_the_bar_below_the_lines() {
    let shown = |is_terminal| {
        let mut output = Vec::new();
        let mut console = Console::new(&mut output, is_terminal);
        console.progress(0, 4).unwrap();
        console.line("started a").unwrap();
        console.progress(1, 4).unwrap();
        console.progress(1, 4).unwrap();
        console.end_progress().unwrap();
        console.line("1 Job started").unwrap();
        drop(console);
        String::from_utf8(output).unwrap()
    };
    assert_eq!(shown(false), "started a\n1 Job started\n");
    let (empty, quarter) = (" ".repeat(30), format!("{}{}", "#".repeat(7), " ".repeat(23)));
    let expected = format!(
        "\r\x1b[K[{empty}] 0 of 4\r\x1b[Kstarted a\n[{empty}] 0 of 4\r\x1b[K[{quarter}] 1 of 4\r\x1b[K1 Job started\n"
    );
    assert_eq!(shown(true), expected);
}
