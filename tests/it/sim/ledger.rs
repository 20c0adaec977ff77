//! Every Job that there ever was, as the API server tells it; and the nodes, which end Jobs when their time is over.

use std::{
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
    fmt::Write as _,
};

use futures::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use kube::core::WatchEvent;
use serde_json::Value;

use super::{cluster::Cluster, scenario::Scenario};

/// The slot of a Job.
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

pub(super) struct Run {
    pub(super) cron_job: String,
    pub(super) slot: Timestamp,
    pub(super) created: Timestamp,
    /// When it ended, or was deleted before.
    pub(super) ended: Option<Timestamp>,
    name: String,
}

pub(super) struct Ledger {
    /// How long Jobs run, and how often one fails, by CronJob.
    habits: BTreeMap<String, (i64, u64)>,
    /// By uid, which come from the seed.
    pub(super) runs: BTreeMap<String, Run>,
    /// Jobs that run, by their end.
    ends: BTreeSet<(Timestamp, String)>,
    n_seen: u64,
    /// What was done that must not be.
    pub(super) offences: Vec<String>,
}

impl Ledger {
    pub(super) fn new(scenario: &Scenario) -> Ledger {
        let habits = scenario.cron_jobs.iter();
        Ledger {
            habits: habits
                .map(|cron_job| (cron_job.name.clone(), (cron_job.run_seconds, cron_job.fails_one_in)))
                .collect(),
            runs: BTreeMap::new(),
            ends: BTreeSet::new(),
            n_seen: 0,
            offences: Vec::new(),
        }
    }

    pub(super) fn n_runs(&self) -> usize {
        self.runs.len()
    }

    /// One line for each Job.
    pub(super) fn history(&self) -> String {
        let mut lines = String::new();
        for (uid, run) in &self.runs {
            let _ = writeln!(lines, "{uid} {} {} {} {:?}", run.name, run.slot, run.created, run.ended);
        }
        lines
    }

    /// The Jobs of a CronJob, in the order of slots.
    pub(super) fn runs_of(&self, cron_job: &str) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.runs.values().filter(|run| run.cron_job == cron_job).collect();
        runs.sort_by_key(|run| (run.slot, run.created));
        runs
    }

    /// The Jobs of a CronJob that run now, by name.
    pub(super) fn running(&self, cron_job: &str) -> BTreeSet<&str> {
        let runs = self.runs.values();
        runs.filter(|run| run.cron_job == cron_job && run.ended.is_none())
            .map(|run| run.name.as_str())
            .collect()
    }

    /// Follows the API server for ever.
    pub(super) async fn keep(&mut self, cluster: &Cluster) -> Infallible {
        let mut version = cluster.api.version().to_string();
        loop {
            let path = format!("/apis/batch/v1/jobs?watch=1&resourceVersion={version}");
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            let events = cluster.client().request_events::<Value>(request).await.unwrap();
            let mut events = std::pin::pin!(events);
            loop {
                let end = self.ends.first().map(|(end, _)| *end);
                tokio::select! {
                    biased;
                    event = events.next() => match event {
                        Some(event) => {
                            let event = event.unwrap();
                            if let WatchEvent::Deleted(job) = &event {
                                self.judge_delete(job, cluster).await;
                            }
                            version = self.take(event, cluster.now());
                        }
                        None => break,
                    },
                    () = cluster.stop_at(end.unwrap_or_default()), if end.is_some() => self.end_next(cluster).await,
                }
            }
        }
    }

    /// A Job that ended is the lock on its slot until the cursor has reached it. One that runs is deleted to be replaced,
    /// and no earlier slot is ever started.
    async fn judge_delete(&mut self, job: &Value, cluster: &Cluster) {
        let run = job["metadata"]["uid"].as_str().and_then(|uid| self.runs.get(uid));
        let Some(run) = run.filter(|run| run.ended.is_some()) else {
            return;
        };
        let cursor = cluster.last_schedule_time(&run.cron_job).await;
        if cursor.is_none_or(|cursor| cursor < run.slot) {
            self.offences
                .push(format!("{}: deleted while the cursor is {cursor:?}", run.name));
        }
    }

    async fn end_next(&mut self, cluster: &Cluster) {
        if let Some((_, uid)) = self.ends.pop_first()
            && let Some(run) = self.runs.get(&uid)
        {
            self.n_seen += 1;
            let is_failed = self
                .habits
                .get(&run.cron_job)
                .is_some_and(|(_, one_in)| self.n_seen.is_multiple_of(*one_in));
            cluster.end_job(&run.name.clone(), is_failed).await;
        }
    }

    /// Takes an event in and gives its version.
    fn take(&mut self, event: WatchEvent<Value>, now: Timestamp) -> String {
        let (job, is_deleted) = match event {
            WatchEvent::Added(job) | WatchEvent::Modified(job) => (job, false),
            WatchEvent::Deleted(job) => (job, true),
            WatchEvent::Bookmark(bookmark) => return bookmark.metadata.resource_version,
            WatchEvent::Error(status) => panic!("the ledger's watch: {status:?}"),
        };
        let text = |pointer: &str| job.pointer(pointer).and_then(Value::as_str).unwrap().to_owned();
        let uid = text("/metadata/uid");
        let is_over = is_deleted || job["status"]["conditions"].is_array();
        let run = self.runs.entry(uid.clone()).or_insert_with(|| Run {
            cron_job: text("/metadata/ownerReferences/0/name"),
            slot: job["metadata"]["annotations"][SCHEDULED]
                .as_str()
                .unwrap()
                .parse()
                .unwrap(),
            created: now,
            ended: None,
            name: text("/metadata/name"),
        });
        if is_over {
            run.ended.get_or_insert(now);
            self.ends.retain(|(_, running)| *running != uid);
        } else if run.created == now {
            let run_seconds = self.habits.get(&run.cron_job).map_or(1, |(seconds, _)| *seconds);
            self.ends.insert((now + SignedDuration::from_secs(run_seconds), uid));
        }
        text("/metadata/resourceVersion")
    }
}
