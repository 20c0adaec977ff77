//! One shard of a replica with its state of takeover and handover.

use jiff::Timestamp;

use super::{sealing::Sealing, takeovers::Takeover, totals::Part};
use crate::shard::{ResourceVersions, Term, state::ShardState};

pub(super) struct Held {
    pub(super) state: ShardState,
    /// The term of its leadership; `None` on standby.
    pub(super) term: Option<Term>,
    /// The command to lead it, until its view is complete.
    pub(super) takeover: Option<Takeover>,
    /// The order to seal it.
    pub(super) sealing: Option<Sealing>,
    /// The last versions that this replica wrote.
    pub(super) written: ResourceVersions,
    /// The last wake-up reported by `state`.
    pub(super) wakeup: Option<Timestamp>,
    /// What the totals contain of `state`.
    pub(super) counted: Part,
}

impl Held {
    pub(super) fn new(state: ShardState) -> Held {
        Held {
            state,
            term: None,
            takeover: None,
            sealing: None,
            written: ResourceVersions::default(),
            wakeup: None,
            counted: Part::default(),
        }
    }

    /// Ends the leadership of the shard, or the command to lead it.
    pub(super) fn stand_by(&mut self, now: Timestamp) {
        self.term = None;
        self.takeover = None;
        self.sealing = None;
        self.state.stand_by(now);
    }

    /// The minimum versions that the next leader must observe: the last ones that this replica wrote, and the highest
    /// ones that it knows. An earlier leader may have written the latter.
    pub(super) fn written_through(&self) -> ResourceVersions {
        self.written.max(&self.state.latest_versions())
    }
}
