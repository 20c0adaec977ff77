//! The CronJobs whose creates are refused, shared between the shards of a replica.
//!
//! A CronJob whose create was refused is retried by its own back-off. If many CronJobs of a namespace are refused for
//! the same reason, these retries are many requests with one cause. Such CronJobs therefore take turns: once per
//! second, the CronJob with the oldest attempt is retried. When its create succeeds, two others get a turn at once.
//! So all are retried within a few round trips after the cause is removed, and only few if a quota has room for one
//! more Job.
//!
//! A CronJob whose own last create was not refused needs no turn. While other creates in the namespace succeed, no
//! CronJob of the namespace needs one.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use jiff::{SignedDuration, Timestamp};

use super::{
    ids::{CronJobIdentity, Uid},
    outcome::RefusalReason,
};
use crate::schedule::after;

/// The number of CronJobs of a namespace, refused for the same reason, from which on they take turns. With one turn per
/// second, each of them is then tried at most once a minute, which is the longest back-off.
const TURNS_FROM: usize = 60;

/// The time between two turns in one namespace for one reason. It bounds the time until the end of a cause is
/// noticed.
const TURN_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// The time between any two turns, which bounds the turns of all namespaces together to 200 per second.
const TURN_INTERVAL_MIN: SignedDuration = SignedDuration::from_millis(5);

/// After this time without a refusal, no CronJob needs a turn. It is longer than a minute, so that CronJobs that run
/// every minute and have a short starting deadline still take turns at their next slot.
const REFUSAL_MEMORY: SignedDuration = SignedDuration::from_mins(2);

/// For this time after a successful create, no CronJob of the namespace needs a turn: not every create is refused.
const SUCCESS_MEMORY: SignedDuration = SignedDuration::from_mins(1);

/// The number of CronJobs that get a turn when a refused CronJob succeeds.
const TURNS_PER_SUCCESS: usize = 2;

/// The namespace and the reason of refusals.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Cause {
    namespace: Arc<str>,
    reason: RefusalReason,
}

/// The refused creates of a replica. Clones share the same groups.
#[derive(Clone, Debug, Default)]
pub(crate) struct RefusedCreates(Arc<Mutex<Groups>>);

/// The numbers of refused CronJobs and of their groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedFigures {
    /// CronJobs whose last create was refused.
    pub n_cron_jobs: u64,
    /// Groups of CronJobs that take turns, by namespace and reason.
    pub n_in_turns: u64,
}

/// The CronJobs whose creates are refused, in groups by namespace and reason.
#[derive(Debug, Default)]
struct Groups {
    /// Bounded by the number of CronJobs: each is in at most one group, and an empty group is removed.
    by_cause: BTreeMap<Cause, Group>,
    /// The groups that take turns; the first one is next.
    in_turns: VecDeque<Cause>,
    next_turn_at: Timestamp,
    /// Turns after successes, which are given at once.
    extra_turns: VecDeque<Cause>,
    n_cron_jobs: u64,
    n_tries: u64,
}

/// The CronJobs that were refused for one cause.
#[derive(Debug, Default)]
struct Group {
    /// The CronJobs by the number of their last try or turn.
    by_last_try: BTreeMap<u64, Uid>,
    last_tries: BTreeMap<Uid, u64>,
    refused_at: Timestamp,
    /// The time of the last successful create in the namespace.
    succeeded_at: Option<Timestamp>,
    /// Whether it is in `in_turns`.
    is_in_turns: bool,
}

/// The refusal of a CronJob's last create. Dropped after a create that is not refused.
#[derive(Debug)]
pub(crate) struct RefusedCreate {
    creates: RefusedCreates,
    cause: Cause,
    cron_job: Uid,
    /// The number of refusals in a row, over all slots.
    pub(crate) n_refusals: u32,
    /// No create of a later slot before this instant.
    pub(crate) not_before: Timestamp,
    /// Whether its next create is sent while others wait for their turn.
    pub(crate) has_turn: bool,
}

impl RefusedCreates {
    /// Records a refusal of a CronJob that may have been refused before.
    pub(super) fn refuse(
        &self,
        cron_job: &CronJobIdentity,
        reason: RefusalReason,
        former: Option<RefusedCreate>,
        now: Timestamp,
    ) -> RefusedCreate {
        let n_before = former.as_ref().map_or(0, |former| former.n_refusals);
        let same = former.filter(|former| former.cause.reason == reason);
        let mut refused = same.unwrap_or_else(|| RefusedCreate {
            creates: self.clone(),
            cause: Cause {
                namespace: (*cron_job.namespace).into(),
                reason,
            },
            cron_job: cron_job.uid.clone(),
            n_refusals: 0,
            not_before: now,
            has_turn: false,
        });
        refused.n_refusals = n_before.saturating_add(1);
        refused.has_turn = false;
        self.groups().refuse(&refused.cause, &refused.cron_job, now);
        refused
    }

    /// Records a success of a CronJob that was not refused before.
    pub(super) fn note_success(&self, namespace: &str, now: Timestamp) {
        self.groups().note_success(namespace, now);
    }

    /// Takes the turn of a group, if one is due.
    pub(super) fn take_turn(&self, now: Timestamp) -> Option<Cause> {
        self.groups().take_turn(now)
    }

    /// The CronJob of a group with the oldest attempt. It moves to the end of its group.
    pub(super) fn next_of(&self, cause: &Cause) -> Option<Uid> {
        self.groups().next_of(cause)
    }

    /// The time of the next turn.
    pub(super) fn next_turn_at(&self) -> Option<Timestamp> {
        let groups = self.groups();
        (!groups.in_turns.is_empty()).then_some(groups.next_turn_at)
    }

    /// The current sizes.
    pub(super) fn figures(&self) -> RefusedFigures {
        let groups = self.groups();
        RefusedFigures {
            n_cron_jobs: groups.n_cron_jobs,
            n_in_turns: groups.in_turns.len() as u64,
        }
    }

    /// Locks the groups. Ignoring poisoning is safe: they are consistent after every statement that can panic.
    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RefusedCreate {
    /// Whether the CronJob waits for its turn.
    pub(super) fn waits_for_turn(&self, now: Timestamp) -> bool {
        let groups = self.creates.groups();
        !self.has_turn
            && groups
                .by_cause
                .get(&self.cause)
                .is_some_and(|group| group.takes_turns(now))
    }

    /// Whether the tenant caused the refusal.
    pub(super) fn is_due_to_tenant(&self) -> bool {
        self.cause.reason.is_due_to_tenant()
    }

    /// Records that the create succeeded, and gives others a turn.
    pub(super) fn succeed(self, now: Timestamp) {
        let mut groups = self.creates.groups();
        groups.note_success(&self.cause.namespace, now);
        let turns = std::iter::repeat_n(&self.cause, TURNS_PER_SUCCESS);
        groups.extra_turns.extend(turns.cloned());
    }
}

impl Drop for RefusedCreate {
    fn drop(&mut self) {
        self.creates.groups().remove(&self.cause, &self.cron_job);
    }
}

impl Groups {
    fn refuse(&mut self, cause: &Cause, cron_job: &Uid, now: Timestamp) {
        self.n_tries += 1;
        let group = self.by_cause.entry(cause.clone()).or_default();
        self.n_cron_jobs += u64::from(!group.put_last(cron_job, self.n_tries));
        group.refused_at = now;
        if group.len() >= TURNS_FROM && !group.is_in_turns {
            group.is_in_turns = true;
            if self.in_turns.is_empty() {
                self.next_turn_at = after(now, TURN_INTERVAL);
            }
            self.in_turns.push_back(cause.clone());
        }
    }

    fn remove(&mut self, cause: &Cause, cron_job: &Uid) {
        let Some(group) = self.by_cause.get_mut(cause) else {
            return;
        };
        self.n_cron_jobs -= u64::from(group.remove(cron_job));
        self.drop_if_empty(cause);
    }

    fn drop_if_empty(&mut self, cause: &Cause) {
        let group = self.by_cause.get(cause);
        if group.is_some_and(|group| group.len() == 0 && !group.is_in_turns) {
            self.by_cause.remove(cause);
        }
    }

    fn note_success(&mut self, namespace: &str, now: Timestamp) {
        // The usual case.
        if self.by_cause.is_empty() {
            return;
        }
        let first = Cause {
            namespace: namespace.into(),
            reason: RefusalReason::FIRST,
        };
        let groups = self.by_cause.range_mut(first..);
        for (_, group) in groups.take_while(|(cause, _)| *cause.namespace == *namespace) {
            group.succeeded_at = Some(now);
        }
    }

    fn take_turn(&mut self, now: Timestamp) -> Option<Cause> {
        if let Some(cause) = self.extra_turns.pop_front() {
            return Some(cause);
        }
        // An instant further in the future was computed before the clock was set back.
        let is_early = now < self.next_turn_at && self.next_turn_at <= after(now, TURN_INTERVAL);
        while !is_early && let Some(cause) = self.in_turns.pop_front() {
            let Some(group) = self.by_cause.get_mut(&cause) else {
                continue;
            };
            if group.len() < TURNS_FROM || !is_recent(group.refused_at, REFUSAL_MEMORY, now) {
                group.is_in_turns = false;
                self.drop_if_empty(&cause);
                continue;
            }
            let takes_turns = group.takes_turns(now);
            self.in_turns.push_back(cause.clone());
            let n_groups = i32::try_from(self.in_turns.len()).unwrap_or(i32::MAX);
            self.next_turn_at = after(now, (TURN_INTERVAL / n_groups).max(TURN_INTERVAL_MIN));
            return takes_turns.then_some(cause);
        }
        None
    }

    fn next_of(&mut self, cause: &Cause) -> Option<Uid> {
        self.n_tries += 1;
        let group = self.by_cause.get_mut(cause)?;
        let next = group.by_last_try.values().next()?.clone();
        group.put_last(&next, self.n_tries);
        Some(next)
    }
}

impl Group {
    fn len(&self) -> usize {
        self.by_last_try.len()
    }

    /// Returns whether the CronJob was in the group.
    fn put_last(&mut self, cron_job: &Uid, number: u64) -> bool {
        let former = self.last_tries.insert(cron_job.clone(), number);
        if let Some(former) = former {
            self.by_last_try.remove(&former);
        }
        self.by_last_try.insert(number, cron_job.clone());
        former.is_some()
    }

    /// Returns whether the CronJob was in the group.
    fn remove(&mut self, cron_job: &Uid) -> bool {
        let number = self.last_tries.remove(cron_job);
        number.is_some_and(|number| self.by_last_try.remove(&number).is_some())
    }

    fn takes_turns(&self, now: Timestamp) -> bool {
        let has_success = self.succeeded_at.is_some_and(|at| is_recent(at, SUCCESS_MEMORY, now));
        self.len() >= TURNS_FROM && !has_success && is_recent(self.refused_at, REFUSAL_MEMORY, now)
    }
}

/// Whether an instant is at most `memory` ago. An instant in the future was noted before the clock was set back.
fn is_recent(instant: Timestamp, memory: SignedDuration, now: Timestamp) -> bool {
    (SignedDuration::ZERO..=memory).contains(&now.duration_since(instant))
}

#[cfg(test)]
mod tests;
