//! Requests of the Event lane.

use std::{future::Future, time::Duration};

use crate::{
    controller::{clock::Clock, lane::LaneRequest},
    kube_api::{Answered, ApiClient, EventAction, EventOutcome},
    shard::{ShardTerm, Uid},
    telemetry::metrics::ApiCall,
};

/// Timeout of a request: far longer than a healthy server takes. If a webhook delays the answer further, the next
/// attempt finds the Event stored.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// One attempt to store an Event.
pub(super) struct Attempt {
    pub(super) cron_job: Uid,
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
        match self.action.patch {
            Some(_) => ApiCall::PatchEvent,
            None => ApiCall::CreateEvent,
        }
    }

    async fn send(&self, api: &ApiClient) -> Answered<EventOutcome> {
        let EventAction { namespace, body, patch } = &self.action;
        match patch {
            Some((name, patch)) => in_time(api.patch_event(namespace, name, patch.clone())).await,
            None => in_time(api.post_event(namespace, body.clone())).await,
        }
    }
}

/// Returns the answer, or [`EventOutcome::Unanswered`] after the timeout.
async fn in_time(request: impl Future<Output = Answered<EventOutcome>>) -> Answered<EventOutcome> {
    let answered = tokio::time::timeout(ANSWER_TIMEOUT, request).await;
    answered.unwrap_or_else(|_| Answered::without_answer(EventOutcome::Unanswered))
}
