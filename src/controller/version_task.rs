//! Proves that the watches are current, for shards that were not handed over, or whose handover the watches did not show
//! in time.
//!
//! The task reads the current versions from the quorum of etcd. In a busy cluster, the next event of a watch is of that
//! version or later. In a quiet one, a second, short watch shows the last change and a later version up to which nothing
//! changed. At most one second watch of a resource in a scope is open at a time.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::sync::mpsc;

use super::{clock::Clock, permissions::FailureLog};
use crate::{
    kube_api::{
        retry::{Retry, VERSION_PAUSES},
        watch::current::{Unchanged, VersionError, current_versions, unchanged_through},
    },
    shard::{
        Input, ResourceVersion, ResourceVersions, Scope, VersionRequest, WATCH_WAIT_MAX, WatchedResource,
        input::WatchStage,
    },
};

/// How long an answer with the current versions is awaited before they are requested again.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(2);

/// What the task found out, for the shard task.
#[derive(Debug)]
pub enum VersionAnswer {
    /// The current versions of each scope.
    Current(Arc<[ResourceVersions]>),
    /// A watch has not missed anything up to a version.
    Unchanged(Input),
}

/// The task that proves that the watches are current.
pub struct VersionTask {
    /// Client for the requests.
    pub client: kube::Client,
    /// Answers, for the shard task.
    pub answers: mpsc::Sender<VersionAnswer>,
    /// Log of requests that are not permitted.
    pub failures: FailureLog,
    /// The clock.
    pub clock: Clock,
}

/// A watch of CronJobs or Jobs in a scope.
type Watched = (Scope, WatchedResource);

/// The second watches: those that are open, and those that follow them.
#[derive(Default)]
struct SecondWatches {
    open: Vec<Watched>,
    /// The versions from which further second watches begin when the open ones end.
    next: Vec<(Watched, ResourceVersion)>,
}

impl SecondWatches {
    /// Returns the watch to open now; `None` if one of the resource in the scope is open.
    fn want(&mut self, watched: Watched, since: ResourceVersion) -> Option<(Watched, ResourceVersion)> {
        if !self.open.contains(&watched) {
            self.open.push(watched.clone());
            return Some((watched, since));
        }
        self.next.retain(|(other, _)| *other != watched);
        self.next.push((watched, since));
        None
    }

    /// Ends a watch. Returns the one that follows it.
    fn end(&mut self, watched: &Watched) -> Option<(Watched, ResourceVersion)> {
        self.open.retain(|other| other != watched);
        let position = self.next.iter().position(|(other, _)| other == watched)?;
        let (watched, since) = self.next.remove(position);
        self.want(watched, since)
    }
}

impl VersionTask {
    /// Answers requests until their sender ends.
    pub async fn run(self, mut requests: mpsc::Receiver<VersionRequest>) {
        let (mut reads, mut unchanged) = (FuturesUnordered::new(), FuturesUnordered::new());
        let mut second = SecondWatches::default();
        loop {
            tokio::select! {
                biased;
                request = requests.recv() => {
                    let Some(VersionRequest { reached }) = request else { return };
                    for (scope, versions) in &reached {
                        for (resource, since) in [
                            (WatchedResource::CronJobs, versions.cron_jobs),
                            (WatchedResource::Jobs, versions.jobs),
                        ] {
                            let opened = second.want((scope.clone(), resource), since);
                            unchanged.extend(opened.map(|(watched, since)| self.unchanged(watched, since)));
                        }
                    }
                    reads.push(self.read_current(reached));
                }
                Some(current) = reads.next() => self.send(VersionAnswer::Current(current)).await,
                Some((watched, input)) = unchanged.next() => {
                    let opened = second.end(&watched);
                    unchanged.extend(opened.map(|(watched, since)| self.unchanged(watched, since)));
                    if let Some(input) = input {
                        self.send(VersionAnswer::Unchanged(input)).await;
                    }
                }
            }
        }
    }

    /// Sends an answer to the shard task, which outlives this task unless the process fails.
    async fn send(&self, answer: VersionAnswer) {
        let _ = self.answers.send(answer).await;
    }

    /// Reads the current versions of every scope, and repeats a request that fails. A scope that is not permitted has
    /// versions of zero. If it was watched before, the API server may just have started, so only a lasting refusal counts.
    async fn read_current(&self, scopes: Vec<(Scope, ResourceVersions)>) -> Arc<[ResourceVersions]> {
        let mut versions = Vec::with_capacity(scopes.len());
        for (scope, reached) in scopes {
            let mut retry = Retry::new(VERSION_PAUSES);
            let doubted_until = self.clock.boot() + WATCH_WAIT_MAX;
            let version = loop {
                match tokio::time::timeout(ATTEMPT_TIMEOUT, current_versions(&self.client, &scope)).await {
                    Ok(Ok(current)) => break current,
                    Ok(Err(error)) => {
                        self.warn(&error);
                        let is_doubted = reached != ResourceVersions::default() && self.clock.boot() < doubted_until;
                        if error.code == Some(403) && !is_doubted {
                            break ResourceVersions::default();
                        }
                    }
                    Err(_) => tracing::warn!(%scope, "the current versions were not answered in time"),
                }
                retry.fail();
                retry.wait().await;
            };
            versions.push(version);
        }
        versions.into()
    }

    fn warn(&self, error: &VersionError) {
        let right = ["list", error.resource];
        self.failures
            .note(right, error.code, &error.to_string(), self.clock.boot());
    }

    /// Shows by a second watch that nothing has changed since a version. Returns the fact for the shards, if it is one.
    async fn unchanged(&self, watched: Watched, since: ResourceVersion) -> (Watched, Option<Input>) {
        let (scope, resource) = &watched;
        let unchanged = if since > ResourceVersion::default() {
            unchanged_through(&self.client, scope, *resource, since).await
        } else {
            None
        };
        let input = unchanged.map(|Unchanged { since, through }| {
            let stage = WatchStage::Unchanged { since, through };
            Input::watch_updated(*resource, scope.clone(), stage)
        });
        (watched, input)
    }
}

#[cfg(test)]
mod tests;
