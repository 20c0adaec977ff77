//! One shard that is held, and what is known of it besides.

use jiff::Timestamp;

use super::{HeldShards, listing::Listing};
use crate::shard::{
    ResourceVersions, ShardSet, Term,
    ids::ResourceVersion,
    input::{Input, Scope},
    state::{ShardState, Wakeup},
};

pub(super) struct Held {
    pub(super) state: ShardState,
    /// The term in which it is led; none before it is led for the first time.
    pub(super) term: Option<Term>,
    /// The list of its own that is going on.
    pub(super) listing: Option<Listing>,
    /// Scopes that the last list of its own left out; a list of the watch there completes the shard.
    left_out: Vec<Scope>,
    /// The version of the last list of its own, until a watch has come beyond it.
    listed_at: ResourceVersion,
    /// Up to where everything was there when it was listed, unless a watch lists it anew.
    pub(super) loaded: ResourceVersions,
    /// What we wrote last.
    pub(super) written: ResourceVersions,
    /// What the state said last.
    pub(super) wakeup: Option<Wakeup>,
    /// Whether it was touched since.
    pub(super) is_wakeup_old: bool,
}

impl Held {
    pub(super) fn new(state: ShardState, term: Option<Term>) -> Held {
        Held {
            state,
            term,
            listing: None,
            left_out: Vec::new(),
            listed_at: ResourceVersion(0),
            loaded: ResourceVersions::default(),
            written: ResourceVersions::default(),
            wakeup: None,
            is_wakeup_old: true,
        }
    }

    pub(super) fn handle(&mut self, input: Input, now: Timestamp) {
        self.is_wakeup_old = true;
        self.state.handle(input, now);
    }

    /// Ends the list of its own, if one is going on: it shows everything at these versions.
    pub(super) fn end_list(&mut self, through: &ResourceVersions, now: Timestamp) {
        let Some(listing) = self.listing.take() else { return };
        let ours = listing.ours(through);
        self.listed_at = ours.cron_jobs;
        self.loaded = self.loaded.max(&ours);
        self.left_out = listing.left_out();
        for input in listing.done(through.cron_jobs) {
            self.handle(input, now);
        }
    }

    /// Whether all scopes have been listed but those that its own list left out.
    pub(super) fn is_synced(&self) -> bool {
        self.state.is_synced_but_for(&self.left_out)
    }

    /// A list that a watch begins takes the place of ours, and may be older.
    pub(super) fn note_relist(&mut self, input: &Input) {
        if let Input::CronJobRelistBegun(_) | Input::JobRelistBegun(_) = input {
            self.loaded = ResourceVersions::default();
        }
    }

    /// Whether a watch that repeats the past shows a CronJob that a list which came later did not find: it is gone, and
    /// the watch will say so.
    pub(super) fn is_past(&mut self, input: &Input) -> bool {
        match input {
            Input::CronJobApplied(record) if record.resource_version > self.listed_at => {
                self.listed_at = ResourceVersion(0);
                false
            }
            Input::CronJobApplied(record) => {
                self.listed_at > ResourceVersion(0) && !self.state.has_cron_job(&record.identity.uid)
            }
            Input::CronJobRelistBegun(_) => {
                self.listed_at = ResourceVersion(0);
                false
            }
            Input::CronJobSeen(_)
            | Input::CronJobDeleted(_)
            | Input::CronJobRelistDone(_)
            | Input::JobRelistBegun(_)
            | Input::JobApplied(_)
            | Input::JobSeen(_)
            | Input::JobDeleted(_)
            | Input::JobUnselected(_)
            | Input::JobRelistDone(_)
            | Input::Selected(_)
            | Input::JobCreateAnswered { .. }
            | Input::JobDeleteAnswered { .. }
            | Input::JobLookedUp { .. }
            | Input::StatusAnswered { .. } => false,
        }
    }
}

impl HeldShards {
    /// Takes in that the list of these shards leaves a scope out, as the API server does not permit it.
    pub fn leave_out(&mut self, shards: &ShardSet, scope: &Scope) {
        for shard in shards.iter() {
            if let Some(listing) = self.held.get_mut(&shard).and_then(|held| held.listing.as_mut()) {
                listing.leave_out(scope);
            }
        }
    }
}
