//! Events that wait for the budget: by priority, and round-robin between namespaces within a priority.
//!
//! Bounded. An Event is refused if its namespace has as many Events of its priority as places are free. So one namespace
//! fills half of the places, two fill a third each, and there is always room for another.

use jiff::Timestamp;

use crate::controller::fair_queue::FairQueue;

/// The order in which Events are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// The first Event of a CronJob and reason, which carries new information, or an Event that is sent again.
    First,
    /// A repeated Warning.
    Warning,
    /// Any other Event.
    Normal,
}

/// No Event is more urgent than another of its priority, so namespaces take turns alone.
const DEADLINE: Timestamp = Timestamp::UNIX_EPOCH;

/// The backlog, with one queue per priority.
#[derive(Debug)]
pub(super) struct Backlog<T> {
    /// Maximum length of each queue.
    len_max: usize,
    /// Indexed by [`Priority`].
    queues: [FairQueue<T>; 3],
}

impl<T> Backlog<T> {
    /// Creates an empty backlog that holds at most `len_max` Events of each priority.
    pub(super) fn new(len_max: usize) -> Backlog<T> {
        Backlog {
            len_max,
            queues: [FairQueue::default(), FairQueue::default(), FairQueue::default()],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queues.iter().map(FairQueue::len).sum()
    }

    /// Adds an Event of a namespace, or returns it if there is no room for it.
    pub(super) fn push(&mut self, priority: Priority, namespace: &str, event: T) -> Result<(), T> {
        let queue = &mut self.queues[priority as usize];
        if queue.len_of(namespace) >= self.len_max - queue.len() {
            return Err(event);
        }
        queue.push(namespace, DEADLINE, event);
        Ok(())
    }

    /// Removes the next Event. [`FairQueue::pop`] describes the arguments.
    pub(super) fn pop(&mut self, share: u32, n_in_flight: impl Fn(&str) -> Option<u32>) -> Option<T> {
        self.queues.iter_mut().find_map(|queue| queue.pop(share, &n_in_flight))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A namespace and a number.
    type Item = (&'static str, u32);

    fn push(backlog: &mut Backlog<Item>, priority: Priority, item: Item) -> bool {
        backlog.push(priority, item.0, item).is_ok()
    }

    fn drain(backlog: &mut Backlog<Item>) -> Vec<Item> {
        std::iter::from_fn(|| backlog.pop(u32::MAX, |_| Some(0))).collect()
    }

    #[test]
    fn events_are_sent_by_priority_and_namespaces_take_turns() {
        let mut backlog = Backlog::new(100);
        for number in 0..3 {
            push(&mut backlog, Priority::Normal, ("a", number));
            push(&mut backlog, Priority::Warning, ("a", 10 + number));
        }
        push(&mut backlog, Priority::Normal, ("b", 0));
        push(&mut backlog, Priority::Warning, ("b", 10));
        push(&mut backlog, Priority::First, ("c", 20));
        let expected = [
            ("c", 20),
            ("a", 10),
            ("b", 10),
            ("a", 11),
            ("a", 12),
            ("a", 0),
            ("b", 0),
            ("a", 1),
            ("a", 2),
        ];
        assert_eq!(drain(&mut backlog), expected);
        assert_eq!(backlog.len(), 0);
    }

    #[test]
    fn a_namespace_has_as_many_events_as_places_are_free() {
        let mut backlog = Backlog::new(12);
        let mut fill = |priority, namespace| {
            let is_added = |number: &u32| push(&mut backlog, priority, (namespace, *number));
            (0..20).take_while(is_added).count()
        };
        let lengths = ["a", "b", "c", "d", "e"].map(|namespace| fill(Priority::Normal, namespace));
        assert_eq!(lengths, [6, 3, 2, 1, 0]);
        assert_eq!(fill(Priority::Warning, "a"), 6, "another priority has its own places");
        assert_eq!(backlog.len(), 18);
    }
}
