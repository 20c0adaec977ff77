//! Warning Events on Leases. The number in flight is limited; the log has every warning in any case.

use std::time::Duration;

use futures::{StreamExt, future::BoxFuture, stream::FuturesUnordered};

use crate::{controller::clock::Clock, coordination::LeaseKey, kube_api::leases::LeaseApi};

/// Maximum number of Events in flight.
const IN_FLIGHT_MAX: usize = 16;

/// Timeout of one Event.
const TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Notices {
    api: LeaseApi,
    clock: Clock,
    in_flight: FuturesUnordered<BoxFuture<'static, ()>>,
}

impl Notices {
    pub(super) fn new(api: LeaseApi, clock: Clock) -> Notices {
        Notices {
            api,
            clock,
            in_flight: FuturesUnordered::new(),
        }
    }

    /// Creates a warning Event on a Lease. Drops the Event if too many are in flight.
    pub(super) fn warn(&self, key: LeaseKey, reason: &'static str, message: String) {
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            return;
        }
        let (api, now) = (self.api.clone(), self.clock.now());
        self.in_flight.push(Box::pin(async move {
            if let Err(error) = api.warn(&key, reason, &message, now, TIMEOUT).await {
                tracing::debug!(%error, "Event not stored");
            }
        }));
    }

    /// Drives the Events in flight; never returns. Cancel safe.
    pub(super) async fn deliver(&mut self) {
        loop {
            if self.in_flight.next().await.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }
}
