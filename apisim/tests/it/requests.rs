//! Requests to the service in process.

use std::time::Duration;

use apisim::{ApiBody, ApiService, ConnectionLost};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::ServiceExt as _;

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) async fn send(
    service: &ApiService,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<Response<ApiBody>, ConnectionLost> {
    let body = if body.is_null() {
        Bytes::new()
    } else {
        serde_json::to_vec(body).unwrap().into()
    };
    let mut request = Request::builder().method(method).uri(path);
    if method == "PATCH" {
        request = request.header("Content-Type", "application/merge-patch+json");
    }
    service.clone().oneshot(request.body(Full::new(body)).unwrap()).await
}

/// Sends a request. Returns the code and the JSON body, or `None` if the connection broke.
pub(crate) async fn try_request(service: &ApiService, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
    let response = send(service, method, path, body).await.ok()?;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.ok()?.to_bytes();
    Some((code, serde_json::from_slice(&body).unwrap()))
}

pub(crate) async fn request(service: &ApiService, method: &str, path: &str, body: &Value) -> (u16, Value) {
    try_request(service, method, path, body).await.unwrap()
}

pub(crate) async fn watch(service: &ApiService, path: &str) -> ApiBody {
    send(service, "GET", path, &Value::Null).await.unwrap().into_body()
}

/// Creates a `ConfigMap`. Returns the code, or `None` if the connection broke.
pub(crate) async fn create(service: &ApiService, name: &str) -> Option<u16> {
    let object = json!({"metadata": {"name": name}});
    try_request(service, "POST", MAPS, &object).await.map(|(code, _)| code)
}

pub(crate) async fn names(service: &ApiService, query: &str) -> Vec<String> {
    let (code, list) = request(service, "GET", &format!("{MAPS}?{query}"), &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

/// The next item of a watch.
#[derive(Debug, PartialEq)]
pub(crate) enum WatchItem {
    /// The type and the object of an event.
    Event(String, Value),
    /// The watch ended.
    End,
    /// The connection broke.
    Broken,
    /// The watch sent nothing in time.
    TimedOut,
}

impl WatchItem {
    /// Returns the name of the object of an event.
    pub(crate) fn name(&self) -> &str {
        match self {
            WatchItem::Event(_, object) => object["metadata"]["name"].as_str().unwrap(),
            WatchItem::End | WatchItem::Broken | WatchItem::TimedOut => panic!("{self:?}"),
        }
    }
}

/// Waits for the next item of a watch.
pub(crate) async fn next(body: &mut ApiBody, within: Duration) -> WatchItem {
    match timeout(within, body.frame()).await {
        Err(_) => WatchItem::TimedOut,
        Ok(None) => WatchItem::End,
        Ok(Some(Err(ConnectionLost))) => WatchItem::Broken,
        Ok(Some(Ok(frame))) => {
            let event: Value = serde_json::from_slice(&frame.into_data().unwrap()).unwrap();
            WatchItem::Event(event["type"].as_str().unwrap().to_owned(), event["object"].clone())
        }
    }
}
