//! What waits to be sent, in two lanes: creates, and behind them what nobody waits for. Pure and bounded.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::{
    fair_queue::{FairQueue, Namespaced},
    request::{Lane, Request},
};
use crate::state::sharding::Mandate;

/// Requests that can wait. A CronJob has at most one create waiting, so this is a million CronJobs due at one instant,
/// the most that one shard is built for: some 300 MiB should it ever fill.
pub(super) const BACKLOG_MAX: usize = 1 << 20;

/// What has waited behind creates for so long gets one turn in [`BACKGROUND_TURNS`], since creates may wait for it.
const BACKGROUND_WAIT_MAX: SignedDuration = SignedDuration::from_secs(10);

const BACKGROUND_TURNS: u32 = 8;

/// While others wait no namespace has more than one of so many parts of the places on the way, but always so many
/// places: a tenant whose webhooks are slow does not take the places of all others.
const SHARES: u32 = 4;
const SHARE_MIN: u32 = 8;

/// How many requests are on the way by namespace.
#[derive(Debug, Default)]
pub(super) struct OnTheWay {
    by_namespace: HashMap<Box<str>, u32>,
}

impl OnTheWay {
    pub(super) fn enter(&mut self, namespace: &str) {
        match self.by_namespace.get_mut(namespace) {
            Some(count) => *count += 1,
            None => {
                self.by_namespace.insert(namespace.into(), 1);
            }
        }
    }

    pub(super) fn leave(&mut self, namespace: &str) {
        if let Some(count) = self.by_namespace.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.by_namespace.remove(namespace);
            }
        }
    }

    fn of(&self, namespace: &str) -> u32 {
        self.by_namespace.get(namespace).copied().unwrap_or_default()
    }
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Queued {
    pub(super) request: Request,
    /// Under what it was ordered, and may be sent.
    pub(super) mandate: Mandate,
    /// How many times it was sent and has to be sent again.
    pub(super) n_retries: u32,
}

impl Queued {
    pub(super) fn is_create(&self) -> bool {
        matches!(self.request, Request::Create(_))
    }

    /// The slot whose create is sent for the first time and was not held back on purpose.
    pub(super) fn slot_of_first_attempt(&self) -> Option<Timestamp> {
        match &self.request {
            Request::Create(order) if self.n_retries == 0 && order.n_attempts_before == 0 && order.is_on_time => {
                Some(order.slot)
            }
            Request::Create(_) | Request::Delete(_) | Request::LookUp(_) => None,
        }
    }
}

impl Namespaced for Queued {
    fn namespace(&self) -> &str {
        self.request.namespace()
    }
}

#[derive(Debug)]
pub(super) struct Backlog {
    len_max: usize,
    creates: FairQueue<Queued>,
    background: FairQueue<Queued>,
    n_turns: u32,
}

impl Backlog {
    /// An empty one that holds at most so many.
    pub(super) fn new(len_max: usize) -> Backlog {
        Backlog {
            len_max,
            creates: FairQueue::default(),
            background: FairQueue::default(),
            n_turns: 0,
        }
    }

    /// Takes a request in, or gives it back when there is no room.
    pub(super) fn push(&mut self, queued: Queued, now: Timestamp) -> Result<(), Box<Queued>> {
        if self.creates.len() + self.background.len() >= self.len_max {
            return Err(Box::new(queued));
        }
        let lane = match queued.request.lane() {
            Lane::Creates => &mut self.creates,
            Lane::Background => &mut self.background,
        };
        let deadline = queued.request.deadline(now);
        lane.push(deadline, queued);
        Ok(())
    }

    /// The next to be sent, at a time when `places` may be on the way and `on_the_way` are.
    pub(super) fn pop(&mut self, now: Timestamp, places: u32, on_the_way: &OnTheWay) -> Option<Queued> {
        self.n_turns = self.n_turns.wrapping_add(1);
        let is_background = self.creates.len() == 0
            || (self.n_turns.is_multiple_of(BACKGROUND_TURNS) && self.background_is_overdue(now));
        let lane = if is_background {
            &mut self.background
        } else {
            &mut self.creates
        };
        lane.pop(SHARE_MIN.max(places / SHARES), |namespace| on_the_way.of(namespace))
    }

    fn background_is_overdue(&self, now: Timestamp) -> bool {
        self.background
            .earliest()
            .is_some_and(|came| now.duration_since(came) > BACKGROUND_WAIT_MAX)
    }

    pub(super) fn n_creates(&self) -> usize {
        self.creates.len()
    }

    pub(super) fn n_background(&self) -> usize {
        self.background.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::dispatcher::tests::{create, epoch, history_delete, replace_delete};
    use crate::state::held_shards::WHOLE;

    fn queued(request: Request) -> Queued {
        Queued {
            request,
            mandate: WHOLE,
            n_retries: 0,
        }
    }

    fn pop(backlog: &mut Backlog, now: Timestamp) -> Option<Queued> {
        backlog.pop(now, 64, &OnTheWay::default())
    }

    fn name(queued: &Queued) -> String {
        match &queued.request {
            Request::Create(order) => order.name.to_string(),
            Request::Delete(delete) => delete.name.to_string(),
            Request::LookUp(look_up) => look_up.name.to_string(),
        }
    }

    #[test]
    fn deletes_for_replace_go_with_creates_and_other_deletes_behind() {
        let mut backlog = Backlog::new(10);
        for request in [
            history_delete("a", "old"),
            create("a", "new", 60),
            replace_delete("a", "running"),
        ] {
            backlog.push(queued(request), epoch()).unwrap();
        }
        let served: Vec<String> = std::iter::from_fn(|| pop(&mut backlog, epoch()))
            .map(|queued| name(&queued))
            .collect();
        assert_eq!(served, ["running", "new", "old"]);
    }

    #[test]
    fn what_waits_behind_creates_for_long_gets_some_turns() {
        let mut backlog = Backlog::new(1_000);
        backlog.push(queued(history_delete("a", "old")), epoch()).unwrap();
        for position in 0..100 {
            backlog
                .push(queued(create("a", &format!("new{position}"), 60)), epoch())
                .unwrap();
        }
        let soon = epoch() + SignedDuration::from_secs(10);
        assert!((0..50).all(|_| pop(&mut backlog, soon).is_some_and(|queued| name(&queued) != "old")));
        let later = epoch() + SignedDuration::from_secs(11);
        let turns = (0..8)
            .filter(|_| pop(&mut backlog, later).is_some_and(|queued| name(&queued) == "old"))
            .count();
        assert_eq!(turns, 1);
    }

    #[test]
    fn a_full_backlog_gives_the_request_back() {
        let mut backlog = Backlog::new(1);
        backlog.push(queued(create("a", "first", 60)), epoch()).unwrap();
        let refused = backlog.push(queued(create("a", "second", 1)), epoch()).unwrap_err();
        assert_eq!(name(&refused), "second");
    }
}
