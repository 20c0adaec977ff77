//! Requests to an API server and the handling of its responses, tested against an in-memory service.
#![allow(clippy::unwrap_used, reason = "tests")]

mod api;
mod connections;
mod leases;
mod proxy;
mod tls;
mod watch;

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use kube::{Client, client::Body};
use serde_json::{Value, json};

/// A received request.
struct Received {
    method: Method,
    path_and_query: String,
    headers: HeaderMap,
    body: Bytes,
}

impl Received {
    fn line(&self) -> String {
        format!("{} {}", self.method, self.path_and_query)
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A mock API server. It returns prepared responses in order and records the requests. When no response is left,
/// requests stay unanswered.
#[derive(Clone, Default)]
struct Script {
    responses: Arc<Mutex<VecDeque<Response<Full<Bytes>>>>>,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Script {
    fn respond(self, code: u16, body: impl Into<Bytes>) -> Script {
        self.respond_with(code, &[], body)
    }

    fn respond_with(self, code: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Script {
        let mut response = Response::builder().status(code);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let response = response.body(Full::new(body.into())).unwrap();
        self.responses.lock().unwrap().push_back(response);
        self
    }

    fn client(&self) -> Client {
        let script = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let script = script.clone();
            async move {
                script.receive(request).await;
                let response = script.responses.lock().unwrap().pop_front();
                match response {
                    Some(response) => Ok::<_, Infallible>(response),
                    None => std::future::pending().await,
                }
            }
        });
        Client::new(service, "default")
    }

    async fn receive(&self, request: Request<Body>) {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        self.received.lock().unwrap().push(Received {
            method: parts.method,
            path_and_query: parts.uri.path_and_query().unwrap().to_string(),
            headers: parts.headers,
            body,
        });
    }

    fn lines(&self) -> Vec<String> {
        self.received.lock().unwrap().iter().map(Received::line).collect()
    }

    fn only(&self) -> Received {
        let mut received = self.received.lock().unwrap();
        assert_eq!(received.len(), 1);
        received.remove(0)
    }
}

/// Returns the `Status` object of a failure.
fn status(code: u16, reason: &str, message: &str) -> String {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code})
    .to_string()
}
