//! Converts results to HTTP responses.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{ApiBody, form::Form};
use crate::{
    Resource,
    failure::{Failure, NO_PODS},
    json::to_json,
    objects::{table, times},
};

/// The result of a request, before it is converted to an HTTP response.
pub(super) enum Reply {
    Failure(Failure),
    /// JSON or text that is not an object.
    Document(StatusCode, &'static str, Bytes),
    /// An object, with warnings for the client.
    Object(StatusCode, Resource, Bytes, Vec<String>),
    List(List),
    /// The list of Pods at this version, which is empty.
    NoPods(u64),
    Watch(ApiBody),
}

/// A list, not yet in the format that the client requests.
pub(super) struct List {
    pub(super) resource: Resource,
    pub(super) version: u64,
    pub(super) continue_token: String,
    pub(super) n_remaining: Option<usize>,
    pub(super) items: Vec<Bytes>,
}

impl Reply {
    pub(super) fn into_response(self, now: Timestamp, form: Form) -> Response<ApiBody> {
        let (mut retry_after, mut response_warnings) = (None, Vec::new());
        let (code, content_type, body) = match self {
            Reply::Failure(failure) => {
                retry_after = failure.retry_after_seconds;
                (failure.code, JSON, ApiBody::whole(to_json(&failure.status())))
            }
            Reply::Document(code, content_type, bytes) => (code, content_type, ApiBody::whole(bytes)),
            Reply::Object(code, resource, bytes, warnings) => {
                response_warnings = warnings;
                (code, JSON, ApiBody::whole(form.object(resource, bytes, now)))
            }
            Reply::List(list) => (StatusCode::OK, JSON, ApiBody::whole(list.json(form, now))),
            Reply::NoPods(version) => {
                response_warnings = vec![NO_PODS.to_owned()];
                let metadata = json!({"resourceVersion": version.to_string()});
                let list = json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": []});
                (StatusCode::OK, JSON, ApiBody::whole(to_json(&list)))
            }
            Reply::Watch(body) => (StatusCode::OK, JSON, body),
        };
        let mut response = Response::new(body);
        *response.status_mut() = code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        let date = times::http_date(now).and_then(|date| HeaderValue::from_maybe_shared(Bytes::from(date)).ok());
        if let Some(date) = date {
            headers.insert(header::DATE, date);
        }
        for warning in response_warnings {
            if let Ok(text) = HeaderValue::from_str(&format!("299 - {warning:?}")) {
                headers.append(header::WARNING, text);
            }
        }
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

const JSON: &str = "application/json";

impl List {
    fn json(&self, form: Form, now: Timestamp) -> Bytes {
        match form {
            Form::Whole => {
                let head = format!(
                    r#"{{"kind":"{}List","apiVersion":"{}""#,
                    self.resource.kind(),
                    self.resource.api_version()
                );
                joined(&head, &self.metadata(), &self.items)
            }
            Form::Partial => {
                let head = r#"{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1""#;
                let items: Vec<_> = self
                    .items
                    .iter()
                    .map(|item| form.object(self.resource, item.clone(), now))
                    .collect();
                joined(head, &self.metadata(), &items)
            }
            Form::Table(include) => {
                let items: Vec<Value> = self
                    .items
                    .iter()
                    .filter_map(|item| serde_json::from_slice(item).ok())
                    .collect();
                let mut table = table::render_with(self.resource, &items, include, now);
                table["metadata"] = self.metadata();
                to_json(&table)
            }
        }
    }

    fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.version.to_string()});
        if !self.continue_token.is_empty() {
            metadata["continue"] = self.continue_token.as_str().into();
        }
        if let Some(n_remaining) = self.n_remaining {
            metadata["remainingItemCount"] = n_remaining.into();
        }
        metadata
    }
}

/// Builds the JSON of a list from its parts.
fn joined(head: &str, metadata: &Value, items: &[Bytes]) -> Bytes {
    let size: usize = items.iter().map(|item| item.len() + 1).sum();
    let mut text = Vec::with_capacity(size + 256);
    text.extend_from_slice(head.as_bytes());
    text.extend_from_slice(format!(r#","metadata":{metadata},"items":["#).as_bytes());
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        text.extend_from_slice(item);
    }
    text.extend_from_slice(b"]}");
    text.into()
}
