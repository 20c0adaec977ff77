//! CronJobs that users change while the creates of their runs wait to be sent.

use std::{collections::BTreeMap, time::Duration};

use apisim::{Fault, Resource, Rule, Verb};
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{THREE, begin};
use crate::fleet::{Size, cluster::Fleet, load::Plan, oracle::OBSERVATION_DELAY_MAX, play};

/// The number of CronJobs whose runs wait during the outage.
const N_WAITING: usize = 1_600;

/// The number of CronJobs that users change meanwhile.
const N_CHANGED: usize = 160;

/// The image of the Jobs after their template was changed.
const NEW_IMAGE: &str = "new-work";

/// A change of a CronJob by a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edit {
    Suspend,
    Delete,
    Reschedule,
    ChangeTemplate,
}

impl Edit {
    const ALL: [Edit; 4] = [Edit::Suspend, Edit::Delete, Edit::Reschedule, Edit::ChangeTemplate];

    /// Makes the change and records it for the oracle. From now on, the CronJob has no run, except after a change of its
    /// template.
    async fn make(self, fleet: &Fleet, name: &str) {
        let path = format!("/apis/batch/v1/namespaces/default/cronjobs/{name}");
        let image = json!([{"name": "work", "image": NEW_IMAGE}]);
        let (method, body) = match self {
            Edit::Suspend => ("PATCH", json!({"spec": {"suspend": true}})),
            Edit::Delete => ("DELETE", json!({})),
            Edit::Reschedule => ("PATCH", json!({"spec": {"schedule": "0 0 1 1 *"}})),
            Edit::ChangeTemplate => (
                "PATCH",
                json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": {"containers": image}}}}}}),
            ),
        };
        fleet.request(method, &path, &body).await.unwrap();
        let now = fleet.now();
        if self != Edit::ChangeTemplate {
            let mut records = fleet.records();
            records.cron_jobs.get_mut(name).unwrap().ended.get_or_insert(now);
        }
    }
}

/// Delays the runs of 12:03 by an outage until 12:05. Changes CronJobs during the outage and while the runs are sent.
/// Asserts that no outdated Job was created.
fn change_waiting_runs(seed: u64, outage: &Rule) {
    let size = Size {
        n_cron_jobs: 12,
        n_shards: 16,
    };
    play(seed, size, async |fleet| {
        let plans = (0..N_WAITING).map(|number| Plan::every(3, &format!("waits-{number:04}")));
        join_all(plans.map(|plan| fleet.create_cron_job(plan))).await;
        begin(fleet, &["a"]).await;
        fleet.at(2, 50.0).await;
        let began = fleet.now();
        let outage = fleet.add_fault(outage.clone());
        fleet.at(4, 30.0).await;
        let before_end = change_some(fleet, 0..N_CHANGED / 2, Duration::from_secs(30)).await;
        fleet.remove_faults(outage);
        let ended = fleet.now();
        let after_end = change_some(fleet, N_CHANGED / 2..N_CHANGED, Duration::from_secs(3)).await;
        fleet.allow_skipped(began, ended + SignedDuration::from_secs(10));
        fleet.at(5, 50.0).await;
        let changed = before_end.into_iter().chain(after_end).collect();
        assert_templates_current(fleet, &changed).await;
        assert_changes_in_time(fleet, &changed, ended);
    });
}

/// Changes CronJobs one after another within this time. Returns the instant and the kind of each change.
async fn change_some(
    fleet: &Fleet,
    numbers: std::ops::Range<usize>,
    within: Duration,
) -> BTreeMap<String, (Timestamp, Edit)> {
    let pause = within / u32::try_from(numbers.len()).unwrap();
    let mut changed = BTreeMap::new();
    for number in numbers {
        tokio::time::sleep(pause).await;
        // The order differs from the order of creation.
        let name = format!("waits-{:04}", number * 7_919 % N_WAITING);
        let edit = Edit::ALL[number % Edit::ALL.len()];
        edit.make(fleet, &name).await;
        changed.insert(name, (fleet.now(), edit));
    }
    changed
}

/// Asserts that no Job has an outdated template. The oracle judges the other changes.
async fn assert_templates_current(fleet: &Fleet, changed: &BTreeMap<String, (Timestamp, Edit)>) {
    let jobs = fleet.request("GET", "/apis/batch/v1/jobs", &Value::Null).await.unwrap();
    let images = jobs["items"].as_array().unwrap().iter().map(|job| {
        let image = &job["spec"]["template"]["spec"]["containers"][0]["image"];
        (job["metadata"]["uid"].as_str().unwrap(), image.as_str().unwrap())
    });
    let images: BTreeMap<&str, &str> = images.collect();
    let records = fleet.records();
    let mut n_new = 0;
    for (uid, job) in &records.jobs {
        let Some((at, Edit::ChangeTemplate)) = changed.get(&job.owner) else {
            continue;
        };
        let is_new = images[uid.as_str()] == NEW_IMAGE;
        assert!(
            is_new || job.created <= *at + OBSERVATION_DELAY_MAX,
            "{}: changed at {at}, created at {}",
            job.name,
            job.created
        );
        n_new += usize::from(is_new);
    }
    assert!(n_new >= N_CHANGED / 8, "{n_new}");
}

/// Asserts that enough changes preceded the create of their run, during the outage and after it.
fn assert_changes_in_time(fleet: &Fleet, changed: &BTreeMap<String, (Timestamp, Edit)>, outage_ended: Timestamp) {
    let records = fleet.records();
    let ran: BTreeMap<&str, Timestamp> = records.jobs.values().map(|job| (&*job.owner, job.created)).collect();
    let waited = changed
        .iter()
        .filter(|(name, (at, _))| ran.get(name.as_str()).is_none_or(|ran| ran > at));
    let (before, after): (Vec<_>, Vec<_>) = waited.partition(|(_, (at, _))| *at <= outage_ended);
    assert!(before.len() >= N_CHANGED / 2, "{} during the outage", before.len());
    assert!(after.len() >= N_CHANGED / 20, "{} after it", after.len());
}

#[test]
fn f_31_pending_runs_follow_the_latest_change_while_creates_are_throttled() {
    let throttle = Fault::Throttle { retry_after_seconds: 1 };
    let creates = Rule {
        resource: Some(Resource::Job),
        verbs: vec![Verb::Create],
        ..Rule::new(throttle)
    };
    change_waiting_runs(301, &creates);
}

#[test]
fn f_31_pending_runs_follow_the_latest_change_during_an_outage() {
    change_waiting_runs(300, &Rule::new(Fault::Outage));
}

/// Loses all packets of the replicas for half a minute, in which users suspend CronJobs. A run of these was due
/// meanwhile.
fn suspend_while_packets_are_lost(seed: u64, replicas: &[&str]) {
    let size = Size {
        n_cron_jobs: 12,
        n_shards: 16,
    };
    play(seed, size, async |fleet| {
        let names = ["one", "two", "three", "four"];
        join_all(names.map(|name| fleet.create_cron_job(Plan::every(1, name)))).await;
        fleet.start_all(replicas);
        fleet.at(1, 50.0).await;
        fleet.allow_late(fleet.now(), 40.0);
        for replica in replicas {
            fleet.lose_packets(replica);
        }
        fleet.at(2, 10.0).await;
        for name in names {
            Edit::Suspend.make(fleet, name).await;
        }
        fleet.at(2, 20.0).await;
        for replica in replicas {
            fleet.deliver_packets(replica);
        }
        fleet.at(3, 30.0).await;
    });
}

#[test]
fn f_31_cron_jobs_suspended_while_packets_are_lost_start_nothing() {
    suspend_while_packets_are_lost(302, &THREE);
}

#[test]
fn f_31_a_single_replica_also_opens_its_watch_again_after_lost_packets() {
    suspend_while_packets_are_lost(303, &["a"]);
}
