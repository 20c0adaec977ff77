//! Tests of what the switch would do to CronJobs.

use serde_json::{Value, json};

use super::{at, cron_job, job, line, with};
use crate::{cli::check::switch::Switch, explain::Survey, schedule::Zone};

/// The findings at 10:00:05 that are not about every cluster.
fn findings(cron_jobs: &[Value], jobs: &[Value]) -> Vec<String> {
    let zone = Zone::utc();
    let now = at("10:00:05");
    let mut survey = Survey::new(&zone, now);
    survey.take_jobs(json!({"items": jobs}));
    let mut switch = Switch::default();
    for outlook in survey.outlooks(json!({"items": cron_jobs})) {
        switch.add(&outlook, now);
    }
    switch.findings(&zone).iter().map(line).collect()
}

/// The findings of CronJobs that ran at 10:00 that differ from those of an unremarkable one.
#[track_caller]
fn check(changes: &[Value], expected: &[&str]) {
    let ran = json!({"status": {"lastScheduleTime": "2026-05-05T10:00:00Z"}});
    let named =
        |position: usize| json!({"metadata": {"name": format!("c{position}"), "uid": format!("uid-{position}")}});
    let cron_jobs = changes
        .iter()
        .enumerate()
        .map(|(position, changes)| with(with(cron_job(ran.clone()), named(position)), changes.clone()));
    let found = findings(&cron_jobs.collect::<Vec<_>>(), &[]);
    let usual = findings(&[cron_job(ran)], &[]);
    let others: Vec<String> = found
        .into_iter()
        .filter(|finding| !usual.contains(finding) && !finding.contains(" CronJobs: "))
        .collect();
    assert_eq!(others, expected);
}

#[test]
fn a_cluster_without_remarkable_cron_jobs_is_fine() {
    let ran = cron_job(json!({"status": {"lastScheduleTime": "2026-05-05T10:00:00Z"}}));
    assert_eq!(
        findings(&[ran], &[job(29_632_860, json!({}))]),
        [
            "✓ CronJobs: 1 CronJob",
            "✓ starts at once: no CronJob has a missed run that cronwheel would start at once",
            "✓ deletes at once: no finished Job is beyond a history limit",
            "✓ time zones: no schedule depends on the zone of the controller",
            "✓ short-lived Jobs: every finished Job is kept for at least a minute",
            "✓ can run: every CronJob can be decoded and has a schedule that runs",
            "✓ differences: no other difference of docs/reference/differences.md concerns a CronJob here",
        ]
    );
    assert_eq!(findings(&[], &[])[0], "✓ CronJobs: 0 CronJobs");
}

#[test]
fn missed_runs_start_at_once() {
    let missed = |changes: Value| findings(&[cron_job(changes)], &[])[1].clone();
    assert_eq!(
        missed(json!({})),
        "! starts at once: 1 CronJob would start a Job at once, each for its latest missed run: shop/report (due 5s ago) -> \
         kubectl -n shop patch cronjob report -p '{\"spec\":{\"suspend\":true}}' for each whose missed run is not wanted; \
         cronwheel explain report -n shop says why it starts"
    );
    for changes in [
        json!({"spec": {"suspend": true}}),
        json!({"spec": {"startingDeadlineSeconds": 2}}),
        json!({"metadata": {"deletionTimestamp": "2026-05-05T09:59:00Z"}}),
    ] {
        assert!(missed(changes.clone()).starts_with("✓ starts at once"), "{changes}");
    }
    // The Job of the slot exists, although its slot is not stored yet.
    let found = findings(&[cron_job(json!({}))], &[job(29_632_920, json!({}))]);
    assert!(found[1].starts_with("✓ starts at once"), "{found:#?}");
    // A running Job holds the slot back.
    let active = json!([{"name": "report-29632860", "namespace": "shop", "uid": "job-29632860"}]);
    let forbid = cron_job(json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": active}}));
    let found = findings(&[forbid], &[job(29_632_860, json!({}))]);
    assert!(found[1].starts_with("✓ starts at once"), "{found:#?}");
}

#[test]
fn many_names_are_summarised() {
    let many: Vec<Value> = (0..8)
        .map(|number| cron_job(json!({"metadata": {"name": format!("c{number}"), "uid": format!("{number}")}})))
        .collect();
    let found = findings(&many, &[]);
    assert!(found[1].contains("8 CronJobs would start"), "{found:#?}");
    assert!(found[1].contains("shop/c4 (due 5s ago) and 3 others"), "{found:#?}");
}

#[test]
fn deletes_of_finished_and_running_jobs_are_counted() {
    let finished = json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    let jobs: Vec<Value> = (0..5)
        .map(|hour| job(29_632_860 - 60 * hour, finished.clone()))
        .collect();
    let found = findings(&[cron_job(json!({}))], &jobs);
    assert_eq!(
        found[2],
        "✓ deletes at once: 2 finished Jobs are beyond a history limit and would be deleted"
    );
    let active = json!([{"name": "report-29632860", "namespace": "shop", "uid": "job-29632860"}]);
    let replace = cron_job(json!({"spec": {"concurrencyPolicy": "Replace"}, "status": {"active": active}}));
    let found = findings(&[replace], &[job(29_632_860, json!({}))]);
    assert!(
        found[2].starts_with(
            "! deletes at once: 1 CronJob with concurrencyPolicy Replace would delete running Jobs for their latest missed \
             run: shop/report; no finished Job is beyond a history limit"
        ),
        "{found:#?}"
    );
}

#[test]
fn last_runs_tell_the_zone_of_the_built_in_controller() {
    let zoneless = |hour: &str| {
        json!({
            "spec": {"timeZone": null, "schedule": "0 2 * * *"},
            "status": {"lastScheduleTime": format!("2026-05-05T{hour}:00:00Z")},
        })
    };
    check(
        &[zoneless("02")],
        &["✓ time zones: 1 schedule without spec.timeZone would run in UTC, in which their last runs fit"],
    );
    check(
        &[zoneless("00"), zoneless("02")],
        &[
            "! starts at once: 1 CronJob would start a Job at once, each for its latest missed run: shop/c0 (due 8h ago) -> \
             kubectl -n shop patch cronjob c0 -p '{\"spec\":{\"suspend\":true}}' for each whose missed run is not wanted; \
             cronwheel explain c0 -n shop says why it starts",
            "! time zones: 1 CronJob without spec.timeZone ran last at a time that is not in the schedule in UTC: shop/c0. \
             The built-in controller runs in another zone, or the schedule was changed since -> set \
             controller.defaultTimeZone of the chart to the zone of kube-controller-manager, and repeat the check with \
             --default-time-zone (rule B-7.2)",
        ],
    );
    let never_ran =
        json!({"spec": {"timeZone": null}, "status": null, "metadata": {"creationTimestamp": "2026-05-05T10:00:01Z"}});
    check(
        &[never_ran],
        &[
            "! time zones: 1 schedule without spec.timeZone would run in UTC; no run of them shows the zone of the built-in \
             controller -> compare with the zone of kube-controller-manager (rule B-7.2)",
        ],
    );
}

/// The built-in controller does not read the annotations.
#[test]
fn the_zone_is_judged_by_the_schedule_that_the_built_in_controller_runs() {
    let schedule = json!({"cronwheel.dev/schedule": "0 30 4 * * *"});
    for (field, annotations, last, expected) in [
        ("0 2 * * *", schedule.clone(), "02:00:00", "✓ time zones: 1 schedule"),
        // cronwheel runs it already.
        ("0 2 * * *", schedule.clone(), "04:30:00", "✓ time zones: 1 schedule"),
        (
            "0 2 * * *",
            schedule.clone(),
            "00:00:00",
            "! time zones: 1 CronJob without spec.timeZone ran last at a time",
        ),
        (
            "0 2 * * *",
            json!({"cronwheel.dev/clock-change": "once"}),
            "02:00:00",
            "✓ time zones: 1 schedule",
        ),
        (
            "@every 1h",
            schedule,
            "09:17:13",
            "! time zones: 1 schedule without spec.timeZone would run in UTC; no run",
        ),
    ] {
        let changes = json!({
            "metadata": {"annotations": annotations},
            "spec": {"timeZone": null, "schedule": field},
            "status": {"lastScheduleTime": format!("2026-05-05T{last}Z")},
        });
        let found = findings(&[cron_job(changes)], &[]);
        assert!(found[3].starts_with(expected), "{field} {last}: {}", found[3]);
    }
}

#[test]
fn short_lived_jobs_are_named() {
    let ttl = |seconds: i64| json!({"spec": {"jobTemplate": {"spec": {"ttlSecondsAfterFinished": seconds}}}});
    check(
        &[
            json!({"spec": {"successfulJobsHistoryLimit": 0}}),
            ttl(30),
            ttl(60),
            json!({"spec": {"failedJobsHistoryLimit": 0}}),
        ],
        &[
            "! short-lived Jobs: 3 CronJobs with a history limit of 0 or with ttlSecondsAfterFinished under 60: shop/c0, \
             shop/c1, shop/c3. If the switch falls between the end of a Job and the write of its run to lastScheduleTime, \
             that run starts a second time -> switch their namespaces between two runs, or raise the limits to 1 and the \
             TTL to 60 for the switch",
        ],
    );
}

#[test]
fn cron_jobs_that_never_run_are_named_with_the_reason() {
    check(
        &[
            json!({"spec": {"schedule": "0 0 30 2 *"}}),
            json!({"spec": {"schedule": "@reboot"}}),
            json!({"spec": {"suspend": "perhaps"}}),
            json!({"metadata": {"name": "a".repeat(53)}}),
        ],
        &[&format!(
            "! can run: 3 CronJobs would never run: shop/c0 (NeverRuns: no instant matches the schedule (spec.schedule: correct \
             its day of month or its month)), shop/c1 (UnparseableSchedule: spec.schedule does not parse (unrecognized descriptor: \
             @reboot; write five fields (minute, hour, day of month, month, day of week), or one of @yearly, @monthly, \
             @weekly, @daily, @hourly, or @every with a duration such as 1h30m)), shop/c2 (Undecodable: the object cannot be \
             decoded: the CronJob starts nothing until it can, and then its latest slot (spec.suspend: invalid type: string \
             \"perhaps\", expected a boolean)); 1 CronJob with a name of more than 52 characters, so that the names of its Jobs are refused: \
             shop/{} -> correct or delete them; they do not run under the built-in controller either",
            "a".repeat(53)
        )],
    );
}

#[test]
fn differences_that_concern_an_object_are_named() {
    let every = |period: &str, deadline: Value| json!({"spec": {"schedule": format!("@every {period}"), "startingDeadlineSeconds": deadline}});
    check(
        &[
            every("1h", json!(600)),
            json!({"spec": {"startingDeadlineSeconds": 9}}),
            every("10s", Value::Null),
            json!({"spec": {"jobTemplate": {"metadata": {"annotations": {"cronwheel.dev/x": "y"}}}}}),
            json!({"status": {"lastScheduleTime": "2026-05-06T10:00:00Z"}}),
            json!({"spec": {"startingDeadlineSeconds": 10}}),
        ],
        &[
            "! short deadlines: 2 CronJobs with a startingDeadlineSeconds below 10 s or below the period of @every, which \
             cronwheel runs on time and the built-in controller starts rarely or never: shop/c0, shop/c1 -> suspend those \
             that must not run more often than today (rule B-9.7)",
            "! more than once a minute: 1 CronJob with @every below a minute, which start at most one Job a minute under \
             both controllers: shop/c2 -> write a period of whole minutes",
            "! reserved annotations: 1 CronJob with jobTemplate annotations under cronwheel.dev/, which cronwheel leaves out \
             of their Jobs: shop/c3 -> rename these annotations (rule B-11.3)",
            "! future runs: 1 CronJob with a lastScheduleTime in the future, before which nothing runs under both \
             controllers: shop/c4 -> delete and create them again, or wait (rule B-9.1)",
        ],
    );
    let elsewhere = job(29_632_860, json!({"metadata": {"namespace": "other"}}));
    let ran = cron_job(json!({"status": {"lastScheduleTime": "2026-05-05T10:00:00Z"}}));
    let found = findings(&[ran], &[elsewhere]);
    assert!(
        found[6].starts_with("! foreign Jobs: 1 CronJob named as controller by Jobs of other namespaces"),
        "{found:#?}"
    );
}

#[test]
fn other_warning_events_are_summarised() {
    let old = json!({"spec": {"schedule": "* * * * *", "startingDeadlineSeconds": 100_000_000}});
    let found = findings(
        &[cron_job(with(
            old,
            json!({"status": {"lastScheduleTime": "2026-05-01T10:00:00Z"}}),
        ))],
        &[],
    );
    let last = found.last().unwrap();
    assert!(
        last.starts_with("! Warning Events: cronwheel would emit at once: TooManyMissedTimes on shop/report -> "),
        "{found:#?}"
    );
}

#[test]
fn a_cron_job_with_several_events_of_a_reason_is_named_once() {
    let annotations = json!({"cronwheel.dev/spread": "soon", "cronwheel.dev/missed-runs": "some"});
    let invalid = json!({"metadata": {"annotations": annotations}});
    check(
        &[invalid.clone(), invalid],
        &[
            "! Warning Events: cronwheel would emit at once: InvalidOption on shop/c0, shop/c1 -> cronwheel explain NAME -n \
             NAMESPACE says why; docs/operate/running.md has the meaning",
        ],
    );
}
