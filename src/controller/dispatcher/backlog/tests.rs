//! Tests of the queues and tokens of queued requests, and of the places of namespaces.

mod places;

use super::*;
use crate::{
    controller::dispatcher::{
        request::Request,
        tests::{create, epoch, history_delete, look_up, replace_delete},
    },
    shard::{JobCreate, held_shards::WHOLE},
};

fn queued(request: Request) -> Queued {
    Queued::new(request, WHOLE)
}

fn pop(backlog: &mut Backlog, now: Timestamp) -> Option<Queued> {
    let boot = BootInstant::after_boot(Duration::from_hours(1));
    backlog.pop((now, boot), 64, &InFlight::new(128)).ok()
}

/// A create that was not ordered at the instant of its slot.
fn of_slot(name: &str, slot: Timestamp) -> Request {
    let Request::Create(order) = create("a", name, 7_200) else {
        panic!("not a create");
    };
    Request::Create(JobCreate {
        slot,
        start: slot,
        is_on_time: false,
        late_from: None,
        ..order
    })
}

#[test]
fn overdue_creates_need_tokens_and_go_after_due_ones() {
    let now = epoch() + SignedDuration::from_hours(1);
    let mut backlog = Backlog::new(10_000);
    for position in 0..1_500 {
        let overdue = of_slot(&format!("overdue{position}"), epoch());
        backlog.push(queued(overdue), now).unwrap();
    }
    backlog.push(queued(history_delete("a", "old")), now).unwrap();
    backlog.push(queued(of_slot("due", now)), now).unwrap();
    assert_eq!(backlog.n_creates(), 1_501);
    let mut boot = BootInstant::after_boot(Duration::from_hours(1));
    let mut next = |boot| {
        backlog
            .pop((now, boot), 64, &InFlight::new(128))
            .map(|queued| name(&queued))
    };
    assert_eq!(next(boot), Ok("due".to_owned()));
    let at_once = std::iter::from_fn(|| next(boot).ok().filter(|name| name != "old")).count();
    assert_eq!(
        at_once, 1_000,
        "overdue creates are limited, background requests are not"
    );
    let at = next(boot).unwrap_err().expect("the instant of the next token");
    assert_eq!(at.since(boot), Duration::from_millis(2));
    boot = boot + Duration::from_millis(100);
    let later = std::iter::from_fn(|| next(boot).ok()).count();
    assert_eq!(later, 50);
}

#[test]
fn an_expired_overdue_create_is_returned_without_a_token() {
    let boot = BootInstant::after_boot(Duration::from_hours(1));
    let now = epoch() + SignedDuration::from_hours(1);
    let next_slot = now + SignedDuration::from_secs(5);
    let mut backlog = Backlog::new(10_000);
    for position in 0..1_200 {
        let Request::Create(order) = of_slot(&format!("overdue{position}"), epoch()) else {
            panic!("not a create");
        };
        // Every third order expires at the next slot; the others do not expire.
        let expires_at = (position % 3 == 0).then_some(next_slot);
        let order = JobCreate { expires_at, ..order };
        backlog.push(queued(Request::Create(order)), now).unwrap();
    }
    let mut next = |now| backlog.pop((now, boot), 64, &InFlight::new(128));
    let sent: Vec<_> = std::iter::from_fn(|| next(now).ok()).collect();
    assert_eq!(sent.len(), 1_000);
    assert!(sent.iter().take(400).all(|queued| !queued.request.is_expired(now)));
    assert_eq!(
        sent.iter()
            .filter(|queued| queued.request.is_expired(next_slot))
            .count(),
        400,
        "overdue creates are ordered by expiry"
    );
    let mut backlog = Backlog::new(10);
    backlog.tokens = Tokens::new(1, 1, boot);
    backlog.tokens.take(1, boot).unwrap();
    let Request::Create(order) = of_slot("overdue", epoch()) else {
        panic!("not a create");
    };
    let order = JobCreate {
        expires_at: Some(next_slot),
        ..order
    };
    backlog.push(queued(Request::Create(order)), now).unwrap();
    let mut next = |now| backlog.pop((now, boot), 64, &InFlight::new(128));
    assert!(next(now).is_err(), "no token is available");
    assert!(next(next_slot).is_ok_and(|queued| queued.request.is_expired(next_slot)));
}

fn name(queued: &Queued) -> String {
    match &queued.request {
        Request::Create(order) => order.name.to_string(),
        Request::Delete(delete) => delete.name.to_string(),
        Request::LookUp(look_up) => look_up.name.to_string(),
    }
}

#[test]
fn replace_deletes_go_with_creates_and_history_deletes_after() {
    let mut backlog = Backlog::new(10);
    for request in [
        history_delete("a", "old"),
        create("a", "new", 60),
        replace_delete("a", "running"),
    ] {
        backlog.push(queued(request), epoch()).unwrap();
    }
    let served: Vec<String> = std::iter::from_fn(|| pop(&mut backlog, epoch()))
        .map(|queued| name(&queued))
        .collect();
    assert_eq!(served, ["running", "new", "old"]);
}

#[test]
fn old_history_deletes_get_one_turn_in_eight() {
    let mut backlog = Backlog::new(1_000);
    backlog.push(queued(history_delete("a", "old")), epoch()).unwrap();
    for position in 0..100 {
        backlog
            .push(queued(create("a", &format!("new{position}"), 60)), epoch())
            .unwrap();
    }
    let soon = epoch() + SignedDuration::from_secs(10);
    assert!((0..50).all(|_| pop(&mut backlog, soon).is_some_and(|queued| name(&queued) != "old")));
    let later = epoch() + SignedDuration::from_secs(11);
    let turns = (0..8)
        .filter(|_| pop(&mut backlog, later).is_some_and(|queued| name(&queued) == "old"))
        .count();
    assert_eq!(turns, 1);
}

#[test]
fn a_request_that_returns_keeps_its_place() {
    let mut backlog = Backlog::new(1_000);
    let at = |seconds| epoch() + SignedDuration::from_secs(seconds);
    let kinds: [fn(&str, &str) -> Request; 3] = [history_delete, look_up, |namespace, name| {
        create(namespace, name, 3_600)
    }];
    for request in kinds {
        backlog.push(queued(request("a", "first")), at(0)).unwrap();
        let first = pop(&mut backlog, at(1)).unwrap();
        backlog.push(queued(request("a", "second")), at(2)).unwrap();
        assert!(backlog.put_back(first, at(3)).is_none());
        assert_eq!(
            pop(&mut backlog, at(4)).map(|queued| name(&queued)),
            Some("first".to_owned())
        );
        assert_eq!(
            pop(&mut backlog, at(4)).map(|queued| name(&queued)),
            Some("second".to_owned())
        );
    }
}

#[test]
fn look_ups_go_between_creates_and_history_deletes() {
    let mut backlog = Backlog::new(10);
    for request in [
        history_delete("a", "old"),
        look_up("a", "look-up"),
        create("a", "new", 60),
    ] {
        backlog.push(queued(request), epoch()).unwrap();
    }
    let served: Vec<String> = std::iter::from_fn(|| pop(&mut backlog, epoch()))
        .map(|queued| name(&queued))
        .collect();
    assert_eq!(served, ["new", "look-up", "old"]);
}

#[test]
fn a_full_backlog_rejects_the_request() {
    let mut backlog = Backlog::new(1);
    backlog.push(queued(create("a", "first", 60)), epoch()).unwrap();
    let refused = backlog.push(queued(create("a", "second", 1)), epoch()).unwrap_err();
    assert_eq!(name(&refused), "second");
}
