//! The guards of the election: they prevent two leaders of one shard, and evictions of live members. For each guard, a
//! test disables it to show that it is needed.

use super::Election;
use crate::shard::BootInstant;

/// The guards that are enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a guard that is there or not")]
pub(super) struct Guards {
    /// The fence counts from the send of a renewal or of a list request, not from its response.
    pub(super) fence_from_send: bool,
    /// The fence also counts from the last renewal that this replica's own watch has delivered.
    pub(super) fence_from_view: bool,
    /// A member must be silent for its whole advertised duration before it is evicted.
    pub(super) wait_out_duration: bool,
    /// Silence counts only while this replica's own watch works and its own renewals succeed.
    pub(super) trusted_watch: bool,
    /// The holder of a shard is judged only by a view that is as new as the shard's Lease.
    pub(super) whole_view: bool,
    /// A member's Lease is read from the quorum before the member is evicted.
    pub(super) quorum_read: bool,
}

impl Guards {
    /// All guards, as in production.
    pub(super) const ALL: Guards = Guards {
        fence_from_send: true,
        fence_from_view: true,
        wait_out_duration: true,
        trusted_watch: true,
        whole_view: true,
        quorum_read: true,
    };

    /// The instant from which the fence counts after a request that was sent at `sent_at` is answered at `now`.
    pub(super) fn fence_from(self, sent_at: BootInstant, now: BootInstant) -> BootInstant {
        if self.fence_from_send { sent_at } else { now }
    }
}

impl Election {
    /// The guards in force.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "in tests the guards are a field")]
    pub(super) const fn guards(&self) -> Guards {
        Guards::ALL
    }

    /// The guards that the test enabled.
    #[cfg(test)]
    pub(super) fn guards(&self) -> Guards {
        self.guards
    }
}
