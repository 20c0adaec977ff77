//! The meaning of answers about one Lease. Pure.
//!
//! Only a `Status` of the API server itself shows that a Lease changed, exists or is gone. Anything else, such as the
//! page of a proxy, means that the outcome is unknown.

use http::StatusCode;

use super::object;
use crate::{
    coordination::{LeaseKey, LeaseRecord, ReadAnswer, WriteAnswer},
    kube_api::objects::classify::{RawAnswer, Refusal, error_text},
    shard::ResourceVersion,
};

/// The kind of write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteKind {
    Create,
    Patch,
    /// A delete with this precondition.
    Delete(ResourceVersion),
}

/// Classifies the answer to a write. Returns the message too if the write did not succeed.
pub(super) fn write(answer: &RawAnswer, kind: WriteKind, key: &LeaseKey) -> (WriteAnswer, Option<String>) {
    if answer.status.is_success() {
        return match done(answer, kind, key) {
            Ok(record) => (WriteAnswer::Done(Box::new(record)), None),
            Err(error) => (WriteAnswer::Unknown, Some(error_text(&error))),
        };
    }
    let refusal = Refusal::read(answer);
    let meaning = match (answer.status, kind) {
        (StatusCode::CONFLICT | StatusCode::NOT_FOUND, _) if !refusal.is_status => WriteAnswer::Unknown,
        (StatusCode::CONFLICT, WriteKind::Create) if refusal.reason == "AlreadyExists" => WriteAnswer::Exists,
        (StatusCode::CONFLICT, WriteKind::Patch | WriteKind::Delete(_)) => WriteAnswer::Conflict,
        (StatusCode::NOT_FOUND, WriteKind::Patch | WriteKind::Delete(_)) => WriteAnswer::Missing,
        (StatusCode::CONFLICT | StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS, _) => WriteAnswer::Unknown,
        // A 404 to a create concerns the namespace.
        (status, _) if status.is_client_error() => WriteAnswer::Refused,
        _ => WriteAnswer::Unknown,
    };
    (meaning, Some(refusal.message))
}

fn done(answer: &RawAnswer, kind: WriteKind, key: &LeaseKey) -> Result<LeaseRecord, object::ObjectError> {
    match kind {
        WriteKind::Create | WriteKind::Patch => object::record(&answer.body, key),
        // The server answers with a `Status`, or with the Lease if a finalizer holds it.
        WriteKind::Delete(version) => Ok(LeaseRecord::empty(key.clone(), version)),
    }
}

/// Classifies the answer to a read. Returns the message too if the read did not succeed.
pub(super) fn read(answer: &RawAnswer, key: &LeaseKey) -> (ReadAnswer, Option<String>) {
    if answer.status.is_success() {
        return match object::record(&answer.body, key) {
            Ok(record) => (ReadAnswer::Found(Box::new(record)), None),
            Err(error) => (ReadAnswer::Unknown, Some(error_text(&error))),
        };
    }
    let refusal = Refusal::read(answer);
    let meaning = if answer.status == StatusCode::NOT_FOUND && refusal.is_status {
        ReadAnswer::Missing
    } else {
        ReadAnswer::Unknown
    };
    (meaning, Some(refusal.message))
}
