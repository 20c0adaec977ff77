//! An Event that is being sent, and the request of one attempt.

use std::time::Duration;

use crate::{
    controller::lane::LaneRequest,
    kube_api::{Answer, Answered, ApiClient, EventAction, EventOutcome},
    shard::ShardTerm,
    telemetry::metrics::ApiCall,
};

/// Timeout of a request, and the interval of attempts if the server gives up earlier: far longer than a healthy server
/// takes. If a webhook delays the answer further, the next attempt finds the Event stored.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// An Event that is being sent.
#[derive(Debug)]
pub(super) struct Delivery {
    pub(super) action: EventAction,
    pub(super) n_retries: u32,
    /// The number of attempts without an answer.
    pub(super) n_unanswered: u32,
}

impl Delivery {
    /// An Event that was never sent.
    pub(super) fn new(action: EventAction) -> Delivery {
        Delivery {
            action,
            n_retries: 0,
            n_unanswered: 0,
        }
    }
}

impl LaneRequest for Delivery {
    type Reply = EventOutcome;

    fn shard_term(&self) -> Option<ShardTerm> {
        None
    }

    fn namespace(&self) -> &str {
        &self.action.namespace
    }

    fn call(&self) -> ApiCall {
        match self.action.patch {
            Some(_) => ApiCall::PatchEvent,
            None => ApiCall::CreateEvent,
        }
    }

    fn place_held(&self, answer: &Answer<EventOutcome>) -> Duration {
        match answer {
            Answer::Outcome(EventOutcome::Unanswered) => ANSWER_TIMEOUT,
            Answer::Outcome(_) | Answer::Throttled { .. } | Answer::Unavailable { .. } => Duration::ZERO,
        }
    }

    async fn send(&self, api: &ApiClient) -> Answered<EventOutcome> {
        let EventAction { namespace, body, patch } = &self.action;
        let request = async {
            match patch {
                Some((name, patch)) => api.patch_event(namespace, name, patch.clone()).await,
                None => api.post_event(namespace, body.clone()).await,
            }
        };
        let answered = tokio::time::timeout(ANSWER_TIMEOUT, request).await;
        answered.unwrap_or_else(|_| Answered::without_answer(EventOutcome::Unanswered))
    }
}
