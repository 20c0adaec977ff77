//! What differs between the kinds that are watched.

use std::sync::Arc;

use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::WatchItem;
use crate::{
    cluster::decode::{Decoder, SlimCronJob, SlimJob, UndecodedCronJob},
    state::{
        Input, Partition, Scope, Uid,
        input::{Selected, SelectedKind, SelectionStage},
        sharding::{ShardCount, ShardSet},
    },
};

/// What is made of the objects of a watch.
pub(super) trait Kind: Send + 'static {
    type Object: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Send
        + 'static;

    /// An object is there; nothing where it concerns nobody.
    fn applied(&self, object: Self::Object) -> Option<WatchItem>;
    /// It is gone.
    fn deleted(&self, object: &Self::Object) -> Option<Input>;
    /// A list is about to be asked for.
    fn relist_begun(&mut self, scope: Scope) -> Input;
    /// It is complete.
    fn relist_done(&mut self, scope: Scope) -> Input;
}

/// All CronJobs.
pub(super) struct CronJobs {
    pub(super) decoder: Arc<Decoder>,
}

impl CronJobs {
    fn applied(&self, object: SlimCronJob) -> WatchItem {
        let (cron_job, uid) = (object.identity().cloned(), object.uid().cloned());
        match object.into_record(&self.decoder) {
            Ok(record) => WatchItem::Input(Input::CronJobApplied(Box::new(record))),
            Err(error) => WatchItem::Undecodable {
                error,
                cron_job,
                input: uid.map(Input::CronJobSeen),
            },
        }
    }
}

impl Kind for CronJobs {
    type Object = SlimCronJob;

    fn applied(&self, object: SlimCronJob) -> Option<WatchItem> {
        Some(CronJobs::applied(self, object))
    }

    fn deleted(&self, object: &SlimCronJob) -> Option<Input> {
        Some(Input::CronJobDeleted(object.uid()?.clone()))
    }

    fn relist_begun(&mut self, scope: Scope) -> Input {
        Input::CronJobRelistBegun(scope)
    }

    fn relist_done(&mut self, scope: Scope) -> Input {
        Input::CronJobRelistDone(scope)
    }
}

/// The CronJobs of the shards that are held: the server sends all, and those of others are not even understood.
///
/// What is passed over is older than any list of a shard that is added later, since a shard is held before it is listed.
/// A list speaks of the shards that were held when it was asked for.
pub(super) struct HeldCronJobs {
    pub(super) of_all: CronJobs,
    pub(super) count: ShardCount,
    pub(super) held: watch::Receiver<ShardSet>,
    /// Those that the list that goes on is of.
    pub(super) listed: ShardSet,
}

impl HeldCronJobs {
    fn is_held(&self, uid: Option<&Uid>) -> bool {
        let Some(uid) = uid else { return true };
        let shard = Partition::Shards(self.count).shard_of(uid);
        self.listed.contains(shard) || self.held.borrow().contains(shard)
    }

    fn announce(&self, scope: Scope, stage: SelectionStage) -> Input {
        Input::Selected(Box::new(Selected {
            kind: SelectedKind::CronJobs,
            scope,
            shards: self.listed,
            stage,
        }))
    }
}

impl Kind for HeldCronJobs {
    type Object = UndecodedCronJob;

    fn applied(&self, object: UndecodedCronJob) -> Option<WatchItem> {
        if !self.is_held(object.uid()) {
            return None;
        }
        Some(self.of_all.applied(object.decode()?))
    }

    fn deleted(&self, object: &UndecodedCronJob) -> Option<Input> {
        let uid = object.uid()?;
        self.is_held(Some(uid)).then(|| Input::CronJobDeleted(uid.clone()))
    }

    fn relist_begun(&mut self, scope: Scope) -> Input {
        self.listed = *self.held.borrow();
        self.announce(scope, SelectionStage::ListBegun)
    }

    fn relist_done(&mut self, scope: Scope) -> Input {
        let done = self.announce(scope, SelectionStage::ListDone);
        self.listed = ShardSet::EMPTY;
        done
    }
}

/// Jobs.
pub(super) struct Jobs;

impl Kind for Jobs {
    type Object = SlimJob;

    fn applied(&self, object: SlimJob) -> Option<WatchItem> {
        let uid = object.uid().cloned();
        Some(match object.into_record() {
            Ok(record) => WatchItem::Input(Input::JobApplied(Box::new(record))),
            Err(error) => WatchItem::Undecodable {
                error,
                cron_job: None,
                // Were it gone, another run could start beside it (B-10.3).
                input: uid.map(Input::JobSeen),
            },
        })
    }

    fn deleted(&self, object: &SlimJob) -> Option<Input> {
        Some(Input::JobDeleted(object.uid()?.clone()))
    }

    fn relist_begun(&mut self, scope: Scope) -> Input {
        Input::JobRelistBegun(scope)
    }

    fn relist_done(&mut self, scope: Scope) -> Input {
        Input::JobRelistDone(scope)
    }
}
