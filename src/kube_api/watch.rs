//! Watch streams of CronJobs and Jobs as inputs, for the controller and for commands that only show objects.
//!
//! A stream never ends. An object that cannot be decoded is reported as such, and as existing. A CronJob then starts
//! nothing, since its former state no longer holds; a Job keeps its former state, since no other run may start beside
//! it.

pub mod collection;
mod compressed_cron_job;
pub mod cron_job_cache;
pub mod delivered_versions;
mod fenced;
mod kinds;
mod list_watch;
pub mod lists;
mod observed;

use std::sync::Arc;

use futures::Stream;
use kube::Client;

use self::{
    delivered_versions::{DeliveredVersion, DeliveredVersions},
    kinds::{CronJobs, Jobs, ShardFilter},
    list_watch::list_and_watch,
};
pub use self::{fenced::ended_by_fences, observed::observed};
use crate::{
    kube_api::{
        objects::decode::{DecodeError, Decoder},
        ordered_watch::{OrderedReceiver, OrderedSender},
        watch::collection::SelectedBy,
    },
    shard::{CronJobIdentity, Input, ResourceVersion, Scope, ShardCount, ShardSet},
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
    /// A list of the CronJobs of some shards is complete, with the side that selected them.
    Listed(SelectedBy),
    /// A CronJob of a shard that is not held was received.
    PassedOver,
    /// The CronJobs exceeded the cache, which stays empty until the next list.
    CacheFull,
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

/// The shards whose objects a watch selects.
#[derive(Clone, Debug)]
pub struct WatchedShards {
    /// The wanted shards.
    pub wanted: OrderedReceiver<ShardSet>,
    /// The versions that the watches of the scope have delivered.
    pub delivered: DeliveredVersions,
}

/// Lists and watches the CronJobs of a scope: all, or those of some shards. If the server does not select by
/// shard, all CronJobs are cached. Never ends.
pub fn cron_jobs(
    client: Client,
    scope: Scope,
    decoder: Arc<Decoder>,
    shards: Option<WatchedShards>,
) -> impl Stream<Item = WatchItem> + Send {
    let (cache, wanted, delivered) = match shards {
        None => (None, every_shard(), DeliveredVersion::default()),
        Some(WatchedShards { wanted, delivered }) => (Some(delivered.cache), wanted, delivered.cron_jobs),
    };
    list_and_watch(client, scope, CronJobs { decoder, cache }, wanted, delivered, None)
}

/// Lists and watches the Jobs of a scope: all, or those with the label of some shards. Never ends.
pub fn jobs(client: Client, scope: Scope, shards: Option<WatchedShards>) -> impl Stream<Item = WatchItem> + Send {
    let (filter, wanted, delivered) = match shards {
        None => (ShardFilter::All, every_shard(), DeliveredVersion::default()),
        Some(WatchedShards { wanted, delivered }) => (ShardFilter::ByLabel(delivered.count), wanted, delivered.jobs),
    };
    list_and_watch(client, scope, Jobs(filter), wanted, delivered, None)
}

/// Lists and watches the Jobs of a scope that have no label of any shard, or watches them from a version. After every
/// event and bookmark follows its version. A watch request lasts `watch_secs` seconds, and the API server sends a
/// bookmark two seconds before its end. Never ends.
pub fn unlabelled_jobs(
    client: Client,
    scope: Scope,
    count: ShardCount,
    from: Option<ResourceVersion>,
    watch_secs: Option<u32>,
) -> impl Stream<Item = WatchItem> + Send {
    let jobs = Jobs(ShardFilter::Unlabelled { count, watch_secs });
    list_and_watch(client, scope, jobs, every_shard(), DeliveredVersion::default(), from)
}

/// The wanted shards of a selection that never changes.
fn every_shard() -> OrderedReceiver<ShardSet> {
    OrderedSender::new(ShardSet::EVERY).subscribe()
}
