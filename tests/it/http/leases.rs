//! Lease requests as bytes, and the handling of invalid responses.

use jiff::Timestamp;
use std::{convert::Infallible, pin::pin, time::Duration};

use bytes::Bytes;
use cronwheel::{
    coordination::{LeaseAnswer, LeaseKey},
    kube_api::{LeaseApi, LeaseError, LeaseEvent, OwnerPod, http::ServerDate},
    shard::{ResourceVersion, ShardCount, ShardId},
};
use futures::StreamExt as _;
use http::{Request, Response};
use http_body_util::StreamBody;
use hyper::body::Frame;
use kube::{Client, client::Body};
use serde_json::json;

use super::{Script, status};
use crate::leases::{wall, write};

const TIMEOUT: Duration = Duration::from_millis(1_500);
const SHARD: LeaseKey = LeaseKey::Shard(ShardId(3));

fn leases(client: Client) -> LeaseApi {
    let owner = OwnerPod {
        name: "cronwheel-0".into(),
        uid: "u".into(),
    };
    LeaseApi::new(client, "cron/wheel", ShardCount::default(), Some(owner))
}

fn lease(name: &str, version: u64) -> String {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": name, "resourceVersion": version.to_string()}, "spec": {},
    })
    .to_string()
}

fn page(names: &[&str], version: u64, next: &str) -> String {
    let items: Vec<_> = names
        .iter()
        .map(|name| json!({"metadata": {"name": name, "resourceVersion": "1"}}))
        .collect();
    json!({"metadata": {"resourceVersion": version.to_string(), "continue": next}, "items": items}).to_string()
}

#[tokio::test(start_paused = true)]
async fn lease_requests_carry_a_timeout() {
    let script = Script::default()
        .respond(201, lease("cronwheel-shard-8-3", 1))
        .respond(200, lease("cronwheel-shard-8-3", 2))
        .respond(200, lease("cronwheel-shard-8-3", 2))
        .respond(200, r#"{"kind":"Status","status":"Success"}"#)
        .respond(200, page(&["cronwheel-shard-8-3", "other"], 9, "a+b"))
        .respond(200, page(&["cronwheel-member-u"], 9, ""))
        .respond(404, status(404, "NotFound", "no"))
        .respond(201, "{}");
    let api = leases(script.client());
    let version = ResourceVersion(1);
    api.create(&write(SHARD), wall(), TIMEOUT).await;
    api.patch(&write(SHARD), version, wall(), TIMEOUT).await;
    api.read(&SHARD, TIMEOUT).await;
    api.delete(&SHARD, version, TIMEOUT).await;
    let list = api.list(TIMEOUT).await.unwrap();
    assert_eq!((list.leases.len(), list.resource_version), (2, ResourceVersion(9)));
    let base = "/apis/coordination.k8s.io/v1/namespaces/cron%2Fwheel/leases";
    let labelled = "labelSelector=cronwheel.dev%2Flease%3Dcronwheel&limit=500";
    assert_eq!(
        script.lines(),
        [
            format!("POST {base}?timeout=1500ms"),
            format!("PATCH {base}/cronwheel-shard-8-3?timeout=1500ms"),
            format!("GET {base}/cronwheel-shard-8-3?timeout=1500ms"),
            format!("DELETE {base}/cronwheel-shard-8-3?timeout=1500ms"),
            format!("GET {base}?{labelled}&timeout=1500ms"),
            format!("GET {base}?{labelled}&continue=a%2Bb&timeout=1500ms"),
        ]
    );
    let received = script.received.lock().unwrap();
    let content_types: Vec<&str> = received.iter().map(|request| request.header("content-type")).collect();
    let json = "application/json";
    assert_eq!(content_types, [json, "application/merge-patch+json", "", json, "", ""]);
    assert!(received[0].header("user-agent").starts_with("cronwheel/"));
}

#[tokio::test(start_paused = true)]
async fn unanswered_lease_write_is_unknown_and_names_its_timeout() {
    let api = leases(Script::default().client());
    let reply = api.create(&write(SHARD), wall(), TIMEOUT).await;
    assert_eq!((reply.answer, reply.code), (LeaseAnswer::Unknown, None));
    assert_eq!(reply.message.as_deref(), Some("no answer within 1.5 seconds"));
    let reply = api.read(&SHARD, TIMEOUT).await;
    assert_eq!(reply.answer, LeaseAnswer::Unknown);
    let listed = api.list(TIMEOUT).await.unwrap_err();
    assert!(matches!(listed, LeaseError::Unanswered { .. }), "{listed}");
    let mut watch = pin!(api.watch(ResourceVersion(1), TIMEOUT));
    let opened = watch.next().await.unwrap().unwrap_err();
    assert!(matches!(opened, LeaseError::Unanswered { .. }), "{opened}");
}

#[tokio::test(start_paused = true)]
async fn lease_response_carries_the_server_date() {
    let date = [("date", "Fri, 02 Jan 2026 03:04:05 GMT")];
    let script = Script::default()
        .respond_with(200, &date, lease("cronwheel-shard-8-3", 2))
        .respond_with(409, &date, status(409, "Conflict", "modified"));
    let api = leases(script.client());
    let expected = "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap();
    let expected = Some(ServerDate::from(expected));
    assert_eq!(api.read(&SHARD, TIMEOUT).await.server_date, expected);
    let refused = api.patch(&write(SHARD), ResourceVersion(1), wall(), TIMEOUT).await;
    assert_eq!((refused.server_date, refused.answer), (expected, LeaseAnswer::Conflict));
    assert_eq!(refused.message.as_deref(), Some("modified"));
}

#[tokio::test(start_paused = true)]
async fn endless_lease_response_is_unknown() {
    let endless = " ".repeat(3 << 20);
    let api = leases(Script::default().respond(200, endless).client());
    let reply = api.read(&SHARD, TIMEOUT).await;
    assert_eq!((reply.answer, reply.code), (LeaseAnswer::Unknown, None));
    let pages: Script = (0..200).fold(Script::default(), |script, _| script.respond(200, page(&[], 9, "more")));
    let listed = leases(pages.client()).list(TIMEOUT).await.unwrap_err();
    assert!(listed.to_string().contains("more than 100 pages"), "{listed}");
}

/// Returns a client that receives each response in these pieces. The response then ends or stays open.
fn in_pieces(pieces: &[&str], ends: bool) -> Client {
    let pieces: Vec<Bytes> = pieces
        .iter()
        .map(|piece| Bytes::copy_from_slice(piece.as_bytes()))
        .collect();
    let service = tower::service_fn(move |_: Request<Body>| {
        let frames = pieces
            .clone()
            .into_iter()
            .map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
        let frames = futures::stream::iter(frames);
        let rest = if ends {
            futures::stream::empty().boxed()
        } else {
            futures::stream::pending().boxed()
        };
        std::future::ready(Ok::<_, Infallible>(Response::new(StreamBody::new(frames.chain(rest)))))
    });
    Client::new(service, "default")
}

fn event(kind: &str, name: &str, version: u64) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", lease(name, version))
}

#[tokio::test(start_paused = true)]
async fn lease_events_are_reassembled_from_chunks_of_any_size() {
    let lines = [
        event("ADDED", "cronwheel-shard-8-3", 2),
        event("MODIFIED", "cronwheel-shard-8-3", 3),
        "\n".to_owned(),
        event("ADDED", "cronwheel-shard-4-3", 4),
        event("DELETED", "cronwheel-shard-8-3", 5),
        event("BOOKMARK", "", 6),
    ]
    .concat();
    for size in [1, 7, lines.len()] {
        let pieces: Vec<&str> = (0..lines.len())
            .step_by(size)
            .map(|at| &lines[at..(at + size).min(lines.len())])
            .collect();
        let events: Vec<_> = leases(in_pieces(&pieces, true))
            .watch(ResourceVersion(1), TIMEOUT)
            .collect()
            .await;
        let received: Vec<String> = events
            .into_iter()
            .map(|event| match event.unwrap() {
                LeaseEvent::Applied(record) => format!("applied {}", record.resource_version),
                LeaseEvent::Deleted(_, version) => format!("deleted {version}"),
                LeaseEvent::Bookmark(version) => format!("bookmark {version}"),
            })
            .collect();
        let expected = ["applied 2", "applied 3", "bookmark 4", "deleted 5", "bookmark 6"];
        assert_eq!(received, expected, "in pieces of {size}");
    }
}

#[tokio::test(start_paused = true)]
async fn invalid_event_ends_the_lease_watch() {
    let error = |code: u16| {
        let status = json!({"kind": "Status", "code": code, "message": "too old"});
        format!("{}\n", json!({"type": "ERROR", "object": status}))
    };
    for (lines, expected) in [
        (error(410), "code: 410"),
        (error(500), "code: 500"),
        ("not JSON\n".to_owned(), "Unreadable"),
        (r#"{"type":"ADDED"}"#.to_owned() + "\n", "Unreadable"),
        (
            event("ADDED", "cronwheel-shard-8-3", 2).replace("\"2\"", "\"two\""),
            "Unreadable",
        ),
        (event("RENAMED", "cronwheel-shard-8-3", 2), "Unreadable"),
    ] {
        let mut watch = pin!(leases(in_pieces(&[&lines], false)).watch(ResourceVersion(1), TIMEOUT));
        let error = watch.next().await.unwrap().unwrap_err();
        assert!(format!("{error:?}").contains(expected), "{error:?}");
        assert!(watch.next().await.is_none());
    }
    // An incomplete line is not an event.
    let half = event("ADDED", "cronwheel-shard-8-3", 2);
    let cut: Vec<_> = leases(in_pieces(&[&half[..20]], true))
        .watch(ResourceVersion(1), TIMEOUT)
        .collect()
        .await;
    assert!(cut.is_empty(), "{cut:?}");
}

/// A proxy answers without a `Status`.
#[tokio::test(start_paused = true)]
async fn refused_lease_watch_names_what_the_server_said() {
    for (code, body, expected) in [
        (503, "", "no reason given (503)"),
        (403, "blocked\n", "blocked (403)"),
        (
            502,
            "{}",
            "the answer cannot be read: it is neither an event of a Lease nor a Status",
        ),
    ] {
        let api = leases(Script::default().respond(code, body).client());
        let mut watch = pin!(api.watch(ResourceVersion(1), TIMEOUT));
        let error = watch.next().await.unwrap().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("watching the Leases of cron/wheel: {expected}")
        );
    }
}
