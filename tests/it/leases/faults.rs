//! Lease requests during faults of the API server or the connection.

use std::{pin::pin, time::Duration};

use apisim::{Fault, Options, Resource, Rule, Verb, WallClock};
use cronwheel::{
    coordination::LeaseAnswer,
    kube_api::{LeaseApi, LeaseError, LeaseEvent},
    shard::{ResourceVersion, ShardCount},
};
use futures::StreamExt as _;

use super::{BEGUN, TIMEOUT, api, client, every_server::done, held, leases, member, shard, wall, write};

/// Returns a fault rule for one verb on Leases.
fn rule(fault: Fault, verb: Verb) -> Rule {
    Rule {
        resource: Some(Resource::Lease),
        verbs: vec![verb],
        ..Rule::new(fault)
    }
}

#[tokio::test(start_paused = true)]
async fn failed_lease_requests_are_unknown() {
    let api = api();
    let leases = leases(client(&api), "default");
    let made = done(leases.create(&held(member("a"), "one"), wall(), TIMEOUT).await);
    let slow = Fault::Delay {
        shortest: 2 * TIMEOUT,
        longest: 2 * TIMEOUT,
    };
    for fault in [
        Fault::DropBefore,
        Fault::Throttle { retry_after_seconds: 1 },
        Fault::InternalError,
        Fault::Unavailable,
        Fault::Outage,
        slow,
    ] {
        api.faults().clear();
        api.faults().add(Rule::new(fault.clone()));
        let renewal = held(member("a"), "two");
        let patched = leases.patch(&renewal, made.resource_version, wall(), TIMEOUT).await;
        assert_eq!(patched.answer, LeaseAnswer::Unknown, "{fault:?}");
        assert!(patched.message.is_some(), "{fault:?}");
        let deleted = leases.delete(&member("a"), made.resource_version, TIMEOUT).await;
        assert_eq!(deleted.answer, LeaseAnswer::Unknown, "{fault:?}");
        let created = leases.create(&write(shard(1)), wall(), TIMEOUT).await;
        assert_eq!(created.answer, LeaseAnswer::Unknown, "{fault:?}");
        let read = leases.read(&member("a"), TIMEOUT).await;
        assert_eq!(read.answer, LeaseAnswer::Unknown, "{fault:?}");
        assert!(leases.list(TIMEOUT).await.is_err(), "{fault:?}");
        let begun = pin!(leases.watch(made.resource_version, TIMEOUT)).next().await;
        assert!(matches!(begun, Some(Err(_))), "{fault:?}: {begun:?}");
    }
    api.faults().clear();
    let list = leases.list(TIMEOUT).await.unwrap();
    assert_eq!(list.leases, [made], "no request took effect");
}

#[tokio::test(start_paused = true)]
async fn retry_of_an_unanswered_lease_write_finds_it_applied() {
    let api = api();
    let leases = leases(client(&api), "default");
    api.faults().add(Rule {
        times_max: Some(1),
        ..rule(Fault::DropAfter, Verb::Create)
    });
    let join = held(member("a"), "one");
    assert_eq!(leases.create(&join, wall(), TIMEOUT).await.answer, LeaseAnswer::Unknown);
    assert_eq!(leases.create(&join, wall(), TIMEOUT).await.answer, LeaseAnswer::Exists);
    let LeaseAnswer::Done(made) = leases.read(&member("a"), TIMEOUT).await.answer else {
        panic!("the first create had no effect");
    };
    api.faults().add(Rule {
        times_max: Some(1),
        ..rule(Fault::DropAfter, Verb::Patch)
    });
    let renewal = held(member("a"), "two");
    let unknown = leases.patch(&renewal, made.resource_version, wall(), TIMEOUT).await;
    assert_eq!((unknown.answer, unknown.code), (LeaseAnswer::Unknown, None));
    let again = leases.patch(&renewal, made.resource_version, wall(), TIMEOUT).await;
    assert_eq!(again.answer, LeaseAnswer::Conflict);
}

#[tokio::test(start_paused = true)]
async fn forbidden_lease_request_carries_the_message_of_the_server() {
    let api = api();
    let leases = leases(client(&api), "default");
    api.faults().add(Rule::new(Fault::Forbid("not you".to_owned())));
    let reply = leases.create(&write(shard(1)), wall(), TIMEOUT).await;
    assert_eq!((reply.answer, reply.code), (LeaseAnswer::Refused, Some(403)));
    assert!(reply.message.is_some_and(|message| message.contains("not you")));
    let listed = leases.list(TIMEOUT).await.unwrap_err();
    assert!(matches!(listed, LeaseError::Refused { code: 403, .. }), "{listed:?}");
    let mut watch = pin!(leases.watch(ResourceVersion(1), TIMEOUT));
    let refused = watch.next().await.unwrap().unwrap_err();
    assert!(matches!(refused, LeaseError::Refused { code: 403, .. }), "{refused:?}");
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn lost_resource_version_is_reported_as_expired() {
    let api = api();
    let leases = leases(client(&api), "default");
    let lost = api.faults().add(Rule::new(Fault::Expired));
    let listed = leases.list(TIMEOUT).await.unwrap_err();
    assert!(matches!(listed, LeaseError::Refused { code: 410, .. }), "{listed:?}");
    let mut watch = pin!(leases.watch(ResourceVersion(1), TIMEOUT));
    let refused = watch.next().await.unwrap().unwrap_err();
    assert!(matches!(refused, LeaseError::Refused { code: 410, .. }), "{refused:?}");
    api.faults().remove(lost);

    // The server can also report the error as a watch event.
    let short = apisim::Api::new(
        Options {
            log_capacity: 2,
            ..Options::default()
        },
        WallClock::starting_at(BEGUN.parse().unwrap()),
    );
    let leases = super::leases(client(&short), "default");
    for number in 0..5 {
        done(leases.create(&write(shard(number)), wall(), TIMEOUT).await);
    }
    let mut watch = pin!(leases.watch(ResourceVersion(1), TIMEOUT));
    let error = watch.next().await.unwrap().unwrap_err();
    assert!(matches!(error, LeaseError::Refused { code: 410, .. }), "{error:?}");
    assert!(watch.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn closed_lease_watch_is_resumed_without_a_gap() {
    let api = api();
    let leases = leases(client(&api), "default");
    let from = leases.list(TIMEOUT).await.unwrap().resource_version;
    api.faults().add(rule(Fault::CloseWatch, Verb::Watch));
    let mut seen = Vec::new();
    for number in 0..3 {
        done(leases.create(&write(shard(number)), wall(), TIMEOUT).await);
    }
    let mut last = from;
    let mut watch = pin!(leases.watch(last, TIMEOUT));
    assert!(
        watch.next().await.is_none(),
        "the fault closes the watch at its opening"
    );
    api.faults().clear();
    while seen.len() < 3 {
        let mut watch = pin!(leases.watch(last, TIMEOUT));
        let event = watch.next().await.unwrap().unwrap();
        let LeaseEvent::Applied(record) = event else {
            panic!("{event:?}");
        };
        last = record.resource_version;
        seen.push(record.key);
    }
    assert_eq!(seen, [shard(0), shard(1), shard(2)]);
    let mut watch = pin!(leases.watch(last, TIMEOUT));
    api.faults().add(Rule::new(Fault::Outage));
    let broken = watch.next().await.unwrap().unwrap_err();
    assert!(matches!(broken, LeaseError::Unanswered { .. }), "{broken:?}");
}

#[tokio::test(start_paused = true)]
async fn idle_lease_watch_receives_a_bookmark() {
    let api = api();
    let leases = leases(client(&api), "default");
    let from = leases.list(TIMEOUT).await.unwrap().resource_version;
    let mut watch = pin!(leases.watch(from, TIMEOUT));
    let event = watch.next().await.unwrap().unwrap();
    assert!(
        matches!(event, LeaseEvent::Bookmark(version) if version >= from),
        "{event:?}"
    );
}

/// The replica sends a thousand shard requests at once. A member renewal does not wait for them.
#[tokio::test(start_paused = true)]
async fn member_renewal_does_not_wait_for_shard_requests() {
    let api = api();
    let leases = LeaseApi::new(client(&api), "default", ShardCount::MAX, None);
    let made = done(leases.create(&held(member("a"), "one"), wall(), TIMEOUT).await);
    let pause = Duration::from_millis(100);
    api.faults().add(Rule::new(Fault::Delay {
        shortest: pause,
        longest: pause,
    }));
    let takes = (0..1024).map(|number| {
        let leases = leases.clone();
        async move { leases.create(&write(shard(number)), wall(), TIMEOUT).await.answer }
    });
    let taking = tokio::spawn(futures::future::join_all(takes));
    tokio::task::yield_now().await;
    let renewal = held(member("a"), "one");
    let renewed = leases.patch(&renewal, made.resource_version, wall(), 2 * pause).await;
    done(renewed);
    let answers = taking.await.unwrap();
    assert!(answers.iter().all(|answer| matches!(answer, LeaseAnswer::Done(_))));
}

/// The list has more Leases than fit on one page.
#[tokio::test(start_paused = true)]
async fn lease_list_reads_all_pages_at_one_version() {
    let api = api();
    let leases = LeaseApi::new(client(&api), "default", ShardCount::MAX, None);
    for number in 0..1024 {
        done(leases.create(&write(shard(number)), wall(), TIMEOUT).await);
    }
    let list = leases.list(TIMEOUT).await.unwrap();
    assert_eq!(list.leases.len(), 1024);
    api.faults().add(Rule {
        per_million: 500_000,
        ..rule(Fault::Expired, Verb::List)
    });
    let mut n_expired = 0;
    for _ in 0..20 {
        match leases.list(TIMEOUT).await {
            Ok(list) => assert_eq!(list.leases.len(), 1024),
            Err(LeaseError::Refused { code: 410, .. }) => n_expired += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!((1..20).contains(&n_expired), "{n_expired}");
}
