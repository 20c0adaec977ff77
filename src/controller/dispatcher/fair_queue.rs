//! A queue that is fair between namespaces: earliest deadline first, and every second turn round-robin.
//!
//! Deadlines alone would let one tenant with many urgent orders, or with very many, hold up all others for as long as
//! it keeps them coming. So every second turn goes to the namespace that was served longest ago: of n namespaces that
//! wait, each is served at least once in 2 n turns. Equal deadlines take turns in the same way.
//!
//! A namespace that has its share on the way already is passed over and keeps its turn. When all that wait have theirs,
//! the one with the fewest on the way is served, so that no place stays empty.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, BinaryHeap, HashMap},
};

use jiff::Timestamp;

/// What waits on behalf of a namespace.
pub(super) trait Namespaced {
    /// Whose turn it takes.
    fn namespace(&self) -> &str;
}

/// See the module.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    names: HashMap<Box<str>, usize>,
    /// Indexed by the numbers in `names`; those that are on the free list are empty.
    namespaces: Vec<Namespace<T>>,
    free: Vec<usize>,
    /// (earliest deadline, turn when last served, number) of every namespace that waits.
    by_deadline: BTreeSet<(Timestamp, u64, usize)>,
    /// (turn when last served, number) of every namespace that waits.
    by_turn: BTreeSet<(u64, usize)>,
    turn: u64,
    n_pushed: u64,
    len: usize,
}

#[derive(Debug)]
struct Namespace<T> {
    name: Box<str>,
    last_turn: u64,
    waiting: BinaryHeap<Waiting<T>>,
}

#[derive(Debug)]
struct Waiting<T> {
    deadline: Timestamp,
    order: u64,
    item: T,
}

impl<T> Ord for Waiting<T> {
    /// The heap gives its greatest first: that is the earliest deadline, and the first come of equals.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.deadline, other.order).cmp(&(self.deadline, self.order))
    }
}

impl<T> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<T> Eq for Waiting<T> {}

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        FairQueue {
            names: HashMap::new(),
            namespaces: Vec::new(),
            free: Vec::new(),
            by_deadline: BTreeSet::new(),
            by_turn: BTreeSet::new(),
            turn: 0,
            n_pushed: 0,
            len: 0,
        }
    }
}

impl<T: Namespaced> FairQueue<T> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The earliest deadline of all that waits.
    pub(super) fn earliest(&self) -> Option<Timestamp> {
        self.by_deadline.first().map(|(deadline, ..)| *deadline)
    }

    pub(super) fn push(&mut self, deadline: Timestamp, item: T) {
        let number = self.number_of(item.namespace());
        self.unlist(number);
        self.n_pushed += 1;
        self.len += 1;
        self.namespaces[number].waiting.push(Waiting {
            deadline,
            order: self.n_pushed,
            item,
        });
        self.list(number);
    }

    /// The next, where `n_in_flight` tells what a namespace has on the way and `share` how much that may be while
    /// others wait.
    pub(super) fn pop(&mut self, share: u32, n_in_flight: impl Fn(&str) -> u32) -> Option<T> {
        self.turn += 1;
        let n_of = |number: usize| n_in_flight(&self.namespaces[number].name);
        let has_room = |number: &usize| n_of(*number) < share;
        // Those passed over are few: together they have no more than the limit on the way, each at least its share.
        let next = if self.turn.is_multiple_of(2) {
            self.by_turn.iter().map(|(_, number)| *number).find(has_room)
        } else {
            self.by_deadline.iter().map(|(.., number)| *number).find(has_room)
        };
        let fewest = || {
            let numbers = self.by_turn.iter().map(|(_, number)| *number);
            numbers.min_by_key(|number| n_of(*number))
        };
        let number = next.or_else(fewest)?;
        self.take_from(number)
    }

    /// The first of a namespace, whose turn it was.
    fn take_from(&mut self, number: usize) -> Option<T> {
        self.unlist(number);
        let namespace = &mut self.namespaces[number];
        namespace.last_turn = self.turn;
        let next = namespace.waiting.pop()?;
        self.len -= 1;
        self.list_or_free(number);
        Some(next.item)
    }

    /// After something was taken from a namespace that is not listed.
    fn list_or_free(&mut self, number: usize) {
        if self.namespaces[number].waiting.is_empty() {
            self.names.remove(&self.namespaces[number].name);
            self.free.push(number);
        } else {
            self.list(number);
        }
    }

    /// One whose deadline has come, whoever's turn it is.
    pub(super) fn pop_until(&mut self, now: Timestamp) -> Option<T> {
        let (deadline, _, number) = *self.by_deadline.first()?;
        (deadline <= now).then(|| self.take_from(number)).flatten()
    }

    /// A namespace that starts to wait goes to the end of the round.
    fn number_of(&mut self, name: &str) -> usize {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        self.turn += 2;
        let namespace = Namespace {
            name: name.into(),
            last_turn: self.turn,
            waiting: BinaryHeap::new(),
        };
        let number = if let Some(number) = self.free.pop() {
            self.namespaces[number] = namespace;
            number
        } else {
            self.namespaces.push(namespace);
            self.namespaces.len() - 1
        };
        self.names.insert(name.into(), number);
        number
    }

    fn list(&mut self, number: usize) {
        let namespace = &self.namespaces[number];
        if let Some(first) = namespace.waiting.peek() {
            self.by_deadline.insert((first.deadline, namespace.last_turn, number));
            self.by_turn.insert((namespace.last_turn, number));
        }
    }

    fn unlist(&mut self, number: usize) {
        let namespace = &self.namespaces[number];
        if let Some(first) = namespace.waiting.peek() {
            self.by_deadline.remove(&(first.deadline, namespace.last_turn, number));
            self.by_turn.remove(&(namespace.last_turn, number));
        }
    }
}

#[cfg(test)]
mod tests;
