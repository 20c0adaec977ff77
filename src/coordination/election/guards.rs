//! What keeps two replicas from leading one shard. Each can be left out, in tests alone, to show that it is needed.

/// Which guards are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a guard that is there or not")]
pub(super) struct Guards {
    /// The fence counts from the send of a renewal or of a list, not from its answer.
    pub(super) fence_from_send: bool,
    /// The fence counts from the last renewal that our own watch has shown, too.
    pub(super) fence_from_view: bool,
    /// A member is silent for the whole of its advertised duration before it is evicted.
    pub(super) wait_out_duration: bool,
    /// Silence counts only while our own watch lives and our own renewals succeed.
    pub(super) trusted_watch: bool,
    /// Who leads a shard is judged by a view that is as new as the shard's Lease.
    pub(super) whole_view: bool,
    /// A Lease is read from the quorum before its member is evicted.
    pub(super) quorum_read: bool,
}

impl Guards {
    /// All: what runs.
    pub(super) const ALL: Guards = Guards {
        fence_from_send: true,
        fence_from_view: true,
        wait_out_duration: true,
        trusted_watch: true,
        whole_view: true,
        quorum_read: true,
    };
}
