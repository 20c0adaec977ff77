//! Limits the size of a page of a list.
//!
//! The API server limits pages by number of objects. 2,000 CronJobs of 1 MiB are 2 GiB, held several times while they
//! are decoded. A page larger than [`PAGE_BYTES_MAX`] is dropped and requested again with a lower limit, which later
//! pages of the same list keep until pages are small again.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use kube::{Client, client::Body};

use crate::kube_api::page_sizes::PAGE_BYTES_MAX;

/// Divisor for the next limit: 2,000 objects of 1.5 MiB, the maximum that etcd stores, need three steps.
const LIMIT_DIVISOR: u32 = 8;

/// The lowered limits of lists by path. Clones share them.
#[derive(Clone, Default)]
struct Limits(Arc<Mutex<HashMap<String, u32>>>);

/// Wraps a client so that the pages of its lists are bounded.
pub fn bounded_pages(client: Client) -> Client {
    let default_namespace = client.default_namespace().to_owned();
    let limits = Limits::default();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, limits) = (client.clone(), limits.clone());
        async move {
            match requested_limit(&request) {
                Some(requested) => list(&client, request, requested, &limits).await,
                None => client.send(request).await,
            }
        }
    });
    Client::new(service, default_namespace)
}

async fn list(
    client: &Client,
    request: Request<Body>,
    requested: u32,
    limits: &Limits,
) -> kube::Result<Response<Body>> {
    let (parts, _) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let mut limit = limits.of(&path).min(requested);
    loop {
        let mut parts = parts.clone();
        parts.uri = with_limit(&parts.uri, limit)?;
        let response = client.send(Request::from_parts(parts, Body::empty())).await?;
        // etcd limits the size of a single object.
        if limit == 1 || !response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        match Limited::new(body, PAGE_BYTES_MAX).collect().await {
            Ok(body) => {
                let body = body.to_bytes();
                limits.note(&path, limit, body.len());
                return Ok(Response::from_parts(head, Body::from(body)));
            }
            Err(error) if error.is::<LengthLimitError>() => {
                limit = (limit / LIMIT_DIVISOR).max(1);
                limits.lower(&path, limit);
            }
            Err(error) => return Err(kube::Error::Service(error)),
        }
    }
}

impl Limits {
    fn of(&self, path: &str) -> u32 {
        self.with(|limits| limits.get(path).copied().unwrap_or(u32::MAX))
    }

    fn lower(&self, path: &str, limit: u32) {
        self.with(|limits| limits.insert(path.to_owned(), limit));
    }

    /// Raises a lowered limit after a small page.
    fn note(&self, path: &str, limit: u32, n_bytes: usize) {
        if n_bytes < PAGE_BYTES_MAX / 4 {
            self.with(|limits| {
                if let Some(lowered) = limits.get_mut(path) {
                    *lowered = limit.saturating_mul(2).max(*lowered);
                }
            });
        }
    }

    fn with<T>(&self, access: impl FnOnce(&mut HashMap<String, u32>) -> T) -> T {
        access(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Returns the limit of a request for a page of a list; `None` for other requests.
fn requested_limit(request: &Request<Body>) -> Option<u32> {
    let query = request.uri().query().unwrap_or_default();
    let is_list = request.method() == Method::GET && query.split('&').all(|parameter| parameter != "watch=true");
    let limit = query.split('&').find_map(|parameter| parameter.strip_prefix("limit="));
    limit.filter(|_| is_list)?.parse().ok()
}

fn with_limit(uri: &Uri, limit: u32) -> kube::Result<Uri> {
    let query = uri.query().unwrap_or_default().split('&');
    let parameters = query.map(|parameter| match parameter.strip_prefix("limit=") {
        Some(_) => format!("limit={limit}"),
        None => parameter.to_owned(),
    });
    let query = parameters.collect::<Vec<_>>().join("&");
    let path = format!("{}?{query}", uri.path());
    let mut parts = uri.clone().into_parts();
    let parsed = path.parse().map_err(http::Error::from);
    parts.path_and_query = Some(parsed.map_err(kube::Error::HttpError)?);
    Uri::from_parts(parts).map_err(|error| kube::Error::HttpError(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server with objects of one size, and the limits that it received.
    fn server(object_bytes: usize) -> (Client, Arc<Mutex<Vec<u32>>>) {
        let limits = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&limits);
        let service = tower::service_fn(move |request: Request<Body>| {
            let limit = requested_limit(&request).unwrap_or_default();
            recorded.lock().unwrap().push(limit);
            let body = Body::from(vec![b'x'; limit as usize * object_bytes]);
            async move { Ok::<_, kube::Error>(Response::new(body)) }
        });
        (Client::new(service, "default"), limits)
    }

    async fn page(client: &Client, query: &str) -> usize {
        let uri = format!("https://kubernetes.default.svc/apis/batch/v1/cronjobs?{query}");
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let body = client.send(request).await.unwrap().into_body();
        body.collect().await.unwrap().to_bytes().len()
    }

    #[tokio::test]
    async fn a_page_is_bounded_in_size_and_lowers_the_next_limit() {
        let (client, limits) = server(256 << 10);
        let client = bounded_pages(client);
        for _ in 0..3 {
            assert!(page(&client, "labelSelector=a%3Db&limit=500&continue=x").await <= PAGE_BYTES_MAX);
        }
        assert_eq!(*limits.lock().unwrap(), [500, 62, 62, 62]);
    }

    #[tokio::test]
    async fn a_lowered_limit_rises_to_the_requested_limit() {
        let (client, requested) = server(1 << 10);
        let limits = Limits::default();
        limits.lower("/apis/batch/v1/cronjobs", 100);
        for _ in 0..4 {
            let uri = "https://kubernetes.default.svc/apis/batch/v1/cronjobs?limit=500";
            let request = Request::get(uri).body(Body::empty()).unwrap();
            list(&client, request, 500, &limits).await.unwrap();
        }
        assert_eq!(*requested.lock().unwrap(), [100, 200, 400, 500]);
    }

    #[tokio::test]
    async fn watches_and_single_objects_pass_unchanged() {
        let (client, limits) = server(0);
        let client = bounded_pages(client);
        page(&client, "watch=true&limit=500").await;
        page(&client, "").await;
        page(&client, "limit=500").await;
        assert_eq!(*limits.lock().unwrap(), [0, 0, 500]);
    }
}
