//! What becomes of a run that was asked for: the looks at its CronJob, its Job and its Events.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::{
    cli::error::CommandError,
    kube_api::{JsonApi, JsonError},
    schedule::options::{RUN_DONE_ANNOTATION, tokens_of},
};

/// How often a read is repeated, and the pause before. An API server restarts within this time.
const READ_RETRIES_MAX: u32 = 30;
const READ_PAUSE: Duration = Duration::from_secs(1);

/// How long the Event of a refusal may take. Events give way to other writes.
const EVENT_WITHIN: Duration = Duration::from_secs(10);

/// A run that was asked for.
pub(super) struct Followed<'a> {
    pub(super) api: &'a JsonApi,
    pub(super) namespace: &'a str,
    pub(super) cron_job_name: &'a str,
    pub(super) token: &'a str,
    /// The name of its Job.
    pub(super) job: &'a str,
    /// The uid of the CronJob.
    pub(super) uid: &'a str,
    /// When the run was asked for, by the clock of the API server, in whole seconds.
    pub(super) since: Timestamp,
}

/// What the controller did.
pub(super) enum Answered {
    /// It created the Job.
    Created,
    /// It refused the run, as the Event says.
    Refused(String),
    /// Nothing yet. The last Event about the create, if there is one.
    Nothing(Option<String>),
}

impl Followed<'_> {
    /// Waits until the controller has answered.
    pub(super) async fn answer(&self, within: Duration, every: Duration) -> Result<Answered, CommandError> {
        let Ok(has_job) = timeout(within, self.has_job(every)).await else {
            return Ok(Answered::Nothing(self.event().await.unwrap_or_default()));
        };
        if has_job? {
            return Ok(Answered::Created);
        }
        let message = self.awaited_event(every).await;
        Ok(Answered::Refused(message.unwrap_or_else(|| {
            format!(
                "its job {} does not exist: it was refused, or has ended and is deleted; see kubectl describe cronjob {} \
                 -n {}",
                self.job, self.cron_job_name, self.namespace
            )
        })))
    }

    /// Waits until the Job exists, or the token is marked as answered. Returns whether the Job exists.
    async fn has_job(&self, every: Duration) -> Result<bool, CommandError> {
        loop {
            // In this order: the Job exists before the token is marked.
            let is_marked = self.is_marked().await?;
            let has_job = self.own_job().await?.is_some();
            if has_job || is_marked {
                return Ok(has_job);
            }
            sleep(every).await;
        }
    }

    /// Waits until the Job has ended. Returns for how long it ran, as text.
    pub(super) async fn end(&self, within: Duration, every: Duration) -> Result<String, CommandError> {
        timeout(within, self.ended(every)).await.unwrap_or_else(|_| {
            let seconds = within.as_secs();
            Err(format!("job {} still runs after {seconds} s; it goes on", self.job).into())
        })
    }

    async fn ended(&self, every: Duration) -> Result<String, CommandError> {
        loop {
            let Some(job) = self.own_job().await? else {
                return Err(format!("job {} was deleted before its end was seen", self.job).into());
            };
            let conditions = job["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let end = conditions.find(|condition| {
                condition["status"] == "True" && (condition["type"] == "Complete" || condition["type"] == "Failed")
            });
            match end {
                Some(end) if end["type"] == "Complete" => return Ok(run_time(&job)),
                Some(end) => {
                    let text = |field: &str| end[field].as_str().unwrap_or_default();
                    return Err(format!("job {} failed: {}: {}", self.job, text("reason"), text("message")).into());
                }
                None => sleep(every).await,
            }
        }
    }

    /// Whether the controller has marked the token as answered.
    async fn is_marked(&self) -> Result<bool, CommandError> {
        let object = self.cron_job().await?;
        let done = object["metadata"]["annotations"][RUN_DONE_ANNOTATION].as_str();
        Ok(tokens_of(done.unwrap_or_default()).any(|done| done == self.token))
    }

    /// The CronJob.
    pub(super) async fn cron_job(&self) -> Result<Value, CommandError> {
        let (namespace, name) = (self.namespace, self.cron_job_name);
        let path = format!("/apis/batch/v1/namespaces/{namespace}/cronjobs/{name}");
        let read = self.read(&path).await;
        read.map_err(|error| CommandError::caused(format!("cannot read cronjob {namespace}/{name}"), error))
    }

    /// The Job of the run, if it exists and belongs to the CronJob.
    async fn own_job(&self) -> Result<Option<Value>, CommandError> {
        let (namespace, name) = (self.namespace, self.job);
        let path = format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}");
        let job = match self.read(&path).await {
            Ok(job) => job,
            Err(JsonError::Refused { code: 404, .. }) => return Ok(None),
            Err(error) => {
                return Err(CommandError::caused(
                    format!("cannot read job {namespace}/{name}"),
                    error,
                ));
            }
        };
        let owners = job["metadata"]["ownerReferences"].as_array();
        let is_own = owners.into_iter().flatten().any(|owner| owner["uid"] == self.uid);
        Ok(is_own.then_some(job))
    }

    /// Reads an object, also if the API server restarts.
    async fn read(&self, path: &str) -> Result<Value, JsonError> {
        let mut n_failures = 0;
        loop {
            match self.api.get(path).await {
                Ok(answer) => return Ok(answer.body),
                Err(error) if n_failures == READ_RETRIES_MAX || error.code().is_some_and(|code| code < 429) => {
                    return Err(error);
                }
                Err(_) => n_failures += 1,
            }
            sleep(READ_PAUSE).await;
        }
    }

    /// The Event of a refusal, which may be written a moment after the mark. `None` without the right to list Events.
    async fn awaited_event(&self, every: Duration) -> Option<String> {
        let seen = async {
            loop {
                match self.event().await {
                    Ok(None) => sleep(every).await,
                    Ok(message) => return message,
                    Err(_) => return None,
                }
            }
        };
        timeout(EVENT_WITHIN, seen).await.ok().flatten()
    }

    /// The last Event that says why the Job is not created.
    async fn event(&self) -> Result<Option<String>, JsonError> {
        let (namespace, uid) = (self.namespace, self.uid);
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let mut last: Option<(String, String)> = None;
        let take = |page: Value| {
            for event in page["items"].as_array().into_iter().flatten() {
                let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
                let is_about_run = match event["reason"].as_str() {
                    Some("RunNowRefused") => text("message").contains(self.token),
                    Some("FailedCreate") => true,
                    Some(_) | None => false,
                };
                let found = (text("lastTimestamp"), text("message"));
                // An Event has whole seconds too.
                let is_new = found.0.parse::<Timestamp>().is_ok_and(|at| at >= self.since);
                let is_own = event["involvedObject"]["uid"] == self.uid;
                if is_about_run && is_new && is_own && last.as_ref().is_none_or(|last| last.0 <= found.0) {
                    last = Some(found);
                }
            }
        };
        let query = format!("fieldSelector=involvedObject.uid%3D{uid}");
        self.api.list(&path, &query, take).await?;
        Ok(last.map(|(_, message)| message))
    }
}

/// How long a complete Job ran.
fn run_time(job: &Value) -> String {
    let time = |field: &str| job["status"][field].as_str()?.parse::<jiff::Timestamp>().ok();
    match (time("startTime"), time("completionTime")) {
        (Some(started), Some(completed)) => {
            format!(" after {} s", completed.duration_since(started).as_secs())
        }
        _ => String::new(),
    }
}
