//! Requests of commands: any path, JSON bodies and whole answers. Nothing is retried.

use std::time::Duration;

use http::Method;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    access_review::{self, AccessRequest},
    exchange::{ExchangeError, Request, send},
    objects::{
        classify::{RawAnswer, Refusal},
        encode::to_bytes,
    },
    page_sizes::{PAGE_BYTES_MAX, PAGE_SIZE},
    paths::push_segment,
};

/// Timeout of a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of pages of one list: more objects than an API server can hold.
const PAGES_MAX: usize = 10_000;

/// A client for objects as JSON. Cheap to clone.
#[derive(Clone)]
pub struct JsonApi {
    client: kube::Client,
}

/// An answer.
#[derive(Clone, Debug)]
pub struct JsonAnswer {
    /// The body.
    pub body: Value,
    /// The `Date` header: the time of the API server, in whole seconds.
    pub date: Option<Timestamp>,
}

/// The reasons why a request did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum JsonError {
    /// The server refused the request.
    #[error("{message} ({code})")]
    Refused {
        /// The HTTP status.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// There is no answer.
    #[error("the API server does not answer")]
    Unanswered(#[from] ExchangeError),
    /// The answer is not JSON.
    #[error("the answer is not JSON")]
    Unreadable(#[from] serde_json::Error),
}

impl JsonError {
    /// The HTTP status of a refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            JsonError::Refused { code, .. } => Some(*code),
            JsonError::Unanswered(_) | JsonError::Unreadable(_) => None,
        }
    }
}

impl JsonApi {
    /// Creates a client over these connections.
    pub fn new(client: kube::Client) -> JsonApi {
        JsonApi { client }
    }

    /// Reads a document or an object.
    pub async fn get(&self, path: &str) -> Result<JsonAnswer, JsonError> {
        self.exchange(Request::new(Method::GET, path.to_owned())).await
    }

    /// Creates an object in the collection of the path.
    pub async fn create(&self, path: &str, object: &Value) -> Result<JsonAnswer, JsonError> {
        let request = Request::new(Method::POST, path.to_owned()).json(to_bytes(object));
        self.exchange(request).await
    }

    /// Changes the object of the path by a merge patch.
    pub async fn merge_patch(&self, path: &str, change: &Value) -> Result<JsonAnswer, JsonError> {
        let request = Request::new(Method::PATCH, path.to_owned()).merge_patch(to_bytes(change));
        self.exchange(request).await
    }

    /// Deletes the object of the path.
    pub async fn delete(&self, path: &str) -> Result<JsonAnswer, JsonError> {
        let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"});
        let request = Request::new(Method::DELETE, path.to_owned()).json(to_bytes(&options));
        self.exchange(request).await
    }

    /// Reads a list page by page. `query` is empty or consists of parameters.
    pub async fn list(&self, path: &str, query: &str, mut take: impl FnMut(Value)) -> Result<(), JsonError> {
        let separator = if query.is_empty() { "" } else { "&" };
        let first = format!("{path}?limit={PAGE_SIZE}{separator}{query}");
        let mut next = first.clone();
        for _ in 0..PAGES_MAX {
            let page = self.get(&next).await?.body;
            let token = page.pointer("/metadata/continue").and_then(Value::as_str);
            next = first.clone() + "&continue=";
            push_segment(&mut next, token.unwrap_or_default());
            let is_last = token.unwrap_or_default().is_empty();
            take(page);
            if is_last {
                break;
            }
        }
        Ok(())
    }

    /// Reviews whether the account may make a kind of request.
    pub async fn may(&self, access: &AccessRequest<'_>) -> Result<bool, JsonError> {
        let request = Request::new(Method::POST, access_review::PATH.to_owned()).json(access_review::body(access));
        let answer = self.exchange(request).await?;
        Ok(access_review::Review::deserialize(&answer.body)?.status.allowed)
    }

    async fn exchange(&self, request: Request) -> Result<JsonAnswer, JsonError> {
        let bytes_max = usize::try_from(PAGE_BYTES_MAX).unwrap_or(usize::MAX);
        let answer = send(&self.client, request, bytes_max, ANSWER_TIMEOUT).await?;
        if !answer.status.is_success() {
            return Err(refused(&answer));
        }
        Ok(JsonAnswer {
            body: serde_json::from_slice(&answer.body)?,
            date: answer.server_date.map(|date| date.at),
        })
    }
}

fn refused(answer: &RawAnswer) -> JsonError {
    JsonError::Refused {
        code: answer.status.as_u16(),
        message: Refusal::read(answer).message,
    }
}
