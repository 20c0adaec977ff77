//! One case or more for each rule of B-4 to B-12.

use super::*;

/// Nothing but the decision.
fn quiet_skip(reason: &str) -> Value {
    json!({"decision": "skip", "reason": reason, "job": null, "deletes": [], "status": null, "events": []})
}

const CREATED: &str = "Created job hello-29632920";

#[test]
fn b_4_2_b_4_3_what_is_over_the_limits_goes_oldest_first() {
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
            "decision": "skip", "reason": "NotDue", "slot": null, "job": null, "status": null,
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
fn b_4_6_what_history_takes_is_not_told_as_completed() {
    let objects = [
        cron_job(json!({"spec": {"successfulJobsHistoryLimit": 0}, "status": {"active": [entry(29_632_910)]}})),
        job(29_632_910, ended("Complete", Some("09:55:00"))),
    ];
    check(
        &objects,
        &["--now", "2026-05-05T09:59:00Z"],
        json!({
            "decision": "skip", "deletes": ["hello-29632910"],
            "events": [event("Normal", "SuccessfulDelete", "Deleted job hello-29632910")],
            "status": {"lastScheduleTime": "2026-05-05T09:50:00Z", "lastSuccessfulTime": "2026-05-05T09:55:00Z"},
        }),
    );
}

#[test]
fn b_4_5_history_waits_for_the_cursor_and_goes_on() {
    // The status write of the last run was lost: its Job is the only lock on its slot.
    let objects = [
        cron_job(json!({"spec": {"successfulJobsHistoryLimit": 0}})),
        job(29_632_920, ended("Complete", Some("10:00:03"))),
    ];
    check(
        &objects,
        &[],
        json!({
            "decision": "skip", "reason": "NotDue", "deletes": ["hello-29632920"],
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
            "decision": "skip", "reason": "NotDue", "slot": null,
            "events": [event("Normal", "SawCompletedJob", "Saw completed job: hello-29632910, condition: Complete")],
            "status": {"lastScheduleTime": "2026-05-05T09:50:00Z", "lastSuccessfulTime": "2026-05-05T09:55:00Z"},
        }),
    );
}

#[test]
fn b_5_1_a_failed_job_is_told_and_is_no_success() {
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
fn b_5_1_a_running_job_of_ours_is_adopted_with_its_slot() {
    let objects = [cron_job(json!({})), job(29_632_920, json!({}))];
    check(
        &objects,
        &[],
        json!({
            "decision": "skip", "reason": "NotDue", "events": [], "job": null,
            "status": {"active": [entry(29_632_920)], "lastScheduleTime": "2026-05-05T10:00:00Z"},
        }),
    );
}

#[test]
fn b_5_4_an_entry_without_a_job_is_missing() {
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
fn b_5_4_a_long_list_of_stale_entries_comes_to_an_end() {
    for n_entries in [21, 200] {
        for policy in ["Allow", "Forbid", "Replace"] {
            let active: Vec<Value> = (0..n_entries).map(|n| entry(29_600_000 + n)).collect();
            let objects = [cron_job(json!({
                "spec": {"concurrencyPolicy": policy}, "status": {"active": active},
            }))];
            let answer = ask(&objects, &[]);
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

/// A Job that is there and that no one can understand.
fn broken_job(minutes: i64) -> Value {
    job(minutes, json!({"status": {"startTime": "yesterday"}}))
}

#[test]
fn b_5_4_an_entry_whose_job_cannot_be_understood_may_still_run() {
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
        let answer = ask(&objects, &[]);
        assert_eq!(answer["reason"], reason, "{policy}");
        assert_eq!(answer["decision"], decision, "{policy}");
        let told = answer["events"].to_string();
        assert!(!told.contains("MissingJob"), "{policy}: {told}");
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
fn b_12_3_a_job_of_the_slot_s_name_that_cannot_be_understood_is_in_the_way() {
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
fn b_5_4_events_of_the_active_list_come_before_the_decision_s() {
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

#[test]
fn b_6_gates_stop_before_a_slot() {
    let cases = [
        (
            json!({"metadata": {"deletionTimestamp": "2026-05-05T09:59:00Z"}}),
            "Deleting",
        ),
        (json!({"spec": {"suspend": true}}), "Suspended"),
        // Each gate stands before the next.
        (
            json!({"metadata": {"deletionTimestamp": "2026-05-05T09:59:00Z"}, "spec": {"timeZone": "Mars/Base"}}),
            "Deleting",
        ),
        (json!({"spec": {"suspend": true, "schedule": "nonsense"}}), "Suspended"),
    ];
    for (changes, reason) in cases {
        let mut expected = quiet_skip(reason);
        expected["slot"] = Value::Null;
        expected["nextWakeup"] = Value::Null;
        check(&[cron_job(changes)], &[], expected);
    }
}

#[test]
fn b_6_2_b_6_4_b_6_5_stored_garbage_is_told_as_the_controller_tells_it() {
    let cases = [
        (
            json!({"spec": {"timeZone": "europe/berlin", "suspend": true}}),
            "UnknownTimeZone",
            event(
                "Warning",
                "UnknownTimeZone",
                "invalid timeZone: \"europe/berlin\": unknown time zone europe/berlin",
            ),
        ),
        (
            json!({"spec": {"schedule": "* * * * 7"}}),
            "UnparseableSchedule",
            event(
                "Warning",
                "UnparseableSchedule",
                "unparseable schedule: \"* * * * 7\" : end of range (7) above maximum (6): 7",
            ),
        ),
        (
            json!({"spec": {"schedule": "0 0 31 2 *"}}),
            "NeverRuns",
            event(
                "Warning",
                "InvalidSchedule",
                "invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second",
            ),
        ),
    ];
    for (changes, reason, expected) in cases {
        check(
            &[cron_job(changes)],
            &[],
            json!({
                "decision": "skip", "reason": reason, "slot": null, "job": null, "status": null,
                "events": [expected], "nextWakeup": null,
            }),
        );
    }
}

#[test]
fn b_7_1_a_zone_in_the_text_wins_and_is_warned_about() {
    let text = "CRON_TZ or TZ used in schedule \"TZ=Asia/Tokyo 0 19 * * *\" is not officially supported, see \
                https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details";
    let objects = [cron_job(json!({
        "spec": {"schedule": "TZ=Asia/Tokyo 0 19 * * *", "timeZone": "Europe/Berlin"},
        "status": {"lastScheduleTime": "2026-05-04T10:00:00Z"},
    }))];
    check(
        &objects,
        &[],
        json!({
            "slot": "2026-05-05T10:00:00Z",
            "events": [event("Warning", "UnsupportedSchedule", text), event("Normal", "SuccessfulCreate", CREATED)],
        }),
    );
    let annotation = "/job/metadata/annotations/batch.kubernetes.io~1cronjob-scheduled-timestamp";
    assert_eq!(
        ask(&objects, &[]).pointer(annotation),
        Some(&json!("2026-05-05T12:00:00+02:00"))
    );
}

#[test]
fn b_7_2_no_zone_is_the_default_zone() {
    let objects = [cron_job(json!({
        "spec": {"schedule": "0 12 * * *"}, "status": {"lastScheduleTime": "2026-05-04T10:00:00Z"},
    }))];
    check(
        &objects,
        &["--default-time-zone", "Europe/Berlin"],
        json!({"decision": "fire", "slot": "2026-05-05T10:00:00Z", "nextWakeup": "2026-05-06T10:00:00Z"}),
    );
    check(
        &objects,
        &[],
        json!({"slot": "2026-05-04T12:00:00Z", "nextWakeup": "2026-05-05T12:00:00Z"}),
    );
}

#[test]
fn b_6_2_b_11_3_local_is_the_default_zone_for_the_slot_and_for_the_annotation() {
    for changes in [
        json!({"spec": {"schedule": "0 12 * * *", "timeZone": "Local"}}),
        json!({"spec": {"schedule": "TZ=Local 0 12 * * *", "timeZone": "Local"}}),
    ] {
        let answer = ask(&[cron_job(changes)], &["--default-time-zone", "Europe/Berlin"]);
        assert_eq!(answer["slot"], "2026-05-05T10:00:00Z");
        assert_eq!(
            answer["job"]["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"],
            "2026-05-05T12:00:00+02:00"
        );
    }
}

#[test]
fn b_9_1_without_a_run_the_creation_is_the_earliest_time() {
    let changes = json!({"metadata": {"creationTimestamp": "2026-05-05T09:59:59Z"}, "status": null});
    check(
        &[cron_job(changes)],
        &[],
        json!({"decision": "fire", "slot": "2026-05-05T10:00:00Z"}),
    );
    let changes = json!({"metadata": {"creationTimestamp": "2026-05-05T10:00:00Z"}, "status": null});
    check(&[cron_job(changes)], &[], quiet_skip("NotDue"));
}

#[test]
fn b_9_3_the_most_recent_slot_is_exact_where_the_estimate_loses_it() {
    let changes = json!({
        "spec": {"schedule": "30 10,11,12 * * 1-5"}, "status": {"lastScheduleTime": "2026-05-07T10:30:00Z"},
    });
    check(
        &[cron_job(changes)],
        &["--now", "2026-05-08T16:30:00Z"],
        json!({"decision": "fire", "slot": "2026-05-08T12:30:00Z", "nextWakeup": "2026-05-11T10:30:00Z"}),
    );
}

#[test]
fn b_9_4_many_missed_slots_warn_and_the_last_one_starts() {
    let changes = json!({"status": {"lastScheduleTime": "2026-05-01T00:00:00Z"}});
    check(
        &[cron_job(changes)],
        &[],
        json!({
            "decision": "fire", "slot": "2026-05-05T10:00:00Z",
            "events": [
                event(
                    "Warning",
                    "TooManyMissedTimes",
                    "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
                ),
                event("Normal", "SuccessfulCreate", CREATED),
            ],
        }),
    );
}

#[test]
fn b_9_5_nothing_due_waits_for_the_next_slot() {
    let mut expected = quiet_skip("NotDue");
    expected["nextWakeup"] = json!("2026-05-05T10:00:00Z");
    check(&[cron_job(json!({}))], &["--now", "2026-05-05T09:59:59Z"], expected);
}

#[test]
fn b_9_7_every_keeps_its_grid_under_a_short_deadline() {
    let changes = json!({
        "spec": {"schedule": "@every 1h", "startingDeadlineSeconds": 30},
        "status": {"lastScheduleTime": "2026-05-05T08:00:03Z"},
    });
    let objects = [cron_job(changes)];
    check(
        &objects,
        &["--now", "2026-05-05T09:59:59Z"],
        json!({
            "decision": "skip", "reason": "DeadlineExceeded", "slot": "2026-05-05T09:00:03Z",
            "nextWakeup": "2026-05-05T10:00:03Z",
        }),
    );
    check(
        &objects,
        &[],
        json!({"decision": "fire", "slot": "2026-05-05T10:00:03Z"}),
    );
}

#[test]
fn b_9_7_deadline_zero_starts_at_its_slot_and_not_later() {
    let objects = [cron_job(json!({"spec": {"startingDeadlineSeconds": 0}}))];
    check(
        &objects,
        &["--now", "2026-05-05T10:00:00Z"],
        json!({"decision": "fire", "reason": "Created"}),
    );
    check(
        &objects,
        &["--now", "2026-05-05T10:00:01Z"],
        json!({"decision": "skip", "reason": "DeadlineExceeded"}),
    );
}

#[test]
fn b_10_1_a_slot_behind_its_deadline_is_lost_and_told() {
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
fn b_10_2_a_running_job_of_the_slot_s_name_is_in_the_way() {
    // Two slots of one minute have one name.
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
fn b_10_5_allow_starts_beside_what_runs() {
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
fn b_11_the_job_is_the_one_that_would_be_sent() {
    let template = json!({
        "metadata": {"labels": {"app": "a"}, "annotations": {"note": "b"}, "finalizers": ["no/one"]},
        "spec": {"managedBy": "example.com/other", "somethingNewer": {"x": [1, 2.5]}},
    });
    let changes = json!({"spec": {"timeZone": "Asia/Kolkata", "jobTemplate": template}});
    let spec = json!({
        "managedBy": "example.com/other", "somethingNewer": {"x": [1, 2.5]},
        "template": {"spec": {"containers": [{"name": "a", "image": "b"}]}},
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
fn b_12_3_a_job_that_exists_and_is_ours_is_adopted() {
    let answer = ask(&[cron_job(json!({}))], &["--assume", "create=exists"]);
    assert_eq!(answer["reason"], "Adopted");
    assert_eq!(answer["events"], json!([]));
    assert_eq!(answer["job"]["metadata"]["name"], "hello-29632920");
    assert_eq!(answer["status"]["lastScheduleTime"], "2026-05-05T10:00:00Z");
    assert_eq!(answer["status"]["active"][0]["uid"], Value::Null);
}

#[test]
fn b_12_3_a_finished_job_of_the_slot_enters_the_list_and_leaves_it() {
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
fn b_12_3_a_foreign_job_gives_the_slot_up() {
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
fn b_12_4_a_failed_create_is_told_and_nothing_is_recorded() {
    let answer = ask(&[cron_job(json!({}))], &["--assume", "create=error"]);
    assert_eq!(answer["decision"], "fire");
    assert_eq!(answer["reason"], "CreateFailed");
    assert_eq!(answer["job"]["metadata"]["name"], "hello-29632920");
    assert_eq!(answer["status"], Value::Null);
    assert_eq!(answer["events"][0]["reason"], "FailedCreate");
    assert_eq!(answer["nextWakeup"], "2026-05-05T10:10:00Z");
}

#[test]
fn b_14_events_stand_in_the_order_of_one_sync() {
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
    let answer = ask(&objects, &[]);
    let told = |event: &Value| format!("{} {}", event["reason"], event["message"]).replace('"', "");
    let told: Vec<String> = answer["events"].as_array().unwrap().iter().map(told).collect();
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
    assert_eq!(told.len(), starts.len(), "{told:#?}");
    for (told, start) in told.iter().zip(starts) {
        assert!(told.starts_with(start), "{told} is not {start}");
    }
}
