//! Tests of the complete text output.

use super::*;

#[track_caller]
fn check_text(objects: &[Value], arguments: &[&str], expected: &str) {
    let list = json!({"kind": "List", "items": objects});
    let printed = run_on(&list.to_string(), arguments).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(printed.output, expected.trim_start_matches('\n'), "{}", printed.output);
}

#[test]
fn a_run_is_explained_with_its_effects() {
    let objects = [
        cron_job(json!({
            "spec": {
                "schedule": "0 12 * * *", "timeZone": "Europe/Berlin", "concurrencyPolicy": "Replace",
                "failedJobsHistoryLimit": 0,
            },
            "status": {"lastScheduleTime": "2026-05-03T10:00:00Z", "active": [entry(29_630_040)]},
        })),
        job(29_630_040, json!({})),
        job(29_628_600, ended("Failed", None)),
    ];
    check_text(
        &objects,
        &[],
        "
CronJob default/hello at 2026-05-05T10:00:05Z

schedule     0 12 * * * in Europe/Berlin: at 12:00 every day
last due     Tue 2026-05-05 12:00 CEST (10:00 UTC)
             the last one that was started: Sun 2026-05-03 12:00 CEST (10:00 UTC)
next         in 23h 59m, Wed 2026-05-06 12:00 CEST (10:00 UTC)
             in 1d 23h, Thu 2026-05-07 12:00 CEST (10:00 UTC)
             in 2d 23h, Fri 2026-05-08 12:00 CEST (10:00 UTC)

decision     fire, slot Tue 2026-05-05 12:00 CEST (10:00 UTC), 5s ago
reason       Created: the slot is due and nothing holds it back
             1 slot before it: passed over, only the latest can start
             concurrencyPolicy is Replace: the runs before it are deleted first

creates      Job hello-29632920
deletes      Job hello-29628600 (over the history limit)
             Job hello-29630040 (replaced)
events       Normal   SuccessfulDelete: Deleted job hello-29628600
             Normal   SuccessfulDelete: Deleted job hello-29630040
             Normal   SuccessfulCreate: Created job hello-29632920
status       active: hello-29630040 -> hello-29632920
             lastScheduleTime: 2026-05-03T10:00:00Z -> 2026-05-05T10:00:00Z
next check   2026-05-06T10:00:00Z
",
    );
}

#[test]
fn b_9_4_a_count_of_a_hundred_slots_or_more_is_approximate() {
    for (last, expected) in [
        ("2026-05-05T09:40:00Z", "1 slot before it"),
        ("2026-05-04T17:20:00Z", "99 slots before it"),
        ("2026-05-04T17:10:00Z", "about 100 slots before it"),
    ] {
        let objects = [cron_job(json!({"status": {"lastScheduleTime": last}}))];
        let list = json!({"kind": "List", "items": objects}).to_string();
        let output = run_on(&list, &[]).unwrap().output;
        assert!(output.contains(&format!("\n             {expected}: ")), "{output}");
    }
}

#[test]
fn a_missed_run_shows_the_difference_to_the_built_in() {
    let objects = [cron_job(json!({"spec": {"startingDeadlineSeconds": 2}}))];
    check_text(
        &objects,
        &[],
        "
CronJob default/hello at 2026-05-05T10:00:05Z

schedule     */10 * * * * in UTC, the default time zone: every 10 minutes
last due     Tue 2026-05-05 10:00 UTC
             the last one that was started: Tue 2026-05-05 09:50 UTC
next         in 9m 55s, Tue 2026-05-05 10:10 UTC
             in 19m 55s, Tue 2026-05-05 10:20 UTC
             in 29m 55s, Tue 2026-05-05 10:30 UTC
note         startingDeadlineSeconds is 2: enough for cronwheel, which misses only a run that it finds more than 2 s late, as after an outage; the built-in controller also loses runs when it is that late

decision     skip, slot Tue 2026-05-05 10:00 UTC, 5s ago
reason       DeadlineExceeded: the slot is older than startingDeadlineSeconds allows: it is missed (the slot is 5s old, and startingDeadlineSeconds is 2)
difference   the built-in controller emits no Event

events       Warning  MissSchedule: Missed scheduled time to start a job: Tue, 05 May 2026 10:00:00 +0000
next check   2026-05-05T10:10:00Z
",
    );
}

#[test]
fn a_spread_run_waits_for_its_start() {
    let spread = cron_job(json!({"metadata": {"annotations": {"cronwheel.dev/spread": "9m"}}}));
    let answer = run_json(std::slice::from_ref(&spread), &[]);
    let start: Timestamp = answer["nextStarts"][0].as_str().unwrap().parse().unwrap();
    let list = json!({"kind": "List", "items": [spread]}).to_string();
    let output = run_on(&list, &[]).unwrap().output;
    let wall = start.strftime("%Y-%m-%d %H:%M");
    assert!(
        output.contains(&format!("\ndecision     wait: next run Tue {wall}")),
        "{output}"
    );
    assert!(output.contains(", for the slot Tue 2026-05-05 10:00 UTC\n"), "{output}");
    assert!(output.contains(&format!("\nnext check   {start}\n")), "{output}");
}

#[test]
fn a_freeze_differs_from_the_built_in_controller_if_a_slot_is_due_in_it() {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": "default", "annotations": {"cronwheel.dev/freeze-until": "2026-05-05T12:00:00Z"}}});
    for (spec, last, expected) in [
        (
            json!({}),
            "2026-05-05T09:50:00Z",
            Some("the built-in controller starts it"),
        ),
        (
            json!({"schedule": "0 11 * * *"}),
            "2026-05-04T11:00:00Z",
            Some("the built-in controller starts the next slot, Tue 2026-05-05 11:00 UTC"),
        ),
        (json!({"schedule": "0 3 * * *"}), "2026-05-05T03:00:00Z", None),
        (
            json!({"schedule": "0 9 * * *", "startingDeadlineSeconds": 60}),
            "2026-05-04T09:00:00Z",
            None,
        ),
    ] {
        let cron_job = cron_job(json!({"spec": spec, "status": {"lastScheduleTime": last}}));
        let list = json!({"kind": "List", "items": [cron_job, namespace]}).to_string();
        let output = run_on(&list, &[]).unwrap().output;
        assert!(output.contains("\nreason       Frozen: "), "{output}");
        let difference = output.lines().find_map(|line| line.strip_prefix("difference   "));
        assert_eq!(difference, expected, "{output}");
    }
}

#[test]
fn several_cron_jobs_have_a_block_each() {
    let broken = cron_job(json!({"metadata": {"name": "broken"}, "spec": {"schedule": "@reboot"}}));
    let young = json!({"metadata": {"name": "young", "creationTimestamp": null}, "status": null});
    check_text(
        &[broken, cron_job(young)],
        &[],
        "
CronJob default/broken at 2026-05-05T10:00:05Z

schedule     @reboot

decision     skip
reason       UnparseableSchedule: spec.schedule does not parse (unrecognized descriptor: @reboot; write five fields (minute, hour, day of month, month, day of week), or one of @yearly, @monthly, @weekly, @daily, @hourly, or @every with a duration such as 1h30m)

events       Warning  UnparseableSchedule: unparseable schedule: \"@reboot\" : unrecognized descriptor: @reboot
next check   when the CronJob or one of its Jobs changes

CronJob default/young at 2026-05-05T10:00:05Z

schedule     */10 * * * * in UTC, the default time zone: every 10 minutes
last due     none since the creation at Tue 2026-05-05 10:00:05 UTC
next         in 9m 55s, Tue 2026-05-05 10:10 UTC
             in 19m 55s, Tue 2026-05-05 10:20 UTC
             in 29m 55s, Tue 2026-05-05 10:30 UTC

decision     wait: next run Tue 2026-05-05 10:10 UTC, in 9m 55s
reason       NotDue: no slot was due since the last started one

does         nothing
next check   2026-05-05T10:10:00Z
note         neither creationTimestamp nor lastScheduleTime is given: taken as created now, so nothing is due yet
",
    );
}

#[test]
fn an_undecodable_cron_job_is_explained_once() {
    check_text(
        &[cron_job(json!({"spec": {"suspend": "perhaps"}}))],
        &[],
        "
CronJob default/hello at 2026-05-05T10:00:05Z

decision     skip
reason       Undecodable: the object cannot be decoded: the CronJob starts nothing until it can, and then its latest slot (spec.suspend: \"perhaps\" is text; write true or false)
difference   the built-in controller decodes typed objects and cannot list any CronJob while such an object exists

events       Warning  UndecodableCronJob: CronJob default/hello cannot be decoded: spec.suspend: \
         invalid type: string \"perhaps\", expected a boolean
next check   when the CronJob or one of its Jobs changes
",
    );
}

/// The line with this label.
fn labelled_line(label: &str, objects: &[Value], arguments: &[&str]) -> String {
    let list = json!({"kind": "List", "items": objects}).to_string();
    let output = run_on(&list, arguments).unwrap().output;
    let line = output.lines().find(|line| line.starts_with(label));
    line.unwrap()[13..].to_owned()
}

#[test]
fn b_12_4_the_retries_of_a_failed_create_are_explained() {
    for (deadline, until) in [
        (Value::Null, "the next slot at 2026-05-05T10:10:00Z"),
        (json!(3_600), "the next slot at 2026-05-05T10:10:00Z"),
        (json!(60), "the end of its deadline at 2026-05-05T10:01:00Z"),
        // A create is retried until ten seconds after its slot, even with a shorter deadline.
        (json!(6), "the end of its deadline at 2026-05-05T10:00:10Z"),
    ] {
        let objects = [cron_job(json!({"spec": {"startingDeadlineSeconds": deadline}}))];
        assert_eq!(
            labelled_line("next check", &objects, &["--assume", "create=error"]),
            format!("in 100 ms, then by back-off, until {until}"),
            "{deadline}"
        );
    }
    let skip = json!({"metadata": {"annotations": {"cronwheel.dev/missed-runs": "skip"}}});
    assert_eq!(
        labelled_line("next check", &[cron_job(skip)], &["--assume", "create=error"]),
        "in 100 ms, then by back-off, until missed-runs gives it up at 2026-05-05T10:01:00Z"
    );
}

#[test]
fn b_5_4_the_retries_of_a_failed_look_up_are_explained() {
    let objects = [
        cron_job(json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": [entry(29_632_910)]}})),
        job(29_632_910, json!({"status": {"startTime": "yesterday"}})),
    ];
    assert_eq!(
        labelled_line("next check", &objects, &[]),
        "in 1 s, then by back-off, until the Job can be looked up"
    );
}

#[test]
fn b_10_3_the_wait_of_a_slot_under_forbid_is_explained() {
    let objects = [
        cron_job(json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": [entry(29_632_910)]}})),
        job(29_632_910, json!({})),
    ];
    assert_eq!(
        labelled_line("reason", &objects, &[]),
        "Forbidden: an earlier run is active and concurrencyPolicy is Forbid: the slot starts when that run ends, within \
         its deadline, unless later ones supersede it (Job hello-29632910 is active since Tue 2026-05-05 09:50 UTC)"
    );
    assert_eq!(
        labelled_line("next check", &objects, &[]),
        "when that Job ends, at the latest at 2026-05-05T10:10:00Z"
    );
}

/// A CronJob of every ten minutes that ran last at 09:00, so that six slots were missed.
fn catching_up(annotations: Value, policy: &str) -> [Value; 1] {
    [cron_job(json!({
        "metadata": {"annotations": annotations},
        "spec": {"concurrencyPolicy": policy},
        "status": {"lastScheduleTime": "2026-05-05T09:00:00Z"},
    }))]
}

#[test]
fn o_2_the_slots_that_all_starts_are_explained() {
    let all_3 = || json!({"cronwheel.dev/missed-runs": "all 3"});
    let list = json!({"kind": "List", "items": catching_up(all_3(), "Allow")}).to_string();
    let output = run_on(&list, &[]).unwrap().output;
    for line in [
        "decision     fire, slot Tue 2026-05-05 09:40 UTC, 20m 5s ago",
        "             3 slots before it: passed over, only the last 3 can start",
        "creates      Job hello-29632900",
    ] {
        assert!(output.lines().any(|printed| printed == line), "{line}\n{output}");
    }
    let paced = "at the pace of missed runs, 5 a second in the whole installation by default: 2 more slots are due";
    let next_slot = "2026-05-05T10:10:00Z";
    for (annotations, policy, assumed, expected) in [
        (all_3(), "Allow", "created", paced),
        (all_3(), "Forbid", "created", "when that Job ends: 2 more slots are due"),
        (all_3(), "Replace", "created", next_slot),
        (
            json!({"cronwheel.dev/missed-runs": "all 1"}),
            "Allow",
            "created",
            next_slot,
        ),
        (
            json!({"cronwheel.dev/on-resume": "all 3"}),
            "Allow",
            "created",
            next_slot,
        ),
        (all_3(), "Allow", "error", "in 100 ms, then by back-off"),
    ] {
        let objects = catching_up(annotations.clone(), policy);
        let arguments = ["--assume", &format!("create={assumed}")];
        assert_eq!(
            labelled_line("next check", &objects, &arguments),
            expected,
            "{annotations} {policy} {assumed}"
        );
    }
}

/// The schedule line and its continuation.
fn schedule_line(schedule: &str, zone: Value) -> String {
    let objects = [cron_job(json!({"spec": {"schedule": schedule, "timeZone": zone}}))];
    let list = json!({"kind": "List", "items": objects}).to_string();
    let output = run_on(&list, &["--default-time-zone", "Asia/Tokyo"]).unwrap().output;
    let mut lines = output.lines().skip_while(|line| !line.starts_with("schedule"));
    lines.next().unwrap()[13..].to_owned()
}

#[test]
fn b_7_1_the_effective_zone_is_shown() {
    let description = "at 12:00 every day";
    let zone = |name: &str| json!(name);
    let every = "@every 1h: every 1h, counted from the last slot that was started, else from the creation";
    let in_text = "which the schedule names";
    let is_default = "the default time zone";
    for (schedule, zone, expected) in [
        (
            "0 12 * * *",
            zone("Europe/Berlin"),
            format!("0 12 * * * in Europe/Berlin: {description}"),
        ),
        (
            "0 12 * * *",
            Value::Null,
            format!("0 12 * * * in Asia/Tokyo, {is_default}: {description}"),
        ),
        (
            "0 12 * * *",
            zone("Local"),
            format!("0 12 * * * in Asia/Tokyo, {is_default}, which Local stands for: {description}"),
        ),
        ("0 12 * * *", zone("Mars/Base"), "0 12 * * *".to_owned()),
        (
            "TZ=America/New_York 0 12 * * *",
            zone("Europe/Berlin"),
            format!("TZ=America/New_York 0 12 * * * in America/New_York, {in_text}: {description}"),
        ),
        (
            "TZ=Local 0 12 * * *",
            zone("Europe/Berlin"),
            format!("TZ=Local 0 12 * * * in Asia/Tokyo, {is_default}, which Local stands for: {description}"),
        ),
        (
            "TZ=Mars/Base 0 12 * * *",
            Value::Null,
            "TZ=Mars/Base 0 12 * * *".to_owned(),
        ),
        (
            "TZ=America/New_York @every 1h",
            Value::Null,
            format!("TZ=America/New_York {every}"),
        ),
        ("@every 1h", zone("Europe/Berlin"), every.to_owned()),
    ] {
        assert_eq!(schedule_line(schedule, zone.clone()), expected, "{schedule} {zone}");
    }
}

#[test]
fn b_6_2_an_unknown_zone_has_no_activations() {
    check_text(
        &[cron_job(json!({"spec": {"timeZone": "Mars/Base"}}))],
        &[],
        "
CronJob default/hello at 2026-05-05T10:00:05Z

schedule     */10 * * * *

decision     skip
reason       UnknownTimeZone: spec.timeZone is not a known time zone (unknown time zone Mars/Base; write a name of the IANA database, such as America/New_York or Etc/UTC)

events       Warning  UnknownTimeZone: invalid timeZone: \"Mars/Base\": unknown time zone Mars/Base
next check   when the CronJob or one of its Jobs changes
",
    );
}

/// The lines after `next`, for a schedule in a zone.
fn next_lines(schedule: &str, zone: &str, now: &str) -> Vec<String> {
    let objects = [cron_job(
        json!({"spec": {"schedule": schedule, "timeZone": zone}, "status": {"lastScheduleTime": now}}),
    )];
    let list = json!({"kind": "List", "items": objects}).to_string();
    let output = run_on(&list, &["--now", now]).unwrap().output;
    let lines = output.lines().skip_while(|line| !line.starts_with("next"));
    lines
        .take_while(|line| !line.is_empty())
        .map(|line| line[13..].to_owned())
        .collect()
}

/// Schedule, zone, current time, and the expected line about the clock change.
type ChangeCase<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

#[track_caller]
fn check_changes(cases: &[ChangeCase<'_>]) {
    for (schedule, zone, now, expected) in cases {
        let lines = next_lines(schedule, zone, now);
        let change = lines.into_iter().find(|line| line.contains("clocks"));
        assert_eq!(change.as_deref(), *expected, "{schedule} {zone} {now}");
    }
}

#[test]
fn b_8_4_clock_changes_near_a_run_are_shown() {
    check_changes(&[
        (
            "30 2 * * *",
            "America/New_York",
            "2026-03-07T12:00:00Z",
            Some(
                "Sun 2026-03-08: clocks go forward from 02:00 to 03:00, so there is no run on that day: 02:30 is lost",
            ),
        ),
        (
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00:00Z",
            Some("Sun 2026-11-01: clocks go back from 02:00 to 01:00, so 01:30 runs twice"),
        ),
        (
            "30 5 * * *",
            "America/New_York",
            "2026-10-31T12:00:00Z",
            Some("Sun 2026-11-01: clocks go back from 02:00 to 01:00"),
        ),
        // A schedule that fires every hour loses no run.
        (
            "*/5 * * * *",
            "Europe/Berlin",
            "2026-03-29T00:58:00Z",
            Some("Sun 2026-03-29: clocks go forward from 02:00 to 03:00"),
        ),
        // All runs of the day are lost, although the clocks skip only one hour.
        (
            "*/15 2 * * *",
            "Europe/Berlin",
            "2026-03-28T12:00:00Z",
            Some(
                "Sun 2026-03-29: clocks go forward from 02:00 to 03:00, so there is no run on that day: \
                 4 runs are lost, 02:00 the first",
            ),
        ),
        (
            "0 */2 * * *",
            "Europe/Berlin",
            "2026-03-28T22:00:00Z",
            Some("Sun 2026-03-29: clocks go forward from 02:00 to 03:00, so 02:00 is lost"),
        ),
        ("30 2 * * *", "America/New_York", "2026-05-05T12:00:00Z", None),
        ("30 2 * * *", "Asia/Kolkata", "2026-03-07T12:00:00Z", None),
        ("@every 1h", "America/New_York", "2026-03-08T06:30:00Z", None),
    ]);
}

#[test]
fn b_8_4_the_effect_of_a_clock_change_on_runs_is_shown() {
    check_changes(&[
        // The lost run is hours away from the clock change.
        (
            "0 12 * * 5",
            "Africa/Cairo",
            "2026-04-22T12:00:00Z",
            Some(
                "Fri 2026-04-24: clocks go forward from 00:00 to 01:00, so there is no run on that day: 12:00 is lost",
            ),
        ),
        (
            "0 5 * * *",
            "Australia/Lord_Howe",
            "2026-04-03T20:00:00Z",
            Some("Sun 2026-04-05: clocks go back from 02:00 to 01:30, so there is no run on that day: 05:00 is lost"),
        ),
        (
            "0 5 7 * *",
            "America/Santiago",
            "2024-09-07T10:00:00Z",
            Some(
                "Sun 2024-09-08: clocks go forward from 00:00 to 01:00, \
                 so 05:00 comes, which the schedule does not name",
            ),
        ),
        (
            "*/20 1 * * *",
            "America/New_York",
            "2026-10-31T12:00:00Z",
            Some("Sun 2026-11-01: clocks go back from 02:00 to 01:00, so 3 runs come twice, 01:00 the first"),
        ),
        // The clock change at midnight lengthens the day before.
        (
            "30 23 * * *",
            "Africa/Cairo",
            "2026-10-29T12:00:00Z",
            Some("Thu 2026-10-29: clocks go back from 24:00 to 23:00, so 23:30 runs twice"),
        ),
        // The current time is after the runs of that day.
        (
            "30 1 * * *",
            "America/New_York",
            "2026-11-01T12:00:00Z",
            Some("Sun 2026-11-01: clocks go back from 02:00 to 01:00, so 01:30 runs twice"),
        ),
    ]);
}

#[test]
fn b_8_4_a_later_clock_change_that_loses_a_run_is_shown() {
    let lines = next_lines("30 2 29 3 *", "Europe/Berlin", "2025-10-01T12:00:00Z");
    let changes: Vec<&String> = lines.iter().filter(|line| line.contains("clocks")).collect();
    assert_eq!(
        changes,
        [
            "Sun 2025-10-26: clocks go back from 03:00 to 02:00",
            "Sun 2026-03-29: clocks go forward from 02:00 to 03:00, so there is no run on that day: 02:30 is lost",
        ]
    );
}
