//! Requests of the Event lane.

use std::{future::Future, time::Duration};

use super::deliveries::DeliveryId;
use crate::{
    controller::{clock::Clock, lane::LaneRequest},
    kube_api::{Answer, Answered, ApiClient, EventAction, EventOutcome},
    shard::ShardTerm,
    telemetry::metrics::ApiCall,
};

/// Timeout of a request: far longer than a healthy server takes. If a webhook delays the answer further, the next
/// attempt finds the Event stored.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// One attempt to store an Event.
pub(super) struct Attempt {
    pub(super) id: DeliveryId,
    pub(super) action: EventAction,
}

impl LaneRequest for Attempt {
    type Reply = EventOutcome;

    fn shard_term(&self) -> Option<ShardTerm> {
        None
    }

    fn may_be_sent(&self, _clock: &Clock) -> bool {
        true
    }

    fn call(&self) -> ApiCall {
        match self.action {
            EventAction::Patch { .. } => ApiCall::PatchEvent,
            EventAction::Create { .. } | EventAction::Drop => ApiCall::CreateEvent,
        }
    }

    async fn send(&self, api: &ApiClient) -> Answered<EventOutcome> {
        match &self.action {
            EventAction::Create { namespace, body } => in_time(api.post_event(namespace, body.clone())).await,
            EventAction::Patch {
                namespace, name, body, ..
            } => in_time(api.patch_event(namespace, name, body.clone())).await,
            EventAction::Drop => answered(EventOutcome::Stored),
        }
    }
}

/// Returns the answer, or [`EventOutcome::Unanswered`] after the timeout.
async fn in_time(request: impl Future<Output = Answered<EventOutcome>>) -> Answered<EventOutcome> {
    tokio::time::timeout(ANSWER_TIMEOUT, request).await.unwrap_or_else(|_| {
        answered(EventOutcome::Unanswered {
            message: format!("no answer within {} seconds", ANSWER_TIMEOUT.as_secs()),
        })
    })
}

/// Wraps an outcome that did not come from an answer.
fn answered(outcome: EventOutcome) -> Answered<EventOutcome> {
    Answered {
        answer: Answer::Outcome(outcome),
        code: None,
        server_date: None,
        not_permitted: None,
        fenced_over: None,
    }
}
