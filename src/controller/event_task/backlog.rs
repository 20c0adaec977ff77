//! Events that wait for the budget: by priority, and round-robin between namespaces within a priority.
//!
//! Bounded. A full backlog drops the newest Event of the namespace with the most Events of the lowest priority, so that
//! one tenant's Events never displace another's.

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
    len_max: usize,
    /// Indexed by [`Priority`].
    queues: [FairQueue<T>; 3],
}

impl<T> Backlog<T> {
    /// Creates an empty backlog that holds at most `len_max` Events.
    pub(super) fn new(len_max: usize) -> Backlog<T> {
        Backlog {
            len_max,
            queues: [FairQueue::default(), FairQueue::default(), FairQueue::default()],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.queues.iter().map(FairQueue::len).sum()
    }

    /// Adds an Event of a namespace, and returns the Event that is dropped if the backlog is full.
    pub(super) fn push(&mut self, priority: Priority, namespace: &str, event: T) -> Option<T> {
        let mut dropped = None;
        if self.len() >= self.len_max {
            let lowest = self.queues.iter().rposition(|queue| queue.len() > 0)?;
            let queue = &mut self.queues[lowest];
            let longest = queue.longest()?;
            let has_most = lowest == priority as usize && queue.len_of(namespace) >= queue.len_of(&longest);
            if lowest < priority as usize || has_most {
                return Some(event);
            }
            dropped = queue.pop_last(&longest);
        }
        self.queues[priority as usize].push(namespace, DEADLINE, event);
        dropped
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

    fn push(backlog: &mut Backlog<Item>, priority: Priority, item: Item) -> Option<Item> {
        backlog.push(priority, item.0, item)
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
    fn a_full_backlog_drops_the_lowest_priority_of_the_largest_namespace() {
        let mut backlog = Backlog::new(4);
        for number in 0..3 {
            assert_eq!(push(&mut backlog, Priority::Normal, ("a", number)), None);
        }
        assert_eq!(push(&mut backlog, Priority::Normal, ("b", 0)), None);
        assert_eq!(
            push(&mut backlog, Priority::Normal, ("a", 3)),
            Some(("a", 3)),
            "it has the most"
        );
        assert_eq!(push(&mut backlog, Priority::Normal, ("b", 1)), Some(("a", 2)));
        assert_eq!(push(&mut backlog, Priority::First, ("c", 0)), Some(("b", 1)));
        assert_eq!(push(&mut backlog, Priority::Warning, ("c", 1)), Some(("a", 1)));
        assert_eq!(push(&mut backlog, Priority::Warning, ("c", 2)), Some(("b", 0)));
        assert_eq!(push(&mut backlog, Priority::Warning, ("c", 3)), Some(("a", 0)));
        assert_eq!(
            push(&mut backlog, Priority::Normal, ("d", 0)),
            Some(("d", 0)),
            "all others matter more"
        );
        assert_eq!(backlog.len(), 4);
        assert_eq!(drain(&mut backlog), [("c", 0), ("c", 1), ("c", 2), ("c", 3)]);
    }
}
