//! The phases of a shard in a replica: one enumeration for the election, the shards and their state.

/// The phase of a shard in a replica. Every replica has every shard, on standby if another one leads it. A shard that is
/// led passes through the phases in this order.
///
/// The phases hand a shard over without a gap and without an overlap. On standby, the next leader already records every
/// fact. The old leader decides nothing once the shard is sealed. Every earlier decision is answered and stored, or its slot is
/// still due by the ordinary rule (B-9). Closing precedes the seal so that most answers and status writes complete
/// while the shard still has a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ShardPhase {
    /// Records facts and has no effects.
    Standby,
    /// Decides and has effects.
    Leading,
    /// Decides and has effects, and writes every status at once.
    Closing,
    /// Decides no more slots. It handles answers, and writes every status at once.
    Sealed,
}

impl ShardPhase {
    /// Whether the shard starts Jobs.
    pub fn acts(self) -> bool {
        matches!(self, ShardPhase::Leading | ShardPhase::Closing)
    }
}
