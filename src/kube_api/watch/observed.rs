//! Observes the signs of life of a watch: lists, events and bookmarks.

use http::Request;
use http_body_util::BodyExt;
use kube::{Client, client::Body};

/// Wraps the client of one watch. `on_activity` is called for each sign of life: the beginning or a part of a successful
/// answer. A list of one object, which asks for the current version, is none: it succeeds while every watch fails.
/// Requires a tokio runtime.
pub fn observed(client: Client, on_activity: impl Fn() + Clone + Send + Sync + 'static) -> Client {
    let default_namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, on_activity) = (client.clone(), on_activity.clone());
        async move {
            let asks_for_version = asks_for_version(&request);
            let answer = client.send(request).await?;
            let is_sign_of_life = answer.status().is_success() && !asks_for_version;
            let report_activity = move || {
                if is_sign_of_life {
                    on_activity();
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

/// Whether the request is a list of one object. A later page of another list may have the same limit.
pub(super) fn asks_for_version(request: &Request<Body>) -> bool {
    let parameters = || request.uri().query().unwrap_or_default().split('&');
    let is_continued = parameters().any(|parameter| parameter.starts_with("continue="));
    !is_continued && parameters().any(|parameter| parameter == "limit=1")
}
