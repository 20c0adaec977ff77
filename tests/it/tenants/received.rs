//! The results that innocent tenants receive, recorded at the API server, and the differences between two runs of a
//! scenario.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
};

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::{Client, core::WatchEvent};
use serde_json::Value;

use super::cluster::{Cluster, INNOCENT};

/// The maximum ratio of the lateness of innocent tenants with the offender to the lateness without.
const LATENESS_RATIO_MAX: f64 = 1.3;

/// The maximum difference between instants of virtual time that the order of tasks causes.
const LATENESS_RESOLUTION: SignedDuration = SignedDuration::from_millis(2);

/// A Job by namespace and name.
type JobKey = (String, String);

/// A Job of an innocent tenant.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    /// The time from the slot to the creation. `None` for a Job without a slot.
    lateness: Option<SignedDuration>,
    /// The type of its final condition.
    end: Option<String>,
}

/// The results of all innocent tenants.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    runs: BTreeMap<JobKey, Run>,
    /// The Jobs that exist at the end.
    kept: BTreeSet<JobKey>,
    /// The `status` of each CronJob at the end, without uids and resource versions of Jobs.
    statuses: BTreeMap<JobKey, Value>,
    /// Namespace, CronJob and reason of each Warning.
    warnings: BTreeSet<(String, String, String)>,
}

/// Records the Jobs of innocent tenants, forever.
pub(super) async fn record(cluster: &Cluster, received: &RefCell<Received>) -> Infallible {
    let client = Client::new(cluster.api.client("observer"), "default");
    let request = http::Request::get("/apis/batch/v1/jobs?watch=1&resourceVersion=0");
    let request = request.body(Vec::new()).unwrap();
    let mut events = std::pin::pin!(client.request_events::<Value>(request).await.unwrap());
    while let Some(event) = events.next().await {
        match event.unwrap() {
            WatchEvent::Added(job) | WatchEvent::Modified(job) => received.borrow_mut().record_job(&job, cluster.now()),
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => panic!("the observer's watch: {status:?}"),
        }
    }
    unreachable!("a scenario is shorter than a watch")
}

impl Received {
    fn record_job(&mut self, job: &Value, now: Timestamp) {
        let key = key(job);
        if !INNOCENT.contains(&key.0.as_str()) {
            return;
        }
        let slot = job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"].as_str();
        let slot: Option<Timestamp> = slot.map(|slot| slot.parse().unwrap());
        let run = self.runs.entry(key).or_insert_with(|| Run {
            lateness: slot.map(|slot| now.duration_since(slot)),
            end: None,
        });
        let conditions = job["status"]["conditions"].as_array().into_iter().flatten();
        let mut ends = conditions.filter(|condition| condition["type"] == "Complete" || condition["type"] == "Failed");
        if let Some(end) = ends.next() {
            run.end = end["type"].as_str().map(ToOwned::to_owned);
        }
    }

    /// Reads the final state.
    pub(super) async fn finish(&mut self, cluster: &Cluster) {
        for namespace in INNOCENT {
            let path = |plural: &str| format!("/apis/batch/v1/namespaces/{namespace}/{plural}");
            let jobs = cluster.request("GET", &path("jobs"), &Value::Null).await;
            self.kept.extend(jobs["items"].as_array().unwrap().iter().map(key));
            let cron_jobs = cluster.request("GET", &path("cronjobs"), &Value::Null).await;
            for cron_job in cron_jobs["items"].as_array().unwrap() {
                self.statuses.insert(key(cron_job), comparable_status(cron_job));
            }
            let events = format!("/api/v1/namespaces/{namespace}/events");
            let events = cluster.request("GET", &events, &Value::Null).await;
            let events = events["items"].as_array().unwrap().iter();
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            self.warnings
                .extend(events.filter(|event| event["type"] == "Warning").map(|event| {
                    (
                        namespace.to_owned(),
                        text(&event["involvedObject"]["name"]),
                        text(&event["reason"]),
                    )
                }));
        }
    }

    /// The number of Jobs of a CronJob.
    pub(super) fn runs_of(&self, namespace: &str, cron_job: &str) -> usize {
        let is_its =
            |(of, name): &&JobKey| of == namespace && name.rsplit_once('-').is_some_and(|(stem, _)| stem == cron_job);
        self.runs.keys().filter(is_its).count()
    }

    /// The reasons of all Warnings.
    pub(super) fn warnings(&self) -> impl Iterator<Item = &str> {
        self.warnings.iter().map(|(_, _, reason)| reason.as_str())
    }

    /// The p99 of the lateness.
    fn lateness_p99(&self) -> SignedDuration {
        let mut lateness: Vec<_> = self.runs.values().filter_map(|run| run.lateness).collect();
        lateness.sort_unstable();
        let rank = (lateness.len() * 99).div_ceil(100);
        rank.checked_sub(1).map(|index| lateness[index]).unwrap_or_default()
    }
}

/// Returns the differences between the results of innocent tenants without and with an offender.
pub(super) fn differences(without: &Received, with: &Received, warnings_allowed: &[&str]) -> Vec<String> {
    let mut differences = Vec::new();
    let ends = |received: &Received| -> BTreeMap<JobKey, Option<String>> {
        let runs = received.runs.iter();
        runs.map(|(key, run)| (key.clone(), run.end.clone())).collect()
    };
    compare_maps("Job", &ends(without), &ends(with), &mut differences);
    compare_maps("status", &without.statuses, &with.statuses, &mut differences);
    if without.kept != with.kept {
        let changed = without.kept.symmetric_difference(&with.kept);
        differences.push(format!("kept Jobs differ: {:?}", changed.collect::<Vec<_>>()));
    }
    for warning in without.warnings.difference(&with.warnings) {
        differences.push(format!("missing Warning: {warning:?}"));
    }
    for warning in with.warnings.difference(&without.warnings) {
        if !warnings_allowed.contains(&warning.2.as_str()) {
            differences.push(format!("new Warning: {warning:?}"));
        }
    }
    let (before, after) = (without.lateness_p99(), with.lateness_p99());
    if after > before.mul_f64(LATENESS_RATIO_MAX) + LATENESS_RESOLUTION {
        differences.push(format!("lateness p99 {before:?} without, {after:?} with the offender"));
    }
    differences
}

fn compare_maps<V: PartialEq + std::fmt::Debug>(
    what: &str,
    without: &BTreeMap<JobKey, V>,
    with: &BTreeMap<JobKey, V>,
    differences: &mut Vec<String>,
) {
    let keys: BTreeSet<&JobKey> = without.keys().chain(with.keys()).collect();
    for key in keys {
        let (before, after) = (without.get(key), with.get(key));
        if before != after {
            let (namespace, name) = key;
            differences.push(format!(
                "{what} {namespace}/{name}: {before:?} without, {after:?} with the offender"
            ));
        }
    }
}

fn key(object: &Value) -> JobKey {
    let text = |member: &str| object["metadata"][member].as_str().unwrap_or_default().to_owned();
    (text("namespace"), text("name"))
}

/// Returns a status without values that differ between any two runs: uids and resource versions of Jobs.
fn comparable_status(cron_job: &Value) -> Value {
    let mut status = cron_job["status"].clone();
    for active in status["active"].as_array_mut().into_iter().flatten() {
        for member in ["uid", "resourceVersion"] {
            active.as_object_mut().unwrap().remove(member);
        }
    }
    status
}
