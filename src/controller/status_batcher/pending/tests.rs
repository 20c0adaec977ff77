//! Tests of the queues without requests.

use super::*;
use crate::{controller::status_batcher::tests::write, shard::held_shards::WHOLE};

fn at(millis: u64) -> BootInstant {
    BootInstant::after_boot(Duration::from_millis(millis))
}

/// Writes that were pushed at one instant and merge for one second.
fn pushed_at_once(n: usize) -> PendingWrites {
    let mut writes = PendingWrites::new(Duration::from_secs(1));
    for number in 0..n {
        let pending = Pending::new(write(&format!("job{number}"), 7, 1), WHOLE, at(0));
        writes.push(pending).unwrap();
    }
    writes
}

#[test]
fn many_writes_that_are_due_at_once_are_moved_in_several_calls() {
    let (mut writes, in_flight) = (pushed_at_once(3_000), InFlight::new(32));
    assert!(writes.next(at(1_000), false, 32, &in_flight).is_some());
    assert_eq!(writes.queue(QueueKind::Merging).len(), 3_000 - MOVES_MAX);
    let n_others = std::iter::from_fn(|| writes.next(at(1_000), false, 32, &in_flight)).count();
    assert_eq!(n_others, 2_999);
}

#[test]
fn a_call_that_leaves_writes_to_be_moved_is_followed_by_another() {
    let (mut writes, in_flight) = (pushed_at_once(3_000), InFlight::new(32));
    let mut n_calls = 0;
    while writes.next_change() <= Some(at(1_000)) {
        assert!(writes.next(at(1_000), true, 32, &in_flight).is_none(), "a burst");
        n_calls += 1;
    }
    assert_eq!(n_calls, 3_000_usize.div_ceil(MOVES_MAX));
    assert_eq!(writes.queue(QueueKind::Due).len(), 3_000);
}
