//! Changes of schedules, in both directions (B-2.2, B-2.3).

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    controller::Controller,
    kubernetes::{Namespace, job_name},
};

/// Time to list, and to observe and process the change before the slot.
const LEAD: SignedDuration = SignedDuration::from_secs(6);

fn hanging() -> Value {
    json!({"outcome": "hang", "run-for": "0s"})
}

/// Once an hour, in the minute of the slot.
fn hourly_at(slot: Timestamp) -> Value {
    json!({"spec": {"schedule": slot.strftime("%M * * * *").to_string()}})
}

async fn start_with_time_to_edit(namespace: &Namespace) -> Controller {
    let controller = Controller::start_at(namespace, namespace.minute(0) - LEAD, &[]);
    controller.wait_until_ready().await;
    controller
        .wait_for_metric("cronwheel_wheel_entries", &[], |n_armed| n_armed > 0)
        .await;
    controller
}

/// The built-in controller would start the slot of the previous minute at the next event of any kind.
pub(super) async fn changed_schedule_starts_no_slot_before_the_change(namespace: Namespace) {
    namespace
        .create_cron_job(hanging(), hourly_at(namespace.minute(30)))
        .await;
    namespace.set_last_run("hello", namespace.minute(-30)).await;
    let controller = start_with_time_to_edit(&namespace).await;
    namespace
        .patch_cron_job(json!({"spec": {"schedule": "* * * * *"}}))
        .await;
    // Any event suffices.
    namespace
        .patch_cron_job(json!({"metadata": {"labels": {"touched": "yes"}}}))
        .await;
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    let cursor = namespace.minute(0).to_string();
    let is_stored = |status: &Value| status["lastScheduleTime"] == *cursor;
    namespace
        .wait_for_status("the slot after the change ran", is_stored)
        .await;
    let created = controller
        .metric("cronwheel_instant_outcomes_total", &[("outcome", "created")])
        .await;
    assert_eq!(created, Some(1));
    assert_eq!(namespace.job_names().await, [namespace.job_name(0)]);
    controller.terminate().await;
}

/// The old timer starts nothing.
pub(super) async fn change_to_a_later_schedule_cancels_the_armed_slot(namespace: Namespace) {
    for name in ["edited", "untouched"] {
        namespace
            .create_cron_job(hanging(), json!({"metadata": {"name": name}}))
            .await;
        namespace.set_last_run(name, namespace.minute(-1)).await;
    }
    let controller = start_with_time_to_edit(&namespace).await;
    let later = hourly_at(namespace.minute(30));
    namespace.patch("CronJob", "edited", later).await;
    controller.wait_for_account(&[("created", 1)]).await;
    namespace
        .wait_for_jobs(&[job_name("untouched", namespace.minute(0))])
        .await;
    controller
        .wait_for_metric("cronwheel_wheel_entries", &[], |n_armed| n_armed == 2)
        .await;
    controller.terminate().await;
    let controller = Controller::start_before(&namespace, 30);
    let job = job_name("edited", namespace.minute(30));
    let is_active = |status: &Value| status["active"][0]["name"] == *job;
    namespace
        .wait_for_status_of("edited", "its new slot runs", is_active)
        .await;
    controller.terminate().await;
}

/// If no controller observed the change, the new schedule also applies to the past, as in the built-in controller
/// (B-2.3).
pub(super) async fn change_during_downtime_starts_the_latest_slot_of_the_new_schedule(namespace: Namespace) {
    namespace
        .create_cron_job(hanging(), hourly_at(namespace.minute(30)))
        .await;
    namespace.set_last_run("hello", namespace.minute(-30)).await;
    namespace.patch_cron_job(hourly_at(namespace.minute(-10))).await;
    let controller = Controller::start_before(&namespace, 0);
    controller.wait_for_account(&[("created", 1)]).await;
    namespace.wait_for_jobs(&[namespace.job_name(-10)]).await;
    controller.terminate().await;
}

/// The time zone is part of the schedule.
pub(super) async fn changed_time_zone_moves_the_slot(namespace: Namespace) {
    // The offset of the new zone, Asia/Kolkata, includes half an hour, so that the slot moves.
    let slot = namespace.minute(0);
    let mut changes = hourly_at(slot);
    changes["metadata"]["name"] = json!("edited");
    namespace.create_cron_job(hanging(), changes).await;
    namespace
        .set_last_run("edited", slot - SignedDuration::from_hours(1))
        .await;
    namespace
        .create_cron_job(hanging(), json!({"metadata": {"name": "untouched"}}))
        .await;
    namespace.set_last_run("untouched", namespace.minute(-1)).await;
    let controller = start_with_time_to_edit(&namespace).await;
    namespace
        .patch("CronJob", "edited", json!({"spec": {"timeZone": "Asia/Kolkata"}}))
        .await;
    controller.wait_for_account(&[("created", 1)]).await;
    namespace.wait_for_jobs(&[job_name("untouched", slot)]).await;
    controller.terminate().await;
    // The next controller has not observed the change, so the new zone also applies to the past (B-2.3).
    let slots = [namespace.minute(-30), namespace.minute(30)];
    let controller = Controller::start_before_instant(&namespace, slots[1]);
    let cursor = slots[1].to_string();
    let is_stored = |status: &Value| status["lastScheduleTime"] == *cursor;
    namespace
        .wait_for_status_of("edited", "it runs by the new zone", is_stored)
        .await;
    let mut of_edited = namespace.job_names().await;
    of_edited.retain(|name| name.starts_with("edited-"));
    assert_eq!(of_edited, slots.map(|slot| job_name("edited", slot)));
    controller.terminate().await;
}
