//! The shards that a replica holds, with the four operations of a single shard.
//!
//! Every fact goes to the shard that it concerns, determined by the uid of the CronJob or of a Job's controller, or to
//! all shards if it names neither. Every effect carries the shard and the term of its decision, so that it is sent in
//! that term or not at all. A shard that is added while watches are open starts on standby and gets its own list, which
//! does not undo events that a watch has delivered since.

mod held;
pub mod lifecycle;
mod list_queue;
mod own_list;
mod pause;
mod progress;
pub mod sealing;
pub mod survey;
mod totals;
mod turns;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use self::{
    held::Held,
    lifecycle::Lifecycle,
    own_list::OwnList,
    pause::ShardPause,
    progress::{Progress, note_written},
    survey::Survey,
};
pub use self::{list_queue::ListRequest, totals::LedFigures};
use super::{
    effect::Effect,
    ids::Uid,
    input::{Input, Scope, WatchStage},
    outcome_counts::OutcomeCounts,
    refused_creates::RefusedCreates,
    template_memory::TemplateMemory,
};
use crate::shard::{
    ResourceVersions, ShardCount, ShardId, ShardSet, ShardTerm, Term,
    state::{ShardConfig, ShardState},
};

/// The only shard of a replica with `--alone`, and its only term.
pub const WHOLE: ShardTerm = ShardTerm {
    shard: ShardId(0),
    term: Term(1),
};

/// An effect with the shard and the term in which it may be performed.
#[derive(Clone, Debug)]
pub struct TermedEffect {
    /// The shard and the term in which it was decided.
    pub shard_term: ShardTerm,
    /// The action.
    pub effect: Effect,
}

/// The shards of a replica, with the four operations of [`ShardState`]. [`lifecycle`] has the others.
pub struct HeldShards {
    /// The number of shards; `None` if one shard has all CronJobs.
    count: Option<ShardCount>,
    scopes: Vec<Scope>,
    /// The maximum difference between the clocks of replicas.
    clock_skew_max: SignedDuration,
    progress: Progress,
    held: BTreeMap<ShardId, Held>,
    lifecycle: Lifecycle,
    /// Shards that may have effects to poll.
    with_effects: BTreeSet<ShardId>,
    /// Counts of released shards.
    retired: OutcomeCounts,
    template_memory: TemplateMemory,
    refused_creates: RefusedCreates,
    pause: ShardPause,
    survey: Survey,
}

impl HeldShards {
    /// Creates an instance that holds none of this number of shards. `None` means one shard with all CronJobs.
    pub fn new(count: Option<ShardCount>, scopes: Vec<Scope>, clock_skew_max: SignedDuration) -> HeldShards {
        HeldShards {
            count,
            progress: Progress::new(&scopes),
            scopes,
            clock_skew_max,
            held: BTreeMap::new(),
            lifecycle: Lifecycle::default(),
            with_effects: BTreeSet::new(),
            retired: OutcomeCounts::default(),
            template_memory: TemplateMemory::default(),
            refused_creates: RefusedCreates::default(),
            pause: ShardPause::default(),
            survey: Survey::default(),
        }
    }

    /// The memory for the templates and the metadata of all CronJobs.
    pub fn template_memory(&self) -> &TemplateMemory {
        &self.template_memory
    }

    /// Creates a single shard with all CronJobs, led from the start. The watches list it.
    pub fn whole(scopes: Vec<Scope>, clock_skew_max: SignedDuration, now: Timestamp) -> HeldShards {
        let mut shards = HeldShards::new(None, scopes, clock_skew_max);
        shards.hold(WHOLE.shard, now);
        shards.lead(WHOLE, now);
        shards
    }

    /// Adds a shard on standby, and marks its own list as begun. A second call marks the list as begun again. The
    /// caller makes the list.
    fn stand_by(&mut self, shard: ShardId, now: Timestamp) {
        self.hold(shard, now);
        let own_list = OwnList::new(&self.scopes);
        self.update(shard, |held| {
            for input in own_list.begun() {
                held.state.handle(input, now);
            }
            held.own_list = Some(own_list);
        });
    }

    /// Adds a shard on standby, unless it is held.
    fn hold(&mut self, shard: ShardId, now: Timestamp) {
        if self.held.contains_key(&shard) {
            return;
        }
        let config = ShardConfig {
            clock_skew_max: self.clock_skew_max,
            shard,
            scopes: self.scopes.clone(),
            count: self.count,
        };
        let mut state = ShardState::new(config, now);
        state.template_memory = self.template_memory.clone();
        state.refused_creates = self.refused_creates.clone();
        if self.pause.is_on {
            state.pause();
        }
        self.held.insert(shard, Held::new(state));
    }

    /// Adds an object found by the shard's own list, in the form in which a watch delivers it.
    fn add_listed(&mut self, found: Input, now: Timestamp) {
        let Some(shard) = self.shard_of_input(&found) else {
            return;
        };
        let Some(held) = self.held.get_mut(&shard) else { return };
        if held
            .own_list
            .as_mut()
            .is_some_and(|own_list| own_list.record_found(&found))
        {
            held.handle(found, now);
            self.with_effects.insert(shard);
        }
    }

    /// Ends the own lists of these shards. They contained every object as of these versions.
    fn end_lists(&mut self, shards: &ShardSet, through: &ResourceVersions, now: Timestamp) {
        for shard in shards.iter() {
            self.update(shard, |held| held.end_list(through, now));
        }
    }

    /// Starts leading a held shard in this term. It decides once it is listed.
    fn lead(&mut self, ShardTerm { shard, term }: ShardTerm, now: Timestamp) {
        self.update(shard, |held| {
            held.term = Some(term);
            held.state.lead(now);
        });
    }

    /// Skips a scope in the shard's own list, because the API server does not permit it.
    fn skip_scope_of(&mut self, shard: ShardId, scope: &Scope) {
        if let Some(own_list) = self.held.get_mut(&shard).and_then(|held| held.own_list.as_mut()) {
            own_list.skipped_scopes.insert(scope.clone());
        }
    }

    /// Drops a shard. Effects that were not polled are lost.
    fn drop_shard(&mut self, shard: ShardId) {
        if let Some(held) = self.held.remove(&shard) {
            self.retired.add(&held.state.retire());
        }
        self.with_effects.remove(&shard);
    }

    /// Handles a fact from a watch, or an answer.
    pub fn handle(&mut self, input: Input, now: Timestamp) {
        self.progress.observe(&input);
        if let Input::WatchUpdated(update) = input {
            // A list concerns the shards that it covers. Shards ignore the other stages.
            if let WatchStage::ListBegun | WatchStage::ListDone = update.stage {
                let shards = update.shards;
                self.deliver_to_each(&shards, &Input::WatchUpdated(update), now);
            }
            return;
        }
        if let Some(shard) = self.shard_of_input(&input) {
            self.leave_former_shard(&input, shard, now);
            let is_answer = matches!(input, Input::JobCreateAnswered { .. });
            let is_outage = self.is_outage(&input);
            self.deliver(shard, input, now);
            if is_outage {
                self.pause_in_outage();
            }
            if is_answer {
                self.give_turns(now);
            }
            return;
        }
        self.deliver_to_each(&ShardSet::EVERY, &input, now);
    }

    /// Removes a Job whose controller changed to a CronJob of another shard from its former shard (B-2.1). The Job's
    /// label names that shard.
    fn leave_former_shard(&mut self, input: &Input, shard: ShardId, now: Timestamp) {
        if let (Input::JobApplied(job), Some(count)) = (input, self.count)
            && let Some(former) = job.shard_labels.shard(count)
            && former != shard
        {
            self.deliver(former, Input::JobUnselected(job.uid.clone()), now);
        }
    }

    fn deliver_to_each(&mut self, shards: &ShardSet, input: &Input, now: Timestamp) {
        let held: Vec<ShardId> = self.shards().filter(|shard| shards.contains(*shard)).collect();
        for shard in held {
            self.deliver(shard, input.clone(), now);
        }
    }

    /// Advances time to `now`.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        for (shard, held) in &mut self.held {
            held.is_wakeup_old = true;
            held.state.handle_timeout(now);
            self.with_effects.insert(*shard);
        }
        self.give_turns(now);
    }

    /// The next effect to perform.
    pub fn poll_effect(&mut self) -> Option<TermedEffect> {
        while let Some(shard) = self.with_effects.first().copied() {
            let held = self.held.get_mut(&shard);
            if let Some((term, effect)) = held.and_then(|held| Some((held.term?, held.state.poll_effect()?))) {
                let shard_term = ShardTerm { shard, term };
                return Some(TermedEffect { shard_term, effect });
            }
            self.with_effects.remove(&shard);
        }
        None
    }

    /// The time of the next call of [`HeldShards::handle_timeout`]; may be early, never late.
    pub fn next_wakeup(&mut self) -> Option<Timestamp> {
        let turn = self.refused_creates.next_turn_at();
        let wakeups = self.held.values_mut().filter_map(|held| {
            if std::mem::take(&mut held.is_wakeup_old) {
                held.wakeup = held.state.next_wakeup();
            }
            held.wakeup
        });
        wakeups.chain(turn).min()
    }

    /// The shards that are held, in any phase.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> {
        self.held.keys().copied()
    }

    /// Whether every watch has delivered a complete list.
    pub fn is_synced(&self) -> bool {
        self.progress.is_listed()
    }

    /// Whether every watch that the API server permits has delivered a complete list, so that a shard can be listed.
    pub fn are_permitted_watches_synced(&self) -> bool {
        self.progress.is_listed_as_permitted()
    }

    /// Whether the watches, or the shard's own list, have reached the versions that another leader wrote.
    fn has_observed(&self, shard: ShardId, written: &ResourceVersions) -> bool {
        let loaded = self.held.get(&shard).map(|held| held.loaded).unwrap_or_default();
        written.is_within(&self.progress.observed_through(shard).max(&loaded))
    }

    /// The shard of a CronJob, held or not.
    fn shard_of(&self, cron_job: &Uid) -> ShardId {
        self.count.map_or(WHOLE.shard, |count| count.shard_of(cron_job))
    }

    /// Whether a shard was listed in all scopes. Scopes that the list of the shard itself skipped do not count.
    fn is_shard_synced(&self, shard: ShardId) -> bool {
        self.held.get(&shard).is_some_and(Held::is_synced)
    }

    fn update(&mut self, shard: ShardId, change: impl FnOnce(&mut Held)) {
        if let Some(held) = self.held.get_mut(&shard) {
            held.is_wakeup_old = true;
            change(held);
            self.with_effects.insert(shard);
        }
    }

    /// The shard that a fact concerns; `None` if it may concern any.
    fn shard_of_input(&self, input: &Input) -> Option<ShardId> {
        input.cron_job().map(|cron_job| self.shard_of(cron_job))
    }

    fn deliver(&mut self, shard: ShardId, input: Input, now: Timestamp) {
        let Some(held) = self.held.get_mut(&shard) else { return };
        note_written(&mut held.written, &input);
        held.note_relist(&input);
        let is_for_shard = if let Some(own_list) = &mut held.own_list {
            own_list.observe(&input)
        } else {
            held.note_delivered(&input);
            !held.is_past(&input)
        };
        if is_for_shard {
            held.handle(input, now);
            self.with_effects.insert(shard);
        }
    }
}

#[cfg(test)]
mod tests;
