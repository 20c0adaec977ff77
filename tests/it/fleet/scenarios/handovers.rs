//! Terminating replicas hand over their shards, even during faults and changes by users.

use std::time::Duration;

use apisim::{Fault, Resource, Rule, Verb};
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{FOUR, THREE, assert_moved_once, begin, moves, taken};
use crate::fleet::{
    Size,
    cluster::Fleet,
    load::Plan,
    play,
    records::{Job, Write, WriteKind},
};

/// The maximum duration of a drain on an idle server, and during a burst.
const DRAIN_MAX: Duration = Duration::from_millis(500);
const BURST_DRAIN_MAX: Duration = Duration::from_secs(2);

/// Drains a replica. Asserts that each of its shards moved once, without delay.
async fn drain(fleet: &Fleet, name: &str, longest: Duration) {
    let before = fleet.now();
    let number = fleet.number(name);
    let held = fleet.records().held_by(number);
    let took = fleet.drain(name).await;
    assert!(took <= longest, "{took:?}");
    assert_statuses_stored(fleet, number);
    fleet.all_led(Duration::from_millis(50)).await;
    assert_moved_once(fleet, &held, before);
}

/// Delays the requests of a replica for one verb on one resource, before the server handles them.
fn delay(fleet: &Fleet, name: &str, (resource, verb): (Resource, Verb), duration: Duration) {
    let fault = Fault::Delay {
        shortest: duration,
        longest: duration,
    };
    fleet.api.faults().add(Rule {
        client: Some(name.to_owned()),
        resource: Some(resource),
        verbs: vec![verb],
        ..Rule::new(fault)
    });
}

/// Asserts that the cursor of every CronJob covers the Jobs that a process created.
fn assert_statuses_stored(fleet: &Fleet, process: u64) {
    let records = fleet.records();
    let of_process = |write: &&Write| write.process == process && write.kind == WriteKind::Create;
    for write in records.writes.iter().filter(of_process) {
        let slot = records.jobs.values().find(|job| job.name == write.object).unwrap().slot;
        let cursor = records.cron_jobs[&write.cron_job].cursor;
        assert!(cursor >= slot, "{}: the cursor is {cursor:?}", write.object);
    }
}

#[test]
fn f_01_terminating_replica_hands_over_before_a_burst() {
    play(1, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        fleet.at(0, 58.0).await;
        drain(fleet, "a", DRAIN_MAX).await;
        fleet.at(1, 20.0).await;
    });
}

/// A member that observed a transfer before the drain would give the leaving replica one of its own shards in exchange.
#[test]
fn f_01_no_shard_moves_to_a_replica_that_begins_to_leave() {
    let size = Size {
        n_cron_jobs: 3,
        ..Size::default()
    };
    for seed in 1_000..1_016 {
        play(seed, size, async |fleet| {
            begin(fleet, &THREE).await;
            fleet.at(1, 20.0).await;
            for name in ["b", "a"] {
                drain(fleet, name, DRAIN_MAX).await;
            }
        });
    }
}

#[test]
fn f_01_terminating_replica_hands_over_during_a_burst() {
    play(2, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        fleet.at(1, 0.0).await;
        drain(fleet, "a", BURST_DRAIN_MAX).await;
        fleet.at(2, 20.0).await;
    });
}

#[test]
fn f_01_handover_waits_until_statuses_are_stored() {
    play(3, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        fleet.at(0, 59.0).await;
        delay(fleet, "a", (Resource::CronJob, Verb::Update), Duration::from_secs(3));
        fleet.at(1, 0.5).await;
        let (before, number) = (fleet.now(), fleet.number("a"));
        let held = fleet.records().held_by(number);
        // After the deletion, only the statuses record that these slots had Jobs.
        let path = "/apis/batch/v1/namespaces/default/jobs";
        let names: Vec<String> = fleet.records().jobs.values().map(|job| job.name.clone()).collect();
        assert!(names.len() >= 10, "{names:?}");
        for name in names {
            fleet
                .request("DELETE", &format!("{path}/{name}"), &json!({}))
                .await
                .unwrap();
        }
        fleet.terminate("a");
        // A status write in flight at the deletion of its Job is followed by another write. Each takes three seconds.
        fleet.at(1, 7.5).await;
        assert!(fleet.records().held_by(number).is_empty());
        assert_moved_once(fleet, &held, before);
        assert_statuses_stored(fleet, number);
        fleet.ended("a").await.unwrap();
        fleet.at(2, 20.0).await;
    });
}

#[test]
fn f_04_handover_waits_for_creates_in_flight() {
    play(4, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        fleet.at(0, 59.5).await;
        delay(fleet, "a", (Resource::Job, Verb::Create), Duration::from_secs(5));
        fleet.at(1, 0.2).await;
        fleet.allow_late(fleet.instant(1, 0.0), 5.5);
        let before = fleet.now();
        let number = fleet.number("a");
        let held = fleet.records().held_by(number);
        fleet.terminate("a");
        // The replica leads its shards until the responses have arrived.
        for second in [1.0, 2.0, 3.0, 4.0, 5.0] {
            fleet.at(1, second).await;
            fleet.all_led(Duration::from_millis(50)).await;
        }
        fleet.at(1, 6.0).await;
        assert!(fleet.records().held_by(number).is_empty());
        let took = taken(fleet, number, &held, before);
        assert!(took >= Duration::from_secs(4), "{took:?}");
        assert_moved_once(fleet, &held, before);
        fleet.ended("a").await.unwrap();
        fleet.at(2, 20.0).await;
    });
}

#[test]
fn f_14_user_changes_during_a_handover_take_effect() {
    play(14, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        fleet.at(1, 20.0).await;
        fleet.terminate("a");
        // The changes coincide with the handover.
        for number in 0..20 {
            tokio::time::sleep(Duration::from_millis(fleet.random.next() % 12)).await;
            let path = format!("/apis/batch/v1/namespaces/default/cronjobs/later-{number:02}");
            let schedule = |text: &str| json!({"spec": {"schedule": text}});
            let mut cron_job = json!({"apiVersion": "batch/v1", "kind": "CronJob"});
            cron_job["metadata"] = json!({"name": format!("later-{number:02}")});
            cron_job["spec"] = json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {
                "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}}}}});
            let cron_jobs = "/apis/batch/v1/namespaces/default/cronjobs";
            let created = fleet.request("POST", cron_jobs, &cron_job).await.unwrap();
            let plan = Plan::plain(&format!("later-{number:02}"));
            let now = fleet.now();
            fleet
                .records()
                .add_cron_job(plan, created["metadata"]["uid"].as_str().unwrap(), now);
            fleet.request("PATCH", &path, &schedule("* * * * *")).await.unwrap();
        }
        fleet.ended("a").await.unwrap();
        fleet.at(1, 40.0).await;
        // Deleted Jobs stay deleted, and removed labels have no effect.
        let jobs = fleet
            .request("GET", "/apis/batch/v1/namespaces/default/jobs", &Value::Null)
            .await
            .unwrap();
        fleet.terminate("b");
        for job in jobs["items"].as_array().unwrap().iter().take(30) {
            let path = format!(
                "/apis/batch/v1/namespaces/default/jobs/{}",
                job["metadata"]["name"].as_str().unwrap()
            );
            if fleet.random.is_one_in(2) {
                let _ = fleet.request("DELETE", &path, &json!({})).await;
            } else {
                let labels = json!({"metadata": {"labels": null}});
                let _ = fleet.request("PATCH", &path, &labels).await;
            }
        }
        fleet.ended("b").await.unwrap();
        fleet.at(3, 20.0).await;
        let records = fleet.records();
        for number in 0..20 {
            let name = format!("later-{number:02}");
            let slots: Vec<_> = records
                .jobs
                .values()
                .filter(|job| job.owner == name)
                .map(|job| job.slot)
                .collect();
            assert_eq!(slots.len(), 2, "{name}: {slots:?}");
        }
    });
}

#[test]
fn f_14_next_leader_runs_no_deleted_cron_job() {
    play(16, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        let names: Vec<String> = (0..20).map(|number| format!("gone-{number:02}")).collect();
        for name in &names {
            fleet.create_cron_job(Plan::plain(name)).await;
        }
        fleet.at(1, 20.0).await;
        for name in &names {
            let path = format!("/apis/batch/v1/namespaces/default/cronjobs/{name}");
            fleet.request("DELETE", &path, &json!({})).await.unwrap();
        }
        // The other replicas have observed the CronJobs too.
        fleet.drain("a").await;
        fleet.drain("b").await;
        fleet.at(3, 20.0).await;
        let records = fleet.records();
        let n_deleted = records.cron_jobs.values().filter(|cron_job| cron_job.ended.is_some());
        assert_eq!(n_deleted.count(), names.len());
    });
}

/// Jobs get no label from cronwheel. An earlier version labelled them, and users may still change or remove such labels.
#[test]
fn f_14_labels_of_jobs_have_no_effect() {
    play(15, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        fleet.at(1, 10.0).await;
        let path = "/apis/batch/v1/namespaces/default/jobs";
        let jobs = fleet.request("GET", path, &Value::Null).await.unwrap();
        let jobs = jobs["items"].as_array().unwrap();
        let labels = |job: &Value| job["metadata"]["labels"].to_string();
        assert!(
            jobs.iter().all(|job| !labels(job).contains("cronwheel.dev")),
            "{jobs:?}"
        );
        let running = jobs.iter().filter(|job| job["status"]["active"] == 1);
        let names: Vec<&str> = running.map(|job| job["metadata"]["name"].as_str().unwrap()).collect();
        assert!(names.len() >= 6, "{names:?}");
        // Half of the Jobs change long before the next slot, half of them at the slot.
        for (number, name) in names.iter().enumerate() {
            if number == names.len() / 2 {
                fleet.at(1, 59.99).await;
            }
            let labels = match number % 2 {
                0 => json!(null),
                _ => json!({"cronwheel.dev/shard-32": "31"}),
            };
            let change = json!({"metadata": {"labels": labels}});
            let _ = fleet.request("PATCH", &format!("{path}/{name}"), &change).await;
        }
        fleet.at(2, 20.0).await;
        fleet.drain("a").await;
        fleet.at(3, 20.0).await;
    });
}

/// After a user deletes the Job, only the status records that the slot was fired.
#[test]
fn f_12_lagging_next_leader_leads_a_shard_once_its_watch_has_caught_up() {
    play(121, Size::default(), async |fleet| {
        fleet.add("b");
        // Its Lease watch does not lag, so it observes the handover at once.
        fleet.change("b", |pod| pod.object_watches_at = Some(1));
        begin(fleet, &["a", "b"]).await;
        fleet.api.set_lag(1, Duration::from_secs(5));
        fleet.at(1, 2.0).await;
        let path = "/apis/batch/v1/namespaces/default/jobs";
        let jobs = fleet.request("GET", path, &Value::Null).await.unwrap();
        let ended = jobs["items"].as_array().unwrap().iter();
        let ended = ended.filter(|job| job["status"]["completionTime"].is_string());
        let names: Vec<&str> = ended.map(|job| job["metadata"]["name"].as_str().unwrap()).collect();
        for name in &names {
            fleet
                .request("DELETE", &format!("{path}/{name}"), &json!({}))
                .await
                .unwrap();
        }
        fleet.at(1, 2.5).await;
        fleet.drain("a").await;
        fleet.all_led(Duration::from_secs(8)).await;
        fleet.at(1, 40.0).await;
        fleet.api.set_lag(1, Duration::ZERO);
        let slot = fleet.instant(1, 0.0);
        let is_deleted = |job: &&Job| job.slot == Some(slot) && names.contains(&&*job.name);
        let n_deleted = fleet.records().jobs.values().filter(is_deleted).count();
        assert!(n_deleted >= 3, "{names:?}");
        fleet.at(2, 40.0).await;
    });
}

/// After a user deletes the Jobs, only the statuses record that the slot was fired. The watches of the next leader are at
/// versions from before the slot, and show it only after a list.
#[test]
fn f_12_lagging_replica_leads_after_a_crash_once_it_knows_the_current_state() {
    play(124, Size::default(), async |fleet| {
        fleet.add("b");
        fleet.change("b", |pod| pod.object_watches_at = Some(1));
        begin(fleet, &["a", "b"]).await;
        fleet.api.set_lag(1, Duration::from_secs(40));
        fleet.at(1, 2.0).await;
        let path = "/apis/batch/v1/namespaces/default/jobs";
        let jobs = fleet.request("GET", path, &Value::Null).await.unwrap();
        let ended = jobs["items"].as_array().unwrap().iter();
        let ended = ended.filter(|job| job["status"]["completionTime"].is_string());
        let names: Vec<&str> = ended.map(|job| job["metadata"]["name"].as_str().unwrap()).collect();
        assert!(names.len() >= 3, "{names:?}");
        for name in &names {
            fleet
                .request("DELETE", &format!("{path}/{name}"), &json!({}))
                .await
                .unwrap();
        }
        fleet.at(1, 3.0).await;
        fleet.kill("a").await;
        fleet.all_led(Duration::from_secs(11)).await;
        fleet.at(1, 40.0).await;
        fleet.api.set_lag(1, Duration::ZERO);
        fleet.at(2, 40.0).await;
    });
}

#[test]
fn f_23_closed_and_expired_watches_during_a_handover_lose_no_run() {
    play(23, Size::default(), async |fleet| {
        begin(fleet, &FOUR).await;
        fleet.at(0, 59.9).await;
        fleet.allow_late(fleet.now(), 3.0);
        let closing = fleet.add_fault(Rule {
            per_million: 200_000,
            times_max: Some(15),
            ..Rule::new(Fault::CloseWatch)
        });
        let expiring = fleet.add_fault(Rule {
            per_million: 500_000,
            verbs: vec![Verb::Watch],
            times_max: Some(8),
            ..Rule::new(Fault::Expired)
        });
        fleet.terminate("a");
        fleet.ended("a").await.unwrap();
        for rule in [closing, expiring] {
            fleet.remove_faults(rule);
        }
        fleet.at(1, 30.0).await;
        fleet.all_led(Duration::ZERO).await;
        fleet.at(3, 20.0).await;
    });
}

#[test]
fn f_24_shards_of_a_next_leader_killed_during_a_handover_are_taken_over() {
    play(24, Size::default(), async |fleet| {
        begin(fleet, &THREE).await;
        fleet.at(0, 59.95).await;
        let before = fleet.now();
        let held = fleet.records().held_by(fleet.number("a"));
        let next_leader = fleet.number("b");
        let held_before = fleet.records().held_by(next_leader).len();
        fleet.terminate("a");
        while fleet.records().held_by(next_leader).len() == held_before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let killed_at = fleet.now();
        fleet.kill("b").await;
        fleet.allow_late(before, 11.5);
        fleet.all_led(Duration::from_secs(11)).await;
        let took = fleet.since(killed_at);
        assert!(took <= super::TAKEN_WITHIN + Duration::from_millis(500), "{took:?}");
        assert!(held.iter().all(|shard| moves(fleet, before)[shard] <= 2));
        fleet.ended("a").await.unwrap();
        fleet.until(before + SignedDuration::from_secs(140)).await;
    });
}
