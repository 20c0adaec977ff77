//! The bounded report of a replica, which names some of the CronJobs in trouble.
//!
//! Namespaces take turns, so that a namespace with very many CronJobs in trouble hides no other. Within a namespace,
//! the CronJobs that have been in trouble longest come first. The selection depends only on the added troubles, and
//! not on their order.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;

use super::TroubleKind;
use crate::shard::{CronJobIdentity, ManagedNamespaces, ShardId, ShardSet};

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
    /// The owner of the CronJob, by its label; [`OTHER_OWNER`] if there are too many owners.
    pub owner: Option<Box<str>>,
}

/// Maximum number of owners that a report names. Each value of a label has a cost in Prometheus.
pub const OWNERS_MAX: usize = 100;

/// The owner in place of those beyond [`OWNERS_MAX`].
pub const OTHER_OWNER: &str = "other";

/// The CronJobs in trouble that a replica names, and the number of omitted ones.
///
/// A report is made by additions with one maximum. Until [`TroubleReport::finish`], the named CronJobs are unordered
/// and up to twice as many as the maximum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TroubleReport {
    /// The named CronJobs: the first of each namespace before the second of any.
    pub named: Vec<Trouble>,
    /// The number of further ones, by the number of their kind.
    pub n_omitted: [u64; TroubleKind::ALL.len()],
}

impl TroubleReport {
    /// Adds a trouble to an unfinished report that will name at most `n_max`.
    pub(crate) fn add(&mut self, trouble: Trouble, n_max: usize) {
        self.named.push(trouble);
        if self.named.len() >= 2 * n_max {
            self.prune(n_max);
        }
    }

    /// Finishes a report: selects the named CronJobs among the added ones, with the maximum of the additions.
    pub(crate) fn finish(&mut self, n_max: usize) {
        self.prune(n_max);
        // A CronJob that was deleted and created again meanwhile is named once.
        let mut names = BTreeSet::new();
        self.named.retain(|trouble| {
            let CronJobIdentity { namespace, name, .. } = &*trouble.cron_job;
            names.insert((namespace.clone(), name.clone(), trouble.kind))
        });
        let mut owners = BTreeSet::new();
        for owner in self.named.iter_mut().filter_map(|trouble| trouble.owner.as_mut()) {
            if owners.len() < OWNERS_MAX {
                owners.insert(owner.clone());
            } else if !owners.contains(owner) {
                *owner = OTHER_OWNER.into();
            }
        }
    }

    /// Leaves out of a finished report the CronJobs of shards that are not in the set, and all beyond a number.
    pub(crate) fn keep(&mut self, shards: &ShardSet, n_max: usize) {
        self.named.retain(|trouble| shards.contains(trouble.shard));
        self.omit_beyond(n_max);
    }

    /// Leaves out the CronJobs of namespaces that are not managed.
    pub(crate) fn keep_namespaces(&mut self, namespaces: &ManagedNamespaces) {
        self.named
            .retain(|trouble| namespaces.contains(&trouble.cron_job.namespace));
    }

    /// Omits all troubles beyond the maximum. The first of each namespace come before the second of any.
    fn prune(&mut self, n_max: usize) {
        self.named
            .sort_unstable_by(|a, b| (&a.cron_job.namespace, a).cmp(&(&b.cron_job.namespace, b)));
        self.named.dedup();
        let namespaces = self.named.chunk_by(|a, b| a.cron_job.namespace == b.cron_job.namespace);
        let mut placed: Vec<(usize, Trouble)> = namespaces
            .flat_map(|troubles| troubles.iter().cloned().enumerate())
            .collect();
        placed.sort_unstable();
        self.named = placed.into_iter().map(|(_, trouble)| trouble).collect();
        self.omit_beyond(n_max);
    }

    fn omit_beyond(&mut self, n_max: usize) {
        for trouble in self.named.drain(n_max.min(self.named.len())..) {
            self.n_omitted[trouble.kind as usize] += 1;
        }
    }
}

#[cfg(test)]
mod tests;
