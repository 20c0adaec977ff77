//! Requests and answers as bytes, each with a timeout.

use std::time::Duration;

use http::{Method, header};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;

use crate::kube_api::{
    http::{ServerDate, USER_AGENT, retry_after, server_date},
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
    /// The answer was late or missing.
    #[error("no answer within {} ms", .0.as_millis())]
    Timeout(Duration),
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
    pub(super) fn lives(mut self, timeout: Duration) -> Request {
        let separator = if self.path_and_query.contains('?') { '&' } else { '?' };
        // Zero would mean no timeout.
        let millis = timeout.as_millis().max(1);
        self.path_and_query = format!("{}{separator}timeout={millis}ms", self.path_and_query);
        self
    }

    fn build(self) -> Result<http::Request<Body>, http::Error> {
        let mut request = http::Request::builder()
            .method(self.method)
            .uri(self.path_and_query)
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, USER_AGENT);
        if let Some(content_type) = self.content_type {
            request = request.header(header::CONTENT_TYPE, content_type);
        }
        request.body(Body::from(self.body))
    }
}

/// An answer.
pub(super) struct ReceivedAnswer {
    pub(super) answer: RawAnswer,
    pub(super) server_date: Option<ServerDate>,
}

/// A client for whole answers. Cheap to clone.
#[derive(Clone)]
pub(super) struct Exchange {
    client: kube::Client,
}

impl Exchange {
    pub(super) fn new(client: kube::Client) -> Exchange {
        Exchange { client }
    }

    /// Sends a request and reads the whole answer.
    pub(super) async fn send(
        &self,
        request: Request,
        body_max_bytes: usize,
        timeout: Duration,
    ) -> Result<ReceivedAnswer, ExchangeError> {
        let exchange = async {
            let (parts, body) = self.begin(request).await?.into_parts();
            let body = Limited::new(body, body_max_bytes);
            let body = body.collect().await.map_err(ExchangeError::Body)?.to_bytes();
            Ok(ReceivedAnswer {
                answer: RawAnswer {
                    status: parts.status,
                    retry_after: retry_after(&parts.headers),
                    body,
                },
                server_date: server_date(&parts),
            })
        };
        match tokio::time::timeout(timeout, exchange).await {
            Ok(sent) => sent,
            Err(_) => Err(ExchangeError::Timeout(timeout)),
        }
    }

    /// Sends a request and returns the head of the answer, with the body still to be read.
    pub(super) async fn begin(&self, request: Request) -> Result<http::Response<Body>, ExchangeError> {
        let request = request.build().map_err(ExchangeError::Request)?;
        self.client.send(request).await.map_err(ExchangeError::Transport)
    }
}
