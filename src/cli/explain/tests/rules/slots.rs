//! Tests of gates, schedules, zones and due slots: B-6 to B-9.

use super::*;

#[test]
fn b_6_deleting_and_suspended_are_checked_before_the_schedule() {
    let cases = [
        (
            json!({"metadata": {"deletionTimestamp": "2026-05-05T09:59:00Z"}}),
            "Deleting",
        ),
        (json!({"spec": {"suspend": true}}), "Suspended"),
        // The first gate that applies is reported.
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
fn b_6_2_b_6_4_b_6_5_invalid_schedules_get_the_events_of_the_controller() {
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
fn b_7_1_a_zone_in_the_schedule_wins_with_a_warning() {
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
        run_json(&objects, &[]).pointer(annotation),
        Some(&json!("2026-05-05T12:00:00+02:00"))
    );
}

#[test]
fn b_7_2_without_a_zone_the_default_zone_is_used() {
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
fn b_6_2_b_11_3_local_means_the_default_zone() {
    for changes in [
        json!({"spec": {"schedule": "0 12 * * *", "timeZone": "Local"}}),
        json!({"spec": {"schedule": "TZ=Local 0 12 * * *", "timeZone": "Local"}}),
    ] {
        let answer = run_json(&[cron_job(changes)], &["--default-time-zone", "Europe/Berlin"]);
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
fn b_9_3_an_irregular_schedule_has_an_exact_latest_slot() {
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
fn b_9_5_without_a_due_slot_the_next_one_is_awaited() {
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
fn b_9_7_deadline_zero_starts_only_at_its_slot() {
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
