//! The shards that a replica holds, behind the four verbs of one.
//!
//! Every fact goes to the shards that it concerns: by the uid of the CronJob or of a Job's controller, and to all of them
//! where neither is named. What comes out bears the shard and the term in which it was decided, so that it is sent in
//! that term or not at all. A shard that is taken up while the watches go on is on standby and is listed on its own;
//! what a watch has told since is not undone by that list.

mod account;
mod held;
mod listing;
mod pause;
mod progress;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

pub use self::listing::Listed;
use self::{
    held::Held,
    listing::Listing,
    progress::{Progress, note_written},
};
use super::{
    effect::Effect,
    ids::Uid,
    input::{Input, Scope, Selected, SelectedKind, SelectionStage},
    outcome_counts::OutcomeCounts,
    template_memory::TemplateMemory,
};
use crate::shard::{
    Bucket, ResourceVersions, ShardCount, ShardId, ShardSet, ShardTerm, Term,
    state::{ShardConfig, ShardState, Wakeup},
};

/// The only shard of a replica that is alone, and its only term.
pub const WHOLE: ShardTerm = ShardTerm {
    shard: ShardId(0),
    term: Term(1),
};

/// How CronJobs are shared out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// All in one shard, number 0: a replica that is alone by its configuration.
    Whole,
    /// By hash, over so many shards.
    Shards(ShardCount),
}

impl Partition {
    /// The shard of a CronJob.
    pub fn shard_of(self, cron_job: &Uid) -> ShardId {
        match self {
            Partition::Whole => WHOLE.shard,
            Partition::Shards(count) => Bucket::of(cron_job).shard(count),
        }
    }
}

/// An effect, and inside what it may be performed.
#[derive(Clone, Debug)]
pub struct Ordered {
    /// The shard and the term in which it was decided.
    pub shard_term: ShardTerm,
    /// What is to be done.
    pub effect: Effect,
}

/// See the module.
pub struct HeldShards {
    partition: Partition,
    scopes: Vec<Scope>,
    /// How far the clocks of replicas may be apart.
    clock_skew_max: SignedDuration,
    progress: Progress,
    held: BTreeMap<ShardId, Held>,
    /// Those that may have effects.
    with_effects: BTreeSet<ShardId>,
    /// The account of those that are held no more.
    retired: OutcomeCounts,
    template_memory: TemplateMemory,
    is_paused: bool,
}

impl HeldShards {
    /// No shard yet.
    pub fn new(partition: Partition, scopes: Vec<Scope>, clock_skew_max: SignedDuration) -> HeldShards {
        HeldShards {
            partition,
            progress: Progress::new(&scopes),
            scopes,
            clock_skew_max,
            held: BTreeMap::new(),
            with_effects: BTreeSet::new(),
            retired: OutcomeCounts::default(),
            template_memory: TemplateMemory::default(),
            is_paused: false,
        }
    }

    /// The memory for the templates and the metadata of all CronJobs that are held.
    pub fn template_memory(&self) -> &TemplateMemory {
        &self.template_memory
    }

    /// One shard with everything, led from the beginning; the watches list it.
    pub fn whole(scopes: Vec<Scope>, clock_skew_max: SignedDuration, now: Timestamp) -> HeldShards {
        let ShardTerm { shard, term } = WHOLE;
        let mut shards = HeldShards::new(Partition::Whole, scopes, clock_skew_max);
        let state = ShardState::new(shards.config(shard), now).with_template_memory(shards.template_memory.clone());
        shards.held.insert(shard, Held::new(state, Some(term)));
        shards
    }

    /// Begins to hold a shard, on standby, and a list of it. A second call begins the list anew.
    pub fn stand_by(&mut self, shard: ShardId, now: Timestamp) {
        let (config, memory) = (self.config(shard), &self.template_memory);
        let begin = || {
            Held::new(
                ShardState::on_standby(config, now).with_template_memory(memory.clone()),
                None,
            )
        };
        let held = self.held.entry(shard).or_insert_with(begin);
        if self.is_paused {
            held.state.pause();
        }
        let listing = Listing::new(&self.scopes);
        for input in listing.begun() {
            held.handle(input, now);
        }
        held.listing = Some(listing);
    }

    /// Takes in what the list of its own found of the shards that are being listed.
    pub fn take_listed(&mut self, listed: Listed, now: Timestamp) {
        let shard = self.partition.shard_of(listed.cron_job());
        let Some(held) = self.held.get_mut(&shard) else { return };
        if held.listing.as_mut().is_some_and(|listing| listing.takes(&listed)) {
            held.handle(listed.into_input(), now);
            self.with_effects.insert(shard);
        }
    }

    /// Ends the lists of these shards: everything that there was at these versions has been taken in.
    pub fn end_list(&mut self, shards: &ShardSet, through: &ResourceVersions, now: Timestamp) {
        for shard in shards.iter() {
            self.with(shard, |held| held.end_list(through, now));
        }
    }

    /// Leads a shard in this term from now on. One that is not held yet stands by first, and decides once it is listed.
    pub fn lead(&mut self, shard_term: ShardTerm, now: Timestamp) {
        let ShardTerm { shard, term } = shard_term;
        if !self.held.contains_key(&shard) {
            self.stand_by(shard, now);
        }
        self.with(shard, |held| {
            held.term = Some(term);
            held.state.lead(now);
        });
    }

    /// Has a shard that acts, and goes on to, leave nothing lying.
    pub fn close(&mut self, shard: ShardId, now: Timestamp) {
        self.with(shard, |held| held.state.close(now));
    }

    /// Decides what is due in a shard, and nothing after.
    pub fn seal(&mut self, shard: ShardId, now: Timestamp) {
        self.with(shard, |held| held.state.seal(now));
    }

    /// Whether a shard that is closing or sealed is at rest; one that is not held is.
    pub fn is_settled(&mut self, shard: ShardId) -> bool {
        self.held.get_mut(&shard).is_none_or(|held| held.state.is_settled())
    }

    /// Holds a shard no more. Effects that were not polled are lost with it.
    pub fn release(&mut self, shard: ShardId) {
        if let Some(held) = self.held.remove(&shard) {
            self.retired.add(&held.state.retire());
        }
        self.with_effects.remove(&shard);
    }

    /// Takes in a fact from a watch, or an answer.
    pub fn handle(&mut self, input: Input, now: Timestamp) {
        self.progress.observe(&input);
        if let Input::Selected(selected) = input {
            return self.follow_selection(&selected, now);
        }
        if let Some(shard) = self.concerned(&input) {
            return self.hand_to(shard, input, now);
        }
        let shards: Vec<ShardId> = self.held.keys().copied().collect();
        for shard in shards {
            self.hand_to(shard, input.clone(), now);
        }
    }

    /// A list of some shards is one for these alone: others it says nothing of.
    fn follow_selection(&mut self, selected: &Selected, now: Timestamp) {
        for shard in selected.shards.iter() {
            let scope = selected.scope.clone();
            let input = match (selected.kind, selected.stage) {
                (SelectedKind::CronJobs, SelectionStage::ListBegun) => Input::CronJobRelistBegun(scope),
                (SelectedKind::CronJobs, SelectionStage::ListDone) => Input::CronJobRelistDone(scope),
                (SelectedKind::Jobs, SelectionStage::ListBegun) => Input::JobRelistBegun(scope),
                (SelectedKind::Jobs, SelectionStage::ListDone) => Input::JobRelistDone(scope),
                (_, SelectionStage::Watching(_) | SelectionStage::NotPermitted) => return,
            };
            self.hand_to(shard, input, now);
        }
    }

    /// Takes in that it is `now`.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        for (shard, held) in &mut self.held {
            held.is_wakeup_old = true;
            held.state.handle_timeout(now);
            self.with_effects.insert(*shard);
        }
    }

    /// The next thing to be done.
    pub fn poll_effect(&mut self) -> Option<Ordered> {
        while let Some(shard) = self.with_effects.first().copied() {
            let held = self.held.get_mut(&shard);
            if let Some((term, effect)) = held.and_then(|held| Some((held.term?, held.state.poll_effect()?))) {
                let shard_term = ShardTerm { shard, term };
                return Some(Ordered { shard_term, effect });
            }
            self.with_effects.remove(&shard);
        }
        None
    }

    /// When time alone will next make something due; it may be early, never late.
    pub fn next_wakeup(&mut self) -> Option<Wakeup> {
        let wakeups = self.held.values_mut().filter_map(|held| {
            if std::mem::take(&mut held.is_wakeup_old) {
                held.wakeup = held.state.next_wakeup();
            }
            held.wakeup
        });
        wakeups.min_by_key(|wakeup| wakeup.at)
    }

    /// Which shards are held, on standby or more.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> {
        self.held.keys().copied()
    }

    /// Whether the watches have shown everything once, and every shard that is held has been listed.
    pub fn is_synced(&self) -> bool {
        self.is_watch_synced() && self.held.values().all(|held| held.state.is_synced())
    }

    /// Whether the watches have shown everything once.
    pub fn is_watch_synced(&self) -> bool {
        self.progress.is_listed()
    }

    /// Whether the watches have shown once what the API server permits, so that a shard can be listed beside them.
    pub fn are_permitted_watches_synced(&self) -> bool {
        self.progress.is_listed_as_permitted()
    }

    /// Whether the watches have shown what another leader wrote, or it was there when the shard was listed.
    pub fn has_seen(&self, shard: ShardId, written: &ResourceVersions) -> bool {
        let loaded = self.held.get(&shard).map(|held| held.loaded).unwrap_or_default();
        written.is_within(&self.progress.seen(shard).max(&loaded))
    }

    /// What whoever leads a shard after us must have seen: what we wrote last, and what we go by, which may be what a leader
    /// before us wrote.
    pub fn written_through(&self, shard: ShardId) -> ResourceVersions {
        let Some(held) = self.held.get(&shard) else {
            return ResourceVersions::default();
        };
        let mut written = held.written;
        written.note_status(held.state.latest_version());
        written.note_job(held.state.latest_job_version());
        written
    }

    /// Takes note of what we had to have seen, since a leader before us wrote it: whoever comes after us must have, too.
    pub fn note_handed_over(&mut self, shard: ShardId, written: &ResourceVersions) {
        self.with(shard, |held| held.written = held.written.max(written));
    }

    /// When time alone will next make something due in a shard.
    pub fn wakeup_of(&mut self, shard: ShardId) -> Option<Wakeup> {
        self.held.get_mut(&shard)?.state.next_wakeup()
    }

    /// The shard of a CronJob, held or not.
    pub fn shard_of(&self, cron_job: &Uid) -> ShardId {
        self.partition.shard_of(cron_job)
    }

    /// Whether a shard is held and has not been led.
    pub fn is_on_standby(&self, shard: ShardId) -> bool {
        self.held.get(&shard).is_some_and(|held| held.term.is_none())
    }

    /// Whether a shard has been listed, in all scopes but those that its own list had to leave out.
    pub fn is_shard_synced(&self, shard: ShardId) -> bool {
        self.held.get(&shard).is_some_and(Held::is_synced)
    }

    fn config(&self, shard: ShardId) -> ShardConfig {
        ShardConfig {
            clock_skew_max: self.clock_skew_max,
            shard,
            scopes: self.scopes.clone(),
            count: match self.partition {
                Partition::Whole => None,
                Partition::Shards(count) => Some(count),
            },
        }
    }

    fn with(&mut self, shard: ShardId, change: impl FnOnce(&mut Held)) {
        if let Some(held) = self.held.get_mut(&shard) {
            held.is_wakeup_old = true;
            change(held);
            self.with_effects.insert(shard);
        }
    }

    /// The one shard that a fact is about; none where it may be about any.
    fn concerned(&self, input: &Input) -> Option<ShardId> {
        let cron_job = match input {
            Input::CronJobApplied(record) => &record.identity.uid,
            Input::CronJobSeen(uid) | Input::CronJobDeleted(uid) => uid,
            Input::JobApplied(record) => record.controller.as_ref()?,
            Input::JobCreateAnswered { cron_job, .. }
            | Input::JobDeleteAnswered { cron_job, .. }
            | Input::StatusAnswered { cron_job, .. } => cron_job,
            Input::JobLookedUp { look_up, .. } => &look_up.cron_job.uid,
            Input::CronJobRelistBegun(_)
            | Input::CronJobRelistDone(_)
            | Input::JobRelistBegun(_)
            | Input::JobRelistDone(_)
            | Input::JobSeen(_)
            | Input::JobDeleted(_)
            | Input::JobUnselected(_)
            | Input::Selected(_) => return None,
        };
        Some(self.partition.shard_of(cron_job))
    }

    fn hand_to(&mut self, shard: ShardId, input: Input, now: Timestamp) {
        let Some(held) = self.held.get_mut(&shard) else { return };
        note_written(&mut held.written, &input);
        held.note_relist(&input);
        let is_for_shard = match &mut held.listing {
            Some(listing) => listing.observe(&input),
            None => !held.is_past(&input),
        };
        if is_for_shard {
            held.handle(input, now);
            self.with_effects.insert(shard);
        }
    }
}

#[cfg(test)]
mod tests;
