//! Answers as HTTP responses.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use jiff::Timestamp;
use serde_json::Value;

use super::ApiBody;
use crate::{failure::Failure, resource::Resource, rules};

/// What a request comes to.
pub(super) enum Answer {
    Failure(Failure),
    /// JSON, or text, that is no object.
    Document(StatusCode, &'static str, Bytes),
    Object(StatusCode, Resource, Bytes),
    List(List),
    Watch(ApiBody),
}

/// A list, not yet in the form that the client wants.
pub(super) struct List {
    pub(super) resource: Resource,
    pub(super) version: u64,
    pub(super) continue_token: String,
    pub(super) n_remaining: Option<usize>,
    pub(super) items: Vec<Bytes>,
}

/// Whether the client wants rows and columns.
pub(super) fn wants_table(headers: &HeaderMap) -> bool {
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let is_table = |part: &str| part.contains("as=Table") && part.contains("v=v1") && !part.contains("v=v1beta1");
    accept.split(',').any(is_table)
}

impl Answer {
    pub(super) fn into_response(self, now: Timestamp, is_table: bool) -> Response<ApiBody> {
        let mut retry_after = None;
        let (code, content_type, body) = match self {
            Answer::Failure(failure) => {
                retry_after = failure.retry_after_seconds;
                (failure.code, JSON, ApiBody::whole(to_json(&failure.status())))
            }
            Answer::Document(code, content_type, bytes) => (code, content_type, ApiBody::whole(bytes)),
            Answer::Object(code, resource, bytes) if is_table => {
                (code, JSON, ApiBody::whole(to_json(&table(resource, &[bytes], now))))
            }
            Answer::Object(code, _, bytes) => (code, JSON, ApiBody::whole(bytes)),
            Answer::List(list) if is_table => (StatusCode::OK, JSON, ApiBody::whole(list.table(now))),
            Answer::List(list) => (StatusCode::OK, JSON, ApiBody::whole(list.json())),
            Answer::Watch(body) => (StatusCode::OK, JSON, body),
        };
        let mut response = Response::new(body);
        *response.status_mut() = code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        if let Ok(date) = HeaderValue::from_str(&now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()) {
            headers.insert(header::DATE, date);
        }
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

const JSON: &str = "application/json";

impl List {
    fn json(&self) -> Bytes {
        let size: usize = self.items.iter().map(|item| item.len() + 1).sum();
        let mut text = Vec::with_capacity(size + 256);
        let head = format!(
            r#"{{"kind":"{}List","apiVersion":"{}","metadata":{},"items":["#,
            self.resource.kind(),
            self.resource.api_version(),
            self.metadata()
        );
        text.extend_from_slice(head.as_bytes());
        for (at, item) in self.items.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            text.extend_from_slice(item);
        }
        text.extend_from_slice(b"]}");
        text.into()
    }

    fn metadata(&self) -> Value {
        let mut metadata = serde_json::json!({"resourceVersion": self.version.to_string()});
        if !self.continue_token.is_empty() {
            metadata["continue"] = self.continue_token.as_str().into();
        }
        if let Some(n_remaining) = self.n_remaining {
            metadata["remainingItemCount"] = n_remaining.into();
        }
        metadata
    }

    fn table(&self, now: Timestamp) -> Bytes {
        let mut table = table(self.resource, &self.items, now);
        table["metadata"] = self.metadata();
        to_json(&table)
    }
}

/// Objects as rows.
pub(super) fn table(resource: Resource, items: &[Bytes], now: Timestamp) -> Value {
    let items: Vec<Value> = items
        .iter()
        .filter_map(|item| serde_json::from_slice(item).ok())
        .collect();
    let mut table = rules::table(resource, &items, now);
    if let [item] = items.as_slice() {
        table["metadata"]["resourceVersion"] = item["metadata"]["resourceVersion"].clone();
    }
    table
}

pub(super) fn to_json(value: &Value) -> Bytes {
    // Writing a value to memory does not fail.
    serde_json::to_vec(value).unwrap_or_default().into()
}
