//! All shards of an installation, as one replica holds them.
//!
//! Every replica records all CronJobs and Jobs, whichever shards it leads. A fact goes to the shard that it concerns,
//! determined by the uid of the CronJob or of a Job's controller, or to all shards if it names neither. Every effect carries
//! the shard and the term of its decision, so that it is sent in that term or not at all. Every answer names them
//! too: a shard that returns to this replica in another term is not told the answers to its former orders.

mod held;
mod pause;
mod progress;
pub mod sealing;
mod settings;
pub mod survey;
pub mod takeovers;
mod totals;

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use self::{
    held::Held,
    pause::ShardPause,
    progress::{Progress, note_written},
    sealing::SealQueue,
    survey::Survey,
    takeovers::Takeovers,
    totals::Totals,
};
pub use self::{pause::WATCH_WAIT_MAX, takeovers::VersionRequest, totals::LedFigures};
use super::{
    answer::OrderAnswer,
    calendars::{CalendarChange, CalendarUpdate, Calendars},
    catch_up_pace::CatchUpPace,
    effect::Effect,
    ids::Uid,
    input::{Input, Scope, WatchStage},
    namespaces::{ManagedNamespaces, NamespaceUpdate},
    panics::Panics,
    record::JobRecord,
    refused_creates::RefusedCreates,
    run_log::EndedRuns,
    template_memory::TemplateMemory,
};
use crate::shard::{
    ShardCount, ShardId, ShardSet, ShardTerm, Term,
    state::{ShardConfig, ShardState},
};

/// The only shard of tests that are not about sharding, and its only term.
#[cfg(test)]
pub(crate) const WHOLE: ShardTerm = ShardTerm {
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

/// An answer with the shard and the term of its order.
#[derive(Clone, Debug)]
pub struct TermedAnswer {
    /// The shard and the term in which the effect was decided.
    pub shard_term: ShardTerm,
    /// The answer.
    pub answer: OrderAnswer,
}

/// All shards, with the five operations of [`ShardState`]. [`takeovers`] and [`sealing`] have the others.
pub struct HeldShards {
    count: ShardCount,
    progress: Progress,
    held: BTreeMap<ShardId, Held>,
    takeovers: Takeovers,
    sealing: SealQueue,
    /// Shards that may have effects to poll.
    with_effects: BTreeSet<ShardId>,
    /// Shards that may have changed since their wake-up and their part of the totals were taken.
    changed: ShardSet,
    /// The next wake-up of each shard that has one.
    wakeups: BTreeSet<(Timestamp, ShardId)>,
    totals: Totals,
    /// The latest time that the shards have seen.
    time: Timestamp,
    template_memory: TemplateMemory,
    refused_creates: RefusedCreates,
    catch_up_pace: CatchUpPace,
    panics: Panics,
    ended_runs: EndedRuns,
    namespaces: ManagedNamespaces,
    calendars: Calendars,
    pause: ShardPause,
    survey: Survey,
}

impl HeldShards {
    /// Creates this number of shards on standby. `clock_skew_max` is the maximum difference between the clocks of replicas.
    pub fn new(count: ShardCount, scopes: Vec<Scope>, clock_skew_max: SignedDuration, now: Timestamp) -> HeldShards {
        let (template_memory, refused_creates) = (TemplateMemory::default(), RefusedCreates::default());
        let catch_up_pace = CatchUpPace::new(count.get());
        let panics = Panics::default();
        let stand_by = |shard| {
            let config = ShardConfig {
                clock_skew_max,
                scopes: scopes.clone(),
            };
            let mut state = ShardState::new(config, now);
            state.template_memory = template_memory.clone();
            state.refused_creates = refused_creates.clone();
            state.catch_up_pace = catch_up_pace.clone();
            state.panics = panics.clone();
            (shard, Held::new(state))
        };
        HeldShards {
            count,
            progress: Progress::new(&scopes),
            held: count.shards().map(stand_by).collect(),
            takeovers: Takeovers::default(),
            sealing: SealQueue::default(),
            with_effects: BTreeSet::new(),
            changed: ShardSet::EMPTY,
            wakeups: BTreeSet::new(),
            totals: Totals::default(),
            time: now,
            template_memory,
            refused_creates,
            catch_up_pace,
            panics,
            ended_runs: EndedRuns::default(),
            namespaces: ManagedNamespaces::default(),
            calendars: Calendars::default(),
            pause: ShardPause::default(),
            survey: Survey::default(),
        }
    }

    /// Creates a single shard with all CronJobs, led from the start.
    #[cfg(test)]
    pub(crate) fn whole(scopes: Vec<Scope>, clock_skew_max: SignedDuration, now: Timestamp) -> HeldShards {
        let mut shards = HeldShards::new(ShardCount::ONE, scopes, clock_skew_max, now);
        shards.lead(WHOLE, now);
        shards
    }

    /// Starts leading a shard in this term. It decides once everything is listed.
    fn lead(&mut self, ShardTerm { shard, term }: ShardTerm, now: Timestamp) {
        self.update(shard, |held| {
            held.term = Some(term);
            held.state.shard_term = Some(ShardTerm { shard, term });
            held.state.first_led = (term == Term::FIRST).then_some(now);
            held.state.lead(now);
        });
    }

    /// Handles a fact from a watch.
    pub fn handle(&mut self, input: Input, now: Timestamp) {
        self.progress.observe(&input);
        if let Input::WatchUpdated(update) = &input {
            match update.stage {
                WatchStage::ListBegun | WatchStage::ListDone => self.deliver_to_each(&input, now),
                WatchStage::NotPermitted
                | WatchStage::Interrupted
                | WatchStage::Watching(_)
                | WatchStage::Reached(_)
                | WatchStage::Unchanged { .. } => {}
            }
            return;
        }
        if let Input::JobReleased(job) | Input::JobUndecodable(job) = &input {
            let job = job.clone();
            return self.deliver_to_holder(&job, input, now);
        }
        if let Input::NamespaceUpdated(update) = input {
            return self.follow_namespaces(update, now);
        }
        if let Input::CalendarUpdated(update) = input {
            return self.follow_calendars(*update, now);
        }
        let Some(shard) = input.cron_job().map(|cron_job| self.shard_of(cron_job)) else {
            return;
        };
        if let Input::JobModified(job) = &input {
            self.leave_former_shard(job, shard, now);
        }
        self.update(shard, |held| held.state.handle(input, now));
    }

    /// Handles the answer to an effect. After the end of its term, it only shows which versions were written.
    pub fn handle_answer(&mut self, TermedAnswer { shard_term, answer }: TermedAnswer, now: Timestamp) {
        let ShardTerm { shard, term } = shard_term;
        let Some(held) = self.held.get_mut(&shard) else { return };
        note_written(&mut held.written, &answer);
        if held.term != Some(term) {
            return;
        }
        let is_outage = self.is_outage(shard, &answer);
        self.update(shard, |held| held.state.handle_answer(answer, now));
        if is_outage {
            self.pause_in_outage();
        }
    }

    /// Removes a Job whose controller changed to a CronJob of another shard from its former shard (B-2.1).
    fn leave_former_shard(&mut self, job: &JobRecord, shard: ShardId, now: Timestamp) {
        let is_known = self.held.get(&shard).is_some_and(|held| held.state.has_job(&job.uid));
        if !is_known {
            self.deliver_to_holder(&job.uid, Input::JobReleased(job.uid.clone()), now);
        }
    }

    /// Delivers a fact about a Job to the shard that has it. Most released Jobs belong to no CronJob and never did.
    fn deliver_to_holder(&mut self, job: &Uid, fact: Input, now: Timestamp) {
        let holder = self.held.iter().find(|(_, held)| held.state.has_job(job));
        if let Some(shard) = holder.map(|(shard, _)| *shard) {
            self.update(shard, |held| held.state.handle(fact, now));
        }
    }

    /// Begins or ends the management of the CronJobs of each namespace that was selected or released.
    fn follow_namespaces(&mut self, update: NamespaceUpdate, now: Timestamp) {
        let changed = self.namespaces.apply(update, now);
        if changed.is_empty() {
            return;
        }
        for (shard, held) in &mut self.held {
            held.state.follow_namespaces(&changed, now);
            self.with_effects.insert(*shard);
            self.changed.insert(*shard);
        }
        self.survey.keep_namespaces(&self.namespaces);
    }

    /// Decides the CronJobs again that name a calendar which has changed.
    fn follow_calendars(&mut self, update: CalendarUpdate, now: Timestamp) {
        let change = self.calendars.apply(update);
        if change == CalendarChange::Nothing {
            return;
        }
        for (shard, held) in &mut self.held {
            held.state.follow_calendars(&change, now);
            self.with_effects.insert(*shard);
            self.changed.insert(*shard);
        }
    }

    fn deliver_to_each(&mut self, input: &Input, now: Timestamp) {
        for (shard, held) in &mut self.held {
            held.state.handle(input.clone(), now);
            self.with_effects.insert(*shard);
            self.changed.insert(*shard);
        }
    }

    /// Advances time to `now`.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.take_changes();
        let is_set_back = now < self.time;
        self.time = now;
        let due: Vec<ShardId> = if is_set_back {
            // Every shard adapts its timers to the earlier time.
            self.held.keys().copied().collect()
        } else {
            let due = self.wakeups.iter().take_while(|(wakeup, _)| *wakeup <= now);
            due.map(|(_, shard)| *shard).collect()
        };
        for shard in due {
            self.update(shard, |held| held.state.handle_timeout(now));
        }
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
        self.take_changes();
        self.wakeups.first().map(|(wakeup, _)| *wakeup)
    }

    /// Asks the shards that have changed for their next wake-up and their part of the totals.
    fn take_changes(&mut self) {
        for shard in std::mem::take(&mut self.changed).iter() {
            let Some(held) = self.held.get_mut(&shard) else {
                continue;
            };
            self.totals.update(shard, held);
            let wakeup = held.state.next_wakeup();
            let former = std::mem::replace(&mut held.wakeup, wakeup);
            if former != wakeup {
                self.wakeups.extend(wakeup.map(|wakeup| (wakeup, shard)));
                if let Some(former) = former {
                    self.wakeups.remove(&(former, shard));
                }
            }
        }
        self.set_catch_up_share();
    }

    /// Sets the part of the missed runs that this replica starts. The shards whose takeover has begun count, because no
    /// other replica leads them.
    fn set_catch_up_share(&self) {
        let n_led = self.totals.acting.len() + self.takeovers.shards.len();
        self.catch_up_pace.set_led(n_led);
    }

    /// All shards.
    pub fn shards(&self) -> impl Iterator<Item = ShardId> {
        self.held.keys().copied()
    }

    /// Whether every watch that the API server permits has delivered a complete list, so that a shard can be led. The
    /// watch of the managed namespaces must be permitted.
    pub fn are_permitted_watches_synced(&self) -> bool {
        self.namespaces.are_known() && self.progress.is_listed_as_permitted()
    }

    /// The shard of a CronJob.
    fn shard_of(&self, cron_job: &Uid) -> ShardId {
        self.count.shard_of(cron_job)
    }

    fn update(&mut self, shard: ShardId, change: impl FnOnce(&mut Held)) {
        if let Some(held) = self.held.get_mut(&shard) {
            change(held);
            self.changed.insert(shard);
            self.with_effects.insert(shard);
        }
    }
}

#[cfg(test)]
mod tests;
