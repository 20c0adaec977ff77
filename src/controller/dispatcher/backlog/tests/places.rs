//! Tests of the places that namespaces have in flight, and of turns within a namespace.

use super::*;
use crate::controller::lane::LaneRequest;

/// Sends as many requests as may be sent `millis` after the start, with 64 places.
fn send_all(backlog: &mut Backlog, in_flight: &mut InFlight, millis: u64) -> Vec<Queued> {
    let boot = BootInstant::after_boot(Duration::from_millis(millis));
    let mut sent = Vec::new();
    while sent.len() < 64
        && let Ok(queued) = backlog.pop((epoch(), boot), 64, in_flight)
    {
        in_flight.enter(queued.request.namespace(), queued.is_reading(), boot);
        sent.push(queued);
    }
    sent
}

fn push_creates(backlog: &mut Backlog, namespace: &str, n: usize) {
    for number in 0..n {
        let name = format!("{namespace}-{number}");
        backlog.push(queued(create(namespace, &name, 60)), epoch()).unwrap();
    }
}

/// Answers requests that were sent and are answered so many milliseconds after the start.
fn answer(in_flight: &mut InFlight, requests: &[Queued], [sent, answered]: [u64; 2]) {
    let [sent, answered] = [sent, answered].map(|millis| BootInstant::after_boot(Duration::from_millis(millis)));
    for queued in requests {
        in_flight.leave(queued.request.namespace(), queued.is_reading(), sent, answered);
    }
}

fn n_of(sent: &[Queued], namespace: &str) -> usize {
    sent.iter()
        .filter(|queued| queued.request.namespace() == namespace)
        .count()
}

#[test]
fn a_slow_namespace_gets_at_most_half_of_the_places() {
    let (mut backlog, mut in_flight) = (Backlog::new(1_000), InFlight::new(128));
    push_creates(&mut backlog, "slow", 300);
    let slow = send_all(&mut backlog, &mut in_flight, 0);
    assert_eq!(slow.len(), 64);
    assert_eq!(
        send_all(&mut backlog, &mut in_flight, 999).len(),
        64,
        "the namespace does not count as slow yet"
    );
    assert!(send_all(&mut backlog, &mut in_flight, 1_000).is_empty());
    push_creates(&mut backlog, "quick", 40);
    let quick = send_all(&mut backlog, &mut in_flight, 2_000);
    assert_eq!((quick.len(), n_of(&quick, "quick")), (40, 40));
    answer(&mut in_flight, &quick, [2_000, 2_005]);
    answer(&mut in_flight, &slow, [0, 3_000]);
    assert!(
        send_all(&mut backlog, &mut in_flight, 3_000).is_empty(),
        "64 are in flight"
    );
}

#[test]
fn a_slow_namespace_gets_one_place_for_each_answer() {
    let (mut backlog, mut in_flight) = (Backlog::new(1_000), InFlight::new(64));
    push_creates(&mut backlog, "slow", 300);
    let mut slow = send_all(&mut backlog, &mut in_flight, 0);
    answer(&mut in_flight, &slow.split_off(32), [0, 29_000]);
    for answered in &slow {
        answer(&mut in_flight, std::slice::from_ref(answered), [0, 29_000]);
        assert_eq!(
            send_all(&mut backlog, &mut in_flight, 29_000).len(),
            1,
            "one request for each answer"
        );
    }
}

#[test]
fn slow_namespaces_share_their_places() {
    let (mut backlog, mut in_flight) = (Backlog::new(1_000), InFlight::new(128));
    push_creates(&mut backlog, "a", 300);
    push_creates(&mut backlog, "b", 20);
    let first = send_all(&mut backlog, &mut in_flight, 0);
    assert_eq!((n_of(&first, "a"), n_of(&first, "b")), (44, 20));
    push_creates(&mut backlog, "b", 300);
    assert!(send_all(&mut backlog, &mut in_flight, 1_000).is_empty());
    let (of_a, _): (Vec<Queued>, Vec<Queued>) = first.into_iter().partition(|queued| queued.request.namespace() == "a");
    answer(&mut in_flight, &of_a[..24], [0, 1_001]);
    let then = send_all(&mut backlog, &mut in_flight, 1_001);
    assert_eq!((n_of(&then, "a"), n_of(&then, "b")), (12, 12));
}

#[test]
fn a_namespace_without_open_requests_is_not_slow() {
    let (mut backlog, mut in_flight) = (Backlog::new(1_000), InFlight::new(2));
    push_creates(&mut backlog, "a", 2);
    let sent = send_all(&mut backlog, &mut in_flight, 0);
    push_creates(&mut backlog, "a", 5);
    assert!(send_all(&mut backlog, &mut in_flight, 1_000).is_empty());
    answer(&mut in_flight, &sent, [0, 1_000]);
    assert_eq!(send_all(&mut backlog, &mut in_flight, 1_000).len(), 5);
}

#[test]
fn a_held_back_namespace_takes_no_tokens_but_looks_jobs_up() {
    let (mut backlog, mut in_flight) = (Backlog::new(1_000), InFlight::new(2));
    let now = epoch() + SignedDuration::from_hours(1);
    let at = |millis| (now, BootInstant::after_boot(Duration::from_millis(millis)));
    backlog.push(queued(create("a", "slow", 60)), now).unwrap();
    send_all(&mut backlog, &mut in_flight, 0);
    push_creates(&mut backlog, "a", 20);
    backlog.push(queued(of_slot("overdue", epoch())), now).unwrap();
    backlog.push(queued(look_up("a", "look-up")), now).unwrap();
    let room = |millis| in_flight.room(at(millis).1);
    assert_eq!(backlog.n_creates_to_send(room(999)), 21);
    assert_eq!(backlog.n_creates_to_send(room(1_000)), 0);
    let tokens = backlog.tokens.clone();
    assert_eq!(
        backlog.pop(at(1_000), 64, &in_flight).map(|queued| name(&queued)),
        Ok("look-up".to_owned())
    );
    assert_eq!(
        backlog.pop(at(1_000), 64, &in_flight).map(|queued| name(&queued)),
        Err(None)
    );
    assert_eq!(backlog.tokens, tokens);
}

#[test]
fn a_background_request_that_is_held_back_leaves_its_turn_to_creates() {
    let (mut backlog, mut in_flight) = (Backlog::new(1_000), InFlight::new(2));
    push_creates(&mut backlog, "slow", 1);
    assert_eq!(send_all(&mut backlog, &mut in_flight, 0).len(), 1);
    backlog.push(queued(history_delete("slow", "old")), epoch()).unwrap();
    push_creates(&mut backlog, "quick", 20);
    let later = (
        epoch() + SignedDuration::from_secs(11),
        BootInstant::after_boot(Duration::from_secs(11)),
    );
    let sent: Vec<Queued> = std::iter::from_fn(|| backlog.pop(later, 64, &in_flight).ok()).collect();
    assert_eq!((sent.len(), n_of(&sent, "quick")), (20, 20));
}

#[test]
fn a_daily_create_waits_at_most_two_minutes_behind_minutely_ones() {
    let mut backlog = Backlog::new(10_000);
    let mut served_at = None;
    // 100 creates become due each minute, and 60 can be sent. The remaining creates stay queued.
    for second in 0..600 {
        let now = epoch() + SignedDuration::from_secs(second);
        if second % 60 == 0 {
            for number in 0..100 {
                let minutely = create("a", &format!("minutely-{second}-{number}"), second + 60);
                backlog.push(queued(minutely), now).unwrap();
            }
        }
        if second == 0 {
            backlog.push(queued(create("a", "daily", 86_400)), now).unwrap();
        }
        if pop(&mut backlog, now).is_some_and(|queued| name(&queued) == "daily") {
            served_at = Some(second);
            break;
        }
    }
    let served_at = served_at.expect("the request is served");
    assert!(served_at <= 120, "after {served_at} s");
}
