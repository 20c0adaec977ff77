//! What a watch asks of the API server and when it hears of it, told to an observer: `kube`'s watcher keeps to itself
//! which requests it makes and that there were bookmarks.

use http::Request;
use http_body_util::BodyExt;
use kube::{Client, client::Body};

/// The kinds of request that a watch is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchRequest {
    /// One page of a list.
    List,
    /// The opening of a watch.
    Watch,
}

/// Who is told.
pub trait WatchObserver: Clone + Send + Sync + 'static {
    /// A request goes out. What is given back is told how it was answered: the HTTP status, none where there was no answer.
    fn asked(&self, request: WatchRequest) -> impl FnOnce(Option<u16>) + Send + 'static;

    /// A sign of life: the beginning or a part of an answer that is no refusal.
    fn heard(&self);
}

/// The client for one watch: the same connections, observed. Within a tokio runtime only.
pub fn observed(client: Client, observer: impl WatchObserver) -> Client {
    let default_namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, observer) = (client.clone(), observer.clone());
        async move {
            let answered = observer.asked(kind(&request));
            let answer = client.send(request).await;
            answered(answer.as_ref().ok().map(|answer| answer.status().as_u16()));
            let answer = answer?;
            let observer = answer.status().is_success().then_some(observer);
            let hear = move || {
                if let Some(observer) = &observer {
                    observer.heard();
                }
            };
            hear();
            Ok::<_, kube::Error>(answer.map(|body| {
                body.map_frame(move |frame| {
                    hear();
                    frame
                })
            }))
        }
    });
    Client::new(service, default_namespace)
}

fn kind(request: &Request<Body>) -> WatchRequest {
    let mut parameters = request.uri().query().unwrap_or_default().split('&');
    if parameters.any(|parameter| parameter == "watch=true") {
        WatchRequest::Watch
    } else {
        WatchRequest::List
    }
}
