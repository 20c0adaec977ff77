//! The CronJobs that cannot be decoded at present.
//!
//! They start nothing, and the shards do not know those that could never be decoded. The counter of received objects does not
//! tell whether they still exist.

use std::collections::HashMap;

use prometheus::IntGauge;

use crate::{
    kube_api::WatchItem,
    shard::{Input, ManagedNamespaces, Uid, input::WatchStage},
};

/// The undecodable CronJobs of one watch, with their namespaces.
#[derive(Debug)]
pub(super) struct UndecodableCronJobs {
    namespaces: ManagedNamespaces,
    /// The number in managed namespaces, of all watches.
    gauge: IntGauge,
    /// The part of this watch in the gauge.
    n_counted: i64,
    known: HashMap<Uid, Box<str>>,
    /// Those of the list in progress.
    listed: Option<HashMap<Uid, Box<str>>>,
}

impl UndecodableCronJobs {
    pub(super) fn new(namespaces: ManagedNamespaces, gauge: IntGauge) -> UndecodableCronJobs {
        UndecodableCronJobs {
            namespaces,
            gauge,
            n_counted: 0,
            known: HashMap::new(),
            listed: None,
        }
    }

    /// Follows an item of the watch.
    pub(super) fn follow(&mut self, item: &WatchItem) {
        match item {
            WatchItem::Undecodable {
                error,
                input: Some(Input::CronJobUndecodable(uid)),
                ..
            } => self.insert(uid, &error.namespace),
            WatchItem::Input(Input::CronJobApplied(record)) => self.remove(&record.identity.uid),
            WatchItem::Input(Input::CronJobDeleted(uid)) => self.remove(uid),
            WatchItem::Input(Input::WatchUpdated(update)) => self.follow_list(update.stage),
            WatchItem::Undecodable { .. }
            | WatchItem::Input(_)
            | WatchItem::HistoryWentBack { .. }
            | WatchItem::Error { .. } => {}
        }
    }

    fn insert(&mut self, uid: &Uid, namespace: &str) {
        if let Some(listed) = &mut self.listed {
            listed.insert(uid.clone(), namespace.into());
        }
        let is_new = self.known.insert(uid.clone(), namespace.into()).is_none();
        if is_new && self.namespaces.contains(namespace) {
            self.count(self.n_counted + 1);
        }
    }

    fn remove(&mut self, uid: &Uid) {
        if let Some(listed) = &mut self.listed {
            listed.remove(uid);
        }
        let namespace = self.known.remove(uid);
        if namespace.is_some_and(|namespace| self.namespaces.contains(&namespace)) {
            self.count(self.n_counted - 1);
        }
    }

    /// Forgets what a complete list does not contain. At each bookmark too, namespaces may have been released or selected.
    fn follow_list(&mut self, stage: WatchStage) {
        match stage {
            WatchStage::ListBegun => self.listed = Some(HashMap::new()),
            WatchStage::ListDone => {
                if let Some(listed) = self.listed.take() {
                    self.known = listed;
                }
            }
            WatchStage::Watching(_)
            | WatchStage::Reached(_)
            | WatchStage::Unchanged { .. }
            | WatchStage::NotPermitted
            | WatchStage::Interrupted => {}
        }
        let managed = self
            .known
            .values()
            .filter(|namespace| self.namespaces.contains(namespace));
        let n_managed = i64::try_from(managed.count()).unwrap_or(i64::MAX);
        self.count(n_managed);
    }

    fn count(&mut self, n_managed: i64) {
        let n_managed = n_managed.max(0);
        self.gauge.add(n_managed - self.n_counted);
        self.n_counted = n_managed;
    }
}

impl Drop for UndecodableCronJobs {
    fn drop(&mut self) {
        self.count(0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::Timestamp;

    use super::*;
    use crate::{
        kube_api::DecodeError,
        shard::{NamespaceUpdate, Scope, input::WatchedResource, state::test_record},
    };

    fn undecodable(uid: &str, namespace: &str) -> WatchItem {
        WatchItem::Undecodable {
            error: DecodeError {
                kind: "CronJob",
                namespace: namespace.into(),
                name: uid.into(),
                field: "spec.suspend".into(),
                problem: "expected a boolean".into(),
            },
            cron_job: None,
            input: Some(Input::CronJobUndecodable(Uid::new(uid))),
        }
    }

    fn decodable(uid: &str) -> WatchItem {
        let mut record = test_record(uid);
        Arc::make_mut(&mut record.identity).uid = Uid::new(uid);
        WatchItem::Input(Input::CronJobApplied(Box::new(record)))
    }

    fn deleted(uid: &str) -> WatchItem {
        WatchItem::Input(Input::CronJobDeleted(Uid::new(uid)))
    }

    fn stage(stage: WatchStage) -> WatchItem {
        WatchItem::Input(Input::watch_updated(WatchedResource::CronJobs, Scope::Cluster, stage))
    }

    fn gauge() -> IntGauge {
        IntGauge::new("cronwheel_cron_jobs_undecodable", "a gauge").unwrap()
    }

    #[test]
    fn a_cron_job_counts_until_it_can_be_decoded_or_is_gone() {
        let gauge = gauge();
        let mut cron_jobs = UndecodableCronJobs::new(ManagedNamespaces::default(), gauge.clone());
        for (item, expected) in [
            (stage(WatchStage::ListBegun), 0),
            (undecodable("a", "shop"), 1),
            (undecodable("b", "shop"), 2),
            (undecodable("c", "bank"), 3),
            (stage(WatchStage::ListDone), 3),
            (undecodable("a", "shop"), 3),
            (decodable("a"), 2),
            (deleted("b"), 1),
            (deleted("b"), 1),
            (undecodable("d", "bank"), 2),
            // While the watch was interrupted, `c` was deleted.
            (stage(WatchStage::ListBegun), 2),
            (undecodable("d", "bank"), 2),
            (undecodable("e", "bank"), 3),
            (decodable("e"), 2),
            (stage(WatchStage::ListDone), 1),
        ] {
            cron_jobs.follow(&item);
            assert_eq!(gauge.get(), expected, "{item:?}");
        }
        let mut of_other_scope = UndecodableCronJobs::new(ManagedNamespaces::default(), gauge.clone());
        of_other_scope.follow(&undecodable("f", "team"));
        assert_eq!(gauge.get(), 2);
        drop(cron_jobs);
        assert_eq!(gauge.get(), 1);
    }

    #[test]
    fn only_managed_namespaces_count() {
        let (gauge, namespaces) = (gauge(), ManagedNamespaces::selected());
        let mut cron_jobs = UndecodableCronJobs::new(namespaces.clone(), gauge.clone());
        let bookmark = || stage(WatchStage::ListDone);
        // The CronJobs are listed before the namespaces.
        cron_jobs.follow(&undecodable("a", "shop"));
        assert_eq!(gauge.get(), 0);
        let update = |update| namespaces.apply(update, Timestamp::UNIX_EPOCH);
        update(NamespaceUpdate::ListBegun);
        update(NamespaceUpdate::selected("shop".into()));
        update(NamespaceUpdate::ListDone);
        cron_jobs.follow(&bookmark());
        assert_eq!(gauge.get(), 1);
        cron_jobs.follow(&undecodable("b", "bank"));
        assert_eq!(gauge.get(), 1);
        update(NamespaceUpdate::Released("shop".into()));
        cron_jobs.follow(&decodable("a"));
        cron_jobs.follow(&bookmark());
        assert_eq!(gauge.get(), 0);
    }
}
