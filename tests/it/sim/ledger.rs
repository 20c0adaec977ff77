//! Follows the API server, and writes down every Job and every status.

use std::{cell::RefCell, convert::Infallible};

use apisim::ApiBody;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body_util::BodyExt;
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use serde::Deserialize;
use serde_json::Value;
use tower::Service;

use super::{
    cluster::Cluster,
    world::{Deleter, Deletion, Finish, Job, Status, Told, World},
};

/// A line of a watch. Borrows all text: names, uids and versions have no escapes.
#[derive(Clone, Debug)]
struct Line<'a> {
    kind: Kind,
    object: Seen<'a>,
}

/// What happened to an object. Bookmarks were not asked for, and of an error there is nothing to make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Kind {
    Added,
    Modified,
    Deleted,
}

/// What is looked at of CronJobs and Jobs.
#[derive(Clone, Debug)]
struct Seen<'a> {
    metadata: Metadata<'a>,
    /// Begins with the text of the spec, which is most of the line and seldom read.
    spec: &'a str,
    status: SeenStatus<'a>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
    #[serde(default)]
    annotations: Annotations,
    #[serde(default, borrow)]
    owner_references: Vec<OwnerReference<'a>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Annotations {
    #[serde(rename = "batch.kubernetes.io/cronjob-scheduled-timestamp")]
    scheduled: Option<Timestamp>,
}

#[derive(Clone, Debug, Deserialize)]
struct OwnerReference<'a> {
    uid: &'a str,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SeenSpec {
    ttl_seconds_after_finished: Option<i64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SeenStatus<'a> {
    last_schedule_time: Option<Timestamp>,
    last_successful_time: Option<Timestamp>,
    completion_time: Option<Timestamp>,
    #[serde(borrow)]
    conditions: Vec<Condition<'a>>,
}

#[derive(Clone, Debug, Deserialize)]
struct Condition<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

impl<'a> Line<'a> {
    /// Members stand in the order of their names.
    fn read(text: &'a [u8]) -> Line<'a> {
        let text = std::str::from_utf8(text).unwrap();
        let parts = || {
            let (kind, object) = text.strip_prefix("{\"type\":")?.split_once(",\"object\":")?;
            let (_, metadata) = object.split_once(",\"metadata\":")?;
            let (metadata, rest) = first_value(metadata);
            let spec = rest.strip_prefix(",\"spec\":")?;
            // A condition's is no object.
            let status = spec
                .rsplit_once(",\"status\":{")
                .map(|(before, _)| &spec[before.len() + 10..]);
            let status = status.map(|status| first_value(status).0).unwrap_or_default();
            let object = Seen { metadata, spec, status };
            Some(Line {
                kind: first_value(kind).0,
                object,
            })
        };
        parts().unwrap_or_else(|| panic!("the ledger's watch: {text}"))
    }
}

/// The value that a text begins with, and the rest.
fn first_value<'a, T: Deserialize<'a>>(text: &'a str) -> (T, &'a str) {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    match values.next() {
        Some(Ok(value)) => (value, &text[values.byte_offset()..]),
        Some(Err(error)) => panic!("the ledger's watch: {error}: {text}"),
        None => panic!("the ledger's watch: no value: {text}"),
    }
}

impl Seen<'_> {
    fn version(&self) -> u64 {
        self.metadata.resource_version.parse().unwrap()
    }

    /// How a Job ended, if it did.
    fn finish(&self) -> Option<Finish> {
        self.status
            .conditions
            .iter()
            .find_map(|condition| match condition.kind {
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
            Some(line) = cron_jobs.next() => {
                let line = Line::read(&line);
                if line.kind == Kind::Modified {
                    world.borrow_mut().take_status(&line.object, cluster.now());
                }
            }
            Some(line) = jobs.next() => world.borrow_mut().take_job(&Line::read(&line), cluster.now()),
        }
    }
}

/// Every change of a kind after a version, as a line of JSON. Without a client between, which would be half of its work.
fn watch(cluster: &Cluster, resource: &'static str, version: u64) -> impl Stream<Item = Bytes> {
    let begin = move |version: u64| {
        let mut service = cluster.observer();
        async move {
            let path = format!("/apis/batch/v1/{resource}?watch=1&resourceVersion={version}");
            let response = service
                .call(http::Request::get(path).body(Body::empty()).unwrap())
                .await;
            response.unwrap().into_body()
        }
    };
    let nothing: (Option<ApiBody>, Option<Bytes>) = (None, None);
    futures::stream::unfold(nothing, move |(mut open, last)| async move {
        loop {
            let mut body = match open.take() {
                Some(body) => body,
                None => begin(last.as_ref().map_or(version, |last| Line::read(last).object.version())).await,
            };
            let Some(line) = body.frame().await else { continue };
            let line = line.unwrap().into_data().unwrap();
            return Some((line.clone(), (Some(body), Some(line))));
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
    fn take_status(&mut self, seen: &Seen<'_>, now: Timestamp) {
        let Some(index) = self.find_by_uid(seen.metadata.uid) else {
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

    fn take_job(&mut self, line: &Line<'_>, now: Timestamp) {
        let (seen, is_deleted) = (&line.object, line.kind == Kind::Deleted);
        let (version, finish) = (seen.version(), seen.finish());
        let deletion = is_deleted.then(|| Deletion {
            at: now,
            version,
            by: self.deleter(seen, now),
        });
        let metadata = &seen.metadata;
        let owner = metadata.owner_references.first();
        let job = self.jobs.entry(metadata.uid.to_owned()).or_insert_with(|| Job {
            name: metadata.name.to_owned(),
            owner: owner.map(|owner| owner.uid.to_owned()),
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
        if let Some(owner) = owner {
            self.note_present(owner.uid, metadata.uid, deletion.is_none());
        }
    }

    fn deleter(&self, seen: &Seen<'_>, now: Timestamp) -> Deleter {
        let owner = seen.metadata.owner_references.first();
        let is_gone = |uid: &str| {
            self.find_by_uid(uid)
                .is_none_or(|index| self.cron_jobs[index].deleted.is_some())
        };
        let finished = self.jobs.get(seen.metadata.uid).and_then(|job| job.finished);
        let (spec, _) = first_value::<SeenSpec>(seen.spec);
        let ttl = spec.ttl_seconds_after_finished.map(SignedDuration::from_secs);
        let is_outlived = finished.zip(ttl).is_some_and(|((at, _), ttl)| at + ttl <= now);
        if owner.is_some_and(|owner| is_gone(owner.uid)) {
            Deleter::Garbage
        } else if self.deleted_by_users.contains(seen.metadata.uid) || is_outlived {
            Deleter::Others
        } else {
            Deleter::Controller
        }
    }
}
