//! Tests of `cronwheel next -f`.

use serde_json::{Value, json};

use super::*;

const SPREAD: &str = "
apiVersion: batch/v1
kind: CronJob
metadata:
  name: report
  namespace: shop
  uid: 5f2b1c7e-0000-4000-8000-000000000001
  annotations: {cronwheel.dev/spread: 10m, cronwheel.dev/missed-runs: all 3, cronwheel.dev/on-resume: never}
spec:
  schedule: 0 * * * *
  concurrencyPolicy: Forbid
  jobTemplate: {}
";

/// Runs `next -f -` on an input. Returns the output and the error, if there is one.
fn run_on(input: &str, args: &[&str]) -> (String, Option<String>) {
    let command = Command::try_parse_from([&["next", "-f", "-"], args].concat()).unwrap();
    let mut output = Vec::new();
    let result = run(command.args, NOW.parse().unwrap(), input.as_bytes(), &mut output);
    (
        String::from_utf8(output).unwrap(),
        result.err().map(|error| error.to_string()),
    )
}

#[test]
fn a_cron_job_has_both_times_and_the_sentences_of_its_options() {
    let (output, error) = run_on(SPREAD, &["-n", "2"]);
    assert_eq!(
        output,
        "CronJob shop/report\n\
         0 * * * * in UTC, the default time zone: every hour\n\
         option: spread: starts 5m 35s after each slot, in a window of 10m\n\
         option: missed-runs: the last 3 slots that were missed start, the oldest first, one after the other\n\
         note: annotation cronwheel.dev/on-resume is \"never\": it is none of latest, skip and all; a valid value is \
         \"skip\"; the CronJob runs as without it\n\
         \n\
         in 1h, Fri 2026-03-27 13:00 UTC, starts 13:05:35\n\
         in 2h, Fri 2026-03-27 14:00 UTC, starts 14:05:35\n"
    );
    assert_eq!(error, None);
}

#[test]
fn without_a_uid_the_offset_is_not_known() {
    let input = SPREAD.replace("  uid: 5f2b1c7e-0000-4000-8000-000000000001\n", "");
    let (output, error) = run_on(&input, &["-n", "1"]);
    assert!(
        output.contains("option: spread: starts less than 10m after each slot; the uid determines when\n"),
        "{output}"
    );
    assert!(output.ends_with("in 1h, Fri 2026-03-27 13:00 UTC\n"), "{output}");
    assert_eq!(error, None);
}

#[test]
fn json_has_starts_and_options() {
    let (output, error) = run_on(SPREAD, &["-n", "1", "-o", "json"]);
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(
        (&answer["namespace"], &answer["name"]),
        (&json!("shop"), &json!("report"))
    );
    let activation = json!({
        "local": "2026-03-27T13:00:00+00:00",
        "utc": "2026-03-27T13:00:00Z",
        "start": {"local": "2026-03-27T13:05:35+00:00", "utc": "2026-03-27T13:05:35Z"},
    });
    assert_eq!(answer["activations"], json!([activation]));
    assert_eq!(answer["options"].as_array().unwrap().len(), 2);
    assert_eq!(answer["notes"].as_array().unwrap().len(), 1);
    assert_eq!(error, None);
}

#[test]
fn one_bad_document_hides_nothing_of_the_others() {
    let input = "kind: CronJob\n\
                 metadata: {name: a}\n\
                 spec: {schedule: '@daily', timeZone: Asia/Tokyo, suspend: true}\n\
                 ---\n\
                 kind: [\n\
                 ---\n\
                 kind: ConfigMap\n\
                 metadata: {name: other}\n\
                 ---\n\
                 kind: CronJob\n\
                 metadata: {name: b, annotations: {cronwheel.dev/pass-scheduled-time: true}}\n\
                 spec: {schedule: 0 24 * * *}\n\
                 ---\n\
                 kind: CronJob\n\
                 metadata: {name: c}\n\
                 spec: {schedule: 5}\n";
    let (output, error) = run_on(input, &["-n", "1"]);
    let expected = "CronJob default/a\n\
                    @daily in Asia/Tokyo: at 00:00 every day\n\
                    note: spec.suspend is true, so nothing starts until it is false\n\
                    \n\
                    in 3h, Sat 2026-03-28 00:00 JST (Fri 2026-03-27 15:00 UTC)\n\
                    \n\
                    CronJob default/b\n\
                    problem: refused by the API server: spec.schedule \"0 24 * * *\": ";
    assert!(output.starts_with(expected), "{output}");
    let end = "\nCronJob default/c\n\
               problem: refused by the API server: spec.schedule is 5 and no text; write it in quotes\n";
    assert!(output.ends_with(end), "{output}");
    let error = error.unwrap();
    assert!(error.starts_with("document 2 of standard input: not YAML"), "{error}");
    assert!(
        error.ends_with("; 2 of 3 CronJobs have a problem") && !error.contains('\n'),
        "{error}"
    );

    let (output, _) = run_on(input, &["-o", "json"]);
    assert!(!output.contains("\"schedules\""), "{output}");
    let answers: Value = serde_json::from_str(&output).unwrap();
    let with_problem = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["problem"].is_string());
    assert_eq!(with_problem.collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn an_annotation_that_is_no_text_is_noted() {
    let input = "kind: CronJob\n\
                 metadata: {name: b, annotations: {cronwheel.dev/pass-scheduled-time: true}}\n\
                 spec: {schedule: '@daily'}\n";
    let (output, _) = run_on(input, &["-n", "1"]);
    let note = "note: annotation cronwheel.dev/pass-scheduled-time is true and no text; write it in quotes\n";
    assert!(output.contains(note), "{output}");
}

#[test]
fn the_chain_of_an_interval_begins_at_the_last_slot() {
    let input = "kind: CronJob\n\
                 metadata: {name: a, creationTimestamp: '2026-03-27T00:00:00Z'}\n\
                 spec: {schedule: '@every 7m'}\n\
                 status: {lastScheduleTime: '2026-03-27T11:55:00Z'}\n";
    let (output, error) = run_on(input, &["-n", "1"]);
    assert!(output.ends_with("in 2m, Fri 2026-03-27 12:02 UTC\n"), "{output}");
    assert_eq!(error, None);
}

#[test]
fn cron_jobs_of_one_name_are_told_apart_by_their_places() {
    let cron_job = "kind: CronJob\nmetadata: {name: a}\nspec: {schedule: '@daily'}\n";
    let (output, error) = run_on(&format!("{cron_job}---\n{cron_job}"), &["-n", "1"]);
    let titles: Vec<&str> = output.lines().filter(|line| line.starts_with("CronJob")).collect();
    assert_eq!(
        titles,
        [
            "CronJob default/a (document 1 of standard input)",
            "CronJob default/a (document 2 of standard input)"
        ]
    );
    assert_eq!(error, None);
}

#[test]
fn an_input_without_cron_jobs_is_an_error() {
    let (output, error) = run_on("kind: Job\nmetadata: {name: a}\n", &[]);
    assert_eq!(output, "");
    assert_eq!(
        error.as_deref(),
        Some("standard input: no batch/v1 CronJob in it; give at least one")
    );
    for args in [
        &["next", "-f", "a.yaml", "@daily"],
        &["next", "-f", "a.yaml", "--stdin"],
    ] {
        assert!(Command::try_parse_from(args).is_err(), "{args:?}");
    }
}

const CALENDAR: &str = "
apiVersion: v1
kind: ConfigMap
metadata:
  name: holidays
  namespace: shop
  labels: {cronwheel.dev/calendar: \"true\"}
data:
  dates: |
    2026-03-28..2026-03-29 Audit
    2026-03-31
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: report
  namespace: shop
  annotations: {cronwheel.dev/not-on: holidays}
spec:
  schedule: 30 2 * * *
  timeZone: Europe/Berlin
  jobTemplate: {}
";

#[test]
fn the_dates_of_a_calendar_fall_out_and_are_printed() {
    let (output, error) = run_on(CALENDAR, &["-n", "2"]);
    assert_eq!(
        output,
        "CronJob shop/report\n\
         30 2 * * * in Europe/Berlin: at 02:30 every day\n\
         option: not-on: nothing starts on the dates of the ConfigMap holidays\n\
         \n\
         Sat 2026-03-28 to Sun 2026-03-29 (Audit): 1 run falls out, by not-on\n\
         Sun 2026-03-29: clocks go forward from 02:00 to 03:00, so there is no run on that day: 02:30 is lost\n\
         in 2d 12h, Mon 2026-03-30 02:30 CEST (00:30 UTC)\n\
         Tue 2026-03-31: 1 run falls out, by not-on\n\
         in 4d 12h, Wed 2026-04-01 02:30 CEST (00:30 UTC)\n"
    );
    assert_eq!(error, None);
    let (output, _) = run_on(CALENDAR, &["-n", "1", "-o", "json"]);
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(
        answer["excluded"],
        json!([{"firstDate": "2026-03-28", "lastDate": "2026-03-29", "note": "Audit", "nActivations": 1}])
    );
}

#[test]
fn a_calendar_that_cannot_be_used_or_is_not_given_is_noted() {
    let without = CALENDAR.split("---").nth(1).unwrap();
    for (input, note) in [
        (
            CALENDAR.replace("    2026-03-31\n", "    31.03.2026\n"),
            "annotation cronwheel.dev/not-on is \"holidays\": the ConfigMap cannot be used: key \"dates\", line 2: \
             \"31.03.2026\" does not begin with a date or a range of dates; a valid line is \"2026-12-24..2026-12-26 \
             Christmas\"; the CronJob runs as without it",
        ),
        (
            CALENDAR.replace("  labels: {cronwheel.dev/calendar: \"true\"}\n", ""),
            "annotation cronwheel.dev/not-on is \"holidays\": the ConfigMap cannot be used: it lacks the label \
             cronwheel.dev/calendar=true; the CronJob runs as without it",
        ),
        (
            without.to_owned(),
            "the ConfigMap holidays of the annotation cronwheel.dev/not-on was not read: the answer is without its dates",
        ),
    ] {
        let (output, error) = run_on(&input, &["-n", "1"]);
        assert!(output.contains(&format!("note: {note}\n")), "{output}");
        assert!(
            output.ends_with("in 13h 30m, Sat 2026-03-28 02:30 CET (01:30 UTC)\n"),
            "{output}"
        );
        assert_eq!(error, None);
    }
}

#[test]
fn a_calendar_that_excludes_every_run_is_named() {
    let all = CALENDAR.replace("2026-03-28..2026-03-29 Audit", "2026-03-28..2031-12-31 Audit");
    let (_, error) = run_on(&all, &["-n", "1"]);
    assert_eq!(
        error.as_deref(),
        Some(
            "never: the ConfigMap holidays of the annotation cronwheel.dev/not-on excludes every run within five years; \
             correct its dates"
        )
    );
    // The schedule itself matches nothing.
    let never = all.replace("30 2 * * *", "0 0 30 2 *");
    let (_, error) = run_on(&never, &["-n", "1"]);
    assert!(
        error
            .as_deref()
            .is_some_and(|error| error.ends_with("correct its day of month or its month")),
        "{error:?}"
    );
}

#[test]
fn an_option_schedule_that_has_ended_is_named() {
    let ended = CALENDAR.replace(
        "cronwheel.dev/not-on: holidays",
        "cronwheel.dev/schedule: 0 0 3 1 1 * 2026",
    );
    let (_, error) = run_on(&ended, &["-n", "1"]);
    assert_eq!(
        error.as_deref(),
        Some("never: the schedules of the annotation cronwheel.dev/schedule match no later instant; correct them")
    );
    let last = ended.replace("* 2026", "* 2027");
    let (output, error) = run_on(&last, &["-n", "2"]);
    assert!(output.ends_with("\nno further activation\n"), "{output}");
    assert_eq!(error, None);
    // The search for a date that the calendar does not exclude has an end.
    let (output, _) = run_on(
        &CALENDAR.replace(
            "cronwheel.dev/not-on: holidays",
            "cronwheel.dev/not-on: holidays, cronwheel.dev/schedule: 0 0 3 1 1 * 2027",
        ),
        &["-n", "2"],
    );
    assert!(
        output.ends_with("\nno further activation within five years\n"),
        "{output}"
    );
}

/// The activations are those of the annotation.
#[test]
fn json_has_the_schedules_that_run() {
    let input = CALENDAR.replace(
        "cronwheel.dev/not-on: holidays",
        "cronwheel.dev/schedule: \"30 0 3 1 1 * 2027\\n0 0 4 * * *\"",
    );
    let (output, error) = run_on(&input, &["-n", "1", "-o", "json"]);
    assert_eq!(error, None);
    let answer: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(answer["schedules"], json!(["30 0 3 1 1 * 2027", "0 0 4 * * *"]));
    assert_ne!(answer["schedule"], answer["schedules"][1]);
    assert!(answer["description"].as_str().unwrap().contains("2027"), "{output}");
}

const FROZEN: &str = "
apiVersion: v1
kind: Namespace
metadata:
  name: shop
  annotations: {cronwheel.dev/freeze-until: \"2026-03-27T14:00:00Z\", cronwheel.dev/freeze-reason: migration}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: shop}
spec: {schedule: 0 * * * *, jobTemplate: {}}
";

#[test]
fn a_freeze_is_noted_until_it_is_over() {
    let note = "note: the namespace is frozen, so nothing starts before 2026-03-27T14:00:00Z: migration\n";
    for (args, is_frozen) in [
        (&[][..], true),
        (&["--from", "2026-03-27T13:59:59Z"], true),
        (&["--from", "2026-03-27T14:00:00Z"], false),
    ] {
        let (output, _) = run_on(FROZEN, args);
        assert_eq!(output.contains(note), is_frozen, "{args:?}: {output}");
    }
}

const WITHOUT_EFFECT: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: shop, annotations: {cronwheel.dev/on-resume: skip, cronwheel.dev/alerts: none, example.com/spreads: 1m}}
---
apiVersion: batch/v1
kind: CronJob
metadata:
  name: report
  namespace: shop
  annotations:
    cronwheel.dev/alerts: none
    cronwheel.dev/freeze-until: \"2026-03-27T14:00:00Z\"
    cronwheel.dev/late-after-seconds: \"60\"
    cronwheel.dev/missed-run: skip
    cronwheel.dev/run-now-done: a
    cronwheel.dev/whatever: \"1\"
spec: {schedule: 0 * * * *, jobTemplate: {metadata: {annotations: {cronwheel.dev/spread: 10m}}}}
";

#[test]
fn annotations_without_an_effect_are_noted() {
    let (output, error) = run_on(WITHOUT_EFFECT, &["-n", "1"]);
    let notes: Vec<&str> = output.lines().filter(|line| line.starts_with("note: ")).collect();
    assert_eq!(
        notes,
        [
            "note: annotation cronwheel.dev/freeze-until has no effect on a CronJob; set it on the namespace",
            "note: annotation cronwheel.dev/missed-run has no effect; did you mean cronwheel.dev/missed-runs?",
            "note: annotation cronwheel.dev/whatever has no effect; cronwheel has none of this name",
            "note: annotation cronwheel.dev/spread of spec.jobTemplate has no effect; set it on the CronJob",
            "note: annotation cronwheel.dev/on-resume of the namespace has no effect; set it on each CronJob",
        ]
    );
    assert_eq!(error, None);
}

#[test]
fn runs_in_a_freeze_are_not_among_the_next_ones() {
    let frozen = format!(
        "{SPREAD}---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: shop\n  annotations: \
         {{cronwheel.dev/freeze-until: \"2026-03-27T15:30:00Z\"}}\n"
    );
    let (output, error) = run_on(&frozen, &["-n", "1"]);
    assert_eq!(error, None);
    let next = "\n\nfrozen until Fri 2026-03-27 15:30 UTC: 3 runs before it do not start at their times; the last 3 runs \
                before it start then\nin 4h, Fri 2026-03-27 16:00 UTC, starts 16:05:35\n";
    assert!(output.ends_with(next), "{output}");
    let (output, _) = run_on(&frozen, &["-n", "1", "--from", "2026-03-27T15:45:00Z"]);
    assert!(!output.contains("frozen until"), "{output}");
}

#[test]
fn a_freeze_without_an_end_is_no_schedule_that_never_runs() {
    let endless = FROZEN.replace("2026-03-27T14:00:00Z", "9999-12-31T23:59:59Z");
    for (text, is_never) in [
        (endless.clone(), false),
        (endless.replace("0 * * * *", "0 0 30 2 *"), true),
    ] {
        let (output, error) = run_on(&text, &[]);
        assert_eq!(error.is_some(), is_never, "{output}");
        let line = "frozen until Thu 9999-12-30 22:00 UTC: nothing starts before the namespace is thawed\n";
        assert_eq!(output.ends_with(line), !is_never, "{output}");
    }
}
