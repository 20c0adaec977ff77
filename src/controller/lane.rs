//! A lane: the requests of one kind that are in flight, their limit, and the one check before a request is written to a
//! connection.
//!
//! A request is sent only in the shard term in which it was ordered, only while its namespace is managed, and only while
//! [`LaneRequest::may_be_sent`] returns true. A request may wait between its admission and its send, for example for a
//! place on a connection. So the lane checks these conditions in the request's future, once the request has its place, and immediately before the send.

use std::time::Duration;

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use jiff::Timestamp;

use super::{
    clock::Clock,
    in_flight::InFlight,
    pacing::{Admission, Pacer, SendInstants, Ticket},
    recorded_send::send_recorded,
};
use crate::{
    coordination::Leadership,
    kube_api::{Answer, Answered, ApiClient, latest_value::LatestReceiver},
    shard::{BootInstant, ManagedNamespaces, ShardTerm},
    telemetry::metrics::{ApiCall, ApiMetrics},
};

/// Maximum number of retries before a request about a Job or a status write counts as failed. They take some five
/// minutes with the pauses that the lane chooses, and one minute if an API server requires one second (`Retry-After: 1`).
/// The shard then decides again.
pub(super) const RETRIES_MAX: u32 = 64;

/// A request from its order to its answer.
pub(super) trait LaneRequest: Send + Sync + Sized + 'static {
    /// The decoded answer.
    type Reply: Send + 'static;

    /// The shard term in which the request was ordered; `None` if it does not depend on leadership.
    fn shard_term(&self) -> Option<ShardTerm>;
    /// The namespace of the object.
    fn namespace(&self) -> &str;
    /// Whether the request reads, or has read, its CronJob first. It does not change while the request is in flight.
    fn is_reading(&self) -> bool {
        false
    }
    /// Whether the request may be sent in its namespace. A namespace that is not managed gets no write.
    fn is_permitted_in(&self, namespaces: &ManagedNamespaces, _now: Timestamp) -> bool {
        namespaces.contains(self.namespace())
    }
    /// Whether the request is due and has not expired. True for a request without such limits.
    fn may_be_sent(&self, _clock: &Clock) -> bool {
        true
    }
    /// The time within which the API server may store the object, even if another replica leads the shard by then.
    /// If it is zero, the API server must drop the request before another replica can lead the shard.
    fn store_within(&self, _now: Timestamp) -> Duration {
        Duration::ZERO
    }
    /// The name of the call in metrics.
    fn call(&self) -> ApiCall;
    /// The minimum time from the send for which the request keeps its place in the lane, even if it is answered earlier.
    fn place_held(&self, _answer: &Answer<Self::Reply>) -> Duration {
        Duration::ZERO
    }
    /// Sends the request.
    fn send(&self, api: &ApiClient) -> impl Future<Output = Answered<Self::Reply>> + Send;
}

/// The result of a request that may have to read its CronJob first.
pub(super) enum SentOrRead<Outcome, Part> {
    /// The request was sent.
    Sent(Outcome),
    /// The part of the CronJob that the request was missing was read. The request can be sent.
    Read(Part),
}

/// A request and its answer; `None` if the check before the send failed.
pub(super) type RequestResult<R> = (R, Option<Answer<<R as LaneRequest>::Reply>>);

/// The requests of one kind in flight.
pub(super) struct Lane<R: LaneRequest> {
    guard: SendGuard,
    pacer: Pacer,
    /// Maximum number of requests in flight, recent or not.
    total_max: u32,
    recent: SendInstants,
    in_flight: InFlight,
    requests: FuturesUnordered<BoxFuture<'static, (R, Ticket, MaybeAnswer<R>)>>,
}

/// An answer and its duration; `None` if the check before the send failed.
type MaybeAnswer<R> = Option<(Answered<<R as LaneRequest>::Reply>, Duration)>;

impl<R: LaneRequest> Lane<R> {
    /// Creates a lane with at most `in_flight_max` requests in flight.
    pub(super) fn new(
        api: ApiClient,
        clock: Clock,
        leadership: LatestReceiver<Leadership>,
        metrics: ApiMetrics,
        in_flight_max: u32,
    ) -> Lane<R> {
        let guard = SendGuard {
            api,
            clock,
            leadership,
            namespaces: ManagedNamespaces::default(),
            metrics,
        };
        Lane {
            guard,
            pacer: Pacer::new(in_flight_max),
            total_max: in_flight_max,
            recent: SendInstants::default(),
            in_flight: InFlight::new(in_flight_max),
            requests: FuturesUnordered::new(),
        }
    }

    /// Sets the maximum number of requests in flight. Only recent ones count against the adaptive limit.
    pub(super) fn with_total(self, total_max: u32) -> Lane<R> {
        Lane { total_max, ..self }
    }

    /// Sets the namespaces in which requests are sent; all by default.
    pub(super) fn within(mut self, namespaces: ManagedNamespaces) -> Lane<R> {
        self.guard.namespaces = namespaces;
        self
    }

    /// Adds places for slow namespaces.
    pub(super) fn with_places_for_slow(self) -> Lane<R> {
        let total_max = self.in_flight.total_max(self.total_max);
        self.with_total(total_max)
    }

    /// Sets the initial limit to this replica's share among the replicas that send requests.
    pub(super) fn divide_among_senders(&mut self) {
        self.pacer.share_among(self.guard.leadership.borrow().n_senders());
    }

    /// Returns whether one more request may be sent now. The adaptive limit counts recent requests; the maximum counts
    /// all.
    pub(super) fn admission(&mut self) -> Admission {
        let now = self.guard.clock.boot();
        if self.n_in_flight() >= self.total_max {
            return Admission::Full;
        }
        let admission = self.pacer.admission(now, self.recent.count_recent(now));
        match (admission, self.recent.next_change()) {
            (Admission::Full, Some(change)) => Admission::Wait(change),
            (admission, _) => admission,
        }
    }

    /// Returns how many requests in flight are recent, and when the next of them becomes old.
    pub(super) fn recent(&mut self) -> (u32, Option<BootInstant>) {
        let n_recent = self.recent.count_recent(self.guard.clock.boot());
        (n_recent, self.recent.next_change())
    }

    /// Returns the present limit of requests in flight.
    pub(super) fn in_flight_limit(&self) -> u32 {
        self.pacer.in_flight_limit()
    }

    pub(super) fn n_in_flight(&self) -> u32 {
        self.requests.len().try_into().unwrap_or(u32::MAX)
    }

    /// Returns the requests in flight by namespace.
    pub(super) fn in_flight(&self) -> &InFlight {
        &self.in_flight
    }

    /// Whether this replica leads the shard at this instant, in the given term.
    pub(super) fn is_led(&self, shard_term: ShardTerm) -> bool {
        let SendGuard { leadership, clock, .. } = &self.guard;
        leadership.borrow().covers(shard_term, clock.boot())
    }

    /// Whether the request may be sent in its namespace at this instant.
    pub(super) fn permits(&self, request: &R) -> bool {
        request.is_permitted_in(&self.guard.namespaces, self.guard.clock.now())
    }

    /// Sends a request that was admitted.
    pub(super) fn send(&mut self, request: R) {
        let now = self.guard.clock.boot();
        let ticket = self.pacer.on_sent(now);
        self.recent.enter(now);
        self.in_flight.enter(request.namespace(), request.is_reading(), now);
        let guard = self.guard.clone();
        self.requests.push(Box::pin(async move {
            let answered = guard.send(&request).await;
            if let Some((answered, duration)) = &answered {
                let rest = request.place_held(&answered.answer).saturating_sub(*duration);
                if !rest.is_zero() {
                    tokio::time::sleep(rest).await;
                }
            }
            (request, ticket, answered)
        }));
    }

    /// Returns the next request that was answered or could not be sent; `None` if no request is in flight.
    pub(super) async fn next(&mut self) -> Option<RequestResult<R>> {
        let (request, ticket, answered) = self.requests.next().await?;
        let now = self.guard.clock.boot();
        self.recent.leave(ticket.sent);
        self.in_flight
            .leave(request.namespace(), request.is_reading(), ticket.sent, now);
        let answer = answered.map(|(answered, duration)| {
            let n_recent = self.recent.count_recent(now);
            self.pacer.on_answered(ticket, &answered, now, duration, n_recent);
            answered.answer
        });
        Some((request, answer))
    }
}

/// Checks a request immediately before it is sent, and sends it.
#[derive(Clone)]
struct SendGuard {
    api: ApiClient,
    clock: Clock,
    leadership: LatestReceiver<Leadership>,
    namespaces: ManagedNamespaces,
    metrics: ApiMetrics,
}

impl SendGuard {
    async fn send<R: LaneRequest>(&self, request: &R) -> MaybeAnswer<R> {
        let (answered, duration) = self.send_once(&self.api, request).await?;
        let Some(connection) = answered.fenced_over else {
            return Some((answered, duration));
        };
        // The fence policy refused the create. This API server may have a wrong clock, so the create is sent once
        // more, over another connection.
        let again = self.send_once(&self.api.avoiding(connection), request).await;
        Some(again.unwrap_or((answered, duration)))
    }

    async fn send_once<R: LaneRequest>(&self, api: &ApiClient, request: &R) -> MaybeAnswer<R> {
        let api = api.with_place().await?;
        let is_permitted = request.is_permitted_in(&self.namespaces, self.clock.now());
        if !is_permitted || !request.may_be_sent(&self.clock) {
            return None;
        }
        let api = match request.shard_term() {
            Some(shard_term) => self.limited_client(api, shard_term, request.store_within(self.clock.now()))?,
            None => api,
        };
        Some(send_recorded(&self.clock, &self.metrics, request.call(), request.send(&api)).await)
    }

    /// Returns the client for a request that is sent now, if the shard is still led. [`Leadership::write_limits`] limits
    /// the lifetime of the request: the older the last renewal of the member Lease, the shorter the lifetime, but never
    /// under `store_within`.
    fn limited_client(&self, api: ApiClient, shard_term: ShardTerm, store_within: Duration) -> Option<ApiClient> {
        let (leadership, now) = (self.leadership.borrow(), self.clock.boot());
        let is_led = leadership.covers(shard_term, now);
        is_led.then(|| api.with_limits(&leadership.write_limits(shard_term, now, store_within)))
    }
}
