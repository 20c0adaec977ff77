//! Requests and whole answers as bytes, each with a timeout. Nothing is retried.

use std::time::Duration;

use http::{HeaderMap, Method, header, response::Parts};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use jiff::fmt::rfc2822;
use kube::client::Body;

use super::{
    http::{ApiConnection, ServerDate, USER_AGENT},
    objects::classify::RawAnswer,
};

/// The reasons why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ExchangeError {
    /// The request is not valid HTTP.
    #[error("the request cannot be built")]
    Request(#[source] http::Error),
    /// There is no connection, or it failed.
    #[error("the API server cannot be reached")]
    Transport(#[source] kube::Error),
    /// The answer began and ended early.
    #[error("the answer ended early")]
    Body(#[source] tower::BoxError),
    /// The answer is larger than its maximum.
    #[error("the answer is too long to be read")]
    TooLong(#[source] tower::BoxError),
    /// The answer was late or missing.
    #[error("no answer within {} seconds", .0.as_secs_f32())]
    Timeout(Duration),
}

impl ExchangeError {
    fn of_body(error: tower::BoxError) -> ExchangeError {
        if error.is::<LengthLimitError>() {
            ExchangeError::TooLong(error)
        } else {
            ExchangeError::Body(error)
        }
    }
}

/// A request builder.
pub(super) struct Request {
    method: Method,
    path_and_query: String,
    content_type: Option<&'static str>,
    body: Vec<u8>,
}

impl Request {
    pub(super) fn new(method: Method, path_and_query: String) -> Request {
        Request {
            method,
            path_and_query,
            content_type: None,
            body: Vec::new(),
        }
    }

    pub(super) fn json(self, body: Vec<u8>) -> Request {
        Request {
            content_type: Some("application/json"),
            body,
            ..self
        }
    }

    pub(super) fn merge_patch(self, body: Vec<u8>) -> Request {
        Request {
            content_type: Some("application/merge-patch+json"),
            body,
            ..self
        }
    }

    /// Sets the timeout after which the server gives up the request.
    pub(super) fn with_server_timeout(mut self, timeout: Duration) -> Request {
        let separator = if self.path_and_query.contains('?') { '&' } else { '?' };
        // Zero would mean no timeout.
        let millis = timeout.as_millis().max(1);
        self.path_and_query = format!("{}{separator}timeout={millis}ms", self.path_and_query);
        self
    }

    /// Builds the request for a method of `kube`.
    pub(super) fn build(self) -> Result<http::Request<Vec<u8>>, ExchangeError> {
        let mut request = http::Request::builder()
            .method(self.method)
            .uri(self.path_and_query)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, USER_AGENT);
        if let Some(content_type) = self.content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        request.body(self.body).map_err(ExchangeError::Request)
    }
}

/// Sends a request and reads the whole answer.
pub(super) async fn send(
    client: &kube::Client,
    request: Request,
    body_max_bytes: usize,
    timeout: Duration,
) -> Result<RawAnswer, ExchangeError> {
    let exchange = async {
        let request = request.build()?.map(Body::from);
        let answer = client.send(request).await.map_err(ExchangeError::Transport)?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, body_max_bytes).collect().await;
        Ok(RawAnswer {
            status: parts.status,
            retry_after: retry_after(&parts.headers),
            server_date: server_date(&parts),
            body: body.map_err(ExchangeError::of_body)?.to_bytes(),
        })
    };
    let answer = tokio::time::timeout(timeout, exchange).await;
    answer.unwrap_or(Err(ExchangeError::Timeout(timeout)))
}

/// Returns the seconds of `Retry-After`; `None` if the header is a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Returns the `Date` of an answer and its connection.
fn server_date(response: &Parts) -> Option<ServerDate> {
    static PARSER: rfc2822::DateTimeParser = rfc2822::DateTimeParser::new();
    let date = response.headers.get(header::DATE)?;
    Some(ServerDate {
        at: PARSER.parse_timestamp(date.as_bytes()).ok()?,
        connection: response.extensions.get::<ApiConnection>().cloned(),
    })
}
