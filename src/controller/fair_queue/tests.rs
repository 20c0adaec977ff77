//! Tests of the order of namespaces, by example and against a model.

use super::*;

fn deadline(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

struct Item {
    namespace: String,
    position: usize,
}

fn queue_of(items: &[(&str, i64)]) -> FairQueue<Item> {
    let mut queue = FairQueue::default();
    for (position, (namespace, second)) in items.iter().enumerate() {
        let item = Item {
            namespace: (*namespace).into(),
            position,
        };
        queue.push(namespace, deadline(*second), item);
    }
    queue
}

fn drain(mut queue: FairQueue<Item>) -> Vec<String> {
    std::iter::from_fn(|| queue.pop(u32::MAX, |_| Some(0)))
        .map(|item| format!("{}{}", item.namespace, item.position))
        .collect()
}

#[test]
fn one_namespace_is_served_by_deadline_then_in_order_of_arrival() {
    let queue = queue_of(&[("a", 9), ("a", 3), ("a", 5), ("a", 3)]);
    assert_eq!(drain(queue), ["a1", "a3", "a2", "a0"]);
}

#[test]
fn equal_deadlines_take_turns_by_namespace() {
    let queue = queue_of(&[("a", 0), ("a", 0), ("a", 0), ("b", 0), ("b", 0), ("c", 0)]);
    assert_eq!(drain(queue), ["a0", "b3", "c5", "a1", "b4", "a2"]);
}

#[test]
fn a_flood_of_urgent_requests_does_not_starve_other_namespaces() {
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
fn an_urgent_request_does_not_wait_behind_a_flood() {
    let mut items = vec![("flood", 3_600); 1_000];
    items.extend([("b", 5)]);
    let position = drain(queue_of(&items))
        .iter()
        .position(|name| name.starts_with('b'))
        .unwrap();
    assert!(position <= 1, "served at {position}");
}

/// Pops with these numbers of requests in flight of the namespaces `a`, `b` and `c`.
fn pop_with(queue: &mut FairQueue<Item>, [a, b, c]: [Option<u32>; 3]) -> Option<String> {
    let item = queue.pop(8, |name| match name {
        "a" => a,
        "b" => b,
        _ => c,
    });
    item.map(|item| format!("{}{}", item.namespace, item.position))
}

#[test]
fn a_held_back_namespace_is_skipped_and_keeps_its_place() {
    let mut queue = queue_of(&[("a", 0), ("b", 9), ("b", 9)]);
    assert_eq!(pop_with(&mut queue, [None, Some(0), None]).as_deref(), Some("b1"));
    assert_eq!(
        pop_with(&mut queue, [None, Some(90), None]).as_deref(),
        Some("b2"),
        "the only waiting namespace may exceed its share"
    );
    assert_eq!(
        pop_with(&mut queue, [None; 3]),
        None,
        "namespaces are held back although places are free"
    );
    assert!(!queue.has_next(|_| None) && queue.has_next(|_| Some(90)));
    assert_eq!((queue.len(), queue.len_of("a"), queue.len_of("b")), (1, 1, 0));
    assert_eq!(pop_with(&mut queue, [Some(0); 3]).as_deref(), Some("a0"));
}

#[test]
fn a_namespace_above_its_share_is_skipped_and_keeps_its_place() {
    let mut queue = queue_of(&[("a", 0), ("a", 0), ("b", 9), ("b", 9), ("c", 9)]);
    let mut pop = |a: u32, b: u32, c: u32| pop_with(&mut queue, [Some(a), Some(b), Some(c)]);
    assert_eq!(pop(8, 0, 0).as_deref(), Some("b2"));
    assert_eq!(pop(8, 8, 0).as_deref(), Some("c4"));
    assert_eq!(
        pop(9, 8, 0).as_deref(),
        Some("b3"),
        "all have their share, so the fewest in flight decide"
    );
    assert_eq!(pop(7, 0, 0).as_deref(), Some("a0"));
    assert_eq!(pop(90, 0, 0).as_deref(), Some("a1"), "no other namespace waits");
}

/// The same rules, implemented by scanning a list.
#[derive(Default)]
struct Model {
    waiting: Vec<(String, Timestamp, usize)>,
    last_served: HashMap<String, u64>,
    n_pops: u64,
}

impl Model {
    fn push(&mut self, namespace: &str, deadline: Timestamp, item: usize) {
        if !self.waiting.iter().any(|(name, ..)| name == namespace) {
            self.n_pops += 2;
            self.last_served.insert(namespace.into(), self.n_pops);
        }
        self.waiting.push((namespace.into(), deadline, item));
    }

    fn pop(&mut self) -> Option<usize> {
        self.n_pops += 1;
        let is_round_robin = self.n_pops.is_multiple_of(2);
        let (position, _) = self
            .waiting
            .iter()
            .enumerate()
            .min_by_key(|(_, (name, deadline, item))| {
                let served = self.last_served[name];
                if is_round_robin {
                    (served, *deadline, 0, *item)
                } else {
                    (0, *deadline, served, *item)
                }
            })?;
        let (name, _, item) = self.waiting.remove(position);
        self.last_served.insert(name, self.n_pops);
        Some(item)
    }
}

#[test]
fn fair_queue_matches_a_naive_model() {
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
                queue.push(&namespace, deadline, item);
            } else {
                assert_eq!(
                    queue.pop(u32::MAX, |_| Some(0)),
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
