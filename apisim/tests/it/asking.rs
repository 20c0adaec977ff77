//! Requests to a client's service, in process.

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

/// Code and JSON; none where the connection broke.
pub(crate) async fn try_ask(service: &ApiService, method: &str, path: &str, body: &Value) -> Option<(u16, Value)> {
    let response = send(service, method, path, body).await.ok()?;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.ok()?.to_bytes();
    Some((code, serde_json::from_slice(&body).unwrap()))
}

pub(crate) async fn ask(service: &ApiService, method: &str, path: &str, body: &Value) -> (u16, Value) {
    try_ask(service, method, path, body).await.unwrap()
}

pub(crate) async fn watch(service: &ApiService, path: &str) -> ApiBody {
    send(service, "GET", path, &Value::Null).await.unwrap().into_body()
}

/// Creates a config map; the code, or none where the connection broke.
pub(crate) async fn create(service: &ApiService, name: &str) -> Option<u16> {
    let object = json!({"metadata": {"name": name}});
    try_ask(service, "POST", MAPS, &object).await.map(|(code, _)| code)
}

pub(crate) async fn names(service: &ApiService, query: &str) -> Vec<String> {
    let (code, list) = ask(service, "GET", &format!("{MAPS}?{query}"), &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

/// What a watch says next, if it says anything within a time: an event, its end, a broken connection.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    Event(String, Value),
    End,
    Broken,
    Nothing,
}

impl Said {
    /// The name of the object of an event.
    pub(crate) fn name(&self) -> &str {
        match self {
            Said::Event(_, object) => object["metadata"]["name"].as_str().unwrap(),
            Said::End | Said::Broken | Said::Nothing => panic!("{self:?}"),
        }
    }
}

pub(crate) async fn next(body: &mut ApiBody, within: Duration) -> Said {
    match timeout(within, body.frame()).await {
        Err(_) => Said::Nothing,
        Ok(None) => Said::End,
        Ok(Some(Err(ConnectionLost))) => Said::Broken,
        Ok(Some(Ok(frame))) => {
            let event: Value = serde_json::from_slice(&frame.into_data().unwrap()).unwrap();
            Said::Event(event["type"].as_str().unwrap().to_owned(), event["object"].clone())
        }
    }
}
