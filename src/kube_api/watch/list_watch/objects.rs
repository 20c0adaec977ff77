//! The received objects: they are cached, and become inputs or are passed over.

use super::ListWatch;
use crate::{
    kube_api::{
        objects::decode::Received,
        watch::{
            WatchItem,
            kinds::{Kind, ShardFilter},
        },
    },
    shard::{ShardSet, Uid},
};

impl<K: Kind> ListWatch<K> {
    /// Takes an existing object. It is cached before the wanted shards are read, so that a shard that is added later
    /// finds it.
    pub(super) fn take_applied(&mut self, object: Received<K::Content>, listed: &ShardSet) {
        if self.kind.cache_object(&object) {
            self.ready.push_back(WatchItem::CacheFull);
        }
        let is_passed_over = object.uid().is_some_and(|uid| self.is_passed_over(uid, listed));
        self.ready.push_back(if is_passed_over {
            WatchItem::PassedOver
        } else {
            self.kind.applied(object)
        });
    }

    pub(super) fn take_deleted(&mut self, uid: &Uid) {
        if let Some(cache) = self.kind.cache() {
            cache.remove(uid);
        }
        self.ready.push_back(if self.is_passed_over(uid, &ShardSet::EMPTY) {
            WatchItem::PassedOver
        } else {
            WatchItem::Input(self.kind.deleted(uid.clone()))
        });
    }

    /// Whether a CronJob is of a shard that is neither wanted now nor listed; the API server leaves out the Jobs of other
    /// shards. Such a CronJob is no newer than any list of a shard that is added later, since the watch publishes its
    /// version before it reads the wanted shards.
    fn is_passed_over(&self, uid: &Uid, listed: &ShardSet) -> bool {
        let ShardFilter::ByHash(count) = self.kind.shard_filter() else {
            return false;
        };
        let shard = count.shard_of(uid);
        !self.wanted.get().contains(shard) && !listed.contains(shard)
    }
}
