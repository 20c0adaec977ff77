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

    /// The next, where `n_on_the_way` tells what a namespace has on the way and `share` how much that may be while
    /// others wait.
    pub(super) fn pop(&mut self, share: u32, n_on_the_way: impl Fn(&str) -> u32) -> Option<T> {
        self.turn += 1;
        let n_of = |number: usize| n_on_the_way(&self.namespaces[number].name);
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
        if namespace.waiting.is_empty() {
            self.names.remove(&namespace.name);
            self.free.push(number);
        } else {
            self.list(number);
        }
        Some(next.item)
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
mod tests {
    use super::*;

    fn deadline(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    struct Item {
        namespace: String,
        position: usize,
    }

    impl Namespaced for Item {
        fn namespace(&self) -> &str {
            &self.namespace
        }
    }

    fn queue_of(items: &[(&str, i64)]) -> FairQueue<Item> {
        let mut queue = FairQueue::default();
        for (position, (namespace, second)) in items.iter().enumerate() {
            queue.push(
                deadline(*second),
                Item {
                    namespace: (*namespace).into(),
                    position,
                },
            );
        }
        queue
    }

    fn drain(mut queue: FairQueue<Item>) -> Vec<String> {
        std::iter::from_fn(|| queue.pop(u32::MAX, |_| 0))
            .map(|item| format!("{}{}", item.namespace, item.position))
            .collect()
    }

    #[test]
    fn one_namespace_is_served_by_deadline_and_then_in_order_of_coming() {
        let queue = queue_of(&[("a", 9), ("a", 3), ("a", 5), ("a", 3)]);
        assert_eq!(drain(queue), ["a1", "a3", "a2", "a0"]);
    }

    #[test]
    fn equal_deadlines_take_turns_by_namespace() {
        let queue = queue_of(&[("a", 0), ("a", 0), ("a", 0), ("b", 0), ("b", 0), ("c", 0)]);
        assert_eq!(drain(queue), ["a0", "b3", "c5", "a1", "b4", "a2"]);
    }

    #[test]
    fn a_flood_of_urgent_orders_leaves_every_second_turn_to_others() {
        let mut items = vec![("flood", 0); 1_000];
        items.extend([("b", 3_600); 5]);
        items.extend([("c", 3_600); 5]);
        let served = drain(queue_of(&items));
        let last_of_others = served.iter().rposition(|name| !name.starts_with("flood")).unwrap();
        assert!(
            last_of_others < 40,
            "the last of the ten others is at position {last_of_others}"
        );
    }

    #[test]
    fn an_urgent_order_does_not_wait_behind_a_flood() {
        let mut items = vec![("flood", 3_600); 1_000];
        items.extend([("b", 5)]);
        let position = drain(queue_of(&items))
            .iter()
            .position(|name| name.starts_with('b'))
            .unwrap();
        assert!(position <= 1, "served at {position}");
    }

    #[test]
    fn a_namespace_that_has_its_share_is_passed_over_and_keeps_its_turn() {
        let mut queue = queue_of(&[("a", 0), ("a", 0), ("b", 9), ("b", 9), ("c", 9)]);
        let mut pop = |a: u32, b: u32, c: u32| {
            let item = queue.pop(8, |name| match name {
                "a" => a,
                "b" => b,
                _ => c,
            });
            item.map(|item| format!("{}{}", item.namespace, item.position))
        };
        assert_eq!(pop(8, 0, 0).as_deref(), Some("b2"));
        assert_eq!(pop(8, 8, 0).as_deref(), Some("c4"));
        assert_eq!(pop(9, 8, 0).as_deref(), Some("b3"), "all have theirs: the fewest");
        assert_eq!(pop(7, 0, 0).as_deref(), Some("a0"));
        assert_eq!(pop(90, 0, 0).as_deref(), Some("a1"), "nobody else waits");
    }

    /// The same rules by scanning a list.
    #[derive(Default)]
    struct Model {
        waiting: Vec<(String, Timestamp, usize)>,
        last_turns: HashMap<String, u64>,
        turn: u64,
    }

    impl Model {
        fn push(&mut self, namespace: &str, deadline: Timestamp, item: usize) {
            if !self.waiting.iter().any(|(name, ..)| name == namespace) {
                self.turn += 2;
                self.last_turns.insert(namespace.into(), self.turn);
            }
            self.waiting.push((namespace.into(), deadline, item));
        }

        fn pop(&mut self) -> Option<usize> {
            self.turn += 1;
            let is_round_robin = self.turn.is_multiple_of(2);
            let (position, _) = self
                .waiting
                .iter()
                .enumerate()
                .min_by_key(|(_, (name, deadline, item))| {
                    let last_turn = self.last_turns[name];
                    if is_round_robin {
                        (last_turn, *deadline, 0, *item)
                    } else {
                        (0, *deadline, last_turn, *item)
                    }
                })?;
            let (name, _, item) = self.waiting.remove(position);
            self.last_turns.insert(name, self.turn);
            Some(item)
        }
    }

    #[test]
    fn it_serves_in_the_order_of_a_naive_model() {
        for seed in 1..=8u64 {
            let mut random = seed;
            let mut next = |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % below
            };
            let (mut queue, mut model) = (FairQueue::default(), Model::default());
            for item in 0..1_500 {
                if next(5) < 3 {
                    let namespace = format!("ns{}", next(7));
                    let deadline = deadline(i64::try_from(next(4)).unwrap());
                    model.push(&namespace, deadline, item);
                    queue.push(
                        deadline,
                        Item {
                            namespace,
                            position: item,
                        },
                    );
                } else {
                    assert_eq!(
                        queue.pop(u32::MAX, |_| 0).map(|item| item.position),
                        model.pop(),
                        "seed {seed}, operation {item}"
                    );
                }
                assert_eq!(queue.len(), model.waiting.len(), "seed {seed}, operation {item}");
                let earliest = model.waiting.iter().map(|(_, deadline, _)| *deadline).min();
                assert_eq!(queue.earliest(), earliest, "seed {seed}, operation {item}");
            }
        }
    }
}
