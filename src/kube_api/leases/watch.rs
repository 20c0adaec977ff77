//! One watch of Leases: its events, in order.

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use kube::core::{Status, WatchEvent};

use super::{
    LeaseError, LeaseEvent,
    object::{self, LeaseObject},
    unreadable,
};
use crate::{
    coordination::LeaseNames,
    kube_api::{
        exchange::{ExchangeError, Request},
        objects::classify::bounded,
    },
};

/// Opens a watch, and ends it at the first error. `what` names it in errors.
pub(super) fn watch(
    client: kube::Client,
    request: Request,
    what: String,
    names: Arc<LeaseNames>,
    opens_within: Duration,
) -> impl Stream<Item = Result<LeaseEvent, LeaseError>> + Send + 'static {
    let opening = async move {
        let received = open(&client, request, &what, opens_within).await?;
        Ok::<_, LeaseError>(received.map(move |event| match event {
            Ok(event) => read(event, &names, &what),
            Err(error) => Err(failed(error, &what)),
        }))
    };
    let events = Box::pin(stream::once(opening).try_flatten());
    stream::try_unfold(events, |mut events| async move {
        let event = events.try_next().await?;
        Ok(event.map(|event| (event, events)))
    })
}

async fn open(
    client: &kube::Client,
    request: Request,
    what: &str,
    opens_within: Duration,
) -> Result<impl Stream<Item = kube::Result<WatchEvent<LeaseObject>>> + use<>, LeaseError> {
    let request = request.build().map_err(|error| LeaseError::unanswered(what, error))?;
    match tokio::time::timeout(opens_within, client.request_events(request)).await {
        Ok(opened) => opened.map_err(|error| failed(error, what)),
        Err(_) => Err(LeaseError::unanswered(what, ExchangeError::Timeout(opens_within))),
    }
}

/// Reads an event. An event of a foreign Lease is a bookmark.
fn read(event: WatchEvent<LeaseObject>, names: &LeaseNames, what: &str) -> Result<LeaseEvent, LeaseError> {
    let read = match event {
        WatchEvent::Added(lease) | WatchEvent::Modified(lease) => match lease.key(names) {
            Some(key) => lease.into_record(key).map(LeaseEvent::Applied),
            None => lease.resource_version().map(LeaseEvent::Bookmark),
        },
        WatchEvent::Deleted(lease) => lease.resource_version().map(|version| match lease.key(names) {
            Some(key) => LeaseEvent::Deleted(key, version),
            None => LeaseEvent::Bookmark(version),
        }),
        WatchEvent::Bookmark(bookmark) => {
            object::version(&bookmark.metadata.resource_version).map(LeaseEvent::Bookmark)
        }
        WatchEvent::Error(status) => return Err(refused(&status, what)),
    };
    read.map_err(|error| unreadable(what, &error))
}

/// The error of a watch that did not open, or broke.
fn failed(error: kube::Error, what: &str) -> LeaseError {
    if let kube::Error::Api(status) = error {
        refused(&status, what)
    } else if let kube::Error::SerdeError(error) = error {
        unreadable(what, &error.into())
    } else {
        LeaseError::unanswered(what, ExchangeError::Transport(error))
    }
}

/// The error that a `Status` reports.
fn refused(status: &Status, what: &str) -> LeaseError {
    let request = what.to_owned();
    let (code, message) = match (status.code, &*status.message) {
        // `kube` takes JSON of any other kind for a `Status` without content.
        (0, "") => {
            let message = "it is neither an event of a Lease nor a Status".to_owned();
            return LeaseError::Unreadable { request, message };
        }
        (code, "") => (code, "no reason given".to_owned()),
        (code, message) => (code, bounded(message)),
    };
    LeaseError::Refused { request, code, message }
}
