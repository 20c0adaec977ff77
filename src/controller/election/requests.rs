//! Lease requests: the clock observes their `Date`, and their answers become inputs of the election.
//! Warning Events on Leases are sent beside them.

use std::time::Duration;

use futures::future::BoxFuture;

use super::{ElectionTask, refusals::Refusals};
use crate::{
    controller::clock::Clock,
    coordination::{ElectionInput, LeaseAnswer, LeaseKey, LeaseWrite, RenewalAnswer, RequestId},
    kube_api::leases::{LeaseApi, LeaseReply},
    shard::ResourceVersion,
    telemetry::metrics::ApiCall,
};

/// Maximum number of Events in flight. The log has every warning in any case.
const EVENTS_IN_FLIGHT_MAX: usize = 16;

/// Timeout of one Event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(5);

/// A request in flight.
pub(super) type LeaseRequest = BoxFuture<'static, LeaseResponse>;

/// The result of a request, with the answer to a successful renewal of this replica's Lease.
pub(super) type LeaseResponse = (ElectionInput, Option<RenewalAnswer>);

impl ElectionTask {
    /// Handles the response to a request and returns it as an input of the election.
    pub(super) fn take_response(&self, (input, renewal): LeaseResponse) -> ElectionInput {
        if let Some(renewal) = renewal {
            self.channels
                .leadership
                .send_modify(|leadership| leadership.renewal_answered(&renewal));
        }
        input
    }

    /// Creates a warning Event on a Lease. Drops the Event if too many are in flight.
    pub(super) fn warn(&self, key: LeaseKey, reason: &'static str, message: String) {
        if self.events.len() >= EVENTS_IN_FLIGHT_MAX {
            return;
        }
        let (api, now) = (self.lease_requests.api.clone(), self.clock.now());
        self.events.push(Box::pin(async move {
            if let Err(error) = api.warn(&key, reason, &message, now, EVENT_TIMEOUT).await {
                tracing::debug!(%error, "Event not stored");
            }
        }));
    }
}

/// Sends Lease requests.
#[derive(Clone)]
pub(super) struct LeaseRequests {
    pub(super) api: LeaseApi,
    pub(super) clock: Clock,
    pub(super) refusals: Refusals,
    /// The time-out of a request.
    pub(super) timeout: Duration,
}

impl LeaseRequests {
    /// Patches a Lease that must have this version. Without a version, creates it.
    pub(super) fn write(
        &self,
        request: RequestId,
        precondition: Option<ResourceVersion>,
        write: LeaseWrite,
    ) -> LeaseRequest {
        let LeaseRequests { api, timeout, .. } = self.clone();
        let (now, is_renewal) = (self.clock.now(), write.is_renewal);
        let call = precondition.map_or(ApiCall::CreateLease, |_| ApiCall::PatchLease);
        let reply = async move {
            match precondition {
                Some(version) => api.patch(&write, version, now, timeout).await,
                None => api.create(&write, now, timeout).await,
            }
        };
        self.answered(call, request, is_renewal, reply)
    }

    pub(super) fn delete(&self, request: RequestId, precondition: ResourceVersion, key: LeaseKey) -> LeaseRequest {
        let LeaseRequests { api, timeout, .. } = self.clone();
        let reply = async move { api.delete(&key, precondition, timeout).await };
        self.answered(ApiCall::DeleteLease, request, false, reply)
    }

    pub(super) fn read(&self, request: RequestId, key: LeaseKey) -> LeaseRequest {
        let LeaseRequests { api, timeout, .. } = self.clone();
        let reply = async move { api.read(&key, timeout).await };
        self.answered(ApiCall::GetLease, request, false, reply)
    }

    fn answered(
        &self,
        call: ApiCall,
        request: RequestId,
        is_renewal: bool,
        reply: impl Future<Output = LeaseReply> + Send + 'static,
    ) -> LeaseRequest {
        let lease_requests = self.clone();
        Box::pin(async move {
            let sent = lease_requests.clock.boot();
            let reply = reply.await;
            let is_done = matches!(reply.answer, LeaseAnswer::Done(_));
            let date = reply
                .server_date
                .as_ref()
                .filter(|_| is_renewal && is_done)
                .map(|date| date.at);
            let answer = lease_requests.note(call, reply);
            let answered = lease_requests.clock.boot();
            let renewal = date.map(|date| RenewalAnswer { date, sent, answered });
            (ElectionInput::Answered { request, answer }, renewal)
        })
    }

    fn note(&self, call: ApiCall, reply: LeaseReply) -> LeaseAnswer {
        // A conflict, or a Lease that exists or is missing, is no failure.
        if matches!(reply.answer, LeaseAnswer::Unknown | LeaseAnswer::Refused) {
            let message = reply.message.as_deref().unwrap_or("no reason given");
            self.refusals.note(call.labels(), reply.code, message);
        }
        reply.answer
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http_body_util::Full;
    use kube::client::Body;
    use serde_json::json;

    use super::*;
    use crate::{
        shard::{ShardCount, ShardId},
        telemetry::metrics::Metrics,
    };

    #[tokio::test(start_paused = true)]
    async fn failed_writes_are_logged_and_conflicts_are_not() {
        for (code, reason, is_logged) in [
            (500, "InternalError", true),
            (422, "Invalid", true),
            (429, "TooManyRequests", true),
            (409, "Conflict", false),
            (404, "NotFound", false),
        ] {
            let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
            let metrics = Metrics::register().election.api;
            let refusals = Refusals::new(&metrics, &clock);
            let status = json!({"kind": "Status", "reason": reason, "message": "a webhook", "code": code});
            let answer = move |_: http::Request<Body>| {
                let answer = http::Response::builder().status(code);
                let answer = answer.body(Full::new(Bytes::from(status.to_string()))).unwrap();
                async { Ok::<_, Infallible>(answer) }
            };
            let client = kube::Client::new(tower::service_fn(answer), "default");
            let lease_requests = LeaseRequests {
                api: LeaseApi::new(client, "kube-system", ShardCount::default(), None),
                clock,
                refusals,
                timeout: Duration::from_secs(1),
            };
            let write = LeaseWrite::to(LeaseKey::Shard(ShardId(0)));
            lease_requests
                .write(RequestId(1), Some(ResourceVersion(1)), write)
                .await;
            assert_eq!(metrics.failures.has_failed("a webhook"), is_logged, "{code}");
        }
    }
}
