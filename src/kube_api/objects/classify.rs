//! Classifies answers of the API server. Pure.
//!
//! Conditions that any request can meet, such as too many requests or no server behind the address, are separated from
//! the outcome of the one request, so that back-off is decided in one place.

mod connection;
mod error_text;
mod order_outcome;
mod refusal;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use serde::{Deserialize, de::DeserializeOwned};

use self::refusal::DeniedBy;
pub(crate) use self::refusal::is_not_permitted;
pub(in crate::kube_api) use self::{error_text::bounded, refusal::Refusal};
pub use self::{
    error_text::{MESSAGE_MAX_BYTES, cause_text, error_text},
    order_outcome::OrderOutcome,
};
use super::decode::{DecodeError, Decoder, ReceivedCronJob, ReceivedJob};
use crate::{
    kube_api::http::ServerDate,
    shard::{CreateOutcome, CronJobRecord, DeleteOutcome, LookUpOutcome, ReadOutcome, ResourceVersion, StatusOutcome},
};

/// A classified answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The server processed the request.
    Outcome(T),
    /// 429: the request was not processed and may be sent again later.
    Throttled {
        /// The `Retry-After` of the server.
        retry_after: Option<Duration>,
        /// The server's message.
        message: String,
    },
    /// 502, 503, a 504 that is not the API server's own, a transport error, or an answer that cannot be parsed: it is
    /// unknown whether the request was applied.
    Unavailable {
        /// The `Retry-After` of the server.
        retry_after: Option<Duration>,
        /// The message of the server or of the transport.
        message: String,
        /// Whether no API server was reached, or the connection to it broke. A 504 of a proxy is no such sign, since one
        /// slow admission webhook can cause it.
        is_unreachable: bool,
    },
}

/// The answer to labelling a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelOutcome {
    /// The Job has the label.
    Labelled,
    /// 404, or the name belongs to another Job.
    Gone,
    /// Anything else.
    Failed {
        /// The message of the server or of the transport.
        message: String,
        /// The `Retry-After` of the server.
        retry_after: Option<Duration>,
    },
}

/// The answer to creating or patching an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventOutcome {
    /// Stored.
    Stored,
    /// The Event to create exists. The name is unique, so an earlier attempt stored it.
    Exists,
    /// 404, or another 409: the Event to patch is gone, or the namespace is.
    Gone,
    /// Any other refusal; a retry would not help (B-14.1).
    Rejected,
    /// No answer in time, or the server gave up: a retry may help.
    Unanswered,
}

/// An unclassified answer.
#[derive(Clone, Debug)]
pub struct RawAnswer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The `Retry-After` header, if it is a number of seconds.
    pub retry_after: Option<Duration>,
    /// The `Date` header and the connection.
    pub server_date: Option<ServerDate>,
    /// The body.
    pub body: Bytes,
}

/// The answer to the creation of a Job (B-12).
pub fn create(answer: &RawAnswer) -> Answer<CreateOutcome> {
    sorted(answer, created, create_refused)
}

fn created(body: &[u8]) -> Option<CreateOutcome> {
    let stored: StoredObject<'_> = serde_json::from_slice(body).ok()?;
    let created: Timestamp = stored.metadata.creation_timestamp.parse().ok()?;
    Some(CreateOutcome::Created {
        uid: crate::shard::Uid::new(&stored.metadata.uid),
        resource_version: stored.metadata.resource_version.into(),
        created,
    })
}

fn create_refused(status: StatusCode, refusal: Refusal) -> CreateOutcome {
    match status {
        StatusCode::CONFLICT if refusal.reason == "AlreadyExists" => CreateOutcome::AlreadyExists {
            message: refusal.message,
        },
        StatusCode::FORBIDDEN if refusal.is_namespace_terminating => CreateOutcome::NamespaceTerminating,
        _ if is_refused_for_good(status, &refusal) => CreateOutcome::Invalid {
            message: refusal.message,
        },
        _ if refusal.is_not_permitted() => CreateOutcome::NotPermitted {
            message: refusal.message,
        },
        StatusCode::INTERNAL_SERVER_ERROR if is_lost_in_storage(&refusal) => {
            CreateOutcome::unanswered(refusal.message, None)
        }
        _ => CreateOutcome::Failed {
            // The fence refuses a create that is late by the API server's clock. The tenant does not cause that.
            status: (!refusal.is_fenced()).then_some(status.as_u16()),
            message: refusal.message,
            retry_after: refusal.retry_after,
        },
    }
}

/// Whether the API server gave up waiting for its storage, or lost the connection to it: the write may still be
/// applied.
fn is_lost_in_storage(refusal: &Refusal) -> bool {
    refusal.message.contains("etcdserver:") || refusal.message.starts_with("rpc error: code = ")
}

/// Whether the Job itself is invalid, so that a retry cannot help. Policies change, so a request that admission denies
/// may succeed later: a webhook without a code denies with 400 and no reason, a `ValidatingAdmissionPolicy` with 422
/// `Invalid`.
fn is_refused_for_good(status: StatusCode, refusal: &Refusal) -> bool {
    if refusal.denied_by.is_some() {
        return false;
    }
    match status {
        StatusCode::PAYLOAD_TOO_LARGE => true,
        StatusCode::BAD_REQUEST => refusal.reason == "BadRequest",
        StatusCode::UNPROCESSABLE_ENTITY => refusal.reason == "Invalid",
        _ => false,
    }
}

/// The answer to the deletion of a Job (B-4.4).
pub fn delete(answer: &RawAnswer) -> Answer<DeleteOutcome> {
    let deleted = |_: &[u8]| Some(DeleteOutcome::Deleted);
    sorted(answer, deleted, |status, refusal| {
        if is_gone(status, &refusal) {
            return DeleteOutcome::Gone;
        }
        DeleteOutcome::failed(refusal.message, refusal.retry_after)
    })
}

/// The answer to looking a Job up (B-5.4, B-12.3).
pub fn look_up(answer: &RawAnswer) -> Answer<LookUpOutcome> {
    read(answer, ReceivedJob::into_record)
}

/// The answer to reading a CronJob.
pub fn read_cron_job(answer: &RawAnswer, decoder: &Decoder) -> Answer<ReadOutcome<CronJobRecord>> {
    read(answer, |object: ReceivedCronJob| {
        decoder.cron_job(object.text()).map_err(|undecodable| undecodable.error)
    })
}

fn read<O: DeserializeOwned, R>(
    answer: &RawAnswer,
    decode: impl FnOnce(O) -> Result<R, DecodeError>,
) -> Answer<ReadOutcome<R>> {
    let found = |body: &[u8]| {
        Some(match decode(serde_json::from_slice(body).ok()?) {
            Ok(record) => ReadOutcome::Found(Box::new(record)),
            Err(error) => ReadOutcome::failed(bounded(&error.to_string()), None),
        })
    };
    sorted(answer, found, |status, refusal| match status {
        StatusCode::NOT_FOUND => ReadOutcome::Gone,
        _ if refusal.is_not_permitted() => ReadOutcome::NotPermitted {
            message: refusal.message,
        },
        _ => ReadOutcome::failed(refusal.message, refusal.retry_after),
    })
}

/// The answer to a status write (B-13).
pub fn status_write(answer: &RawAnswer) -> Answer<StatusOutcome> {
    sorted(answer, stored, |status, refusal| match status {
        _ if is_gone(status, &refusal) => StatusOutcome::Gone,
        StatusCode::CONFLICT => StatusOutcome::Conflict,
        _ => StatusOutcome::failed(refusal.message, refusal.retry_after),
    })
}

fn stored(body: &[u8]) -> Option<StatusOutcome> {
    let stored: StoredObject<'_> = serde_json::from_slice(body).ok()?;
    let version = stored.metadata.resource_version.parse().ok()?;
    Some(StatusOutcome::Stored {
        resource_version: ResourceVersion(version),
    })
}

/// The answer to creating or patching an Event (B-14.1).
pub fn event(answer: &RawAnswer) -> Answer<EventOutcome> {
    let stored = |_: &[u8]| Some(EventOutcome::Stored);
    sorted(answer, stored, |status, refusal| match status {
        StatusCode::CONFLICT if refusal.reason == "AlreadyExists" => EventOutcome::Exists,
        StatusCode::NOT_FOUND | StatusCode::CONFLICT => EventOutcome::Gone,
        _ => EventOutcome::Rejected,
    })
}

/// 404, or an object of another uid with this name. Both places in the server that compare uids use this text.
fn is_gone(status: StatusCode, refusal: &Refusal) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        StatusCode::CONFLICT => {
            refusal.message.contains("UID in precondition") || refusal.message.contains("UID in the precondition")
        }
        _ => false,
    }
}

/// Classifies the answers that any request can get, and leaves all others to `done`, with the body of a success, and to
/// `refused`. `done` returns `None` if it cannot read the body.
fn sorted<T: OrderOutcome>(
    answer: &RawAnswer,
    done: impl FnOnce(&[u8]) -> Option<T>,
    refused: impl FnOnce(StatusCode, Refusal) -> T,
) -> Answer<T> {
    let refusal = (!answer.status.is_success()).then(|| Refusal::read(answer));
    match (answer.status, refusal) {
        (status, Some(refusal)) if concerns_one_request(status, &refusal) => {
            Answer::Outcome(if refusal.denied_by.is_none() {
                T::unanswered(refusal.message, refusal.retry_after)
            } else {
                refused(status, refusal)
            })
        }
        (StatusCode::TOO_MANY_REQUESTS, Some(refusal)) => Answer::Throttled {
            retry_after: refusal.retry_after,
            message: refusal.message,
        },
        (
            status @ (StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT),
            Some(refusal),
        ) => Answer::Unavailable {
            retry_after: refusal.retry_after,
            message: refusal.message,
            is_unreachable: status != StatusCode::GATEWAY_TIMEOUT,
        },
        (status, Some(refusal)) => Answer::Outcome(refused(status, refusal)),
        (status, None) => match done(&answer.body) {
            Some(outcome) => Answer::Outcome(outcome),
            None => Answer::Unavailable {
                retry_after: None,
                message: format!("the answer with status {} cannot be read", status.as_u16()),
                is_unreachable: false,
            },
        },
    }
}

/// Whether an answer that looks like an overloaded server concerns only this request: the API server itself gave up
/// waiting for admission, or a webhook denied with that code. Other requests must not wait for it.
fn concerns_one_request(status: StatusCode, refusal: &Refusal) -> bool {
    match status {
        StatusCode::GATEWAY_TIMEOUT => refusal.is_status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => refusal.denied_by == Some(DeniedBy::Webhook),
        _ => false,
    }
}

#[derive(Deserialize)]
struct StoredObject<'a> {
    #[serde(borrow)]
    metadata: StoredMetadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMetadata<'a> {
    #[serde(borrow)]
    uid: Cow<'a, str>,
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(borrow)]
    creation_timestamp: Cow<'a, str>,
}

/// Maximum `Retry-After` that is passed on: an absurd value must not lose a run or overflow an instant.
pub const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);
