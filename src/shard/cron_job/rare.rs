//! What is known of few CronJobs, in one allocation, so that the state of the others stays small.

use jiff::Timestamp;

use super::{CronJobState, reports::UnexpectedEvents};
use crate::shard::{panics::PanickedCronJob, seconds::Seconds};

/// The place of a CronJob in the queue of missed runs (O-4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PacePlace {
    /// The instant of the place.
    pub(crate) at: Timestamp,
    /// Whether a run has started at it.
    pub(crate) is_used: bool,
    /// The start of the last slot that became due while the CronJob has waited and in whose stead a run has started;
    /// before the first one, when the wait began.
    pub(crate) came_through: Timestamp,
    /// The start of the next such slot, if it has come: a run may start now, before the place.
    pub(crate) came: Option<Timestamp>,
}

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
    /// The place of its missed runs.
    pub(crate) place: Option<PacePlace>,
    /// Counts the CronJob if cronwheel panicked on this version of it, while its namespace is managed.
    pub(crate) panicked: Option<PanickedCronJob>,
}

impl Rare {
    /// Forgets what a leader of the shard has decided, and keeps what was observed.
    pub(super) fn forget_leadership(&mut self) {
        *self = Rare {
            startable_since: self.startable_since,
            panicked: self.panicked.take(),
            ..Rare::default()
        };
    }
}

impl CronJobState {
    /// [`Rare::startable_since`].
    pub(crate) fn startable_since(&self) -> Option<Timestamp> {
        self.rare.as_ref()?.startable_since.get()
    }

    /// [`Rare::not_permitted_since`].
    pub(crate) fn not_permitted_since(&self) -> Option<Timestamp> {
        self.rare.as_ref()?.not_permitted_since.get()
    }

    /// [`Rare::place`].
    pub(crate) fn place(&self) -> Option<PacePlace> {
        self.rare.as_ref()?.place
    }

    /// Notes that a run has started.
    pub(crate) fn use_place(&mut self) {
        let place = self.rare.as_deref_mut().and_then(|rare| rare.place.as_mut());
        let Some(place) = place else { return };
        match place.came.take() {
            Some(came) => place.came_through = came,
            None => place.is_used = true,
        }
    }

    /// Gives its place in the queue of missed runs up, because it cannot start then.
    pub(crate) fn give_place_up(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.place = None;
        }
    }

    /// Forgets a panic on a former version, or of a managed namespace.
    pub(crate) fn forget_panic(&mut self) {
        if let Some(rare) = &mut self.rare {
            rare.panicked = None;
        }
    }

    pub(crate) fn rare_mut(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// Takes the last error of the create of the open slot.
    pub(crate) fn take_error(&mut self) -> Option<Box<str>> {
        self.rare.as_deref_mut()?.error.take()
    }
}
