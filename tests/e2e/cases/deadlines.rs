//! Starting deadlines that the built-in controller cannot meet (B-9.7), and runs lost to a deadline (B-10.1).

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    controller::Controller,
    kubernetes::{Namespace, job_name},
};

fn hanging() -> Value {
    json!({"outcome": "hang", "run-for": "0s"})
}

fn missed(slot: Timestamp) -> (String, u64) {
    let slot = slot.strftime("%a, %d %b %Y %H:%M:%S +0000");
    (format!("Missed scheduled time to start a job: {slot}"), 1)
}

pub(super) async fn deadline_of_zero_starts_the_run_at_its_slot(namespace: Namespace) {
    namespace
        .create_cron_job(hanging(), json!({"spec": {"startingDeadlineSeconds": 0}}))
        .await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    let controller = Controller::start_before(&namespace, 0);
    controller.wait_for_account(&[("created", 1)]).await;
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    controller.terminate().await;

    // Slots that passed without a controller are lost and reported.
    let controller = Controller::start_before(&namespace, 3);
    let outcomes = [("superseded", 1), ("deadline_exceeded", 1), ("created", 1)];
    controller.wait_for_account(&outcomes).await;
    namespace
        .wait_for_jobs(&[namespace.job_name(0), namespace.job_name(3)])
        .await;
    namespace.wait_for_event("MissSchedule").await;
    let events = namespace.event_counts("hello", "MissSchedule").await;
    assert_eq!(events, [missed(namespace.minute(2))]);
    controller.terminate().await;
}

/// A controller that becomes ready within a deadline of a few seconds starts the slot. A controller that becomes ready
/// later does not.
pub(super) async fn deadline_under_ten_seconds_is_exact_to_the_second(namespace: Namespace) {
    let slot = namespace.minute(0);
    let hourly = |before: SignedDuration| {
        let minute = (slot - before).strftime("%M * * * *").to_string();
        json!({"schedule": minute, "startingDeadlineSeconds": 9})
    };
    let minute = SignedDuration::from_mins(1);
    for (name, before) in [("in-time", SignedDuration::ZERO), ("too-late", minute)] {
        let changes = json!({"metadata": {"name": name}, "spec": hourly(before)});
        namespace.create_cron_job(hanging(), changes).await;
        namespace
            .set_last_run(name, slot - before - SignedDuration::from_hours(1))
            .await;
    }
    let begun = Timestamp::now();
    let controller = Controller::start_at(&namespace, slot + SignedDuration::from_secs(1), &[]);
    controller.wait_until_ready().await;
    let lists_after = Timestamp::now().duration_since(begun);
    assert!(
        lists_after < SignedDuration::from_secs(7),
        "too slow to tell: {lists_after}"
    );
    controller
        .wait_for_account(&[("created", 1), ("deadline_exceeded", 1)])
        .await;
    namespace.wait_for_jobs(&[job_name("in-time", slot)]).await;
    namespace.wait_for_event_on("too-late", "MissSchedule").await;
    assert_eq!(
        namespace.event_counts("too-late", "MissSchedule").await,
        [missed(slot - minute)]
    );
    assert_eq!(namespace.event_counts("in-time", "MissSchedule").await, []);
    controller.terminate().await;
}

pub(super) async fn every_schedule_keeps_its_grid_with_a_deadline_below_its_period(namespace: Namespace) {
    let spec = json!({"schedule": "@every 1h", "startingDeadlineSeconds": 30});
    namespace.create_cron_job(hanging(), json!({"spec": spec})).await;
    // Like most creation times, it is not at a full minute.
    let slot = |hour: i64| namespace.minute(60 * hour) + SignedDuration::from_secs(17);
    namespace.set_last_run("hello", slot(-1)).await;
    for hour in [0, 1] {
        let controller = Controller::start_before_instant(&namespace, slot(hour));
        controller.wait_for_account(&[("created", 1)]).await;
        let cursor = slot(hour).to_string();
        let is_stored = |status: &Value| status["lastScheduleTime"] == *cursor;
        namespace.wait_for_status("the slot is on the grid", is_stored).await;
        controller.terminate().await;
    }
    let jobs = [job_name("hello", slot(0)), job_name("hello", slot(1))];
    namespace.wait_for_jobs(&jobs).await;
    // Three hours without a controller: the latest slot is past its deadline, and the grid is unchanged.
    let controller = Controller::start_before_instant(&namespace, slot(4));
    let outcomes = [("superseded", 1), ("deadline_exceeded", 1), ("created", 1)];
    controller.wait_for_account(&outcomes).await;
    namespace.wait_for_event("MissSchedule").await;
    assert_eq!(namespace.event_counts("hello", "MissSchedule").await, [missed(slot(3))]);
    controller.terminate().await;
}
