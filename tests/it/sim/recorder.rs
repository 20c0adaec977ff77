//! The recorder watches the API server and records every Job and every status.

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
    cluster::{Cluster, NAMESPACE},
    options::{latest_token, read_token},
    world::{Deleter, Deletion, Finish, Job, MissingJobReport, Status, World},
};

/// A line of a watch. Its text is borrowed, because names, uids and versions contain no escapes.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: Kind,
    #[serde(borrow)]
    object: Observed<'a>,
}

/// The kind of a change. The watches request no bookmarks, and an error fails the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Kind {
    Added,
    Modified,
    Deleted,
}

/// The fields of CronJobs and Jobs that the recorder records.
#[derive(Deserialize)]
struct Observed<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
    spec: ObservedSpec,
    #[serde(borrow, default)]
    status: ObservedStatus<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    namespace: &'a str,
    name: &'a str,
    uid: &'a str,
    resource_version: &'a str,
    #[serde(borrow, default)]
    annotations: Annotations<'a>,
    #[serde(borrow, default)]
    owner_references: Vec<OwnerReference<'a>>,
}

#[derive(Default, Deserialize)]
struct Annotations<'a> {
    #[serde(rename = "batch.kubernetes.io/cronjob-scheduled-timestamp")]
    scheduled: Option<Timestamp>,
    /// Of a CronJob, the token that is asked for; of a Job, that of its run.
    #[serde(rename = "cronwheel.dev/run-now")]
    token: Option<&'a str>,
    #[serde(rename = "cronwheel.dev/run-now-done")]
    answered: Option<&'a str>,
}

#[derive(Deserialize)]
struct OwnerReference<'a> {
    uid: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ObservedSpec {
    ttl_seconds_after_finished: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ObservedStatus<'a> {
    last_schedule_time: Option<Timestamp>,
    last_successful_time: Option<Timestamp>,
    completion_time: Option<Timestamp>,
    #[serde(borrow)]
    conditions: Vec<Condition<'a>>,
}

#[derive(Deserialize)]
struct Condition<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

impl<'a> Line<'a> {
    fn read(text: &'a [u8]) -> Line<'a> {
        serde_json::from_slice(text)
            .unwrap_or_else(|error| panic!("the recorder's watch: {error}: {}", String::from_utf8_lossy(text)))
    }

    fn version(&self) -> u64 {
        self.object.version()
    }
}

impl Observed<'_> {
    fn version(&self) -> u64 {
        let version = self.metadata.resource_version;
        version.parse().unwrap_or_else(|error| panic!("{version}: {error}"))
    }
}

impl ObservedStatus<'_> {
    /// The outcome of a Job, if it has ended.
    fn finish(&self) -> Option<Finish> {
        self.conditions.iter().find_map(|condition| match condition.kind {
            "Complete" => Some(Finish::Complete),
            "Failed" => Some(Finish::Failed),
            _ => None,
        })
    }
}

/// Records all changes from now on, forever.
pub(super) async fn run(cluster: &Cluster, world: &RefCell<World>) -> Infallible {
    let version = cluster.api.version();
    let mut jobs = std::pin::pin!(watch(cluster, "jobs", version));
    let mut cron_jobs = std::pin::pin!(watch(cluster, "cronjobs", version));
    loop {
        tokio::select! {
            biased;
            Some(line) = cron_jobs.next() => {
                let line = Line::read(&line);
                if line.kind == Kind::Modified {
                    world.borrow_mut().record_status(&line.object, cluster.now());
                }
            }
            Some(line) = jobs.next() => world.borrow_mut().record_job(&Line::read(&line), cluster.now()),
        }
    }
}

/// Streams every change of a resource after a version, as lines of JSON. A kube client would double the cost.
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
                None => begin(last.as_ref().map_or(version, |last| Line::read(last).version())).await,
            };
            let Some(line) = body.frame().await else { continue };
            let line = line.unwrap().into_data().unwrap();
            return Some((line.clone(), (Some(body), Some(line))));
        }
    })
}

/// Returns the Job that an Event reports as missing.
pub(super) fn missing_job_report(event: &Value) -> Option<MissingJobReport> {
    let at = event["metadata"]["creationTimestamp"].as_str().unwrap();
    let job = event["message"].as_str()?.strip_prefix("Active job went missing: ")?;
    Some(MissingJobReport {
        job: job.to_owned(),
        at: at.parse().unwrap(),
    })
}

impl World {
    fn record_status(&mut self, observed: &Observed<'_>, now: Timestamp) {
        let Some(index) = self.find_by_uid(observed.metadata.uid) else {
            return;
        };
        let status = &observed.status;
        let cron_job = &mut self.cron_jobs[index];
        let status = Status {
            version: observed.version(),
            at: now,
            last_schedule_time: status.last_schedule_time,
            last_successful_time: status.last_successful_time,
            answered: observed.metadata.annotations.answered.map(latest_token),
        };
        let known = cron_job.statuses.last();
        if known.is_none_or(|known| !known.is_same(&status)) {
            cron_job.statuses.push(status);
        }
    }

    fn record_job(&mut self, line: &Line<'_>, now: Timestamp) {
        let observed = &line.object;
        let index = match self.find_job(observed.metadata.uid) {
            Some(index) => index,
            None => self.begin_job(new_job(observed, now)),
        };
        let job = &mut self.jobs[index];
        if job.finished.is_none() {
            let status = &observed.status;
            job.finished = status.finish().map(|finish| (now, finish));
            job.completed = status.completion_time;
        }
        if line.kind == Kind::Deleted {
            let deletion = Deletion {
                at: now,
                version: observed.version(),
                by: self.deleter(&self.jobs[index], observed, now),
            };
            self.end_job(index, deletion);
        }
    }

    fn deleter(&self, job: &Job, observed: &Observed<'_>, now: Timestamp) -> Deleter {
        let is_deleted = |uid: &String| {
            self.find_by_uid(uid)
                .is_none_or(|index| self.cron_jobs[index].deleted.is_some())
        };
        let ttl = observed.spec.ttl_seconds_after_finished.map(SignedDuration::from_secs);
        let is_expired = job.finished.zip(ttl).is_some_and(|((at, _), ttl)| at + ttl <= now);
        if job.owner.as_ref().is_some_and(is_deleted) {
            Deleter::Garbage
        } else if self.deleted_by_users.contains(observed.metadata.uid) || is_expired {
            Deleter::Others
        } else {
            Deleter::Controller
        }
    }
}

fn new_job(observed: &Observed<'_>, now: Timestamp) -> Job {
    let metadata = &observed.metadata;
    // The annotation of a Job in another namespace is ignored.
    let is_ours = metadata.namespace == NAMESPACE;
    Job {
        namespace: metadata.namespace.to_owned(),
        name: metadata.name.to_owned(),
        uid: metadata.uid.to_owned(),
        owner: metadata.owner_references.first().map(|owner| owner.uid.to_owned()),
        slot: metadata.annotations.scheduled.filter(|_| is_ours),
        token: metadata.annotations.token.map(read_token),
        created: now,
        finished: None,
        completed: None,
        deleted: None,
    }
}
