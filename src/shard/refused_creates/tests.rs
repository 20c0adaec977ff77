//! Tests of the turns of refused CronJobs, without shards.

use std::sync::Arc;

use super::*;

const QUOTA: RefusalReason = RefusalReason::Failed(Some(403));

fn at(seconds: i64) -> Timestamp {
    let start: Timestamp = "2026-05-05T10:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(seconds)
}

fn cron_job(namespace: &str, number: usize) -> Arc<CronJobIdentity> {
    Arc::new(CronJobIdentity {
        namespace: namespace.into(),
        name: format!("{namespace}-{number}").into(),
        uid: uid(namespace, number),
    })
}

fn uid(namespace: &str, number: usize) -> Uid {
    Uid::new(&format!("uid-{namespace}-{number}"))
}

/// Refuses this number of CronJobs once.
fn refuse(creates: &RefusedCreates, namespace: &str, count: usize, now: Timestamp) -> Vec<RefusedCreate> {
    let numbers = 0..count;
    let refuse = |number| creates.refuse(&cron_job(namespace, number), QUOTA, None, now);
    numbers.map(refuse).collect()
}

/// The CronJobs that get a turn at this instant.
fn turns(creates: &RefusedCreates, now: Timestamp) -> Vec<Uid> {
    let next = || creates.take_turn(now).map(|cause| creates.next_of(&cause).unwrap());
    std::iter::from_fn(next).collect()
}

#[test]
fn sixty_cron_jobs_refused_for_one_reason_take_turns() {
    for (count, reason, waits) in [
        (59, QUOTA, false),
        (60, QUOTA, true),
        (60, RefusalReason::NotPermitted, false),
    ] {
        let creates = RefusedCreates::default();
        let mut refused = refuse(&creates, "a", count - 1, at(0));
        refused.push(creates.refuse(&cron_job("a", count), reason, None, at(0)));
        let of_another = refuse(&creates, "b", 50, at(0));
        assert_eq!(refused[0].waits_for_turn(at(1)), waits, "{count} for {reason:?}");
        assert!(!of_another[0].waits_for_turn(at(1)));
    }
}

#[test]
fn one_turn_a_second_goes_to_the_least_recent_try() {
    let creates = RefusedCreates::default();
    let mut refused = refuse(&creates, "a", 100, at(0));
    assert_eq!(turns(&creates, at(0)), []);
    for second in 1..5 {
        let number = usize::try_from(second).unwrap() - 1;
        assert_eq!(turns(&creates, at(second)), [uid("a", number)]);
    }
    // The create is repeated without a turn.
    let fifth = refused.remove(4);
    refused.push(creates.refuse(&cron_job("a", 4), QUOTA, Some(fifth), at(5)));
    assert_eq!(turns(&creates, at(5)), [uid("a", 5)]);
}

#[test]
fn a_success_gives_two_others_a_turn_at_once() {
    let creates = RefusedCreates::default();
    let mut refused = refuse(&creates, "a", 100, at(0));
    refused.remove(0).succeed(at(1));
    assert_eq!(turns(&creates, at(1)), [uid("a", 1), uid("a", 2)]);
    assert_eq!(turns(&creates, at(1)), []);
}

#[test]
fn after_a_success_no_create_waits_for_a_turn_for_a_minute() {
    let creates = RefusedCreates::default();
    let refused = refuse(&creates, "a", 100, at(0));
    creates.note_success("a", at(10));
    creates.note_success("b", at(80));
    for (second, waits) in [(9, true), (10, false), (70, false), (71, true)] {
        // A success in the future is possible, since the clock can be set back.
        assert_eq!(refused[50].waits_for_turn(at(second)), waits, "{second}");
    }
}

#[test]
fn creates_stop_taking_turns_two_minutes_after_the_last_refusal() {
    let creates = RefusedCreates::default();
    let refused = refuse(&creates, "a", 100, at(0));
    assert!(refused[0].waits_for_turn(at(120)));
    assert!(!refused[0].waits_for_turn(at(121)));
    assert_eq!(turns(&creates, at(121)), []);
    assert_eq!(creates.next_turn_at(), None);
}

#[test]
fn all_namespaces_together_have_two_hundred_turns_a_second() {
    let creates = RefusedCreates::default();
    let names: Vec<String> = (0..1_000).map(|number| format!("ns-{number}")).collect();
    let refused: Vec<_> = names.iter().map(|name| refuse(&creates, name, 60, at(0))).collect();
    let mut n_turns = 0;
    while let Some(next) = creates.next_turn_at().filter(|next| *next < at(11)) {
        n_turns += turns(&creates, next).len();
    }
    assert!((1_900..=2_000).contains(&n_turns), "{n_turns} in ten seconds");
    assert_eq!(creates.figures().n_in_turns, 1_000);
    assert_eq!(refused.len(), 1_000);
}

#[test]
fn the_next_turn_does_not_wait_for_a_clock_that_was_set_back() {
    let creates = RefusedCreates::default();
    let _refused = refuse(&creates, "a", 100, at(0));
    let before = at(-3_600);
    let _refused_again = creates.refuse(&cron_job("a", 100), QUOTA, None, before);
    assert_eq!(turns(&creates, before).len(), 1);
}

#[test]
fn dropped_refusals_leave_no_state() {
    let creates = RefusedCreates::default();
    let mut refused = refuse(&creates, "a", 100, at(0));
    refused.extend(refuse(&creates, "b", 10, at(0)));
    let first = refused.remove(0);
    refused.push(creates.refuse(&cron_job("a", 0), RefusalReason::Invalid, Some(first), at(1)));
    assert_eq!(creates.figures().n_cron_jobs, 110);
    drop(refused);
    assert_eq!(turns(&creates, at(2)), []);
    assert_eq!(creates.figures(), RefusedFigures::default());
    assert!(creates.groups().by_cause.is_empty());
}
