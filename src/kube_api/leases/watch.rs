//! One watch of Leases: its lines as events, in order.

use std::{sync::Arc, time::Duration};

use bytes::{Buf as _, Bytes, BytesMut};
use futures::Stream;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use kube::client::Body;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    LEASE_MAX_BYTES, LeaseError, LeaseEvent,
    answer::message,
    object::{LeaseObject, ObjectError},
    raw, unreadable,
};
use crate::{
    coordination::LeaseNames,
    kube_api::exchange::{ExchangeError, Request},
};

/// Maximum size of a refusal.
const REFUSAL_MAX_BYTES: usize = 1 << 20;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct StatusObject {
    #[serde(default)]
    code: u16,
    #[serde(default)]
    message: String,
}

/// The state of a watch.
enum Watch {
    Unopened {
        client: kube::Client,
        path: String,
        lines: Lines,
    },
    Open(Lines),
    Ended,
}

struct Lines {
    what: String,
    names: Arc<LeaseNames>,
    /// Maximum time until the server begins the watch.
    opens_within: Duration,
    body: Option<Body>,
    /// The received part of an incomplete line.
    part: BytesMut,
}

pub(super) fn watch(
    client: kube::Client,
    path: String,
    namespace: &str,
    names: Arc<LeaseNames>,
    opens_within: Duration,
) -> impl Stream<Item = Result<LeaseEvent, LeaseError>> + Send + 'static {
    let lines = Lines {
        what: format!("watching the Leases of {namespace}"),
        names,
        opens_within,
        body: None,
        part: BytesMut::new(),
    };
    let begun = Watch::Unopened { client, path, lines };
    futures::stream::unfold(begun, |watch| async move {
        let mut lines = match watch {
            Watch::Unopened { client, path, lines } => match lines.open(&client, path).await {
                Ok(lines) => lines,
                Err(error) => return Some((Err(error), Watch::Ended)),
            },
            Watch::Open(lines) => lines,
            Watch::Ended => return None,
        };
        match lines.next().await {
            Some(Ok(event)) => Some((Ok(event), Watch::Open(lines))),
            Some(Err(error)) => Some((Err(error), Watch::Ended)),
            None => None,
        }
    })
}

impl Lines {
    async fn open(mut self, client: &kube::Client, path: String) -> Result<Lines, LeaseError> {
        let opening = async {
            let request = Request::new(Method::GET, path).build()?;
            let response = client.send(request).await.map_err(ExchangeError::Transport)?;
            let (parts, body) = response.into_parts();
            if parts.status.is_success() {
                return Ok(Ok(body));
            }
            let refusal = Limited::new(body, REFUSAL_MAX_BYTES).collect().await;
            let refusal = refusal.map_err(ExchangeError::Body)?;
            Ok(Err((parts.status, refusal.to_bytes())))
        };
        let opened = tokio::time::timeout(self.opens_within, opening).await;
        let opened = opened.unwrap_or(Err(ExchangeError::Timeout(self.opens_within)));
        match opened.map_err(|source| self.unanswered(source))? {
            Ok(body) => {
                self.body = Some(body);
                Ok(self)
            }
            Err((status, refusal)) => Err(self.refused(status, refusal)),
        }
    }

    /// Returns the next event; `None` when the server has ended the watch.
    async fn next(&mut self) -> Option<Result<LeaseEvent, LeaseError>> {
        loop {
            match self.take_line() {
                Ok(Some(event)) => return Some(Ok(event)),
                Ok(None) => {}
                Err(error) => return Some(Err(error)),
            }
            match self.body.as_mut()?.frame().await? {
                Ok(frame) => {
                    if let Ok(data) = frame.into_data() {
                        self.part.extend_from_slice(&data);
                    }
                }
                Err(error) => return Some(Err(self.unanswered(ExchangeError::Transport(error)))),
            }
        }
    }

    /// Returns the event of the next complete line; `None` if there is none yet.
    fn take_line(&mut self) -> Result<Option<LeaseEvent>, LeaseError> {
        loop {
            let Some(end) = self.part.iter().position(|byte| *byte == b'\n') else {
                return if self.part.len() > LEASE_MAX_BYTES {
                    Err(self.unreadable(format!("an event of more than {LEASE_MAX_BYTES} bytes")))
                } else {
                    Ok(None)
                };
            };
            let line = self.part.split_to(end);
            self.part.advance(1);
            if !line.is_empty() {
                return self.event(&line).map(Some);
            }
        }
    }

    fn event(&self, line: &[u8]) -> Result<LeaseEvent, LeaseError> {
        let line: Line<'_> = serde_json::from_slice(line).map_err(|error| self.no_event(error.into()))?;
        if line.kind == "ERROR" {
            return Err(self.status_error(line.object));
        }
        read_event(&line, &self.names).map_err(|error| self.no_event(error))
    }

    /// The error in a `Status` event.
    fn status_error(&self, status: &RawValue) -> LeaseError {
        let request = self.what.clone();
        match serde_json::from_str(status.get()) {
            Ok(StatusObject { code: 410, .. }) => LeaseError::Expired { request },
            Ok(StatusObject { code, message }) => LeaseError::Refused { request, code, message },
            Err(error) => self.no_event(error.into()),
        }
    }

    fn refused(&self, status: StatusCode, body: Bytes) -> LeaseError {
        let request = self.what.clone();
        if status == StatusCode::GONE {
            return LeaseError::Expired { request };
        }
        LeaseError::Refused {
            request,
            code: status.as_u16(),
            message: message(&raw(status, body)),
        }
    }

    fn unanswered(&self, source: ExchangeError) -> LeaseError {
        LeaseError::Unanswered {
            request: self.what.clone(),
            source,
        }
    }

    fn no_event(&self, error: ObjectError) -> LeaseError {
        unreadable(&self.what, &error)
    }

    fn unreadable(&self, message: String) -> LeaseError {
        LeaseError::Unreadable {
            request: self.what.clone(),
            message,
        }
    }
}

fn read_event(line: &Line<'_>, names: &LeaseNames) -> Result<LeaseEvent, ObjectError> {
    let object: LeaseObject = serde_json::from_str(line.object.get())?;
    let version = object.resource_version()?;
    Ok(match (line.kind, object.key(names)) {
        ("ADDED" | "MODIFIED", Some(key)) => LeaseEvent::Applied(object.into_record(key)?),
        ("DELETED", Some(key)) => LeaseEvent::Deleted(key, version),
        // Bookmarks, foreign Leases, and unknown kinds of events.
        _ => LeaseEvent::Bookmark(version),
    })
}
