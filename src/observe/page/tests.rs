//! Tests of the page over an invented fleet.

mod fixture;
mod markup;
mod parts;
mod safety;
mod sizes;

use std::sync::Arc;

use axum::{
    Router,
    body::Body,
    http::{HeaderMap, Request, StatusCode},
};
use tower::ServiceExt;

use self::fixture::Fleet;
use super::{allowed_hosts, router};

const HOST: &str = "localhost:8080";

/// An answer with its text.
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
}

fn app(fleet: Fleet) -> Router {
    let hosts = allowed_hosts("127.0.0.1:8080".parse().unwrap(), &[]).unwrap();
    router(Arc::new(fleet), hosts)
}

async fn send(app: &Router, request: Request<Body>) -> Answer {
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    Answer {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8(bytes.into()).unwrap(),
    }
}

async fn get(app: &Router, uri: &str) -> Answer {
    let request = Request::get(uri).header("host", HOST).body(Body::empty()).unwrap();
    send(app, request).await
}

/// Serves the invented fleet to a browser, if `CRONWHEEL_SERVE_PAGE` has an address. Its version changes every second.
#[tokio::test]
async fn serves_the_page_if_asked() {
    let Ok(address) = std::env::var("CRONWHEEL_SERVE_PAGE") else {
        return;
    };
    let listener = tokio::net::TcpListener::bind(&address).await.unwrap();
    let hosts = allowed_hosts(listener.local_addr().unwrap(), &[]).unwrap();
    let fleet = if std::env::var_os("CRONWHEEL_SERVE_LARGE").is_some() {
        fixture::large()
    } else {
        fixture::small()
    };
    let version = fleet.version.clone();
    let serve = axum::serve(listener, router(Arc::new(fleet), hosts));
    let change = async {
        let mut seconds = tokio::time::interval(std::time::Duration::from_secs(1));
        loop {
            seconds.tick().await;
            version.update(|version| version + 1);
        }
    };
    tokio::select! {
        result = serve.into_future() => result.unwrap(),
        () = change => {}
    }
}
