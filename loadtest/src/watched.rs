//! A watch of Jobs in place of an audit log. It records the creation of each Job, with a precision of one second.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, PoisonError},
};

use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use kube::{
    Api, Client,
    core::PartialObjectMeta,
    runtime::{WatchStreamExt as _, watcher},
};
use tokio::task::JoinHandle;

use crate::audit::Request;

/// The limitations of a result without an audit log.
pub(crate) const WARNING: &str = "there is no audit log: creates are known to the second, rounded down; writes, status \
     age and Jobs that were deleted before the watch saw them are not known";

/// The watch, which runs until this value is dropped.
#[derive(Debug)]
pub(crate) struct WatchedJobs {
    creates: Arc<Mutex<Vec<Request>>>,
    task: JoinHandle<()>,
}

impl WatchedJobs {
    /// Watches the metadata of all Jobs.
    pub(crate) fn begin(client: Client) -> WatchedJobs {
        let creates: Arc<Mutex<Vec<Request>>> = Arc::default();
        let shared = Arc::clone(&creates);
        let task = tokio::spawn(async move {
            let jobs = watcher::watcher(Api::<PartialObjectMeta<Job>>::all(client), watcher::Config::default())
                .default_backoff()
                .applied_objects();
            let mut jobs = std::pin::pin!(jobs);
            let mut uids = HashSet::new();
            while let Some(job) = jobs.next().await {
                // The watcher reopens a broken watch.
                let Ok(job) = job else { continue };
                if job.metadata.uid.clone().is_some_and(|uid| uids.insert(uid)) {
                    let mut creates = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    creates.extend(create(&job));
                }
            }
        });
        WatchedJobs { creates, task }
    }

    /// Returns a create for each observed Job.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.creates.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for WatchedJobs {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The create of a Job. `None` without a name or a time.
fn create(job: &PartialObjectMeta<Job>) -> Option<Request> {
    let metadata = &job.metadata;
    let created: Timestamp = metadata.creation_timestamp.as_ref()?.0;
    Some(Request {
        verb: "create".to_owned(),
        resource: "jobs".to_owned(),
        namespace: metadata.namespace.clone()?,
        name: metadata.name.clone()?,
        code: 201,
        received: created,
        answered: created,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn watched_job_is_a_create_at_its_creation_time() {
        let job = |metadata| serde_json::from_value(json!({"metadata": metadata})).unwrap();
        let whole = json!({"name": "a-1", "namespace": "n", "creationTimestamp": "2026-11-24T06:40:00Z"});
        let request = create(&job(whole)).unwrap();
        assert!(request.is_job_create());
        assert_eq!(request.received.to_string(), "2026-11-24T06:40:00Z");
        assert!(create(&job(json!({"name": "a-1", "namespace": "n"}))).is_none());
    }
}
