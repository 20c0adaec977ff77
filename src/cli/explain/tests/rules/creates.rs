//! Tests from a due slot to the Job, its Events and the status: B-10 to B-14.

use super::*;

#[test]
fn b_10_1_a_slot_past_its_deadline_is_missed() {
    let objects = [cron_job(json!({"spec": {"startingDeadlineSeconds": 60}}))];
    check(
        &objects,
        &["--now", "2026-05-05T10:01:01Z"],
        json!({
            "decision": "skip", "reason": "DeadlineExceeded", "slot": "2026-05-05T10:00:00Z", "job": null,
            "status": null,
            "events": [event(
                "Warning",
                "MissSchedule",
                "Missed scheduled time to start a job: Tue, 05 May 2026 10:00:00 +0000",
            )],
            "nextWakeup": "2026-05-05T10:10:00Z",
        }),
    );
    check(
        &objects,
        &["--now", "2026-05-05T10:01:00Z"],
        json!({"decision": "fire"}),
    );
}

#[test]
fn b_10_2_a_running_job_with_the_job_name_blocks_the_slot() {
    // Two slots of one minute give the same Job name.
    let changes = json!({
        "spec": {"schedule": "@every 30s"},
        "status": {"lastScheduleTime": "2026-05-05T10:00:00Z", "active": [entry(29_632_920)]},
    });
    let objects = [cron_job(changes), job(29_632_920, json!({}))];
    let mut expected = quiet_skip("AlreadyActive");
    expected["slot"] = json!("2026-05-05T10:00:30Z");
    check(&objects, &["--now", "2026-05-05T10:00:31Z"], expected);
}

#[test]
fn b_10_3_forbid_holds_the_slot_back() {
    let objects = [
        cron_job(json!({
            "spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": [entry(29_632_910)]},
        })),
        job(29_632_910, json!({})),
    ];
    check(
        &objects,
        &[],
        json!({
            "decision": "skip", "reason": "Forbidden", "slot": "2026-05-05T10:00:00Z", "job": null, "status": null,
            "deletes": [],
            "events": [event(
                "Normal",
                "JobAlreadyActive",
                "Not starting job because prior execution is running and concurrency policy is Forbid",
            )],
            "nextWakeup": "2026-05-05T10:10:00Z",
        }),
    );
}

#[test]
fn b_10_4_replace_deletes_first() {
    let objects = [
        cron_job(json!({
            "spec": {"concurrencyPolicy": "Replace", "failedJobsHistoryLimit": 0},
            "status": {"active": [entry(29_632_910), entry(29_632_900)]},
        })),
        job(29_632_910, json!({})),
        job(29_632_900, json!({})),
        job(29_632_890, ended("Failed", None)),
    ];
    check(
        &objects,
        &[],
        json!({
            "decision": "fire", "reason": "Created", "slot": "2026-05-05T10:00:00Z",
            "deletes": ["hello-29632890", "hello-29632910", "hello-29632900"],
            "events": [
                event("Normal", "SuccessfulDelete", "Deleted job hello-29632890"),
                event("Normal", "SuccessfulDelete", "Deleted job hello-29632910"),
                event("Normal", "SuccessfulDelete", "Deleted job hello-29632900"),
                event("Normal", "SuccessfulCreate", CREATED),
            ],
        }),
    );
}

#[test]
fn b_10_5_allow_starts_beside_running_jobs() {
    let objects = [
        cron_job(json!({"status": {"active": [entry(29_632_910)]}})),
        job(29_632_910, json!({})),
    ];
    let new = json!({
        "kind": "Job", "apiVersion": "batch/v1", "name": "hello-29632920", "namespace": "default", "uid": null,
    });
    check(
        &objects,
        &[],
        json!({
            "decision": "fire",
            "status": {"active": [entry(29_632_910), new], "lastScheduleTime": "2026-05-05T10:00:00Z"},
        }),
    );
}

#[test]
fn b_11_the_whole_job_is_shown() {
    let template = json!({
        "metadata": {"labels": {"app": "a"}, "annotations": {"note": "b"}, "finalizers": ["no/one"]},
        "spec": {"managedBy": "example.com/other", "somethingNewer": {"x": [1, 2.5]}},
    });
    let changes = json!({"spec": {"timeZone": "Asia/Kolkata", "jobTemplate": template}});
    let spec = json!({
        "managedBy": "example.com/other", "somethingNewer": {"x": [1, 2.5]},
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}},
    });
    check(
        &[cron_job(changes)],
        &[],
        json!({"job": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {
                "name": "hello-29632920",
                "creationTimestamp": "2026-05-05T10:00:00Z",
                "labels": {"app": "a"},
                "annotations": {
                    "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-05-05T15:30:00+05:30", "note": "b",
                },
                "ownerReferences": [{
                    "apiVersion": "batch/v1", "kind": "CronJob", "name": "hello", "controller": true,
                    "uid": "aaaaaaaa-0000-0000-0000-000000000001", "blockOwnerDeletion": true,
                }],
            },
            "spec": spec,
        }}),
    );
}

#[test]
fn b_12_1_b_12_5_a_created_job_is_recorded() {
    check(
        &[cron_job(json!({}))],
        &["--assume", "create=created"],
        json!({
            "decision": "fire", "reason": "Created", "deletes": [],
            "status": {
                "active": [{
                    "kind": "Job", "apiVersion": "batch/v1", "name": "hello-29632920", "namespace": "default",
                    "uid": null,
                }],
                "lastScheduleTime": "2026-05-05T10:00:00Z",
            },
            "events": [event("Normal", "SuccessfulCreate", CREATED)],
            "nextWakeup": "2026-05-05T10:10:00Z",
        }),
    );
}

#[test]
fn b_12_3_an_existing_job_of_the_cron_job_is_adopted() {
    let answer = run_json(&[cron_job(json!({}))], &["--assume", "create=exists"]);
    assert_eq!(answer["reason"], "Adopted");
    assert_eq!(answer["events"], json!([]));
    assert_eq!(answer["job"]["metadata"]["name"], "hello-29632920");
    assert_eq!(answer["status"]["lastScheduleTime"], "2026-05-05T10:00:00Z");
    assert_eq!(answer["status"]["active"][0]["uid"], Value::Null);
}

#[test]
fn b_12_3_a_finished_job_of_the_slot_is_recorded_as_a_success() {
    let objects = [
        cron_job(json!({})),
        job(29_632_920, ended("Complete", Some("10:00:03"))),
    ];
    check(
        &objects,
        &["--assume", "create=error"],
        json!({
            "decision": "fire", "reason": "Adopted",
            "status": {"lastScheduleTime": "2026-05-05T10:00:00Z", "lastSuccessfulTime": "2026-05-05T10:00:03Z"},
            "events": [event("Normal", "SawCompletedJob", "Saw completed job: hello-29632920, condition: Complete")],
        }),
    );
}

#[test]
fn b_12_3_an_ended_job_of_the_minute_is_adopted_without_a_create() {
    // Two slots of one minute give the same Job name.
    let changes = json!({"spec": {"schedule": "@every 30s"}, "status": {"lastScheduleTime": "2026-05-05T10:00:00Z"}});
    let objects = [cron_job(changes), job(29_632_920, ended("Complete", Some("10:00:03")))];
    check(
        &objects,
        &["--now", "2026-05-05T10:00:31Z"],
        json!({
            "decision": "fire", "reason": "Adopted", "slot": "2026-05-05T10:00:30Z", "job": null, "events": [],
            "status": {"lastScheduleTime": "2026-05-05T10:00:30Z", "lastSuccessfulTime": "2026-05-05T10:00:03Z"},
        }),
    );
}

#[test]
fn b_12_3_an_ended_job_of_a_slot_past_its_deadline_is_adopted() {
    let objects = [
        cron_job(json!({"spec": {"startingDeadlineSeconds": 60}})),
        job(29_632_920, ended("Complete", Some("10:00:03"))),
    ];
    check(
        &objects,
        &["--now", "2026-05-05T10:02:00Z"],
        json!({
            "decision": "fire", "reason": "Adopted", "slot": "2026-05-05T10:00:00Z", "job": null, "events": [],
            "status": {"lastScheduleTime": "2026-05-05T10:00:00Z", "lastSuccessfulTime": "2026-05-05T10:00:03Z"},
        }),
    );
}

#[test]
fn b_12_3_a_foreign_job_loses_the_slot() {
    let expected = json!({
        "decision": "fire", "reason": "ForeignJob", "slot": "2026-05-05T10:00:00Z", "status": null,
        "events": [event(
            "Warning",
            "FailedCreate",
            "Error creating job: jobs.batch \"hello-29632920\" already exists",
        )],
        "nextWakeup": "2026-05-05T10:10:00Z",
    });
    check(
        &[cron_job(json!({}))],
        &["--assume", "create=foreign"],
        expected.clone(),
    );
    let foreign = job(29_632_920, json!({"metadata": {"ownerReferences": null}}));
    check(&[cron_job(json!({})), foreign], &[], expected.clone());
    let of_another = json!({"metadata": {"ownerReferences": [{
        "kind": "CronJob", "name": "hello", "controller": true, "uid": "aaaaaaaa-0000-0000-0000-000000000002",
    }]}});
    check(
        &[cron_job(json!({})), job(29_632_920, of_another)],
        &["--assume", "create=exists"],
        expected,
    );
}

#[test]
fn b_12_4_a_failed_create_gets_an_event_and_no_status() {
    let answer = run_json(&[cron_job(json!({}))], &["--assume", "create=error"]);
    assert_eq!(answer["decision"], "fire");
    assert_eq!(answer["reason"], "CreateFailed");
    assert_eq!(answer["job"]["metadata"]["name"], "hello-29632920");
    assert_eq!(answer["status"], Value::Null);
    assert_eq!(answer["events"][0]["reason"], "FailedCreate");
    assert_eq!(answer["nextWakeup"], "2026-05-05T10:10:00Z");
}

#[test]
fn b_14_events_are_in_the_order_of_one_sync() {
    let objects = [
        cron_job(json!({
            "spec": {"concurrencyPolicy": "Replace", "failedJobsHistoryLimit": 0, "schedule": "TZ=UTC */10 * * * *"},
            "status": {
                "lastScheduleTime": "2026-05-01T00:00:00Z",
                "active": [entry(29_632_800), entry(29_632_810), entry(29_632_820)],
            },
        })),
        job(29_632_800, json!({})),
        job(29_632_810, ended("Complete", Some("09:00:00"))),
        job(29_626_550, ended("Failed", None)),
        manual_job(json!({})),
    ];
    let answer = run_json(&objects, &[]);
    let summary = |event: &Value| format!("{} {}", event["reason"], event["message"]).replace('"', "");
    let summaries: Vec<String> = answer["events"].as_array().unwrap().iter().map(summary).collect();
    let starts = [
        "SuccessfulDelete Deleted job hello-29626550",
        "UnexpectedJob Saw a job",
        "SawCompletedJob Saw completed job: hello-29632810",
        "MissingJob Active job went missing: hello-29632820",
        "UnsupportedSchedule",
        "TooManyMissedTimes",
        "SuccessfulDelete Deleted job hello-29632800",
        "SuccessfulCreate",
    ];
    assert_eq!(summaries.len(), starts.len(), "{summaries:#?}");
    for (summary, start) in summaries.iter().zip(starts) {
        assert!(summary.starts_with(start), "{summary} does not begin with {start}");
    }
}
