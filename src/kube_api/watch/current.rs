//! Whether a watch has delivered everything up to the current version.

use std::{pin::pin, time::Duration};

use futures::StreamExt;
use kube::{Client, core::WatchEvent};

use super::{collection::Collection, list_watch::version_of};
use crate::{
    kube_api::objects::{
        classify::error_text,
        decode::{Content, CronJobText, JobContent},
    },
    shard::{ResourceVersion, ResourceVersions, Scope, WatchedResource},
};

/// The current version cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("reading the current version of the {resource} of {scope}: {message}")]
pub struct VersionError {
    /// The resource.
    pub resource: &'static str,
    /// The scope.
    pub scope: Scope,
    /// The message of the server or of the transport.
    pub message: String,
    /// The HTTP status; `None` if the server did not answer.
    pub code: Option<u16>,
}

/// Duration of the watch that shows whether anything has changed, in seconds. The API server sends a bookmark two seconds
/// before the end of a watch, so between 1 and 2.25 seconds after it begins.
const UNCHANGED_WATCH_SECS: u32 = 3;

/// Returns the current versions of the CronJobs and Jobs of a scope, from the quorum of etcd.
///
/// # Errors
///
/// [`VersionError`] if the server does not answer or does not permit it.
pub async fn current_versions(client: &Client, scope: &Scope) -> Result<ResourceVersions, VersionError> {
    let (cron_jobs, jobs) = tokio::try_join!(
        biased;
        current_version::<CronJobText>(client, scope),
        current_version::<JobContent>(client, scope)
    )?;
    Ok(ResourceVersions { cron_jobs, jobs })
}

async fn current_version<C: Content>(client: &Client, scope: &Scope) -> Result<ResourceVersion, VersionError> {
    let version = Collection::new::<C>(client.clone(), scope).current_version().await;
    version.map_err(|error| VersionError {
        resource: C::PLURAL,
        scope: scope.clone(),
        message: error_text(&error),
        code: if let kube::Error::Api(status) = &error {
            Some(status.code)
        } else {
            None
        },
    })
}

/// Versions between which no object of a resource in a scope was created, changed or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unchanged {
    /// The version of the last change.
    pub since: ResourceVersion,
    /// The later version.
    pub through: ResourceVersion,
}

/// Returns the last change of a resource in a scope after the version `since`, or `since` itself, and a later version up
/// to which nothing changed. A short watch from `since` shows it by its first bookmark. `None` if the watch fails, or if it
/// sends no bookmark within its duration and a second.
pub async fn unchanged_through(
    client: &Client,
    scope: &Scope,
    resource: WatchedResource,
    since: ResourceVersion,
) -> Option<Unchanged> {
    match resource {
        WatchedResource::CronJobs => first_bookmark::<CronJobText>(client, scope, since).await,
        WatchedResource::Jobs => first_bookmark::<JobContent>(client, scope, since).await,
    }
}

async fn first_bookmark<C: Content>(client: &Client, scope: &Scope, since: ResourceVersion) -> Option<Unchanged> {
    let collection = Collection::new::<C>(client.clone(), scope);
    let until_bookmark = async {
        let events = collection.watch::<C>(since, Some(UNCHANGED_WATCH_SECS)).await.ok()?;
        let (mut events, mut since) = (pin!(events), since);
        loop {
            let event = events.next().await?.ok()?;
            let version = version_of(&event)?;
            if let WatchEvent::Bookmark(_) = event {
                return Some(Unchanged {
                    since,
                    through: version,
                });
            }
            since = version;
        }
    };
    // A server that vanishes neither answers nor ends the watch.
    let patience = Duration::from_secs(u64::from(UNCHANGED_WATCH_SECS) + 1);
    tokio::time::timeout(patience, until_bookmark).await.ok()?
}
