//! Simulates kubelets and the Job controller: Jobs start, run for a time, and complete, fail or hang.
//!
//! Annotations on the Pod template control a Job, as with the kwok of the test bed. Everything else is drawn from the
//! seed and the uid of the Job, so it does not depend on the order of events:
//!
//! - `run-for: 5s` sets how long the Job runs.
//! - `outcome` is `succeed`, `fail` or `hang`. A Job that hangs never ends.
//!
//! [`check_annotations`] refuses other values. Without it, they are ignored.
//!
//! The runner honours `suspend`, `managedBy`, `activeDeadlineSeconds` and `ttlSecondsAfterFinished`. There are no Pods.

mod annotations;
mod outline;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    ops::Range,
    pin::pin,
    sync::Arc,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use tokio::time::{Instant, sleep_until};

pub use self::annotations::check_annotations;
use self::outline::{Outline, Specs};
use crate::{
    Resource,
    api::Api,
    clock::instant,
    random::Random,
    registry::{DeleteOptions, Propagation, Target},
    store::{ChangeKind, Key, Stored, Uid},
};

/// Behaviour of Jobs without annotations.
#[derive(Clone, Debug)]
pub struct JobRunnerOptions {
    /// The seed for durations and outcomes.
    pub seed: u64,
    /// The time from the creation of a Job to its start.
    pub start_delay: Duration,
    /// How long Jobs run.
    pub run_for: Range<Duration>,
    /// The probability that a Job fails, per million.
    pub fails_per_million: u32,
    /// The probability that a Job never ends, per million. It is drawn after the failures.
    pub hangs_per_million: u32,
}

impl Default for JobRunnerOptions {
    /// Every Job runs for a second and succeeds.
    fn default() -> JobRunnerOptions {
        JobRunnerOptions {
            seed: 0,
            start_delay: Duration::ZERO,
            run_for: Duration::from_secs(1)..Duration::from_secs(1),
            fails_per_million: 0,
            hangs_per_million: 0,
        }
    }
}

/// How a Job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Succeeds,
    Fails,
    Hangs,
}

/// The next change to a Job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Start,
    Succeed,
    Fail,
    ExceedDeadline,
    Delete,
}

/// Simulates the execution of Jobs.
pub struct JobRunner {
    api: Api,
    options: JobRunnerOptions,
    /// The runner has processed changes up to this version.
    cursor: u64,
    agenda: BTreeMap<(Instant, u128), (Key, Step)>,
    /// The uids of the Jobs on the agenda.
    planned: BTreeSet<u128>,
    /// The specs of existing Jobs that may have a next step.
    specs: Specs,
}

impl JobRunner {
    /// Creates a runner for all Jobs of an API.
    pub fn new(api: Api, options: JobRunnerOptions) -> JobRunner {
        JobRunner {
            api,
            options,
            cursor: 0,
            agenda: BTreeMap::new(),
            planned: BTreeSet::new(),
            specs: Specs::default(),
        }
    }

    /// Runs until it is dropped.
    pub async fn run(mut self) {
        self.plan_all();
        let changed = self.api.shared.state().registry.store.changed(Resource::Job);
        loop {
            let mut is_changed = pin!(changed.notified());
            is_changed.as_mut().enable();
            self.plan_changes();
            let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
            if next.is_some_and(|at| at <= instant()) {
                self.run_next_step();
                continue;
            }
            let due = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = is_changed => {}
                () = due => {}
            }
        }
    }

    fn plan_all(&mut self) {
        let api = self.api.clone();
        let state = api.shared.state();
        self.cursor = state.registry.store.version();
        // The lost changes may include deletions of Jobs whose specs are cached.
        self.specs.clear();
        let view = state.registry.store.table(Resource::Job).view(self.cursor);
        for job in view.iter().flat_map(|view| view.range("", None)) {
            self.plan(job);
        }
    }

    fn plan_changes(&mut self) {
        let api = self.api.clone();
        let state = api.shared.state();
        let store = &state.registry.store;
        let Ok(changes) = store.table(Resource::Job).changes_after(self.cursor) else {
            drop(state);
            return self.plan_all();
        };
        for change in changes {
            match change.kind {
                ChangeKind::Added | ChangeKind::Modified => self.plan(&change.object),
                // The next step of the Job stays on the agenda and has no effect.
                ChangeKind::Deleted => self.specs.forget(change.object.uid),
            }
        }
        self.cursor = store.version();
    }

    /// Puts the next step of a Job on the agenda, unless it already has one.
    fn plan(&mut self, stored: &Stored) {
        let Uid(uid) = stored.uid;
        if self.planned.contains(&uid) {
            return;
        }
        let now = self.api.shared.clock.now();
        let outline = Outline::of(stored, &mut self.specs);
        if let Some((delay, step)) = self.next_step(&outline, uid, now) {
            self.planned.insert(uid);
            self.agenda.insert((instant() + delay, uid), (stored.key.clone(), step));
        } else if outline.finished_at().is_some() {
            // Most stored Jobs have ended.
            self.specs.forget(stored.uid);
        }
    }

    fn next_step(&self, job: &Outline<'_>, uid: u128, now: Timestamp) -> Option<(Duration, Step)> {
        let left = |from: Timestamp, span: Duration| {
            let span = SignedDuration::try_from(span).unwrap_or(SignedDuration::MAX);
            let end = from.saturating_add(span).unwrap_or(Timestamp::MAX);
            Duration::try_from(end.duration_since(now)).unwrap_or_default()
        };
        if let Some(finished) = job.finished_at() {
            let ttl = Duration::from_secs(job.spec.ttl_seconds_after_finished?);
            return Some((left(finished, ttl), Step::Delete));
        }
        if !job.should_run() {
            return None;
        }
        let Some(started) = job.started_at() else {
            return Some((self.options.start_delay, Step::Start));
        };
        let (run_for, outcome) = self.life(job, uid);
        let deadline = job.spec.active_deadline_seconds.map(Duration::from_secs);
        match (outcome, deadline) {
            (Outcome::Hangs, None) => None,
            (Outcome::Hangs, Some(deadline)) => Some((left(started, deadline), Step::ExceedDeadline)),
            (_, Some(deadline)) if deadline < run_for => Some((left(started, deadline), Step::ExceedDeadline)),
            (Outcome::Succeeds, _) => Some((left(started, run_for), Step::Succeed)),
            (Outcome::Fails, _) => Some((left(started, run_for), Step::Fail)),
        }
    }

    /// Returns how long a Job runs and how it ends.
    fn life(&self, job: &Outline<'_>, uid: u128) -> (Duration, Outcome) {
        let options = &self.options;
        let [low, high] = [uid, uid >> 64].map(|bits| u64::try_from(bits & u128::from(u64::MAX)).unwrap_or_default());
        let mut random = Random::new(options.seed ^ low ^ high.rotate_left(32));
        let drawn_run_for = random.between(options.run_for.start, options.run_for.end);
        let drawn_outcome = if random.happens(options.fails_per_million) {
            Outcome::Fails
        } else if random.happens(options.hangs_per_million) {
            Outcome::Hangs
        } else {
            Outcome::Succeeds
        };
        (
            job.run_for().unwrap_or(drawn_run_for),
            job.outcome().unwrap_or(drawn_outcome),
        )
    }

    fn run_next_step(&mut self) {
        let Some(((_, uid), (key, step))) = self.agenda.pop_first() else {
            return;
        };
        self.planned.remove(&uid);
        let moment = self.api.shared.moment(0);
        let mut state = self.api.shared.state();
        let Some(stored) = state
            .registry
            .store
            .get(Resource::Job, &key)
            .filter(|stored| stored.uid == Uid(uid))
        else {
            return;
        };
        let stored = Arc::clone(stored);
        let job = Outline::of(&stored, &mut self.specs);
        let status = match step {
            Step::Start if job.spec.suspend == Some(true) => return,
            Step::Start => status::start(&job, moment.wall),
            Step::Succeed => status::succeed(&job, moment.wall),
            Step::Fail => status::fail(&job, moment.wall, status::BACKOFF_LIMIT_EXCEEDED),
            Step::ExceedDeadline => status::fail(&job, moment.wall, status::DEADLINE_EXCEEDED),
            Step::Delete => {
                let options = DeleteOptions {
                    propagation: Some(Propagation::Foreground),
                    ..DeleteOptions::default()
                };
                let target = Target {
                    resource: Resource::Job,
                    namespace: key.namespace(),
                    name: key.name(),
                    writer: "",
                };
                // The Job exists: it was read under the same lock.
                let _deleted = state.registry.delete(target, &options, moment);
                return;
            }
        };
        // The lock is held since the read, so no conflict is possible.
        state
            .registry
            .store
            .put_status(Resource::Job, &stored, &status, moment.at);
    }
}
