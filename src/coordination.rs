//! Leader election for shards over Leases: the protocol as a pure state machine.
//!
//! Each replica renews a **member Lease**, which proves that it is alive. A **shard Lease** names the leader of a
//! shard and its term; it is written when these change and is never renewed. The Lease is authoritative; a computed
//! placement is only a hint. Only the holder moves a shard. A shard without a holder is taken by the member on
//! which it is placed, or else by the next member in the order of the ring.
//!
//! Safety rests on these rules. For each guard, a test disables it and finds a counterexample: the model check in
//! `election/tests/model`, and for one guard `election/tests/stale_view`. The guards are listed in `election/guards`:
//!
//! - A replica acts until its fence. The fence is counted from the **send** of its last successful renewal, and from
//!   the send of the last renewal that its own watch has delivered, so no replica acts on an outdated view.
//! - Every write carries the resourceVersion that it is based on.
//! - A member is evicted, and its shards taken, only when its Lease has not changed for the duration that the Lease
//!   advertises, by the observer's own clock. That duration outlasts any fence and all requests sent before it
//!   ([`Timing`]).
//! - An observer counts only time in which its own watch works, so an outage of the API server causes no eviction.
//! - Before an eviction the observer reads the Lease once more from the quorum.
//!
//! The shell (`controller/election`) owns one [`Election`]. It passes every event of its watch on Leases, every
//! response and every report of its shards to [`Election::handle`], calls [`Election::handle_timeout`] at
//! [`Election::next_wakeup`], and executes the [`ElectionEffect`]s in order. `kube_api/leases` converts Lease objects
//! to [`LeaseRecord`]s and [`LeaseWrite`]s to merge patches. This module reads no clock and draws no random number.

mod effect;
mod election;
mod identity;
mod input;
mod leadership;
mod placement;
mod protocol;
mod record;
mod ring;
mod timing;
mod write;

pub use effect::{Adoption, ElectionEffect, RequestId, StopReason};
pub use election::{CLOSE_MAX, Election, ElectionConfig, NoShardsReason, Overview};
pub use identity::{
    ACTS_LABEL, Incarnation, InstallationName, LEASE_LABEL, LeaseKey, LeaseNames, MemberIdentity, is_dns_label,
};
pub use input::{ElectionInput, LeaseAnswer};
pub use leadership::{Leadership, RenewalAnswer, Stamp, WriteLimits};
pub use placement::{Placement, PlacementInputs};
pub use protocol::{Installation, MemberSettings, PROTOCOL_VERSION};
pub use record::{Acceptance, Holder, LeaseList, LeaseRecord, MemberLease, ShardLease, annotation};
pub use ring::MemberRing;
pub use timing::Timing;
pub use write::LeaseWrite;
