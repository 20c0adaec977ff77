//! Consistent lists of CronJobs and of Jobs, page by page, for shards that are taken up beside watches that go on.
//!
//! No resource version is asked for, so everything that was written before a list begins is in it.

use std::sync::Arc;

use futures::{Stream, stream};
use kube::{
    Api, Client,
    api::{ListParams, ObjectList},
};
use serde::de::DeserializeOwned;

use super::{
    classify::error_text,
    decode::{Decoder, SlimJob, UndecodedCronJob},
};
use crate::state::{Listed, Scope, Uid};

/// Objects in one page: as many as the built-in controllers ask for.
const PAGE_SIZE: u32 = 500;

/// A list broke off; what it gave so far is not all that there is.
#[derive(Debug, thiserror::Error)]
#[error("listing the {resource} of {scope}: {message}")]
pub struct ListError {
    resource: &'static str,
    scope: Scope,
    /// The server's text, or the transport's.
    message: String,
}

/// What a page holds.
pub type Page = Result<Vec<Listed>, ListError>;

/// Lists the CronJobs of a scope that are wanted by their uids.
pub fn list_cron_jobs(
    client: Client,
    scope: Scope,
    decoder: Arc<Decoder>,
    is_wanted: impl Fn(&Uid) -> bool + Clone + Send,
) -> impl Stream<Item = Page> + Send {
    let take = move |object: UndecodedCronJob| {
        let uid = object.uid().cloned();
        if !uid.as_ref().is_some_and(&is_wanted) {
            return None;
        }
        let object = object.decode()?;
        match object.into_record(&decoder) {
            Ok(record) => Some(Listed::CronJob(Box::new(record))),
            Err(_) => uid.map(Listed::UndecodableCronJob),
        }
    };
    pages(client, "CronJobs", scope, String::new(), take)
}

/// Lists the Jobs of a scope that a label selector takes and that a CronJob controls.
pub fn list_jobs(client: Client, scope: Scope, selector: String) -> impl Stream<Item = Page> + Send {
    let take = |object: SlimJob| {
        let job = object.into_record().ok()?;
        let cron_job = job.controller.clone()?;
        Some(Listed::Job {
            cron_job,
            job: Box::new(job),
        })
    };
    pages(client, "Jobs", scope, selector, take)
}

/// Where a list goes on.
enum Next {
    First,
    From(String),
    End,
}

fn pages<O>(
    client: Client,
    resource: &'static str,
    scope: Scope,
    selector: String,
    take: impl Fn(O) -> Option<Listed> + Clone + Send,
) -> impl Stream<Item = Page> + Send
where
    O: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<O> = match &scope {
        Scope::Cluster => Api::all(client),
        Scope::Namespace(namespace) => Api::namespaced(client, namespace),
    };
    stream::try_unfold(Next::First, move |next| {
        let (api, scope, take) = (api.clone(), scope.clone(), take.clone());
        let params = ListParams::default().limit(PAGE_SIZE).labels(&selector);
        async move {
            let params = match next {
                Next::First => params,
                Next::From(token) => params.continue_token(&token),
                Next::End => return Ok(None),
            };
            let page: ObjectList<O> = api.list(&params).await.map_err(|error| ListError {
                resource,
                scope,
                message: error_text(&error),
            })?;
            let next = match page.metadata.continue_ {
                Some(token) if !token.is_empty() => Next::From(token),
                Some(_) | None => Next::End,
            };
            let listed = page.items.into_iter().filter_map(take).collect();
            Ok(Some((listed, next)))
        }
    })
}
