//! Watches of all CronJobs or Jobs for commands that only show them, over `kube`'s watcher.

use std::{future::ready, sync::Arc};

use futures::{Stream, StreamExt, stream};
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt as _,
        watcher::{Config, Error, Event, watcher},
    },
};

use super::{
    WatchItem,
    kinds::{CronJobs, Jobs, Kind},
};
use crate::{
    kube_api::{
        objects::{
            classify::{bounded, error_text},
            decode::Decoder,
        },
        page_sizes::PAGE_SIZE,
    },
    shard::{Input, Scope},
};

/// Lists and watches the CronJobs of all namespaces. Never ends.
pub fn show_cron_jobs(client: Client, decoder: Arc<Decoder>) -> impl Stream<Item = WatchItem> + Send {
    show(client, CronJobs { decoder, shards: None })
}

/// Lists and watches the Jobs of all namespaces. Never ends.
pub fn show_jobs(client: Client) -> impl Stream<Item = WatchItem> + Send {
    show(client, Jobs::All)
}

fn show<K: Kind + Sync>(client: Client, kind: K) -> impl Stream<Item = WatchItem> + Send {
    let api: Api<K::Object> = Api::all(client);
    let begin = move || Box::pin(watcher(api.clone(), Config::default().page_size(PAGE_SIZE)));
    let events = stream::unfold((begin(), begin), |(mut events, begin)| async move {
        let event = events.next().await?;
        if event.as_ref().is_err_and(loses_events) {
            events = begin();
        }
        Some((event, (events, begin)))
    });
    events.default_backoff().filter_map(move |event| {
        ready(match event {
            Ok(Event::Init) => Some(WatchItem::Input(Input::list_begun(K::RESOURCE, Scope::Cluster))),
            Ok(Event::InitApply(object) | Event::Apply(object)) => kind.applied(object, |_| true),
            Ok(Event::InitDone) => Some(WatchItem::Input(Input::list_done(K::RESOURCE, Scope::Cluster))),
            Ok(Event::Delete(object)) => kind.deleted(&object, |_| true),
            Err(error) => Some(failed(&error)),
        })
    })
}

fn failed(error: &Error) -> WatchItem {
    if let Error::InitialListFailed(kube::Error::Api(status))
    | Error::WatchStartFailed(kube::Error::Api(status))
    | Error::WatchFailed(kube::Error::Api(status))
    | Error::WatchError(status) = error
    {
        return WatchItem::Error {
            message: bounded(&format!("{} ({})", status.message, status.code)),
            code: Some(status.code),
        };
    }
    WatchItem::Error {
        message: error_text(error),
        code: None,
    }
}

/// Whether the watcher would continue without a list although events are lost: after an event that is not JSON, and
/// after a version that is too old (410), if the server answers that with a status instead of an event.
fn loses_events(error: &Error) -> bool {
    let is_too_old = matches!(error, Error::WatchStartFailed(kube::Error::Api(status)) if status.code == 410);
    is_too_old || matches!(error, Error::WatchFailed(kube::Error::SerdeError(_)))
}
