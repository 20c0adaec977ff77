//! The common part of all outcomes.

use std::time::Duration;

use super::EventOutcome;
use crate::{
    kube_api::access_review::AccessDecision,
    shard::{CreateOutcome, DeleteOutcome, ReadOutcome, StatusOutcome},
};

/// The outcomes that every order has: this order failed, regardless of the state of the server.
pub trait OrderOutcome {
    /// The order failed; it backs off by itself.
    fn failed(message: String, retry_after: Option<Duration>) -> Self;

    /// It is unknown whether the order was carried out, although the API server works. Creates and Events distinguish this from a failure.
    fn unanswered(message: String, retry_after: Option<Duration>) -> Self
    where
        Self: Sized,
    {
        Self::failed(message, retry_after)
    }
}

macro_rules! failed_outcome {
    ($($outcome:ident),*) => {$(
        impl OrderOutcome for $outcome {
            fn failed(message: String, retry_after: Option<Duration>) -> $outcome {
                $outcome::Failed { message, retry_after }
            }
        }
    )*};
}

failed_outcome!(DeleteOutcome, StatusOutcome);

impl<T> OrderOutcome for ReadOutcome<T> {
    fn failed(message: String, retry_after: Option<Duration>) -> ReadOutcome<T> {
        ReadOutcome::Failed { message, retry_after }
    }
}

impl OrderOutcome for CreateOutcome {
    fn failed(message: String, retry_after: Option<Duration>) -> CreateOutcome {
        CreateOutcome::Failed {
            message,
            status: None,
            retry_after,
        }
    }

    fn unanswered(message: String, _: Option<Duration>) -> CreateOutcome {
        CreateOutcome::Unanswered {
            message,
            is_unreachable: false,
        }
    }
}

impl OrderOutcome for EventOutcome {
    fn failed(_: String, _: Option<Duration>) -> EventOutcome {
        EventOutcome::Rejected
    }

    fn unanswered(_: String, _: Option<Duration>) -> EventOutcome {
        EventOutcome::Unanswered
    }
}

impl OrderOutcome for AccessDecision {
    fn failed(message: String, _: Option<Duration>) -> AccessDecision {
        Err(message)
    }
}

impl OrderOutcome for () {
    fn failed(_: String, _: Option<Duration>) {}
}
