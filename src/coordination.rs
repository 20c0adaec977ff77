//! Who leads which shard, through Leases: the protocol as a pure state machine.
//!
//! A **member Lease** for each replica says that it lives; it is renewed. A **shard Lease** for each shard says who leads
//! it, in which term; it is written when that changes and never renewed. The Lease is the truth, a computed placement only
//! a hint; only the holder moves a shard; a shard that nobody holds is taken by whoever sees it.
//!
//! What holds it together; a model check (`election/tests/model`) shows that each is needed:
//!
//! - a replica acts until its fence, which is counted from the **send** of its last renewal that succeeded, and from the
//!   send of the last renewal that its own watch has shown back to it: so it acts on no view that others have left behind;
//! - every write carries the resource version that it is based on;
//! - a member is evicted, and what it held taken, only when its Lease has not changed for its own advertised duration, by
//!   the observer's own clock, and that is longer than any fence and what was sent before it ([`Timing`]);
//! - an observer counts only time in which its own watch lived, so that an outage of the API server evicts nobody;
//! - before it evicts it reads the Lease once more, from the quorum.
//!
//! Who calls what: the shell (`controller/election`) owns one [`Election`]. It feeds every event of its one watch
//! on Leases, every answer and every word of its shards into [`Election::handle`], calls [`Election::handle_timeout`] at
//! [`Election::next_wakeup`], and carries out the [`ElectionEffect`]s in order. `cluster` turns Lease objects into
//! [`LeaseRecord`]s and [`LeaseWrite`]s into merge patches. Nothing here reads a clock or draws a number.

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

pub use effect::{Adoption, ElectionEffect, ExitReason, RejoinReason, RequestId, StopReason};
pub use election::{CLOSE_MAX, Election, ElectionConfig, NotOwning, Overview, ShardPhase};
pub use identity::{Incarnation, InstallationName, LEASE_LABEL, LeaseKey, LeaseNames, MemberIdentity};
pub use input::{ElectionInput, ReadAnswer, WriteAnswer};
pub use leadership::{Leadership, Stamp, WriteLife, WriteTerms};
pub use placement::{Candidate, Placement, Pull, Situation};
pub use protocol::{Installation, MemberSettings, ProtocolRange};
pub use record::{Acceptance, Holder, LeaseRecord, MemberLease, Plan, ShardLease, annotation};
pub use ring::{MemberRing, TOKENS_PER_MEMBER};
pub use timing::{Preset, Timing, TimingError, TimingParts};
pub use write::LeaseWrite;
