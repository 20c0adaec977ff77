//! Watch streams of CronJobs, Jobs, namespaces and calendars as inputs, for the controller and for commands that only show objects.
//!
//! A stream never ends. An object that cannot be decoded is reported as such, and as existing. A CronJob then starts
//! nothing, since its former state no longer holds; a Job keeps its former state, since no other run may start beside
//! it. A Job that no CronJob controls yields no object, only the version that the watch has reached.

pub mod collection;
pub mod current;
mod fenced;
mod kinds;
mod list_watch;
mod observed;

use std::sync::Arc;

use futures::Stream;
use kube::Client;

pub use self::{fenced::ended_by_fences, observed::observed};
use self::{
    kinds::{Calendars, CronJobs, Jobs, Namespaces},
    list_watch::list_and_watch,
};
use crate::{
    kube_api::{
        latest_value::{LatestReceiver, LatestSender},
        namespace_selector::NamespaceSelector,
        objects::decode::{DecodeError, Decoder},
    },
    shard::{CronJobIdentity, Input, ResourceVersion, Scope},
};

/// An item of a watch stream.
#[derive(Clone, Debug)]
pub enum WatchItem {
    /// An input for the shards.
    Input(Input),
    /// An object that cannot be decoded.
    Undecodable {
        /// The field and the problem.
        error: DecodeError,
        /// The CronJob to report it on, in the received version; `None` for a Job.
        cron_job: Option<(Arc<CronJobIdentity>, ResourceVersion)>,
        /// The input for the shard: the object exists. `None` if not even the uid can be decoded.
        input: Option<Input>,
    },
    /// The API server returned to an older history, as after a restore of etcd.
    HistoryWentBack {
        /// The latest version that this watch has known.
        newest: ResourceVersion,
        /// The current version.
        current: ResourceVersion,
    },
    /// The list or the watch failed; it continues by itself after a back-off.
    Error {
        /// The verb of the request: list or watch.
        verb: &'static str,
        /// The message of the server or of the transport.
        message: String,
        /// The HTTP status, or the code in a watch event; `None` if the server did not answer.
        code: Option<u16>,
    },
}

/// The number of times that a watch was told to list again. Each change makes it list again.
pub type RelistOrders = LatestReceiver<u64>;

/// Lists and watches the CronJobs of a scope. Never ends.
pub fn cron_jobs(client: Client, scope: Scope, decoder: Arc<Decoder>) -> impl Stream<Item = WatchItem> + Send {
    cron_jobs_with_relists(client, scope, decoder, no_relists())
}

/// Lists and watches the Jobs of a scope. Never ends.
pub fn jobs(client: Client, scope: Scope) -> impl Stream<Item = WatchItem> + Send {
    jobs_with_relists(client, scope, no_relists())
}

/// Lists and watches the CronJobs of a scope, and lists them again when told to. Never ends.
pub fn cron_jobs_with_relists(
    client: Client,
    scope: Scope,
    decoder: Arc<Decoder>,
    relists: RelistOrders,
) -> impl Stream<Item = WatchItem> + Send {
    list_and_watch(client, scope, CronJobs { decoder }, relists)
}

/// Lists and watches the Jobs of a scope, and lists them again when told to. Never ends.
pub fn jobs_with_relists(client: Client, scope: Scope, relists: RelistOrders) -> impl Stream<Item = WatchItem> + Send {
    list_and_watch(client, scope, Jobs, relists)
}

/// Lists and watches the namespaces that a selector selects. Never ends.
pub fn namespaces(client: Client, selector: NamespaceSelector) -> impl Stream<Item = WatchItem> + Send {
    list_and_watch(client, Scope::Cluster, Namespaces { selector }, no_relists())
}

/// Lists and watches the calendars of a scope. Never ends.
pub fn calendars(client: Client, scope: Scope) -> impl Stream<Item = WatchItem> + Send {
    list_and_watch(client, scope, Calendars, no_relists())
}

/// A receiver without a sender never changes.
fn no_relists() -> RelistOrders {
    LatestSender::new(0).subscribe()
}
