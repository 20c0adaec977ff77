//! The report of one invented fleet in all forms, and what hostile texts become in them.

mod fleet;

use std::{fs, path::Path};

use jiff::SignedDuration;

use self::fleet::{Fleet, advice_input, source};
use super::*;
use crate::{
    observe::{
        advice::{CronJobAdviceInput, advice, n_results},
        facts::{Creator, Run, RunResult},
        fleet::FleetConfig,
        sample::{cron_job, instant},
        slot::LossReason,
    },
    shard::{Uid, naming::job_name},
};

/// Compares a form with its file. With `CRONWHEEL_WRITE_DOCS=1` the file is written.
#[track_caller]
fn check_form(name: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/observe/report/tests")
        .join(name);
    if std::env::var("CRONWHEEL_WRITE_DOCS").is_ok() {
        fs::write(&path, found).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(
        found, expected,
        "{name} differs; if that is intended, set CRONWHEEL_WRITE_DOCS=1"
    );
}

fn is_narrow(text: &str) -> bool {
    text.lines().all(|line| line.chars().count() <= 100)
}

#[test]
fn the_report_of_a_fleet_in_all_forms() {
    let report = Fleet::invented().report(source());
    check_form("fleet.txt", &report.to_text());
    check_form("fleet.md", &report.to_markdown());
    check_form("fleet.json", &report.to_json().unwrap());
    check_form("fleet.html", &report.to_html());
    assert!(is_narrow(&report.to_text()));
}

#[test]
fn the_counts_of_a_fleet_add_up() {
    let report = Fleet::invented().report(source());
    let slots = report.slots;
    let parts = [
        slots.n_started,
        slots.n_lost,
        slots.n_skipped,
        slots.n_open,
        slots.n_unknown,
    ];
    assert_eq!(parts.iter().sum::<u64>(), slots.n_slots);
    assert_eq!(report.with_cronwheel.lost.n_slots, slots.n_lost);
    assert_eq!(report.with_cronwheel.late.n_slots, slots.n_late);
    for counts in [report.with_cronwheel.lost, report.with_cronwheel.late] {
        let parts = [counts.n_on_time, counts.n_later, counts.n_held, counts.n_unknown];
        assert_eq!(parts.iter().sum::<u64>(), counts.n_slots);
    }
    assert_eq!(report.lost.iter().map(|entry| entry.n_slots).sum::<u64>(), slots.n_lost);
    assert_eq!(
        report.failures.iter().map(|entry| entry.n_runs).sum::<u64>(),
        slots.n_failed
    );
}

#[test]
fn options_are_listed_with_what_they_change() {
    let mut fleet = Fleet::default();
    assert!(!fleet.report(source()).to_text().contains("Options"));
    let with_options = |name: &str, annotations: &'static [(&str, &str)]| {
        let mut facts = cron_job(name, "0 * * * *", None);
        let get = |name: &str| {
            annotations
                .iter()
                .find(|(option, _)| *option == name)
                .map(|(_, value)| *value)
        };
        facts.schedule = facts.schedule.with_options("b", get, 0);
        facts
    };
    for number in 0..21 {
        fleet.add(with_options(
            &format!("z/{number:02}"),
            &[("cronwheel.dev/missed-runs", "skip")],
        ));
    }
    fleet.add(with_options(
        "a/b",
        &[
            ("cronwheel.dev/missed-runs", "all 3"),
            ("cronwheel.dev/pass-scheduled-time", "true"),
        ],
    ));
    fleet.add(with_options("a/invalid", &[("cronwheel.dev/missed-runs", "often")]));
    fleet.add(cron_job("a/plain", "0 * * * *", None));
    let report = fleet.report(source());
    assert_eq!((report.options.len(), report.n_options_entries), (22, 22));
    let text = report.to_text();
    let expected = "\
Options
-------
What the options of a CronJob change where cronwheel runs it.

- a/b
  missed-runs: the last 3 slots that were missed start, the oldest first; pass-scheduled-time: the
  Pods get the time of the slot as an annotation
- z/00
  missed-runs: a slot that has not started 60 s after its time does not start
";
    assert!(text.contains(expected), "{text}");
    assert!(text.contains("2 more CronJobs are not listed."), "{text}");
}

#[test]
fn slots_outside_of_the_report_do_not_count() {
    let mut fleet = Fleet::default();
    fleet.add(cron_job("a/b", "0 * * * *", None));
    for at in [
        "2026-11-26T20:59:59Z",
        "2026-11-26T21:00:00Z",
        "2026-11-27T21:04:58Z",
        "2026-11-27T21:05:00Z",
    ] {
        fleet.lost(instant(at), LossReason::NotStarted, None);
    }
    let mut source = source();
    source.since = instant("2026-11-26T21:00:00Z");
    let report = fleet.report(source);
    assert_eq!(report.slots.n_lost, 2);
    assert_eq!(report.lost[0].slots.len(), 2);
}

#[test]
fn a_lost_slot_counts_when_it_is_given_up_and_an_open_one_always() {
    let mut fleet = Fleet::default();
    fleet.add(cron_job("a/daily", "0 8 * * *", None));
    fleet.lost(instant("2026-11-25T08:00:00Z"), LossReason::NotStarted, None);
    fleet.lost(instant("2026-11-26T08:00:00Z"), LossReason::NotStarted, None);
    fleet.open(instant("2026-11-27T08:00:00Z"));
    let mut weekly = cron_job("a/weekly", "0 8 * * 1", None);
    weekly.starting_deadline_seconds = Some(3_600);
    fleet.add(weekly);
    fleet.lost(instant("2026-11-23T08:00:00Z"), LossReason::DeadlineExceeded, None);
    fleet.add(cron_job("a/monthly", "0 8 1 * *", None));
    fleet.open(instant("2026-11-01T08:00:00Z"));
    let report = fleet.report(source());
    assert_eq!((report.slots.n_lost, report.slots.n_open), (1, 2));
    assert_eq!(report.lost[0].slots, [instant("2026-11-26T08:00:00Z")]);
    let late: Vec<(&str, i64)> = report
        .late_now
        .iter()
        .map(|entry| (&*entry.name, entry.late_seconds))
        .collect();
    assert_eq!(late, [("monthly", 26 * 86_400 + 47_098), ("daily", 47_098)]);
    let text = report.to_text();
    assert!(text.contains("a/daily    27 Nov 08:00 UTC"), "{text}");
}

/// Checks the text of a report without CronJobs.
#[track_caller]
fn check_empty(unreadable: &[&str], notes: &[&str], expected: &str) {
    let mut source = source();
    source.controllers = Vec::new();
    source.unreadable_namespaces = unreadable.iter().map(|name| (*name).into()).collect();
    source.notes = notes.iter().map(|note| (*note).to_owned()).collect();
    let text = Fleet::default().report(source).to_text();
    let rest = text
        .strip_prefix("CronJobs of prod-eu\n===================\nThe 24 hours until 27 Nov 2026 21:04 UTC.\n")
        .unwrap_or_else(|| panic!("{text}"));
    assert_eq!(rest, expected);
}

#[test]
fn a_report_over_nothing_says_so() {
    check_empty(&[], &[], "\nThere is no CronJob.\n");
    check_empty(
        &["billing", "data"],
        &["The history was not readable."],
        "\nNo CronJob can be read: the account may not read these namespaces: billing, data. It needs get, list\n\
         and watch on cronjobs and jobs of batch.\n\nThe history was not readable.\n",
    );
}

#[test]
fn a_fleet_without_trouble_says_so() {
    let mut fleet = Fleet::default();
    fleet.add(cron_job("a/b", "0 * * * *", None));
    let mut source = source();
    source.known_since = Some(source.since);
    let text = fleet.report(source.clone()).to_text();
    assert!(text.contains("No slot was due."), "{text}");
    assert!(text.contains("No slot of this time is known to have a Job."), "{text}");
    fleet.started(instant("2026-11-27T20:00:00Z"), 0, RunResult::Succeeded);
    let text = fleet.report(source).to_text();
    assert!(text.contains("Nothing: no run is known to be lost or late."), "{text}");
    assert!(text.contains("and none was lost."), "{text}");
    assert!(!text.contains("What is known begins"), "{text}");
}

#[test]
fn what_is_not_known_is_not_called_not_lost() {
    let mut fleet = Fleet::default();
    fleet.add(cron_job("a/b", "0 * * * *", None));
    fleet.started(instant("2026-11-27T20:00:00Z"), 0, RunResult::Succeeded);
    fleet.unknown(instant("2026-11-27T19:00:00Z"));
    let text = fleet.report(source()).to_text();
    assert!(text.contains("Of 2 due slots 1 started"), "{text}");
    assert!(text.contains("and none is known to be lost."), "{text}");
    assert!(text.contains("Of 2 due slots 1 is not known"), "{text}");
}

#[test]
fn slots_with_two_jobs_are_listed() {
    let mut fleet = Fleet::default();
    fleet.add(cron_job("a/b", "0 * * * *", None));
    fleet.started(instant("2026-11-27T20:00:00Z"), 0, RunResult::Succeeded);
    fleet.doubled("b-again");
    let report = fleet.report(source());
    assert_eq!((report.slots.n_doubled, report.doubled.len()), (1, 1));
    let text = report.to_text().split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "1 slot has more than one Job.",
        "Doubled runs",
        "27 Nov 20:00 UTC",
        "b-again",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn long_lists_are_bounded_and_say_so() {
    let mut fleet = Fleet::default();
    for number in 0..130 {
        let name = format!("team-{number:03}/{}", "nightly-close-of-all-accounts".repeat(2));
        fleet.add(cron_job(&name, "* * * * *", None));
        for minute in 0..150 {
            let at = instant("2026-11-27T12:00:00Z") + SignedDuration::from_mins(minute);
            fleet.lost(at, LossReason::NotStarted, None);
            let result = RunResult::Failed("BackoffLimitExceeded".into());
            fleet.started(at + SignedDuration::from_hours(3), 10 + minute, result);
        }
    }
    let report = fleet.report(source());
    assert_eq!((report.lost.len(), report.n_lost_entries), (100, 130));
    assert_eq!((report.lost[0].slots.len(), report.lost[0].n_slots), (100, 150));
    assert_eq!(
        (report.failures.len(), report.namespaces.len(), report.latest_runs.len()),
        (100, 20, 20)
    );
    let slowest = report.latest_runs.iter().map(|run| run.lateness_seconds);
    assert_eq!(slowest.collect::<Vec<_>>(), [159; 20]);
    let text = report.to_text();
    assert!(is_narrow(&text), "{text}");
    for sentence in [
        "110 more namespaces are not listed.",
        "110 more CronJobs are not listed.",
        "150 runs lost: no controller started it, or its Job was refused. Slots: the latest 20 at 27 Nov 14:10, 14:11,",
    ] {
        let text = text.replace('\n', " ");
        assert!(text.contains(sentence), "{sentence} is not in {text}");
    }
}

/// A fleet whose texts are markup and control sequences of a terminal.
fn hostile() -> Report {
    let mut fleet = Fleet::default();
    let name = "<script>alert(1)</script>|`x`\u{1b}[2J\u{202e}\n# head";
    let mut facts = cron_job("a/b", "0 2 * * *", Some("Europe/Berlin"));
    facts.namespace = name.into();
    facts.name = name.into();
    fleet.add(facts);
    let at = instant("2026-11-27T12:00:00Z");
    fleet.lost(at, LossReason::NotStarted, None);
    fleet.lost(at + SignedDuration::from_mins(1), LossReason::NotStarted, None);
    fleet.started(at + SignedDuration::from_mins(2), 60, RunResult::Failed(name.into()));
    let mut source = source();
    source.cluster = name.to_owned();
    source.notes = vec![name.to_owned()];
    source.unreadable_namespaces = vec![name.into()];
    fleet.report(source)
}

#[test]
fn markup_of_objects_is_escaped() {
    let html = hostile().to_html();
    assert!(!html.contains("<script"), "{html}");
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;|`x`"), "{html}");
    let markdown = hostile().to_markdown();
    let outside: String = markdown.split("```").step_by(2).collect();
    assert!(!outside.contains("<script"), "{markdown}");
    assert!(
        outside.contains("&lt;script&gt;alert(1)&lt;/script&gt;\\|\\`x\\`"),
        "{markdown}"
    );
    assert!(!markdown.contains("\n# head"), "{markdown}");
    for row in markdown.lines().filter(|line| line.starts_with('|')) {
        let n_cells = row.replace("\\|", "").matches('|').count() - 1;
        assert!(matches!(n_cells, 3 | 4 | 9), "{row}");
    }
}

#[test]
fn control_characters_reach_no_form() {
    let report = hostile();
    let forms = [
        report.to_text(),
        report.to_markdown(),
        report.to_html(),
        report.to_json().unwrap(),
    ];
    for form in forms {
        let is_control = |letter: char| letter.is_control() && letter != '\n';
        assert!(!form.contains(is_control), "{form}");
    }
    assert!(!report.to_text().contains('\u{202e}'));
    assert!(!report.to_html().contains('\u{202e}'));
}

#[test]
fn the_page_loads_and_runs_nothing() {
    let html = Fleet::invented().report(source()).to_html();
    for part in [
        "<script", "http:", "https:", "url(", " src=", " href=", "<link", "@import",
    ] {
        assert!(!html.contains(part), "{part} is in the page");
    }
    assert!(html.contains("default-src 'none'"));
}

#[test]
fn the_history_counts_results_for_the_advice() {
    let fleet = Fleet::invented();
    let inputs: Vec<_> = fleet.histories().map(|history| advice_input(&history)).collect();
    assert_eq!(inputs.iter().map(|input| input.n_failed).sum::<u64>(), 2);
    let dunning = inputs.iter().find(|input| &*input.facts.name == "dunning").unwrap();
    assert_eq!((dunning.n_succeeded, dunning.n_failed), (0, 2));
}

#[test]
fn report_and_advice_read_the_fleet() {
    let (now, slot) = (instant("2026-11-27T12:00:30Z"), instant("2026-11-27T12:00:00Z"));
    let mut index = crate::observe::fleet::Fleet::new(FleetConfig::of_slots(50), now);
    let facts = cron_job("a/b", "*/5 * * * *", None);
    let run = Run {
        job_uid: Uid::new("job"),
        job_name: job_name("b", slot),
        cron_job: facts.uid.clone(),
        slot: Some(slot),
        created: slot + SignedDuration::from_secs(7),
        started: None,
        finished: Some(slot + SignedDuration::from_secs(9)),
        result: RunResult::Failed("BackoffLimitExceeded".into()),
        creator: Creator::BuiltIn,
        hindrance: None,
    };
    index.apply_cron_job(facts, now);
    index.apply_run(run, now);
    index.set_watches_current(true, now);
    let forecast = Forecast::new(std::iter::empty::<&CronJobFacts>(), now, now);
    let histories = index.cron_jobs().map(|view| CronJobHistory::new(&view, now));
    let slots = Report::new(histories, source(), &forecast, &[]).slots;
    assert_eq!((slots.n_started, slots.n_late, slots.n_failed), (1, 1, 1));
    let inputs = index.cron_jobs().map(|view| CronJobAdviceInput::from(&view));
    let found = advice(inputs, &forecast, now);
    assert_eq!(found[0].sentence, "a/b never succeeded: 1 known run failed.");
}
