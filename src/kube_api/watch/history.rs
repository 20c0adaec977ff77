//! Detects that the API server returned to an older history, as after a restore of etcd from a snapshot.
//!
//! A restored etcd counts revisions from the snapshot on. A watch that resumes from a version that does not exist yet
//! delivers nothing until the count has passed it, and the same number may denote other content. Therefore an
//! interrupted watch is preceded by a consistent list of one object, of which only the version matters. etcd itself
//! answers this list, never a lagging cache. A version below the one to resume from proves the return. The API servers
//! restart with etcd, which interrupts every watch.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt, stream};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, BodyStream, Full, Limited, StreamBody, combinators::UnsyncBoxBody};
use kube::{Client, client::Body};
use serde::Deserialize;

use crate::{kube_api::ordered_watch::OrderedSender, shard::ResourceVersion};

/// Maximum size of the answer to the check. It carries the metadata of one object, which etcd limits to 1.5 MiB.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// The answer to a watch whose version belongs to another history; the API server answers the same for a compacted
/// version.
const EXPIRED: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"the history of the API server went back"}"#;

type AnyBody = UnsyncBoxBody<Bytes, kube::Error>;

/// Wraps the client of one watch. If the history went back, it sets `went_back` and answers 410.
pub fn checked_history(client: Client, went_back: OrderedSender<bool>) -> Client {
    let default_namespace = client.default_namespace().to_owned();
    let history = Arc::new(History {
        client,
        went_back,
        resumed_from: AtomicU64::new(0),
        is_interrupted: AtomicBool::new(false),
    });
    let service = tower::service_fn(move |request| {
        let history = Arc::clone(&history);
        async move { history.send(request).await }
    });
    Client::new(service, default_namespace)
}

struct History {
    client: Client,
    went_back: OrderedSender<bool>,
    /// The latest version that a watch was resumed from; 0 for none.
    resumed_from: AtomicU64,
    /// Whether a watch was refused or ended without this process closing it.
    is_interrupted: AtomicBool,
}

impl History {
    async fn send(self: Arc<Self>, request: Request<Body>) -> kube::Result<Response<AnyBody>> {
        let from = watched_from(&request);
        if let Some(from) = from {
            self.resumed_from.fetch_max(from.0, Ordering::Relaxed);
        }
        if (from.is_some() || is_consistent_list(&request))
            && self.is_interrupted.load(Ordering::Relaxed)
            && let Some(refusal) = self.check(request.uri().path()).await?
        {
            return Ok(refusal);
        }
        if from.is_none() {
            return Ok(self.client.send(request).await?.map(BodyExt::boxed_unsync));
        }
        // Set until there is an answer: a dropped request has none.
        self.is_interrupted.store(true, Ordering::Relaxed);
        let answer = self.client.send(request).await?;
        if !answer.status().is_success() {
            return Ok(answer.map(BodyExt::boxed_unsync));
        }
        self.is_interrupted.store(false, Ordering::Relaxed);
        Ok(answer.map(|body| noticed(body, self)))
    }

    /// Returns the answer to give instead of resuming, if the history went back or could not be checked.
    async fn check(&self, path: &str) -> kube::Result<Option<Response<AnyBody>>> {
        let resumed_from = ResourceVersion(self.resumed_from.load(Ordering::Relaxed));
        let answer = self.client.send(check_request(path)).await?;
        if !answer.status().is_success() {
            return Ok(Some(answer.map(BodyExt::boxed_unsync)));
        }
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await;
        let body = body.map_err(kube::Error::Service)?.to_bytes();
        let current = list_version(&body);
        if current.is_some_and(|current| current < resumed_from) {
            let current = current.unwrap_or(resumed_from);
            tracing::warn!(path, shown = %resumed_from, %current, "the API server returned to an older history, as after a restore of etcd");
            self.resumed_from.store(0, Ordering::Relaxed);
            self.went_back.set(true);
            return Ok(Some(expired()));
        }
        self.is_interrupted.store(false, Ordering::Relaxed);
        Ok(None)
    }
}

/// Wraps the body of a watch to notice its end. A watch that this process drops has no end.
fn noticed(body: Body, history: Arc<History>) -> AnyBody {
    let interrupted = move || history.is_interrupted.store(true, Ordering::Relaxed);
    let failed = interrupted.clone();
    let ended = stream::poll_fn(move |_| {
        interrupted();
        std::task::Poll::Ready(None)
    });
    let frames = TryStreamExt::inspect_err(BodyStream::new(body), move |_| failed()).chain(ended);
    StreamBody::new(frames).boxed_unsync()
}

fn expired() -> Response<AnyBody> {
    let body = Full::new(Bytes::from_static(EXPIRED.as_bytes()));
    let mut answer = Response::new(body.map_err(|never| match never {}).boxed_unsync());
    *answer.status_mut() = StatusCode::GONE;
    answer
}

/// A consistent list of the metadata of one object.
fn check_request(path: &str) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    let uri = format!("{path}?limit=1").parse();
    // The path comes from a valid request.
    *request.uri_mut() = uri.unwrap_or_default();
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    let accept = header::HeaderValue::from_static(accept);
    request.headers_mut().insert(header::ACCEPT, accept);
    request
}

fn parameter<'a>(request: &'a Request<Body>, name: &str) -> Option<&'a str> {
    let mut parameters = request.uri().query().unwrap_or_default().split('&');
    parameters.find_map(|parameter| parameter.strip_prefix(name)?.strip_prefix('='))
}

/// Returns the version that a watch resumes from; `None` for other requests.
fn watched_from(request: &Request<Body>) -> Option<ResourceVersion> {
    parameter(request, "watch").filter(|watch| *watch == "true")?;
    parameter(request, "resourceVersion")?.parse().ok().map(ResourceVersion)
}

/// Whether the request is the first page of a consistent list.
fn is_consistent_list(request: &Request<Body>) -> bool {
    let is_free = |name| parameter(request, name).is_none_or(str::is_empty);
    request.method() == Method::GET && ["watch", "resourceVersion", "continue"].into_iter().all(is_free)
}

#[derive(Deserialize)]
struct ListHead {
    metadata: ListVersion,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListVersion {
    resource_version: String,
}

fn list_version(body: &[u8]) -> Option<ResourceVersion> {
    let head: ListHead = serde_json::from_slice(body).ok()?;
    head.metadata.resource_version.parse().ok().map(ResourceVersion)
}

#[cfg(test)]
mod tests;
