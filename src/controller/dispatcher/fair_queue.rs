//! A queue that is fair between namespaces: earliest deadline first, and round-robin on every second turn.
//!
//! By deadlines alone, one tenant with many or very urgent orders could delay all others for as long as its orders
//! arrive. So every second turn serves the namespace that was served longest ago: of n namespaces that wait, each is
//! served at least once in 2 n turns. Equal deadlines take turns in the same way.
//!
//! A namespace that already has its share in flight is passed over and keeps its turn. If all waiting namespaces have
//! their share in flight, the namespace with the fewest requests in flight is served, so that no place stays empty. A
//! namespace that is held back is not served.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp;

/// An item that belongs to a namespace.
pub(super) trait Namespaced {
    /// Returns the namespace.
    fn namespace(&self) -> &str;
}

/// The queue, with one ordered map per waiting namespace.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    names: HashMap<Box<str>, usize>,
    /// Indexed by the numbers in `names`; entries on the free list are empty.
    namespaces: Vec<Namespace<T>>,
    free: Vec<usize>,
    /// (earliest deadline, turn when last served, number) of every waiting namespace.
    by_deadline: BTreeSet<(Timestamp, u64, usize)>,
    /// (turn when last served, number) of every waiting namespace.
    by_turn: BTreeSet<(u64, usize)>,
    turn: u64,
    n_pushed: u64,
    len: usize,
}

#[derive(Debug)]
struct Namespace<T> {
    name: Box<str>,
    last_turn: u64,
    waiting: BTreeMap<Place, T>,
}

/// The place of an item among those of its namespace: ordered by deadline, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    deadline: Timestamp,
    order: u64,
}

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

    /// Returns the earliest deadline in the queue.
    pub(super) fn earliest(&self) -> Option<Timestamp> {
        self.by_deadline.first().map(|(deadline, ..)| *deadline)
    }

    /// Adds an item. Returns its place, by which it can be removed.
    pub(super) fn push(&mut self, deadline: Timestamp, item: T) -> Place {
        let number = self.number_of(item.namespace());
        self.unlist(number);
        self.n_pushed += 1;
        self.len += 1;
        let place = Place {
            deadline,
            order: self.n_pushed,
        };
        self.namespaces[number].waiting.insert(place, item);
        self.list(number);
        place
    }

    /// Removes the item at a place of a namespace. The namespace keeps its turn.
    pub(super) fn remove(&mut self, namespace: &str, place: Place) -> Option<T> {
        let number = *self.names.get(namespace)?;
        self.unlist(number);
        let item = self.namespaces[number].waiting.remove(&place);
        self.len -= usize::from(item.is_some());
        self.list_or_free(number);
        item
    }

    /// Returns the number of items of a namespace.
    pub(super) fn len_of(&self, namespace: &str) -> usize {
        let number = self.names.get(namespace);
        number.map_or(0, |number| self.namespaces[*number].waiting.len())
    }

    /// Removes the next item. `n_in_flight` returns the number in flight of a namespace, `None` if it is held back, and
    /// `share` is the limit of it while other namespaces wait.
    pub(super) fn pop(&mut self, share: u32, n_in_flight: impl Fn(&str) -> Option<u32>) -> Option<T> {
        self.turn += 1;
        let n_of = |number: usize| n_in_flight(&self.namespaces[number].name);
        let has_room = |number: &usize| n_of(*number).is_some_and(|n| n < share);
        // Few namespaces are passed over: each has requests in flight, and the total in flight is limited.
        let next = if self.turn.is_multiple_of(2) {
            self.by_turn.iter().map(|(_, number)| *number).find(has_room)
        } else {
            self.by_deadline.iter().map(|(.., number)| *number).find(has_room)
        };
        let fewest = || {
            let numbers = self.by_turn.iter().map(|(_, number)| *number);
            let open = numbers.filter_map(|number| Some((n_of(number)?, number)));
            open.min_by_key(|(n, _)| *n).map(|(_, number)| number)
        };
        let number = next.or_else(fewest)?;
        self.take_from(number)
    }

    /// Whether [`FairQueue::pop`] would return an item.
    pub(super) fn has_next(&self, n_in_flight: impl Fn(&str) -> Option<u32>) -> bool {
        let mut numbers = self.by_turn.iter().map(|(_, number)| *number);
        numbers.any(|number| n_in_flight(&self.namespaces[number].name).is_some())
    }

    /// Serves a namespace: removes its first item and ends its turn.
    fn take_from(&mut self, number: usize) -> Option<T> {
        self.unlist(number);
        let namespace = &mut self.namespaces[number];
        namespace.last_turn = self.turn;
        let (_, item) = namespace.waiting.pop_first()?;
        self.len -= 1;
        self.list_or_free(number);
        Some(item)
    }

    /// Lists a namespace after an item was removed from it, or frees the namespace if it is empty.
    fn list_or_free(&mut self, number: usize) {
        if self.namespaces[number].waiting.is_empty() {
            self.names.remove(&self.namespaces[number].name);
            self.free.push(number);
        } else {
            self.list(number);
        }
    }

    /// Removes an item whose deadline has passed, regardless of turns.
    pub(super) fn pop_until(&mut self, now: Timestamp) -> Option<T> {
        let (deadline, _, number) = *self.by_deadline.first()?;
        (deadline <= now).then(|| self.take_from(number)).flatten()
    }

    /// Returns the number of a namespace. A namespace that starts to wait goes to the end of the round.
    fn number_of(&mut self, name: &str) -> usize {
        if let Some(number) = self.names.get(name) {
            return *number;
        }
        self.turn += 2;
        let namespace = Namespace {
            name: name.into(),
            last_turn: self.turn,
            waiting: BTreeMap::new(),
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
        if let Some((first, _)) = namespace.waiting.first_key_value() {
            self.by_deadline.insert((first.deadline, namespace.last_turn, number));
            self.by_turn.insert((namespace.last_turn, number));
        }
    }

    fn unlist(&mut self, number: usize) {
        let namespace = &self.namespaces[number];
        if let Some((first, _)) = namespace.waiting.first_key_value() {
            self.by_deadline.remove(&(first.deadline, namespace.last_turn, number));
            self.by_turn.remove(&(namespace.last_turn, number));
        }
    }
}

#[cfg(test)]
mod tests;
