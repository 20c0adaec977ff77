//! The bounded report of a replica, which names some of the CronJobs in trouble.
//!
//! Namespaces take turns, so that a namespace with very many CronJobs in trouble hides no other. Within a namespace,
//! the CronJobs that have been in trouble longest come first. The selection depends only on the added troubles, and
//! not on their order.

use std::{collections::BTreeSet, sync::Arc};

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
    /// The selected troubles, and those that were added since the last [`Selection::prune`].
    selected: Vec<Trouble>,
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
        self.selected.push(trouble);
        if self.selected.len() >= 2 * self.n_max {
            self.prune();
        }
    }

    /// Omits all troubles beyond the maximum. The first of each namespace come before the second of any.
    fn prune(&mut self) {
        self.selected
            .sort_unstable_by(|a, b| (&a.cron_job.namespace, a).cmp(&(&b.cron_job.namespace, b)));
        self.selected.dedup();
        let namespaces = self
            .selected
            .chunk_by(|a, b| a.cron_job.namespace == b.cron_job.namespace);
        let mut placed: Vec<(usize, Trouble)> = namespaces
            .flat_map(|troubles| troubles.iter().cloned().enumerate())
            .collect();
        placed.sort_unstable();
        for (_, trouble) in placed.drain(self.n_max.min(placed.len())..) {
            self.n_omitted[trouble.kind as usize] += 1;
        }
        self.selected = placed.into_iter().map(|(_, trouble)| trouble).collect();
    }

    pub(crate) fn into_report(mut self) -> TroubleReport {
        self.prune();
        // A CronJob that was deleted and created again meanwhile is named once.
        let mut names = BTreeSet::new();
        self.selected.retain(|trouble| {
            let CronJobIdentity { namespace, name, .. } = &*trouble.cron_job;
            names.insert((namespace.clone(), name.clone(), trouble.kind))
        });
        TroubleReport {
            named: self.selected,
            n_omitted: self.n_omitted,
        }
    }
}

#[cfg(test)]
mod tests;
