//! Observes the requests of a watch, and its signs of life: lists, events and bookmarks.

use http::Request;
use http_body_util::BodyExt;
use kube::{Client, client::Body};

/// The requests of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchRequest {
    /// A page of a list.
    List,
    /// The opening of a watch.
    Watch,
}

/// The observer of a watch.
pub trait WatchObserver: Clone + Send + Sync + 'static {
    /// Called before a request. The returned function receives the HTTP status of the answer, or `None` without an
    /// answer.
    fn on_request(&self, request: WatchRequest) -> impl FnOnce(Option<u16>) + Send + 'static;

    /// Called for each sign of life: the beginning or a part of a successful answer. A list of one object, which asks
    /// for the current version, is none: it succeeds while every watch fails.
    fn on_activity(&self);
}

/// Wraps the client of one watch with an observer. Requires a tokio runtime.
pub fn observed(client: Client, observer: impl WatchObserver) -> Client {
    let default_namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, observer) = (client.clone(), observer.clone());
        async move {
            let answered = observer.on_request(kind(&request));
            let asks_for_version = has_parameter(&request, "limit=1");
            let answer = client.send(request).await;
            answered(answer.as_ref().ok().map(|answer| answer.status().as_u16()));
            let answer = answer?;
            let is_sign_of_life = answer.status().is_success() && !asks_for_version;
            let observer = is_sign_of_life.then_some(observer);
            let report_activity = move || {
                if let Some(observer) = &observer {
                    observer.on_activity();
                }
            };
            report_activity();
            Ok::<_, kube::Error>(answer.map(|body| {
                body.map_frame(move |frame| {
                    report_activity();
                    frame
                })
            }))
        }
    });
    Client::new(service, default_namespace)
}

fn kind(request: &Request<Body>) -> WatchRequest {
    if has_parameter(request, "watch=true") {
        WatchRequest::Watch
    } else {
        WatchRequest::List
    }
}

fn has_parameter(request: &Request<Body>, wanted: &str) -> bool {
    let mut parameters = request.uri().query().unwrap_or_default().split('&');
    parameters.any(|parameter| parameter == wanted)
}
