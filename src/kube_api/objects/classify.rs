//! Answers of the API server to outcomes. Pure: status, headers and body in, what it means for us out.
//!
//! What every kind of request can meet (too many requests, no server behind the address) is told apart
//! here from what the one request was told, so that back-off is decided in one place for all.

mod cron_job;
mod order_outcome;
mod refusal;
#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap, error::Error, fmt::Write as _, time::Duration};

use bytes::Bytes;
use http::StatusCode;
use jiff::Timestamp;
use serde::Deserialize;

use self::refusal::DeniedBy;
pub(in crate::kube_api) use self::refusal::{Refusal, is_fenced, not_permitted};
pub use self::{
    cron_job::{CronJobOutcome, read_cron_job},
    order_outcome::OrderOutcome,
};
use super::decode::SlimJob;
use crate::shard::{CreateOutcome, DeleteOutcome, LookUpOutcome, ResourceVersion, ShardLabels, StatusOutcome};

/// What came back for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The server dealt with it.
    Outcome(T),
    /// 429: not dealt with, come again later.
    Throttled {
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
        /// The server's text.
        message: String,
    },
    /// 502, 503, a 504 that is not the API server's own, a transport error, or an answer that cannot be read: whether
    /// it was applied is unknown.
    Unavailable {
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
        /// The server's text, or the transport's.
        message: String,
    },
}

/// The answer to labelling a Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelOutcome {
    /// It bears the label.
    Labelled,
    /// 404, or another Job bears its name.
    Gone,
    /// Anything else.
    Failed {
        /// The server's text, or the transport's.
        message: String,
        /// How long the server asked to wait.
        retry_after: Option<Duration>,
    },
}

/// The answer to posting or patching an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventOutcome {
    /// Stored.
    Stored,
    /// The Event to create exists. Its name is ours alone, so an earlier try stored it.
    Exists,
    /// 404, or 409 of another kind: the Event to patch is gone, or the namespace is.
    Gone,
    /// Anything else that the server says; not worth another try (B-14.1).
    Rejected {
        /// The server's text.
        message: String,
    },
    /// No answer in time, or the server's word that it gave up: worth another try.
    Unanswered {
        /// The server's text, or the transport's.
        message: String,
    },
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct RawAnswer {
    /// The HTTP status.
    pub status: StatusCode,
    /// The `Retry-After` header, where it is a number of seconds.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

/// The answer to the creation of a Job (B-12).
pub fn create(answer: &RawAnswer) -> Answer<CreateOutcome> {
    sorted(answer, |answer, refusal| match refusal {
        None => created(answer),
        Some(refusal) => Ok(create_refused(answer.status, refusal)),
    })
}

fn created(answer: &RawAnswer) -> Result<CreateOutcome, Unreadable> {
    let stored: StoredObject<'_> = serde_json::from_slice(&answer.body)?;
    let created: Timestamp = stored.metadata.creation_timestamp.parse().map_err(|_| Unreadable)?;
    let mut shard_labels = Box::<ShardLabels>::default();
    for (key, value) in stored.metadata.labels.iter().flatten() {
        shard_labels.note(key, value);
    }
    Ok(CreateOutcome::Created {
        shard_labels,
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
        _ if is_refused_for_good(status, &refusal) => CreateOutcome::Refused {
            message: refusal.message,
        },
        _ if is_not_permitted(status, &refusal) => CreateOutcome::NotPermitted {
            message: refusal.message,
        },
        StatusCode::INTERNAL_SERVER_ERROR if is_lost_in_storage(&refusal) => CreateOutcome::Unanswered {
            message: refusal.message,
        },
        _ => CreateOutcome::Failed {
            message: refusal.message,
            retry_after: refusal.retry_after,
        },
    }
}

/// Whether the API server gave up waiting for its storage, or lost its connection there: the write may be carried out all
/// the same.
fn is_lost_in_storage(refusal: &Refusal) -> bool {
    refusal.message.contains("etcdserver:") || refusal.message.starts_with("rpc error: code = ")
}

/// Whether the authorizer refused, or nobody knows us: admission and quota answer 403 too, but do not speak of a user who
/// cannot. The text is the same in all versions of the server.
fn is_not_permitted(status: StatusCode, refusal: &Refusal) -> bool {
    let is_refused_by_authorizer = || {
        let message = &refusal.message;
        refusal.denied_by.is_none() && message.contains(" is forbidden: User \"") && message.contains("\" cannot ")
    };
    status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN && is_refused_by_authorizer()
}

/// Whether the Job itself is at fault, which another try cannot mend. Policies change, so what admission denies may
/// pass later: a webhook that names no code denies with 400 and no reason, a `ValidatingAdmissionPolicy` with 422 `Invalid`.
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
    sorted(answer, |answer, refusal| {
        Ok(match refusal {
            None => DeleteOutcome::Deleted,
            Some(refusal) if is_gone(answer.status, &refusal) => DeleteOutcome::Gone,
            Some(refusal) => DeleteOutcome::Failed {
                message: refusal.message,
                retry_after: refusal.retry_after,
            },
        })
    })
}

/// The answer to looking a Job up (B-5.4, B-12.3).
pub fn look_up(answer: &RawAnswer) -> Answer<LookUpOutcome> {
    sorted(answer, |answer, refusal| {
        Ok(match refusal {
            None => found(&answer.body)?,
            Some(_) if answer.status == StatusCode::NOT_FOUND => LookUpOutcome::Gone,
            Some(refusal) if is_not_permitted(answer.status, &refusal) => LookUpOutcome::NotPermitted {
                message: refusal.message,
            },
            Some(refusal) => LookUpOutcome::Failed {
                message: refusal.message,
                retry_after: refusal.retry_after,
            },
        })
    })
}

fn found(body: &[u8]) -> Result<LookUpOutcome, Unreadable> {
    let job: SlimJob = serde_json::from_slice(body)?;
    Ok(match job.into_record() {
        Ok(record) => LookUpOutcome::Found(Box::new(record)),
        Err(error) => LookUpOutcome::Failed {
            message: bounded(&error.to_string()),
            retry_after: None,
        },
    })
}

/// The answer to a status write (B-13).
pub fn status_write(answer: &RawAnswer) -> Answer<StatusOutcome> {
    sorted(answer, |answer, refusal| {
        Ok(match refusal {
            None => StatusOutcome::Stored {
                resource_version: stored_version(&answer.body)?,
            },
            Some(refusal) if is_gone(answer.status, &refusal) => StatusOutcome::Gone,
            Some(_) if answer.status == StatusCode::CONFLICT => StatusOutcome::Conflict,
            Some(refusal) => StatusOutcome::Failed {
                message: refusal.message,
                retry_after: refusal.retry_after,
            },
        })
    })
}

fn stored_version(body: &[u8]) -> Result<ResourceVersion, Unreadable> {
    let stored: StoredObject<'_> = serde_json::from_slice(body)?;
    let version = stored.metadata.resource_version.parse();
    version.map(ResourceVersion).map_err(|_| Unreadable)
}

/// The answer to labelling a Job, which changes nothing that anybody else could have changed.
pub fn label(answer: &RawAnswer) -> Answer<LabelOutcome> {
    sorted(answer, |answer, refusal| {
        Ok(match refusal {
            None => LabelOutcome::Labelled,
            Some(_) if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::CONFLICT) => LabelOutcome::Gone,
            Some(refusal) => LabelOutcome::Failed {
                message: refusal.message,
                retry_after: refusal.retry_after,
            },
        })
    })
}

/// The answer to posting or patching an Event (B-14.1).
pub fn event(answer: &RawAnswer) -> Answer<EventOutcome> {
    sorted(answer, |answer, refusal| {
        Ok(match refusal {
            None => EventOutcome::Stored,
            Some(refusal) if answer.status == StatusCode::CONFLICT && refusal.reason == "AlreadyExists" => {
                EventOutcome::Exists
            }
            Some(_) if matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::CONFLICT) => EventOutcome::Gone,
            Some(refusal) => EventOutcome::Rejected {
                message: refusal.message,
            },
        })
    })
}

/// This one request cannot be sent, which says nothing of the others.
pub fn failed<T: OrderOutcome>(error: &(dyn Error + 'static)) -> Answer<T> {
    Answer::Outcome(T::failed(error_text(error), None))
}

/// No answer to this one request, which says nothing of the others: it may have been applied or not.
pub fn stuck<T: OrderOutcome>(error: &(dyn Error + 'static)) -> Answer<T> {
    Answer::Outcome(T::unanswered(error_text(error), None))
}

/// No answer at all: the request may have been applied or not.
pub fn unanswered<T>(error: &(dyn Error + 'static)) -> Answer<T> {
    Answer::Unavailable {
        retry_after: None,
        message: error_text(error),
    }
}

/// 404, or an object of another uid under the name: the text of both of the server's places that compare uids holds these words.
fn is_gone(status: StatusCode, refusal: &Refusal) -> bool {
    match status {
        StatusCode::NOT_FOUND => true,
        StatusCode::CONFLICT => {
            refusal.message.contains("UID in precondition") || refusal.message.contains("UID in the precondition")
        }
        _ => false,
    }
}

/// Deals with what every kind of request can meet, and leaves the rest to `outcome`.
fn sorted<T: OrderOutcome>(
    answer: &RawAnswer,
    outcome: impl FnOnce(&RawAnswer, Option<Refusal>) -> Result<T, Unreadable>,
) -> Answer<T> {
    let refusal = (!answer.status.is_success()).then(|| Refusal::read(answer));
    match (answer.status, refusal) {
        (status, Some(refusal)) if concerns_one_request(status, &refusal) => Answer::Outcome(
            if status == StatusCode::GATEWAY_TIMEOUT && refusal.denied_by.is_none() {
                T::unanswered(refusal.message, refusal.retry_after)
            } else {
                T::failed(refusal.message, refusal.retry_after)
            },
        ),
        (StatusCode::TOO_MANY_REQUESTS, Some(refusal)) => Answer::Throttled {
            retry_after: refusal.retry_after,
            message: refusal.message,
        },
        (StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT, Some(refusal)) => {
            Answer::Unavailable {
                retry_after: refusal.retry_after,
                message: refusal.message,
            }
        }
        (_, refusal) => outcome(answer, refusal).map_or_else(
            |Unreadable| Answer::Unavailable {
                retry_after: None,
                message: format!("the answer with status {} cannot be read", answer.status.as_u16()),
            },
            Answer::Outcome,
        ),
    }
}

/// Whether an answer that reads like one of a server in need comes from the one request alone: the API server itself
/// gave up waiting for admission, or a webhook denied with that code. Others must not wait for it.
fn concerns_one_request(status: StatusCode, refusal: &Refusal) -> bool {
    match status {
        StatusCode::GATEWAY_TIMEOUT => refusal.is_status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => refusal.denied_by == Some(DeniedBy::Webhook),
        _ => false,
    }
}

/// A success whose body is not what it should be.
struct Unreadable;

impl From<serde_json::Error> for Unreadable {
    fn from(_: serde_json::Error) -> Unreadable {
        Unreadable
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
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
}

/// Longest time to wait that we pass on: an absurd `Retry-After` must not lose a run, or overflow an instant.
pub const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// Longest message that we pass on, in bytes: it goes into Events, whose own text is short.
pub const MESSAGE_MAX_BYTES: usize = 1024;

/// The text of an error with those of its sources, each said once.
pub fn error_text(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let part = error.to_string();
        if !text.contains(&part) {
            // Writing to a string does not fail.
            let _ = write!(text, ": {part}");
        }
        source = error.source();
    }
    bounded(&text)
}

/// A message, cut to [`MESSAGE_MAX_BYTES`].
pub(in crate::kube_api) fn bounded(message: &str) -> String {
    message[..message.floor_char_boundary(MESSAGE_MAX_BYTES)].to_owned()
}
