//! Server-sent events: the version of the view, whenever it changes.

use std::{convert::Infallible, pin::Pin, sync::Arc, time::Duration};

use axum::response::sse::Event;
use futures::stream::{self, Stream};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Sleep, sleep},
};

use crate::kube_api::latest_value::LatestReceiver;

/// The least time between two events of a connection. A page that is fetched more often cannot be read.
const PAUSE: Duration = Duration::from_secs(1);
/// The time between two signs of life. Proxies end connections that are silent for a minute.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The maximum number of connections for events.
pub(super) const CONNECTIONS_MAX: usize = 100;

/// Creates the places for connections.
pub(super) fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(CONNECTIONS_MAX))
}

/// A connection. It gives its place back at its end.
struct Subscription {
    changes: LatestReceiver<u64>,
    /// The pause after the last event.
    pause: Option<Pin<Box<Sleep>>>,
    _place: OwnedSemaphorePermit,
}

/// The events of one connection: the present version at once, then every change, at most one a second.
pub(super) fn versions(
    changes: LatestReceiver<u64>,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Event, Infallible>> + Send {
    let subscription = Subscription {
        changes,
        pause: None,
        _place: place,
    };
    stream::unfold(subscription, |mut subscription| async move {
        if let Some(pause) = subscription.pause.take() {
            pause.await;
            subscription.changes.changed().await;
        }
        subscription.pause = Some(Box::pin(sleep(PAUSE)));
        let version = subscription.changes.see().to_string();
        Some((Ok(Event::default().data(version)), subscription))
    })
}

#[cfg(test)]
mod tests {
    use axum::response::{IntoResponse, Sse};
    use futures::{FutureExt, StreamExt};
    use tokio::time::advance;

    use super::*;
    use crate::kube_api::latest_value::LatestSender;

    #[tokio::test(start_paused = true)]
    async fn an_event_follows_each_change_at_most_once_a_second() {
        let version = LatestSender::new(7);
        let places = places();
        let place = Arc::clone(&places).try_acquire_owned().unwrap();
        let response = Sse::new(versions(version.subscribe(), place)).into_response();
        let mut body = response.into_body().into_data_stream();
        let mut next = || body.next().now_or_never().flatten().map(|frame| frame.unwrap());

        assert_eq!(
            next().as_deref(),
            Some(&b"data: 7\n\n"[..]),
            "the present version at once"
        );
        assert_eq!(next(), None);
        version.set(8);
        version.set(9);
        assert_eq!(next(), None, "within a second of the last event");
        advance(Duration::from_millis(999)).await;
        assert_eq!(next(), None);
        advance(Duration::from_millis(1)).await;
        assert_eq!(
            next().as_deref(),
            Some(&b"data: 9\n\n"[..]),
            "one event for two changes"
        );
        advance(Duration::from_mins(1)).await;
        assert_eq!(next(), None, "no event without a change");
        version.set(10);
        assert_eq!(
            next().as_deref(),
            Some(&b"data: 10\n\n"[..]),
            "at once after a quiet time"
        );
        assert_eq!(places.available_permits(), CONNECTIONS_MAX - 1);
        drop(body);
        assert_eq!(places.available_permits(), CONNECTIONS_MAX);
    }
}
