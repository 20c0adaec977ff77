//! Lease requests without faults. The cases run against any API server, each in a separate namespace.

use std::{pin::pin, time::Duration};

use cronwheel::{
    coordination::{InstallationName, LeaseAnswer, LeaseKey, LeaseRecord, LeaseWrite, annotation},
    kube_api::{LeaseApi, LeaseEvent, LeaseReply},
    shard::{ResourceVersion, ShardCount, ShardId, Term},
};
use futures::StreamExt as _;
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

/// Applies a macro to the names of all cases.
macro_rules! for_each_case {
    ($apply:ident) => {
        $apply![
            lease_is_created_read_and_renewed,
            lease_write_at_a_stale_version_is_a_conflict,
            invalid_lease_is_refused,
            lease_watch_from_a_list_misses_no_change,
            lease_without_its_label_is_gone_until_the_next_write,
            installations_with_different_names_are_independent,
            warning_is_recorded_as_an_event_of_the_lease,
        ];
    };
}
pub(crate) use for_each_case;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn leases(client: Client, namespace: &str) -> LeaseApi {
    LeaseApi::new(client, namespace, ShardCount::default(), None)
}

pub(crate) fn member(uid: &str) -> LeaseKey {
    LeaseKey::Member(uid.into())
}

pub(crate) fn shard(number: u16) -> LeaseKey {
    LeaseKey::Shard(ShardId(number))
}

/// A wall time with microseconds.
pub(crate) fn wall() -> Timestamp {
    "2026-01-02T03:04:31.000250Z".parse().unwrap()
}

/// A write that changes nothing.
pub(crate) fn write(key: LeaseKey) -> LeaseWrite {
    LeaseWrite::to(key)
}

/// A write that sets the holder.
pub(crate) fn held(key: LeaseKey, holder: &str) -> LeaseWrite {
    LeaseWrite {
        holder: Some(holder.into()),
        duration_secs: Some(10),
        is_renewal: true,
        ..write(key)
    }
}

#[track_caller]
pub(crate) fn done(reply: LeaseReply) -> LeaseRecord {
    let LeaseAnswer::Done(record) = reply.answer else {
        panic!("{reply:?}");
    };
    *record
}

/// Sends a merge patch of a Lease as a user.
async fn patch_lease(client: &Client, namespace: &str, name: &str, change: Value) -> Value {
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}");
    let request = Request::patch(path).header("content-type", "application/merge-patch+json");
    client
        .request(request.body(change.to_string().into_bytes()).unwrap())
        .await
        .unwrap()
}

async fn post(client: &Client, path: &str, object: Value) {
    let request = Request::post(path).header("content-type", "application/json");
    let request = request.body(object.to_string().into_bytes()).unwrap();
    let _: Value = client.request(request).await.unwrap();
}

pub(crate) async fn lease_is_created_read_and_renewed(client: Client, namespace: &str) {
    let api = leases(client.clone(), namespace);
    let key = member("a");
    let mut join = held(key.clone(), "pod/a/0000000000000001");
    join.annotations.insert(annotation::ACCEPTS, Some("soon".into()));
    let reply = api.create(&join, wall(), TIMEOUT).await;
    assert_eq!((reply.code, reply.message.as_deref()), (Some(201), None));
    assert!(reply.server_date.is_some());
    let made = done(reply);
    let expected = LeaseRecord {
        key: key.clone(),
        resource_version: made.resource_version,
        holder: "pod/a/0000000000000001".into(),
        duration_secs: 10,
        transitions: 0,
        renewed_at: Some(wall()),
        acquired_at: None,
        annotations: [(annotation::ACCEPTS.into(), "soon".into())].into(),
    };
    assert_eq!(made, expected);

    let foreign = json!({"metadata": {"annotations": {"example.org/note": "kept"}}, "spec": {"leaseTransitions": 3}});
    patch_lease(&client, namespace, "cronwheel-member-a", foreign).await;
    let LeaseAnswer::Done(read) = api.read(&key, TIMEOUT).await.answer else {
        panic!("the Lease does not exist");
    };
    assert!(read.resource_version > made.resource_version);
    assert_eq!((read.transitions, &read.annotations), (3, &made.annotations));

    let later = wall() + std::time::Duration::from_micros(1);
    let renewal = LeaseWrite {
        is_renewal: true,
        annotations: [(annotation::ACCEPTS, None), (annotation::RENEWAL, Some("2".into()))].into(),
        ..write(key.clone())
    };
    let renewed = done(api.patch(&renewal, read.resource_version, later, TIMEOUT).await);
    assert!(renewed.resource_version > read.resource_version);
    let expected = LeaseRecord {
        resource_version: renewed.resource_version,
        renewed_at: Some(later),
        annotations: [(annotation::RENEWAL.into(), "2".into())].into(),
        ..*read
    };
    assert_eq!(renewed, expected);
    let left = LeaseWrite {
        holder: Some("".into()),
        ..write(key)
    };
    let left = done(api.patch(&left, renewed.resource_version, later, TIMEOUT).await);
    assert_eq!((&*left.holder, left.renewed_at), ("", Some(later)));
    let whole = patch_lease(&client, namespace, "cronwheel-member-a", json!({})).await;
    assert_eq!(whole["metadata"]["annotations"]["example.org/note"], "kept");
}

pub(crate) async fn lease_write_at_a_stale_version_is_a_conflict(client: Client, namespace: &str) {
    let api = leases(client, namespace);
    let key = shard(255);
    let take = LeaseWrite {
        term: Some(Term(1)),
        is_acquisition: true,
        ..held(key.clone(), "pod/a/0000000000000001")
    };
    assert_eq!(api.read(&key, TIMEOUT).await.answer, LeaseAnswer::Missing);
    let none = ResourceVersion(1);
    assert_eq!(
        api.patch(&take, none, wall(), TIMEOUT).await.answer,
        LeaseAnswer::Missing
    );
    let first = done(api.create(&take, wall(), TIMEOUT).await);
    assert_eq!(api.create(&take, wall(), TIMEOUT).await.answer, LeaseAnswer::Exists);
    let next = LeaseWrite {
        term: Some(Term(2)),
        ..take.clone()
    };
    let second = done(api.patch(&next, first.resource_version, wall(), TIMEOUT).await);
    assert_eq!(second.transitions, 2);
    // The conflict also occurs if the patch changes nothing.
    for stale in [&take, &next] {
        let reply = api.patch(stale, first.resource_version, wall(), TIMEOUT).await;
        assert_eq!((reply.answer, reply.code), (LeaseAnswer::Conflict, Some(409)));
        assert!(
            reply
                .message
                .is_some_and(|message| message.contains("cronwheel-shard-8-255"))
        );
    }
    let stale = api.delete(&key, first.resource_version, TIMEOUT).await;
    assert_eq!(stale.answer, LeaseAnswer::Conflict);
    let deleted = api.delete(&key, second.resource_version, TIMEOUT).await;
    assert_eq!(deleted.code, Some(200));
    assert_eq!(done(deleted).key, key);
    let again = api.delete(&key, second.resource_version, TIMEOUT).await;
    assert_eq!(again.answer, LeaseAnswer::Missing);
}

pub(crate) async fn invalid_lease_is_refused(client: Client, namespace: &str) {
    let api = leases(client.clone(), namespace);
    let brief = LeaseWrite {
        duration_secs: Some(0),
        ..held(member("a"), "pod/a/0000000000000001")
    };
    let reply = api.create(&brief, wall(), TIMEOUT).await;
    assert_eq!((reply.answer, reply.code), (LeaseAnswer::Refused, Some(422)));
    assert!(
        reply
            .message
            .is_some_and(|message| message.contains("leaseDurationSeconds"))
    );
    let long = LeaseWrite {
        term: Some(Term(1 << 31)),
        ..write(shard(0))
    };
    let reply = api.create(&long, wall(), TIMEOUT).await;
    assert_eq!((reply.answer, reply.code), (LeaseAnswer::Refused, Some(400)));
    let nowhere = leases(client, "no-such-namespace");
    let reply = nowhere.create(&write(shard(0)), wall(), TIMEOUT).await;
    assert_eq!((reply.answer, reply.code), (LeaseAnswer::Refused, Some(404)));
}

/// Returns short descriptions of the next events of a watch: the kind of the event and the Lease.
async fn next_events(api: &LeaseApi, from: ResourceVersion, n_events: usize) -> Vec<String> {
    let mut watch = pin!(api.watch(from, TIMEOUT));
    let (mut events, mut last) = (Vec::new(), from);
    while events.len() < n_events {
        let (event, version) = match watch.next().await.unwrap().unwrap() {
            LeaseEvent::Applied(record) => (format!("{:?} {}", record.key, record.holder), record.resource_version),
            LeaseEvent::Deleted(key, version) => (format!("{key:?} gone"), version),
            LeaseEvent::Bookmark(version) => ("bookmark".to_owned(), version),
        };
        assert!(version > last, "{event}: {version} after {last}");
        last = version;
        events.push(event);
    }
    events
}

pub(crate) async fn lease_watch_from_a_list_misses_no_change(client: Client, namespace: &str) {
    let api = leases(client.clone(), namespace);
    let first = done(api.create(&held(shard(1), "one"), wall(), TIMEOUT).await);
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases");
    post(&client, &path, json!({"metadata": {"name": "cronwheel-shard-8-2"}})).await;
    let list = api.list(TIMEOUT).await.unwrap();
    assert_eq!(
        list.leases,
        std::slice::from_ref(&first),
        "the other Lease lacks the label"
    );
    assert!(list.resource_version > first.resource_version);

    let second = done(api.create(&held(member("b"), "two"), wall(), TIMEOUT).await);
    let changed = held(shard(1), "two");
    let changed = done(api.patch(&changed, first.resource_version, wall(), TIMEOUT).await);
    let foreign = json!({"metadata": {"name": "cronwheel-shard-4-2", "labels": {"cronwheel.dev/lease": "cronwheel"}}});
    post(&client, &path, foreign).await;
    done(api.delete(&member("b"), second.resource_version, TIMEOUT).await);
    let expected = [
        "Member(\"b\") two",
        "Shard(ShardId(1)) two",
        "bookmark",
        "Member(\"b\") gone",
    ];
    assert_eq!(next_events(&api, list.resource_version, 4).await, expected);
    assert_eq!(next_events(&api, changed.resource_version, 2).await, expected[2..]);
    let list = api.list(TIMEOUT).await.unwrap();
    assert_eq!(list.leases, [changed], "the list omits Leases of another shard count");
}

pub(crate) async fn lease_without_its_label_is_gone_until_the_next_write(client: Client, namespace: &str) {
    let api = leases(client.clone(), namespace);
    let key = shard(3);
    let first = done(api.create(&held(key.clone(), "one"), wall(), TIMEOUT).await);
    let stripped = json!({"metadata": {"labels": null}});
    patch_lease(&client, namespace, "cronwheel-shard-8-3", stripped).await;
    let LeaseAnswer::Done(read) = api.read(&key, TIMEOUT).await.answer else {
        panic!("the Lease does not exist");
    };
    assert_eq!(api.list(TIMEOUT).await.unwrap().leases, []);
    done(
        api.patch(&held(key, "two"), read.resource_version, wall(), TIMEOUT)
            .await,
    );
    assert_eq!(
        next_events(&api, first.resource_version, 2).await,
        ["Shard(ShardId(3)) gone", "Shard(ShardId(3)) two"]
    );
}

pub(crate) async fn installations_with_different_names_are_independent(client: Client, namespace: &str) {
    let ours = leases(client.clone(), namespace);
    let name = InstallationName::new("cronwheel-b").unwrap();
    let theirs = leases(client, namespace).of_installation(name);
    done(ours.create(&held(member("a"), "one"), wall(), TIMEOUT).await);
    done(theirs.create(&held(member("a"), "two"), wall(), TIMEOUT).await);
    done(theirs.create(&held(shard(1), "two"), wall(), TIMEOUT).await);
    for (api, holders) in [(&ours, vec!["one"]), (&theirs, vec!["two", "two"])] {
        let list = api.list(TIMEOUT).await.unwrap();
        let held_by: Vec<&str> = list.leases.iter().map(|lease| &*lease.holder).collect();
        assert_eq!(held_by, holders);
    }
    assert_eq!(ours.read(&shard(1), TIMEOUT).await.answer, LeaseAnswer::Missing);
}

pub(crate) async fn warning_is_recorded_as_an_event_of_the_lease(client: Client, namespace: &str) {
    let api = leases(client.clone(), namespace);
    let lease = member("a");
    api.warn(&lease, "MemberEvicted", "it was silent", wall(), TIMEOUT)
        .await
        .unwrap();
    let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name=cronwheel-member-a");
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    let events: Value = client.request(request).await.unwrap();
    let [event] = events["items"].as_array().unwrap().as_slice() else {
        panic!("{events}");
    };
    assert_eq!(event["involvedObject"]["kind"], "Lease");
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reason"], "MemberEvicted");
    assert_eq!(event["message"], "it was silent");
}
