//! The bounded report of a replica: which of the CronJobs in trouble it names.
//!
//! Namespaces take turns, so that one with very many CronJobs in trouble hides no other. Of one namespace, those that
//! have been in trouble longest come first. The selection depends only on what is added, and not on its order.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;

use super::TroubleKind;
use crate::shard::{CronJobIdentity, ShardId, ShardSet};

/// One kind of trouble of one CronJob, ordered by the instant since when.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Trouble {
    /// Since when.
    pub since: Timestamp,
    /// The CronJob.
    pub cron_job: Arc<CronJobIdentity>,
    /// The kind.
    pub kind: TroubleKind,
    /// The shard of the CronJob.
    pub shard: ShardId,
}

/// The CronJobs in trouble that a replica names, and how many it does not name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TroubleReport {
    /// What is named: the first of each namespace before the second of any.
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
    n_selected: usize,
    n_omitted: [u64; TroubleKind::ALL.len()],
    /// The last of a full selection: its place in its namespace, and the trouble.
    last: Option<(usize, Trouble)>,
}

impl Selection {
    pub(crate) fn new(n_max: usize) -> Selection {
        Selection {
            n_max,
            ..Selection::default()
        }
    }

    pub(crate) fn add(&mut self, trouble: Trouble) {
        let namespace = &trouble.cron_job.namespace;
        let selected = self.by_namespace.get(namespace);
        if self.is_beyond(&trouble, selected) {
            self.n_omitted[trouble.kind as usize] += 1;
            return;
        }
        let namespace = namespace.clone();
        self.n_selected += usize::from(self.by_namespace.entry(namespace).or_default().insert(trouble));
        if self.n_selected > self.n_max {
            self.remove_last();
            self.last = self.find_last();
        }
    }

    /// Whether the trouble would be the last of a full selection. False also means that it is not known without a search.
    fn is_beyond(&self, trouble: &Trouble, of_namespace: Option<&BTreeSet<Trouble>>) -> bool {
        let n_before = of_namespace.map_or(0, BTreeSet::len);
        let is_last_of_namespace = of_namespace.and_then(BTreeSet::last) < Some(trouble);
        self.last
            .as_ref()
            .is_some_and(|(place, last)| is_last_of_namespace && (n_before + 1, trouble) > (*place, last))
    }

    fn find_last(&self) -> Option<(usize, Trouble)> {
        let lasts = self.by_namespace.values();
        let last = lasts
            .filter_map(|troubles| Some((troubles.len(), troubles.last()?)))
            .max();
        last.map(|(place, last)| (place, last.clone()))
    }

    fn remove_last(&mut self) {
        let Some((_, last)) = self.find_last() else { return };
        let namespace = &last.cron_job.namespace;
        if let Some(troubles) = self.by_namespace.get_mut(namespace) {
            troubles.remove(&last);
            if troubles.is_empty() {
                self.by_namespace.remove(namespace);
            }
        }
        self.n_selected -= 1;
        self.n_omitted[last.kind as usize] += 1;
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

#[cfg(test)]
mod tests;
