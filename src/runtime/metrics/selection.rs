//! Counters of what the API server leaves out of CronJobs, and of what it does not.

use prometheus::IntCounter;

use crate::cluster::selection::SelectedBy;

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
