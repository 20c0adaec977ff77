//! An Event that is being sent, and the request of one attempt.

use std::{pin::pin, time::Duration};

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

    async fn send(&self, api: &ApiClient) -> Answered<EventOutcome> {
        let EventAction { namespace, body, patch } = &self.action;
        let request = async {
            match patch {
                Some((name, patch)) => api.patch_event(namespace, name, patch.clone()).await,
                None => api.post_event(namespace, body.clone()).await,
            }
        };
        let mut end = pin!(tokio::time::sleep(ANSWER_TIMEOUT));
        tokio::select! {
            biased;
            answered = request => {
                if answered.answer == Answer::Outcome(EventOutcome::Unanswered) {
                    end.await;
                }
                answered
            }
            () = &mut end => Answered::without_answer(EventOutcome::Unanswered),
        }
    }
}
