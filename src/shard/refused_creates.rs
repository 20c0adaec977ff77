//! The CronJobs whose creates are refused. Each backs off on its own.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;

/// The numbers of CronJobs whose last create was refused. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedCreates(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    n_cron_jobs: u64,
    by_namespace: BTreeMap<Arc<str>, u64>,
}

/// The refusal of a CronJob's last create. Dropped after a create that is not refused.
#[derive(Debug)]
pub(crate) struct RefusedCreate {
    creates: RefusedCreates,
    namespace: Arc<str>,
    /// The number of refusals in a row, over all slots.
    pub(crate) n_refusals: u32,
    /// Whether the tenant caused the last refusal.
    pub(crate) is_due_to_tenant: bool,
    /// No create of a later slot before this instant.
    pub(crate) not_before: Timestamp,
    /// Whether the next create was let pass, until its answer.
    pub(crate) is_tried: bool,
}

impl RefusedCreates {
    /// Counts a CronJob that was not refused before.
    pub(super) fn add(&self, namespace: &str, now: Timestamp) -> RefusedCreate {
        RefusedCreate {
            namespace: self.count(namespace),
            creates: self.clone(),
            n_refusals: 0,
            is_due_to_tenant: false,
            not_before: now,
            is_tried: false,
        }
    }

    /// Counts one more CronJob of a namespace. Returns its name, which all of them share.
    fn count(&self, namespace: &str) -> Arc<str> {
        let mut counts = self.counts();
        let known = counts.by_namespace.get_key_value(namespace);
        let name = known.map_or_else(|| namespace.into(), |(name, _)| Arc::clone(name));
        *counts.by_namespace.entry(Arc::clone(&name)).or_default() += 1;
        counts.n_cron_jobs += 1;
        name
    }

    /// The current number of CronJobs.
    pub(super) fn n_cron_jobs(&self) -> u64 {
        self.counts().n_cron_jobs
    }

    /// The current number of their namespaces.
    pub(super) fn n_namespaces(&self) -> usize {
        self.counts().by_namespace.len()
    }

    /// Nothing panics while the counts are locked.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RefusedCreate {
    fn drop(&mut self) {
        let mut counts = self.creates.counts();
        counts.n_cron_jobs -= 1;
        if let Some(count) = counts.by_namespace.get_mut(&self.namespace) {
            *count -= 1;
            if *count == 0 {
                counts.by_namespace.remove(&self.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespace_counts_while_a_cron_job_of_it_is_refused() {
        let creates = RefusedCreates::default();
        let add = |namespace| creates.add(namespace, Timestamp::UNIX_EPOCH);
        let (first, second, other) = (add("shop"), add("shop"), add("bank"));
        assert_eq!((creates.n_cron_jobs(), creates.n_namespaces()), (3, 2));
        drop(first);
        assert_eq!((creates.n_cron_jobs(), creates.n_namespaces()), (2, 2));
        drop((second, other));
        assert_eq!((creates.n_cron_jobs(), creates.n_namespaces()), (0, 0));
    }
}
