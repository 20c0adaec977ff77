//! Freezes of the installation and of namespaces, and defaults of namespaces for CronJobs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::ShardState;
use crate::{
    schedule::{options::Freeze, thaw::last_frozen},
    shard::{
        cron_job::{Management, SlotStage},
        hash::spread_hash,
        index::OwnerIndex,
        outcome_counts::InstantOutcome,
        record::CronJobRecord,
        seconds::Seconds,
    },
};

/// The freezes of the installation and of namespaces, current and past, as flags and annotations say.
#[derive(Debug, Default)]
pub(super) struct Freezes {
    of_namespaces: BTreeMap<Box<str>, Freeze>,
    /// That of the installation.
    of_all: Option<Freeze>,
}

impl ShardState {
    /// Lets nothing start before an instant, whatever the namespace.
    pub(crate) fn freeze_all(&mut self, freeze: Option<Freeze>) {
        self.freezes.of_all = freeze;
    }

    /// Takes the freezes of these namespaces. Returns the ends of those that are over: now, or their own time, which no
    /// annotation shows any more.
    pub(super) fn follow_freezes(
        &mut self,
        changed: &BTreeSet<Box<str>>,
        now: Timestamp,
    ) -> BTreeMap<Box<str>, Timestamp> {
        let mut ends = BTreeMap::new();
        for namespace in changed {
            let options = self.namespaces.options(namespace);
            let freeze = options.and_then(|options| options.freeze.clone());
            let is_frozen = freeze.as_ref().is_some_and(|freeze| freeze.holds_at(now));
            let former = match freeze {
                Some(freeze) => self.freezes.of_namespaces.insert(namespace.clone(), freeze),
                None => self.freezes.of_namespaces.remove(namespace),
            };
            match former {
                Some(former) if !former.holds_at(now) => {
                    ends.insert(namespace.clone(), last_frozen(former.until));
                }
                Some(_) if !is_frozen => {
                    ends.insert(namespace.clone(), now);
                }
                Some(_) | None => {}
            }
        }
        ends
    }

    /// Decides a CronJob again after the options of its namespace have changed.
    pub(super) fn follow_namespace_options(
        &mut self,
        owner: OwnerIndex,
        freeze_ended: Option<Timestamp>,
        now: Timestamp,
    ) {
        let Some(cron_job) = self.index.get_cron_job_mut(owner) else {
            return;
        };
        cron_job.resumed = Seconds::new(cron_job.resumed.get().max(freeze_ended));
        if cron_job.management != Management::Managed {
            return;
        }
        cron_job.must_decide = true;
        cron_job.rare_mut().startable_since = Seconds::new(Some(now));
        if self.inherit_again(owner) {
            self.schedule_changed(owner, now);
        }
        self.arm(owner, None);
        // A create that waits was decided on the former options.
        self.withdraw(owner);
        self.evaluate(owner, now);
    }

    /// Takes the options of the namespace of a known CronJob. Returns whether its schedule has changed.
    pub(super) fn inherit_again(&mut self, owner: OwnerIndex) -> bool {
        let record = &mut self.index.cron_job_mut(owner).record;
        let options = self.namespaces.options(&record.identity.namespace);
        let former = record.schedule.clone();
        let hash = spread_hash(&record.identity.uid);
        record.schedule.inherit(options.as_deref(), hash);
        self.calendars.resolve(&record.identity.namespace, &mut record.schedule);
        record.schedule.differs_from(&former)
    }

    /// Adds the options of the namespace to those of a CronJob, and the calendar that it names.
    pub(super) fn inherit_options(&self, record: &mut CronJobRecord) {
        if let Some(options) = self.namespaces.options(&record.identity.namespace) {
            let hash = spread_hash(&record.identity.uid);
            record.schedule.inherit(Some(&options), hash);
        }
        self.calendars.resolve(&record.identity.namespace, &mut record.schedule);
    }

    /// The outcome of slots that an option does not start, if a freeze held the last one back; otherwise this outcome.
    pub(super) fn frozen_or(&self, owner: OwnerIndex, outcome: InstantOutcome) -> InstantOutcome {
        let open = self.index.cron_job(owner).open.as_ref();
        if open.is_some_and(|open| open.stage == SlotStage::Frozen) {
            InstantOutcome::Frozen
        } else {
            outcome
        }
    }

    /// The outcome of a slot that `on-resume` does not start. A leader that saw neither the freeze nor the suspension knows
    /// the end of the freeze from its annotation.
    pub(super) fn outcome_of_release(&self, owner: OwnerIndex, slot: Timestamp) -> InstantOutcome {
        let start = self.index.cron_job(owner).record.schedule.start_of(slot);
        let thawed = self.freeze_of(owner).map(|freeze| last_frozen(freeze.until));
        if thawed >= Some(start) {
            InstantOutcome::Frozen
        } else {
            InstantOutcome::Suspended
        }
    }

    /// The freeze of a CronJob, current or past: the one of its namespace or of the installation that ends later.
    pub(super) fn freeze_of(&self, owner: OwnerIndex) -> Option<&Freeze> {
        let Freezes { of_namespaces, of_all } = &self.freezes;
        if of_namespaces.is_empty() {
            return of_all.as_ref();
        }
        let of_namespace = of_namespaces.get(&self.index.cron_job(owner).record.identity.namespace);
        of_namespace.into_iter().chain(of_all).max_by_key(|freeze| freeze.until)
    }
}
