//! Tests of the queues without requests.

use super::*;
use crate::{
    controller::{
        in_flight::InFlight,
        status_batcher::tests::{without_metadata, write},
    },
    shard::{ResourceVersion, ShardTerm, StatusWrite, Term, held_shards::WHOLE},
};

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
    let mut writes = pushed_at_once(3_000);
    let mut n_calls = 1;
    while writes.advance(at(1_000)) {
        n_calls += 1;
    }
    assert_eq!(n_calls, 3_000 / MOVES_MAX + 1);
    assert_eq!(writes.queues[QueueKind::Due as usize][0].len(), 3_000);
    let in_flight = InFlight::new(32);
    let sent = std::iter::from_fn(|| writes.next(false, 32, in_flight.room(at(1_000))));
    assert_eq!(sent.count(), 3_000);
}

#[test]
fn oldest_write_keeps_the_instant_of_its_first_change_in_every_queue() {
    let mut writes = pushed_at_once(1);
    let later = |name, millis| Pending::new(write(name, 7, 1), WHOLE, at(millis));
    writes.push(later("job0", 900)).unwrap();
    writes.push(later("other", 900)).unwrap();
    for now in [0, 1_000, 10_000] {
        writes.advance(at(now));
        assert_eq!(writes.oldest(), Some(at(0)), "{now}");
    }
    let in_flight = InFlight::new(32);
    let sent = writes.next(false, 32, in_flight.room(at(10_000))).unwrap();
    assert_eq!(writes.oldest(), Some(at(900)));
    writes.put_back(sent);
    assert_eq!(writes.oldest(), Some(at(0)));
    while writes.next(false, 32, in_flight.room(at(10_000))).is_some() {}
    writes.advance(at(20_000));
    while writes.next(false, 32, in_flight.room(at(20_000))).is_some() {}
    assert_eq!(writes.oldest(), None);
}

#[test]
fn writes_with_and_without_a_read_alternate() {
    let mut writes = PendingWrites::new(Duration::from_secs(1));
    for name in ["a", "b", "c"] {
        for (name, is_large) in [(name.to_owned(), false), (format!("large-{name}"), true)] {
            let mut write = StatusWrite {
                is_urgent: true,
                ..write(&name, 7, 1)
            };
            if is_large {
                write.retained_metadata = without_metadata(&name, 7, 1).retained_metadata;
            }
            writes.push(Pending::new(write, WHOLE, at(0))).unwrap();
        }
    }
    let in_flight = InFlight::new(1);
    let sent = std::iter::from_fn(|| writes.next(true, 1, in_flight.room(at(0))));
    let is_reading: Vec<_> = sent.map(|pending| pending.must_read()).collect();
    assert_eq!(is_reading, [true, false, true, false, true, false]);
}

/// The shard of the later term is not told the answer to the write of the former one.
#[test]
fn a_stored_status_answers_the_same_write_of_another_term() {
    let stored = StatusOutcome::Stored {
        resource_version: ResourceVersion(8),
    };
    for (term, is_answered) in [(1, false), (2, true)] {
        let mut writes = PendingWrites::new(Duration::ZERO);
        writes.push(Pending::new(write("one", 7, 1), WHOLE, at(0))).unwrap();
        writes.flush();
        let sent = writes.next(false, 1, InFlight::new(1).room(at(0))).unwrap();
        let shard_term = ShardTerm {
            term: Term(term),
            ..WHOLE
        };
        writes
            .push(Pending::new(write("one", 7, 1), shard_term, at(0)))
            .unwrap();
        let answered = writes.conclude(&sent, &stored);
        assert_eq!(
            answered.map(|pending| pending.shard_term),
            is_answered.then_some(shard_term)
        );
        assert_eq!(writes.len(), 0);
    }
}
