//! What is known of few CronJobs, in one allocation, so that the state of the others stays small.

use super::reports::UnexpectedEvents;
use crate::shard::seconds::Seconds;

/// What is known of few CronJobs.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// The latest instant until which no slot should have started, if this process observed it: the CronJob was not managed,
    /// could not be decoded, or had other options or another deadline.
    pub(crate) startable_since: Seconds,
    /// The time since which creates have been refused for lack of permission.
    pub(crate) not_permitted_since: Seconds,
    /// The limit of Events about Jobs that belong to no run.
    pub(crate) unexpected_events: UnexpectedEvents,
    /// The last error of the create of the open slot, shortened, if lost runs are logged.
    pub(crate) error: Option<Box<str>>,
}

impl Rare {
    /// Forgets what a leader of the shard has decided, and keeps what was observed.
    pub(super) fn forget_leadership(&mut self) {
        *self = Rare {
            startable_since: self.startable_since,
            ..Rare::default()
        };
    }
}
