//! Follows the API server, and writes down every Job and every status.

use std::{cell::RefCell, convert::Infallible};

use futures::{Stream, StreamExt};
use jiff::{SignedDuration, Timestamp};
use kube::core::WatchEvent;
use serde::Deserialize;
use serde_json::Value;

use super::{
    cluster::Cluster,
    world::{Deleter, Deletion, Finish, Job, Status, Told, World},
};

/// What is looked at of CronJobs and Jobs.
#[derive(Clone, Debug, Deserialize)]
struct Seen {
    metadata: Metadata,
    #[serde(default)]
    spec: SeenSpec,
    #[serde(default)]
    status: SeenStatus,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
    #[serde(default)]
    annotations: Annotations,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Annotations {
    #[serde(rename = "batch.kubernetes.io/cronjob-scheduled-timestamp")]
    scheduled: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
struct OwnerReference {
    uid: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SeenSpec {
    ttl_seconds_after_finished: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SeenStatus {
    last_schedule_time: Option<Timestamp>,
    last_successful_time: Option<Timestamp>,
    completion_time: Option<Timestamp>,
    conditions: Vec<Condition>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
}

impl Seen {
    fn version(&self) -> u64 {
        self.metadata.resource_version.parse().unwrap()
    }

    /// How a Job ended, if it did.
    fn finish(&self) -> Option<Finish> {
        self.status
            .conditions
            .iter()
            .find_map(|condition| match condition.kind.as_str() {
                "Complete" => Some(Finish::Complete),
                "Failed" => Some(Finish::Failed),
                _ => None,
            })
    }
}

/// Follows the API server for ever.
pub(super) async fn keep(cluster: &Cluster, world: &RefCell<World>) -> Infallible {
    let version = cluster.api.version();
    let mut jobs = std::pin::pin!(watch(cluster, "jobs", version));
    let mut cron_jobs = std::pin::pin!(watch(cluster, "cronjobs", version));
    loop {
        tokio::select! {
            biased;
            Some(event) = cron_jobs.next() => {
                if let WatchEvent::Modified(cron_job) = event {
                    world.borrow_mut().take_status(&cron_job, cluster.now());
                }
            }
            Some(event) = jobs.next() => world.borrow_mut().take_job(event, cluster.now()),
        }
    }
}

/// Every change of a kind after a version.
fn watch(cluster: &Cluster, resource: &'static str, version: u64) -> impl Stream<Item = WatchEvent<Seen>> {
    let client = cluster.observer();
    let begin = move |version: u64| {
        let client = client.clone();
        async move {
            let path = format!("/apis/batch/v1/{resource}?watch=1&resourceVersion={version}");
            let request = http::Request::get(path).body(Vec::new()).unwrap();
            client.request_events::<Seen>(request).await.unwrap().boxed()
        }
    };
    futures::stream::unfold((None, version), move |(mut events, mut version)| {
        let begin = begin.clone();
        async move {
            loop {
                let mut open = match events.take() {
                    Some(open) => open,
                    None => begin(version).await,
                };
                let Some(event) = open.next().await else { continue };
                let event = event.unwrap();
                match &event {
                    WatchEvent::Added(seen) | WatchEvent::Modified(seen) | WatchEvent::Deleted(seen) => {
                        version = seen.version();
                    }
                    WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version.parse().unwrap(),
                    WatchEvent::Error(status) => panic!("the ledger's watch: {status:?}"),
                }
                return Some((event, (Some(open), version)));
            }
        }
    })
}

/// Of which Job an Event says that it went missing.
pub(super) fn told_missing(event: &Value) -> Option<Told> {
    let at = event["metadata"]["creationTimestamp"].as_str().unwrap();
    let job = event["message"].as_str()?.strip_prefix("Active job went missing: ")?;
    Some(Told {
        job: job.to_owned(),
        at: at.parse().unwrap(),
    })
}

impl World {
    fn take_status(&mut self, seen: &Seen, now: Timestamp) {
        let Some(index) = self.find_by_uid(&seen.metadata.uid) else {
            return;
        };
        let cron_job = &mut self.cron_jobs[index];
        let status = Status {
            version: seen.version(),
            at: now,
            last_schedule_time: seen.status.last_schedule_time,
            last_successful_time: seen.status.last_successful_time,
        };
        let known = cron_job.statuses.last();
        if known.is_none_or(|known| !known.says_the_same(&status)) {
            cron_job.statuses.push(status);
        }
    }

    fn take_job(&mut self, event: WatchEvent<Seen>, now: Timestamp) {
        let (seen, is_deleted) = match event {
            WatchEvent::Added(seen) | WatchEvent::Modified(seen) => (seen, false),
            WatchEvent::Deleted(seen) => (seen, true),
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => return,
        };
        let (version, finish) = (seen.version(), seen.finish());
        let deletion = is_deleted.then(|| Deletion {
            at: now,
            version,
            by: self.deleter(&seen, now),
        });
        let metadata = seen.metadata;
        let job = self.jobs.entry(metadata.uid).or_insert_with(|| Job {
            name: metadata.name,
            owner: metadata.owner_references.into_iter().next().map(|owner| owner.uid),
            slot: metadata.annotations.scheduled,
            created: now,
            finished: None,
            completed: None,
            deleted: None,
        });
        if job.finished.is_none() {
            job.finished = finish.map(|finish| (now, finish));
            job.completed = seen.status.completion_time;
        }
        job.deleted = deletion;
    }

    fn deleter(&self, seen: &Seen, now: Timestamp) -> Deleter {
        let owner = seen.metadata.owner_references.first();
        let is_gone = |uid: &str| {
            self.find_by_uid(uid)
                .is_none_or(|index| self.cron_jobs[index].deleted.is_some())
        };
        let finished = self.jobs.get(&seen.metadata.uid).and_then(|job| job.finished);
        let ttl = seen.spec.ttl_seconds_after_finished.map(SignedDuration::from_secs);
        let is_outlived = finished.zip(ttl).is_some_and(|((at, _), ttl)| at + ttl <= now);
        if owner.is_some_and(|owner| is_gone(&owner.uid)) {
            Deleter::Garbage
        } else if self.deleted_by_users.contains(&seen.metadata.uid) || is_outlived {
            Deleter::Others
        } else {
            Deleter::Controller
        }
    }
}
