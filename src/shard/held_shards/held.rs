//! One held shard with its state of loading and handover.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{lifecycle::Takeover, own_list::OwnList, sealing::Sealing};
use crate::shard::{
    ResourceVersions, Term,
    ids::ResourceVersion,
    input::{Input, Scope, WatchStage, WatchedResource},
    state::ShardState,
};

pub(super) struct Held {
    pub(super) state: ShardState,
    /// The term of its leadership; `None` before it is first led.
    pub(super) term: Option<Term>,
    /// The command to lead it, until its view is complete.
    pub(super) takeover: Option<Takeover>,
    /// The order to seal it.
    pub(super) sealing: Option<Sealing>,
    /// The shard's own list, while it is in progress.
    pub(super) own_list: Option<OwnList>,
    /// Scopes that its last own list skipped. A later list by the watch of such a scope completes the shard.
    skipped_scopes: BTreeSet<Scope>,
    /// The version of the CronJobs in its last own list; zero once a watch has delivered a later version.
    listed_at: ResourceVersion,
    /// The versions that its own lists covered. A relist by a watch resets them.
    pub(super) loaded: ResourceVersions,
    /// The last versions that this replica wrote.
    pub(super) written: ResourceVersions,
    /// The last wake-up reported by `state`.
    pub(super) wakeup: Option<Timestamp>,
    /// Whether `state` has changed since.
    pub(super) is_wakeup_old: bool,
}

impl Held {
    pub(super) fn new(state: ShardState) -> Held {
        Held {
            state,
            term: None,
            takeover: None,
            sealing: None,
            own_list: None,
            skipped_scopes: BTreeSet::new(),
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

    /// Ends the shard's own list, if one is in progress. The list is complete as of these versions.
    pub(super) fn end_list(&mut self, through: &ResourceVersions, now: Timestamp) {
        let Some(own_list) = self.own_list.take() else { return };
        let ours = own_list.ours(through);
        self.listed_at = ours.cron_jobs;
        self.loaded = self.loaded.max(&ours);
        self.skipped_scopes.clone_from(&own_list.skipped_scopes);
        for input in own_list.done(through.cron_jobs) {
            self.handle(input, now);
        }
    }

    /// Whether all scopes were listed. Scopes that the list of the shard itself skipped do not count.
    pub(super) fn is_synced(&self) -> bool {
        self.state.is_synced_but_for(&self.skipped_scopes)
    }

    /// The minimum versions that the next leader must observe: the last ones that this replica wrote, and the highest
    /// ones that it knows. An earlier leader may have written the latter.
    pub(super) fn written_through(&self) -> ResourceVersions {
        self.written.max(&self.state.latest_versions())
    }

    /// Handles the start of a list by a watch, which replaces the shard's own list and may be older.
    pub(super) fn note_relist(&mut self, input: &Input) {
        if let Input::WatchUpdated(update) = input
            && update.stage == WatchStage::ListBegun
        {
            self.loaded = ResourceVersions::default();
            if update.resource == WatchedResource::CronJobs {
                self.listed_at = ResourceVersion(0);
            }
        }
    }

    /// Handles a CronJob that a watch delivers. A version later than that of the last own list ends the replay of events.
    pub(super) fn note_delivered(&mut self, input: &Input) {
        if let Input::CronJobApplied(record) = input
            && record.resource_version > self.listed_at
        {
            self.listed_at = ResourceVersion(0);
        }
    }

    /// Whether a watch replays an event of a CronJob that a later list did not contain. The CronJob is gone, and the
    /// watch will deliver its deletion.
    pub(super) fn is_past(&self, input: &Input) -> bool {
        let Input::CronJobApplied(record) = input else {
            return false;
        };
        self.listed_at > ResourceVersion(0) && !self.state.has_cron_job(&record.identity.uid)
    }
}
