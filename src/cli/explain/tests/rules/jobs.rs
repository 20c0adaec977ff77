//! Tests of the history and the active list: B-4 and B-5.

use super::*;

#[test]
fn b_4_2_b_4_3_the_oldest_jobs_over_the_limits_are_deleted() {
    let complete = |minutes| job(minutes, ended("Complete", Some("09:45:00")));
    let jobs = [29_632_810, 29_632_800, 29_632_820, 29_632_830, 29_632_840].map(complete);
    let failed = [29_632_850, 29_632_860].map(|minutes| job(minutes, ended("Failed", None)));
    let mut objects = vec![cron_job(
        json!({"status": {"lastScheduleTime": "2026-05-05T10:00:00Z", "lastSuccessfulTime": "2026-05-05T09:45:00Z"}}),
    )];
    objects.extend(jobs);
    objects.extend(failed);
    check(
        &objects,
        &[],
        json!({
            "decision": "wait", "reason": "NotDue", "slot": null, "job": null, "status": null,
            "deletes": ["hello-29632800", "hello-29632810", "hello-29632850"],
            "events": [
                event("Normal", "SuccessfulDelete", "Deleted job hello-29632800"),
                event("Normal", "SuccessfulDelete", "Deleted job hello-29632810"),
                event("Normal", "SuccessfulDelete", "Deleted job hello-29632850"),
            ],
            "nextWakeup": "2026-05-05T10:10:00Z",
        }),
    );
}

#[test]
fn b_4_6_a_job_deleted_by_history_gets_no_completed_event() {
    let objects = [
        cron_job(json!({"spec": {"successfulJobsHistoryLimit": 0}, "status": {"active": [entry(29_632_910)]}})),
        job(29_632_910, ended("Complete", Some("09:55:00"))),
    ];
    check(
        &objects,
        &["--now", "2026-05-05T09:59:00Z"],
        json!({
            "decision": "wait", "deletes": ["hello-29632910"],
            "events": [event("Normal", "SuccessfulDelete", "Deleted job hello-29632910")],
            "status": {"lastScheduleTime": "2026-05-05T09:50:00Z", "lastSuccessfulTime": "2026-05-05T09:55:00Z"},
        }),
    );
}

#[test]
fn b_4_5_history_deletes_a_job_after_its_slot_is_recorded() {
    // The status write of the last run was lost: only the name of its Job prevents a second run of the slot.
    let objects = [
        cron_job(json!({"spec": {"successfulJobsHistoryLimit": 0}})),
        job(29_632_920, ended("Complete", Some("10:00:03"))),
    ];
    check(
        &objects,
        &[],
        json!({
            "decision": "wait", "reason": "NotDue", "deletes": ["hello-29632920"],
            "status": {"lastScheduleTime": "2026-05-05T10:00:00Z", "lastSuccessfulTime": "2026-05-05T10:00:03Z"},
            "events": [event("Normal", "SuccessfulDelete", "Deleted job hello-29632920")],
        }),
    );
}

#[test]
fn b_5_1_a_finished_job_leaves_the_active_list() {
    let objects = [
        cron_job(json!({"status": {"active": [entry(29_632_910)]}})),
        job(29_632_910, ended("Complete", Some("09:55:00"))),
    ];
    check(
        &objects,
        &["--now", "2026-05-05T09:59:00Z"],
        json!({
            "decision": "wait", "reason": "NotDue", "slot": null,
            "events": [event("Normal", "SawCompletedJob", "Saw completed job: hello-29632910, condition: Complete")],
            "status": {"lastScheduleTime": "2026-05-05T09:50:00Z", "lastSuccessfulTime": "2026-05-05T09:55:00Z"},
        }),
    );
}

#[test]
fn b_5_1_a_failed_job_gets_an_event_and_is_no_success() {
    let objects = [
        cron_job(json!({"status": {"active": [entry(29_632_910)]}})),
        job(29_632_910, ended("Failed", None)),
    ];
    check(
        &objects,
        &["--now", "2026-05-05T09:59:00Z"],
        json!({
            "events": [event("Normal", "SawCompletedJob", "Saw completed job: hello-29632910, condition: Failed")],
            "status": {"lastScheduleTime": "2026-05-05T09:50:00Z"},
        }),
    );
}

#[test]
fn b_5_1_a_manual_job_is_unexpected_and_does_not_count() {
    let objects = [
        cron_job(json!({"spec": {"concurrencyPolicy": "Forbid"}})),
        manual_job(json!({})),
    ];
    check(
        &objects,
        &[],
        json!({
            "decision": "fire", "reason": "Created", "slot": "2026-05-05T10:00:00Z",
            "events": [
                event("Warning", "UnexpectedJob", "Saw a job that the controller did not create or forgot: by-hand"),
                event("Normal", "SuccessfulCreate", CREATED),
            ],
        }),
    );
}

#[test]
fn b_5_1_a_running_owned_job_is_adopted_with_its_slot() {
    let objects = [cron_job(json!({})), job(29_632_920, json!({}))];
    check(
        &objects,
        &[],
        json!({
            "decision": "wait", "reason": "NotDue", "events": [], "job": null,
            "status": {"active": [entry(29_632_920)], "lastScheduleTime": "2026-05-05T10:00:00Z"},
        }),
    );
}

#[test]
fn b_5_4_an_active_entry_without_a_job_is_reported_missing() {
    let objects = [cron_job(json!({
        "spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": [entry(29_632_910)]},
    }))];
    check(
        &objects,
        &[],
        json!({
            "decision": "fire",
            "events": [
                event("Normal", "MissingJob", "Active job went missing: hello-29632910"),
                event("Normal", "SuccessfulCreate", CREATED),
            ],
        }),
    );
}

#[test]
fn b_5_4_all_stale_active_entries_are_removed() {
    for n_entries in [21, 200] {
        for policy in ["Allow", "Forbid", "Replace"] {
            let active: Vec<Value> = (0..n_entries).map(|n| entry(29_600_000 + n)).collect();
            let objects = [cron_job(json!({
                "spec": {"concurrencyPolicy": policy}, "status": {"active": active},
            }))];
            let answer = run_json(&objects, &[]);
            assert_eq!(answer["reason"], "Created", "{policy}, {n_entries} entries");
            let n_events = answer["events"].as_array().map_or(0, Vec::len);
            assert_eq!(
                n_events,
                usize::try_from(n_entries).unwrap() + 1,
                "each missed, one created"
            );
            let left: Vec<&Value> = answer["status"]["active"].as_array().unwrap().iter().collect();
            assert_eq!(left.len(), 1, "{left:?}");
            assert_eq!(left[0]["name"], "hello-29632920");
        }
    }
}

#[test]
fn b_5_4_an_active_entry_with_an_undecodable_job_may_still_run() {
    for (policy, reason, decision) in [
        ("Forbid", "LookUpFailed", "skip"),
        ("Replace", "LookUpFailed", "skip"),
        ("Allow", "Created", "fire"),
    ] {
        let objects = [
            cron_job(json!({
                "spec": {"concurrencyPolicy": policy}, "status": {"active": [entry(29_632_910)]},
            })),
            broken_job(29_632_910),
        ];
        let answer = run_json(&objects, &[]);
        assert_eq!(answer["reason"], reason, "{policy}");
        assert_eq!(answer["decision"], decision, "{policy}");
        let events = answer["events"].to_string();
        assert!(!events.contains("MissingJob"), "{policy}: {events}");
    }
    let objects = [
        cron_job(json!({
            "spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": [entry(29_632_910)]},
        })),
        broken_job(29_632_910),
    ];
    check(
        &objects,
        &[],
        json!({"slot": null, "job": null, "deletes": [], "status": null, "events": [], "nextWakeup": null}),
    );
}

#[test]
fn b_12_3_an_undecodable_job_with_the_job_name_fails_the_create() {
    for assumed in ["created", "exists", "foreign", "error"] {
        check(
            &[cron_job(json!({})), broken_job(29_632_920)],
            &["--assume", &format!("create={assumed}")],
            json!({
                "decision": "fire", "reason": "CreateFailed", "slot": "2026-05-05T10:00:00Z",
                "status": null, "events": [],
            }),
        );
    }
}

#[test]
fn b_5_4_active_list_events_precede_those_of_the_decision() {
    let objects = [cron_job(json!({"status": {"active": [entry(29_632_910)]}}))];
    check(
        &objects,
        &[],
        json!({"events": [
            event("Normal", "MissingJob", "Active job went missing: hello-29632910"),
            event("Normal", "SuccessfulCreate", CREATED),
        ]}),
    );
}
