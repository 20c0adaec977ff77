//! A queue that is fair between namespaces: earliest deadline first, and round-robin on every second call of
//! [`FairQueue::pop`].
//!
//! By deadlines alone, one tenant with many or very urgent orders could delay all others for as long as its orders
//! arrive. So every second call serves the namespace that was served longest ago: of n namespaces that wait, each is
//! served at least once in 2 n calls. Of namespaces with equal deadlines, the one served longest ago is first, too.
//!
//! A namespace that already has its share in flight is passed over and keeps its place in the round. If all waiting
//! namespaces have their share in flight, the namespace with the fewest requests in flight is served, so that no place
//! stays empty. A namespace that is held back is not served.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use jiff::Timestamp;

/// The queue, with one ordered map per waiting namespace. Deadlines are wall time, or any other kind of instant.
#[derive(Debug)]
pub(super) struct FairQueue<T, D = Timestamp> {
    namespaces: HashMap<Arc<str>, Namespace<T, D>>,
    /// (earliest deadline, last served, name) of every waiting namespace.
    by_deadline: BTreeSet<(D, u64, Arc<str>)>,
    /// (last served, name) of every waiting namespace.
    by_last_served: BTreeSet<(u64, Arc<str>)>,
    /// Counts the calls of [`FairQueue::pop`], and two for each namespace that starts to wait.
    n_pops: u64,
    n_pushed: u64,
    len: usize,
}

/// A waiting namespace.
#[derive(Debug)]
struct Namespace<T, D> {
    /// `n_pops` when it was last served or started to wait.
    last_served: u64,
    waiting: BTreeMap<Place<D>, T>,
}

/// The place of an item among those of its namespace: ordered by deadline, then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place<D = Timestamp> {
    deadline: D,
    order: u64,
}

impl<T, D> Default for FairQueue<T, D> {
    fn default() -> Self {
        FairQueue {
            namespaces: HashMap::new(),
            by_deadline: BTreeSet::new(),
            by_last_served: BTreeSet::new(),
            n_pops: 0,
            n_pushed: 0,
            len: 0,
        }
    }
}

impl<T, D: Copy + Ord> FairQueue<T, D> {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the earliest deadline in the queue.
    pub(super) fn earliest(&self) -> Option<D> {
        self.by_deadline.first().map(|(deadline, ..)| *deadline)
    }

    /// Returns the number of items of a namespace.
    pub(super) fn len_of(&self, namespace: &str) -> usize {
        self.namespaces.get(namespace).map_or(0, |it| it.waiting.len())
    }

    /// Adds an item of a namespace. Returns its place, by which it can be removed. A namespace that starts to wait goes
    /// to the end of the round.
    pub(super) fn push(&mut self, namespace: &str, deadline: D, item: T) -> Place<D> {
        let (name, mut namespace) = self.take(namespace).unwrap_or_else(|| {
            self.n_pops += 2;
            let new = Namespace {
                last_served: self.n_pops,
                waiting: BTreeMap::new(),
            };
            (namespace.into(), new)
        });
        self.n_pushed += 1;
        let place = Place {
            deadline,
            order: self.n_pushed,
        };
        namespace.waiting.insert(place, item);
        self.put(name, namespace);
        place
    }

    /// Removes the item at a place of a namespace. The namespace keeps its place in the round.
    pub(super) fn remove(&mut self, namespace: &str, place: Place<D>) -> Option<T> {
        let (name, mut namespace) = self.take(namespace)?;
        let item = namespace.waiting.remove(&place);
        self.put(name, namespace);
        item
    }

    /// Removes the next item. `n_in_flight` returns the number in flight of a namespace, `None` if it is held back, and
    /// `share` is the limit of it while other namespaces wait.
    pub(super) fn pop(&mut self, share: u32, n_in_flight: impl Fn(&str) -> Option<u32>) -> Option<T> {
        self.n_pops += 1;
        let has_room = |name: &&Arc<str>| n_in_flight(name).is_some_and(|n| n < share);
        // Few namespaces are passed over: each has requests in flight, and the total in flight is limited.
        let next = if self.n_pops.is_multiple_of(2) {
            self.by_last_served.iter().map(|(_, name)| name).find(has_room)
        } else {
            self.by_deadline.iter().map(|(.., name)| name).find(has_room)
        };
        let fewest_in_flight = || {
            let names = self.by_last_served.iter().map(|(_, name)| name);
            let open = names.filter_map(|name| Some((n_in_flight(name)?, name)));
            open.min_by_key(|(n, _)| *n).map(|(_, name)| name)
        };
        let name = Arc::clone(next.or_else(fewest_in_flight)?);
        self.serve(&name)
    }

    /// Whether [`FairQueue::pop`] would return an item.
    pub(super) fn has_next(&self, n_in_flight: impl Fn(&str) -> Option<u32>) -> bool {
        self.by_last_served.iter().any(|(_, name)| n_in_flight(name).is_some())
    }

    /// Removes an item whose deadline has passed, whichever namespace was served last.
    pub(super) fn pop_until(&mut self, now: D) -> Option<T> {
        let (deadline, _, name) = self.by_deadline.first()?;
        if *deadline > now {
            return None;
        }
        let name = Arc::clone(name);
        self.serve(&name)
    }

    /// Removes the first item of a namespace, which goes to the end of the round.
    fn serve(&mut self, name: &str) -> Option<T> {
        let (name, mut namespace) = self.take(name)?;
        namespace.last_served = self.n_pops;
        let first = namespace.waiting.pop_first();
        self.put(name, namespace);
        first.map(|(_, item)| item)
    }

    /// Takes a namespace out, to change it.
    fn take(&mut self, name: &str) -> Option<(Arc<str>, Namespace<T, D>)> {
        let (name, namespace) = self.namespaces.remove_entry(name)?;
        if let Some((first, _)) = namespace.waiting.first_key_value() {
            let last_served = namespace.last_served;
            self.by_deadline
                .remove(&(first.deadline, last_served, Arc::clone(&name)));
            self.by_last_served.remove(&(last_served, Arc::clone(&name)));
            self.len -= namespace.waiting.len();
        }
        Some((name, namespace))
    }

    /// Puts a namespace in. A namespace without items is dropped.
    fn put(&mut self, name: Arc<str>, namespace: Namespace<T, D>) {
        if let Some((first, _)) = namespace.waiting.first_key_value() {
            let last_served = namespace.last_served;
            self.by_deadline
                .insert((first.deadline, last_served, Arc::clone(&name)));
            self.by_last_served.insert((last_served, Arc::clone(&name)));
            self.len += namespace.waiting.len();
            self.namespaces.insert(name, namespace);
        }
    }
}

#[cfg(test)]
mod tests;
