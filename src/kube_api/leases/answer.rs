//! The meaning of answers about one Lease. Pure.
//!
//! Only a `Status` of the API server itself shows that a Lease changed, exists or is gone. Anything else, such as the
//! page of a proxy, means that the outcome is unknown.

use http::StatusCode;

use super::object;
use crate::{
    coordination::{LeaseAnswer, LeaseKey, LeaseRecord},
    kube_api::objects::classify::{RawAnswer, Refusal, error_text},
    shard::ResourceVersion,
};

/// The kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Create,
    Patch,
    /// A delete with this precondition.
    Delete(ResourceVersion),
    Read,
}

/// Classifies an answer. Returns the message too if the request did not succeed.
pub(super) fn classify(answer: &RawAnswer, kind: RequestKind, key: &LeaseKey) -> (LeaseAnswer, Option<String>) {
    if answer.status.is_success() {
        return match done(answer, kind, key) {
            Ok(record) => (LeaseAnswer::Done(Box::new(record)), None),
            Err(error) => (LeaseAnswer::Unknown, Some(error_text(&error))),
        };
    }
    let refusal = Refusal::read(answer);
    let meaning = match (answer.status, kind) {
        (StatusCode::CONFLICT | StatusCode::NOT_FOUND, _) if !refusal.is_status => LeaseAnswer::Unknown,
        (StatusCode::CONFLICT, RequestKind::Create) if refusal.reason == "AlreadyExists" => LeaseAnswer::Exists,
        (StatusCode::CONFLICT, RequestKind::Patch | RequestKind::Delete(_)) => LeaseAnswer::Conflict,
        (StatusCode::NOT_FOUND, RequestKind::Patch | RequestKind::Delete(_) | RequestKind::Read) => {
            LeaseAnswer::Missing
        }
        (StatusCode::CONFLICT | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS, _) => LeaseAnswer::Unknown,
        // A 404 to a create concerns the namespace.
        (status, _) if status.is_client_error() => LeaseAnswer::Refused,
        _ => LeaseAnswer::Unknown,
    };
    (meaning, Some(refusal.message))
}

fn done(answer: &RawAnswer, kind: RequestKind, key: &LeaseKey) -> Result<LeaseRecord, object::ObjectError> {
    match kind {
        RequestKind::Create | RequestKind::Patch | RequestKind::Read => object::record(&answer.body, key),
        // The server answers with a `Status`, or with the Lease if a finalizer holds it.
        RequestKind::Delete(version) => Ok(LeaseRecord::empty(key.clone(), version)),
    }
}
