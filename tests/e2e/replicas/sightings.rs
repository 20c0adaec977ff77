//! All Jobs that a watch has observed, including deleted ones.

use std::{cell::RefCell, collections::BTreeMap, rc::Rc, time::Duration};

use futures::StreamExt as _;
use jiff::Timestamp;
use kube::{
    api::DynamicObject,
    runtime::{WatchStreamExt as _, watcher},
};
use tokio::task::JoinHandle;

use crate::kubernetes::Namespace;

const PAUSE: Duration = Duration::from_millis(500);

/// The last observed state of a Job.
#[derive(Clone, Debug)]
pub(super) struct Sighting {
    pub(super) name: String,
    /// The shard and the term of its creator.
    pub(super) created_under: Option<(u64, u64)>,
    pub(super) created: Timestamp,
    pub(super) completed: Option<Timestamp>,
}

impl Sighting {
    fn of(job: &DynamicObject) -> Option<(String, Sighting)> {
        let metadata = &job.metadata;
        let annotations = metadata.annotations.as_ref();
        let stamp = annotations.and_then(|all| all.get("cronwheel.dev/created-under"));
        let created_under = stamp.and_then(|stamp| {
            let mut parts = stamp.split('/').map(str::parse);
            Some((parts.next()?.ok()?, parts.next()?.ok()?))
        });
        let completed = job.data["status"]["completionTime"].as_str();
        let sighting = Sighting {
            name: metadata.name.clone()?,
            created_under,
            created: metadata.creation_timestamp.as_ref()?.0,
            completed: completed.and_then(|time| time.parse().ok()),
        };
        Some((metadata.uid.clone()?, sighting))
    }
}

/// All observed Jobs. Dropping it ends the watch.
pub(super) struct Sightings {
    by_uid: Rc<RefCell<BTreeMap<String, Sighting>>>,
    watch: JoinHandle<()>,
}

impl Sightings {
    pub(super) fn begin(namespace: &Namespace) -> Sightings {
        let by_uid = Rc::default();
        let jobs = watcher(namespace.api("Job"), watcher::Config::default());
        let seen = Rc::clone(&by_uid);
        let watch = tokio::task::spawn_local(async move {
            let mut jobs = Box::pin(jobs.touched_objects());
            while let Some(job) = jobs.next().await {
                match job {
                    Ok(job) => note(&seen, &job),
                    // The API server is unavailable. The watcher restarts the watch.
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        });
        Sightings { by_uid, watch }
    }

    pub(super) fn all(&self) -> Vec<Sighting> {
        self.by_uid.borrow().values().cloned().collect()
    }
}

impl Drop for Sightings {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

fn note(seen: &RefCell<BTreeMap<String, Sighting>>, job: &DynamicObject) {
    seen.borrow_mut().extend(Sighting::of(job));
}
