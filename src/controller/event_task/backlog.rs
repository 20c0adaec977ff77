//! Events that wait for the budget: by priority, and round-robin between namespaces within a priority.
//!
//! Bounded. A full backlog drops the newest Event of the namespace with the most Events of the lowest priority, so that
//! one tenant's Events never displace another's.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The order in which Events are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    /// The first Event of a CronJob and reason: it carries new information.
    First,
    /// A repeated Warning.
    Warning,
    /// Any other Event.
    Normal,
}

/// An item that belongs to a namespace.
pub(super) trait Namespaced {
    /// Returns the namespace.
    fn namespace(&self) -> &str;
}

/// The backlog, with one queue per priority.
#[derive(Debug)]
pub(super) struct Backlog<T> {
    len_max: usize,
    len: usize,
    /// Indexed by [`Priority`].
    queues: [Queue<T>; 3],
}

/// The queue of one priority.
#[derive(Debug)]
struct Queue<T> {
    by_namespace: BTreeMap<Box<str>, VecDeque<T>>,
    /// Waiting namespaces, the next one first.
    turns: VecDeque<Box<str>>,
    by_length: BTreeSet<(usize, Box<str>)>,
}

impl<T: Namespaced> Backlog<T> {
    /// Creates an empty backlog that holds at most `len_max` Events.
    pub(super) fn new(len_max: usize) -> Backlog<T> {
        let queue = || Queue {
            by_namespace: BTreeMap::new(),
            turns: VecDeque::new(),
            by_length: BTreeSet::new(),
        };
        Backlog {
            len_max,
            len: 0,
            queues: [queue(), queue(), queue()],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds an Event, and returns the Event that is dropped if the backlog is full.
    pub(super) fn push(&mut self, priority: Priority, item: T) -> Option<T> {
        let mut dropped = None;
        if self.len >= self.len_max {
            let lowest = self.queues.iter().rposition(|queue| !queue.turns.is_empty())?;
            if lowest < priority as usize {
                return Some(item);
            }
            let queue = &mut self.queues[lowest];
            if lowest == priority as usize && queue.has_most(item.namespace()) {
                return Some(item);
            }
            dropped = queue.drop_newest_of_longest();
            self.len -= usize::from(dropped.is_some());
        }
        self.queues[priority as usize].push(item);
        self.len += 1;
        dropped
    }

    /// Removes the next Event.
    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.queues.iter_mut().find_map(Queue::pop)?;
        self.len -= 1;
        Some(item)
    }
}

impl<T: Namespaced> Queue<T> {
    /// Whether no other namespace has more waiting Events.
    fn has_most(&self, namespace: &str) -> bool {
        let n_waiting = self.by_namespace.get(namespace).map_or(0, VecDeque::len);
        self.by_length.last().is_none_or(|(most, _)| n_waiting >= *most)
    }

    fn push(&mut self, item: T) {
        let name: Box<str> = item.namespace().into();
        let waiting = self.by_namespace.entry(name.clone()).or_default();
        if waiting.is_empty() {
            self.turns.push_back(name.clone());
        } else {
            self.by_length.remove(&(waiting.len(), name.clone()));
        }
        waiting.push_back(item);
        self.by_length.insert((waiting.len(), name));
    }

    fn pop(&mut self) -> Option<T> {
        let name = self.turns.pop_front()?;
        let item = self.take(&name, VecDeque::pop_front)?;
        if self.by_namespace.contains_key(&name) {
            self.turns.push_back(name);
        }
        Some(item)
    }

    fn drop_newest_of_longest(&mut self) -> Option<T> {
        let (_, name) = self.by_length.last()?.clone();
        let item = self.take(&name, VecDeque::pop_back)?;
        if !self.by_namespace.contains_key(&name) {
            self.turns.retain(|waiting| *waiting != name);
        }
        Some(item)
    }

    fn take(&mut self, name: &str, end: fn(&mut VecDeque<T>) -> Option<T>) -> Option<T> {
        let waiting = self.by_namespace.get_mut(name)?;
        self.by_length.remove(&(waiting.len(), name.into()));
        let item = end(waiting);
        if waiting.is_empty() {
            self.by_namespace.remove(name);
        } else {
            self.by_length.insert((waiting.len(), name.into()));
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A namespace and a number.
    type Item = (&'static str, u32);

    impl Namespaced for Item {
        fn namespace(&self) -> &str {
            self.0
        }
    }

    fn drain(backlog: &mut Backlog<Item>) -> Vec<Item> {
        std::iter::from_fn(|| backlog.pop()).collect()
    }

    #[test]
    fn events_are_sent_by_priority_and_namespaces_take_turns() {
        let mut backlog = Backlog::new(100);
        for number in 0..3 {
            backlog.push(Priority::Normal, ("a", number));
            backlog.push(Priority::Warning, ("a", 10 + number));
        }
        backlog.push(Priority::Normal, ("b", 0));
        backlog.push(Priority::Warning, ("b", 10));
        backlog.push(Priority::First, ("c", 20));
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
            assert_eq!(backlog.push(Priority::Normal, ("a", number)), None);
        }
        assert_eq!(backlog.push(Priority::Normal, ("b", 0)), None);
        assert_eq!(
            backlog.push(Priority::Normal, ("a", 3)),
            Some(("a", 3)),
            "it has the most"
        );
        assert_eq!(backlog.push(Priority::Normal, ("b", 1)), Some(("a", 2)));
        assert_eq!(backlog.push(Priority::First, ("c", 0)), Some(("b", 1)));
        assert_eq!(backlog.push(Priority::Warning, ("c", 1)), Some(("a", 1)));
        assert_eq!(backlog.push(Priority::Warning, ("c", 2)), Some(("b", 0)));
        assert_eq!(backlog.push(Priority::Warning, ("c", 3)), Some(("a", 0)));
        assert_eq!(
            backlog.push(Priority::Normal, ("d", 0)),
            Some(("d", 0)),
            "all others matter more"
        );
        assert_eq!(backlog.len(), 4);
        assert_eq!(drain(&mut backlog), [("c", 0), ("c", 1), ("c", 2), ("c", 3)]);
    }
}
