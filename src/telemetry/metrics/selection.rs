//! Counters of the CronJobs that the API server filters, and of those that it does not.

use prometheus::IntCounter;

use super::{Register, table};
use crate::kube_api::watch::collection::SelectedBy;

/// Counters of the selection of CronJobs by the API server, where they are shared with other replicas.
#[derive(Clone, Debug)]
pub struct SelectionMetrics {
    /// Lists of CronJobs that the API server filtered.
    pub lists_by_server: IntCounter,
    /// Lists of CronJobs that this replica filtered.
    pub lists_by_replica: IntCounter,
    /// CronJobs of other replicas' shards that the API server sent.
    pub passed_over: IntCounter,
    /// Overflows of the cache of other replicas' CronJobs.
    pub cache_overflows: IntCounter,
}

impl SelectionMetrics {
    /// Records a complete list.
    pub fn note_list(&self, selected_by: SelectedBy) {
        match selected_by {
            SelectedBy::Server => self.lists_by_server.inc(),
            SelectedBy::Replica => self.lists_by_replica.inc(),
        }
    }
}

impl Register<'_> {
    pub(super) fn selection(&self) -> SelectionMetrics {
        let lists = self.counters(&table::CRON_JOB_LISTS);
        SelectionMetrics {
            lists_by_server: lists.with_label_values(&["server"]),
            lists_by_replica: lists.with_label_values(&["replica"]),
            passed_over: self.counter(&table::CRON_JOBS_PASSED_OVER),
            cache_overflows: self.counter(&table::CRON_JOBS_CACHE_OVERFLOWS),
        }
    }
}
