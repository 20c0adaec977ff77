//! Counters of what the API server leaves out of CronJobs, and of what it does not.

use prometheus::IntCounter;

use super::{Register, table};
use crate::kube_api::watch::selection::SelectedBy;

/// Of what the API server is asked to leave out, where CronJobs are shared with other replicas.
#[derive(Clone, Debug)]
pub struct SelectionMetrics {
    /// Lists of CronJobs from which it left out those of others.
    pub lists_by_server: IntCounter,
    /// Lists of CronJobs from which we did.
    pub lists_by_replica: IntCounter,
    /// CronJobs of others that it sent.
    pub passed_over: IntCounter,
    /// Times when there were more of them than are kept.
    pub keep_overflows: IntCounter,
}

impl SelectionMetrics {
    /// Takes note of a list that is complete.
    pub fn note_list(&self, selected_by: SelectedBy) {
        match selected_by {
            SelectedBy::Server => self.lists_by_server.inc(),
            SelectedBy::Replica => self.lists_by_replica.inc(),
        }
    }
}

impl Register<'_> {
    pub(super) fn selection(&self) -> Result<SelectionMetrics, prometheus::Error> {
        let lists = self.counters(&table::CRON_JOB_LISTS)?;
        Ok(SelectionMetrics {
            lists_by_server: lists.with_label_values(&["server"]),
            lists_by_replica: lists.with_label_values(&["replica"]),
            passed_over: self.counter(&table::CRON_JOBS_PASSED_OVER)?,
            keep_overflows: self.counter(&table::CRON_JOBS_KEEP_OVERFLOWS)?,
        })
    }
}
