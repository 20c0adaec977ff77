//! The bounded report of a replica, which names some of the CronJobs in trouble.
//!
//! Namespaces take turns, so that a namespace with very many CronJobs in trouble hides no other. Within a namespace,
//! the CronJobs that have been in trouble longest come first. The selection depends only on the added troubles, and
//! not on their order.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::TroubleKind;
use crate::shard::{CronJobIdentity, ShardId, ShardSet};

/// One kind of trouble of one CronJob, ordered by the instant at which it began.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trouble {
    /// The instant at which the trouble began.
    pub since: Timestamp,
    /// The CronJob.
    pub cron_job: Arc<CronJobIdentity>,
    /// The kind.
    pub kind: TroubleKind,
    /// The shard of the CronJob.
    pub shard: ShardId,
}

/// The CronJobs in trouble that a replica names, and the number of omitted ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TroubleReport {
    /// The named CronJobs: the first of each namespace before the second of any.
    pub named: Vec<Trouble>,
    /// The number of further ones, by the number of their kind.
    pub n_omitted: [u64; TroubleKind::ALL.len()],
}

impl TroubleReport {
    /// Leaves out the CronJobs of shards that are not in the set, and all beyond a number.
    pub(crate) fn keep(&mut self, shards: &ShardSet, n_max: usize) {
        self.named.retain(|trouble| shards.contains(trouble.shard));
        for trouble in self.named.drain(n_max.min(self.named.len())..) {
            self.n_omitted[trouble.kind as usize] += 1;
        }
    }
}

/// Selects at most a given number of troubles.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    n_max: usize,
    by_namespace: BTreeMap<Box<str>, BTreeSet<Trouble>>,
    /// The last trouble of each namespace, by its place there. The last of these is the last of the selection.
    lasts: BTreeSet<(usize, Trouble)>,
    n_selected: usize,
    n_omitted: [u64; TroubleKind::ALL.len()],
}

impl Selection {
    pub(crate) fn new(n_max: usize) -> Selection {
        Selection {
            n_max,
            ..Selection::default()
        }
    }

    pub(crate) fn add(&mut self, trouble: Trouble) {
        if self.is_beyond(&trouble) {
            self.n_omitted[trouble.kind as usize] += 1;
            return;
        }
        let cron_job = trouble.cron_job.clone();
        self.change(&cron_job.namespace, |troubles| {
            troubles.insert(trouble);
        });
        if self.n_selected > self.n_max {
            self.remove_last();
        }
    }

    /// Whether the trouble would be the last one, and the selection is full.
    fn is_beyond(&self, trouble: &Trouble) -> bool {
        let Some((place, last)) = self.lasts.last().filter(|_| self.n_selected == self.n_max) else {
            return false;
        };
        let of_namespace = self.by_namespace.get(&trouble.cron_job.namespace);
        let n_before = of_namespace.map_or(0, BTreeSet::len);
        let is_last_of_namespace = of_namespace.and_then(BTreeSet::last) < Some(trouble);
        is_last_of_namespace && (n_before + 1, trouble) > (*place, last)
    }

    fn remove_last(&mut self) {
        let Some((_, last)) = self.lasts.last().cloned() else {
            return;
        };
        self.change(&last.cron_job.namespace, |troubles| {
            troubles.remove(&last);
        });
        self.n_omitted[last.kind as usize] += 1;
    }

    /// Changes the selected troubles of a namespace.
    fn change(&mut self, namespace: &str, change: impl FnOnce(&mut BTreeSet<Trouble>)) {
        let troubles = match self.by_namespace.get_mut(namespace) {
            Some(troubles) => troubles,
            None => self.by_namespace.entry(namespace.into()).or_default(),
        };
        self.n_selected -= troubles.len();
        if let Some(last) = last_of(troubles) {
            self.lasts.remove(&last);
        }
        change(troubles);
        self.n_selected += troubles.len();
        if let Some(last) = last_of(troubles) {
            self.lasts.insert(last);
        } else {
            self.by_namespace.remove(namespace);
        }
    }

    pub(crate) fn into_report(self) -> TroubleReport {
        let mut placed: Vec<(usize, Trouble)> = self
            .by_namespace
            .into_values()
            .flat_map(|troubles| troubles.into_iter().enumerate())
            .collect();
        placed.sort();
        // A CronJob that was deleted and created again meanwhile is named once.
        let mut names = BTreeSet::new();
        placed.retain(|(_, trouble)| {
            let CronJobIdentity { namespace, name, .. } = &*trouble.cron_job;
            names.insert((namespace.clone(), name.clone(), trouble.kind))
        });
        TroubleReport {
            named: placed.into_iter().map(|(_, trouble)| trouble).collect(),
            n_omitted: self.n_omitted,
        }
    }
}

/// The place of the last trouble of a namespace, and the trouble.
fn last_of(troubles: &BTreeSet<Trouble>) -> Option<(usize, Trouble)> {
    Some((troubles.len(), troubles.last()?.clone()))
}

#[cfg(test)]
mod tests;
