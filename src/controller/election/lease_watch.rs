//! Lists the Leases of the installation once, watches them from there, and returns the changes as inputs of the
//! election.
//!
//! A watch that ends is resumed at its last resourceVersion. A relist follows if that resourceVersion is too old, or
//! if the election no longer trusts the cached Leases. The stream never ends.

use std::{pin::Pin, time::Duration};

use futures::{Stream, StreamExt, future::BoxFuture};

use super::refusals::Refusals;
use crate::{
    controller::{clock::Clock, permissions::Right},
    coordination::{ElectionInput, LeaseList},
    kube_api::leases::{LeaseApi, LeaseError, LeaseEvent},
    shard::{BootInstant, ResourceVersion},
};

/// Pause after a failure, and before a watch that ended is resumed: frequent enough to precede a fence.
const PAUSE: Duration = Duration::from_millis(250);

/// Pause after a request that was refused for lack of permission: about the renewal interval of a Lease.
const REFUSED_PAUSE: Duration = Duration::from_secs(2);

type Lines = Pin<Box<dyn Stream<Item = Result<LeaseEvent, LeaseError>> + Send>>;

/// State of the list-and-watch loop.
enum LeaseWatchState {
    Listing {
        requested_at: BootInstant,
        answer: BoxFuture<'static, Result<LeaseList, LeaseError>>,
    },
    Watching {
        lines: Lines,
        /// The watch has delivered every change up to this version.
        through: ResourceVersion,
    },
    Pausing {
        until: BootInstant,
        /// The version to resume from; `None` to list again.
        from: Option<ResourceVersion>,
    },
}

/// The list and watch of Leases.
pub(super) struct LeaseWatch {
    api: LeaseApi,
    clock: Clock,
    refusals: Refusals,
    /// Timeout of a list, and of a watch request until it begins. The election asks for a list after half of the time to a
    /// fence. If the list gets no answer, another one begins before the fence.
    patience: Duration,
    stage: LeaseWatchState,
}

impl LeaseWatch {
    /// Creates the watch. `fence_after` is the time without events after which a replica is fenced.
    pub(super) fn new(api: LeaseApi, clock: Clock, refusals: Refusals, fence_after: Duration) -> LeaseWatch {
        let patience = fence_after * 3 / 8;
        let stage = list(&api, &clock, patience);
        LeaseWatch {
            api,
            clock,
            refusals,
            patience,
            stage,
        }
    }

    /// Abandons the watch and lists again. A list in progress continues, since one that is slow would never end if it
    /// began again at every call.
    pub(super) fn relist(&mut self) {
        if matches!(self.stage, LeaseWatchState::Listing { .. }) {
            return;
        }
        self.stage = list(&self.api, &self.clock, self.patience);
    }

    /// Returns the next input. Cancel safe.
    pub(super) async fn next(&mut self) -> ElectionInput {
        loop {
            match &mut self.stage {
                LeaseWatchState::Listing { requested_at, answer } => {
                    let requested_at = *requested_at;
                    match answer.await {
                        Ok(list) => {
                            self.stage = watch(&self.api, list.resource_version, self.patience);
                            return ElectionInput::Listed { requested_at, list };
                        }
                        Err(error) => self.pause(["list", "leases"], Some(&error), None),
                    }
                }
                LeaseWatchState::Watching { lines, through } => match lines.next().await {
                    Some(Ok(LeaseEvent::Applied(record))) => {
                        *through = record.resource_version;
                        return ElectionInput::Applied(record);
                    }
                    Some(Ok(LeaseEvent::Deleted(key, version))) => {
                        *through = version;
                        return ElectionInput::Deleted(key, version);
                    }
                    Some(Ok(LeaseEvent::Bookmark(version))) => *through = version,
                    broken => {
                        let (error, through) = (broken.and_then(Result::err), *through);
                        let is_expired = matches!(error, Some(LeaseError::Refused { code: 410, .. }));
                        let from = (!is_expired).then_some(through);
                        self.pause(["watch", "leases"], error.as_ref(), from);
                    }
                },
                LeaseWatchState::Pausing { until, from } => {
                    let (remaining, from) = (until.since(self.clock.boot()), *from);
                    tokio::time::sleep(remaining).await;
                    self.stage = match from {
                        Some(from) => watch(&self.api, from, self.patience),
                        None => list(&self.api, &self.clock, self.patience),
                    };
                }
            }
        }
    }

    fn pause(&mut self, right: Right, error: Option<&LeaseError>, from: Option<ResourceVersion>) {
        let is_refused = error.is_some_and(|error| self.refusals.note_error(right, error));
        let pause = if is_refused { REFUSED_PAUSE } else { PAUSE };
        self.stage = LeaseWatchState::Pausing {
            until: self.clock.boot() + pause,
            from,
        };
    }
}

fn list(api: &LeaseApi, clock: &Clock, patience: Duration) -> LeaseWatchState {
    let api = api.clone();
    LeaseWatchState::Listing {
        requested_at: clock.boot(),
        answer: Box::pin(async move { api.list(patience).await }),
    }
}

fn watch(api: &LeaseApi, from: ResourceVersion, patience: Duration) -> LeaseWatchState {
    LeaseWatchState::Watching {
        lines: Box::pin(api.watch(from, patience)),
        through: from,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http_body_util::Full;
    use kube::client::Body;

    use super::*;
    use crate::{shard::ShardCount, telemetry::metrics::Metrics};

    #[tokio::test(start_paused = true)]
    async fn a_list_that_is_slower_than_the_relists_completes() {
        let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
        let refusals = Refusals::new(&Metrics::register().election.api, &clock);
        let slow = |_: http::Request<Body>| async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let list = Bytes::from_static(br#"{"metadata": {"resourceVersion": "7"}, "items": []}"#);
            Ok::<_, Infallible>(http::Response::new(Full::new(list)))
        };
        let client = kube::Client::new(tower::service_fn(slow), "default");
        let api = LeaseApi::new(client, "kube-system", ShardCount::default(), None);
        let begun = clock.boot();
        let mut leases = LeaseWatch::new(api, clock, refusals, Duration::from_secs(7));
        let early = tokio::time::timeout(Duration::from_millis(1_500), leases.next()).await;
        assert!(early.is_err(), "{early:?}");
        leases.relist();
        let listed = tokio::time::timeout(Duration::from_millis(1_500), leases.next()).await;
        let expected = ElectionInput::Listed {
            requested_at: begun,
            list: LeaseList {
                resource_version: ResourceVersion(7),
                leases: Vec::new(),
            },
        };
        assert_eq!(listed, Ok(expected));
    }
}
