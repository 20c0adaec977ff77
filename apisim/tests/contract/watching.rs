//! Watches: start versions, selectors, bookmarks, timeouts, expired versions.

use serde_json::{Value, json};

use super::server::{Server, text, version};

/// Formats events as `<type> <name>`.
fn summaries(events: &[(String, Value)]) -> Vec<String> {
    let summary = |(kind, object): &(String, Value)| format!("{kind} {}", text(&object["metadata"]["name"]));
    events.iter().map(summary).collect()
}

async fn list_version(server: &Server, plural: &str) -> String {
    version(
        &server
            .get(&format!("{}?limit=500", server.path(plural)))
            .await
            .expect(200),
    )
}

pub(super) async fn watch_starts_after_its_resource_version(server: Server) {
    server.create_config_map("before", json!({})).await;
    let begun = list_version(&server, "configmaps").await;
    let path = server.path("configmaps");
    let created = server.create_config_map("a", json!({})).await;
    let patched = server
        .merge_patch(&format!("{path}/a"), &json!({"data": {"x": "1"}}))
        .await
        .expect(200);
    server.delete(&format!("{path}/a"), &Value::Null).await.expect(200);
    let query = "watch=true&timeoutSeconds=290&allowWatchBookmarks=true";
    let events = server
        .watch(&format!("{path}?&{query}&resourceVersion={begun}"), 3)
        .await;
    assert_eq!(summaries(&events), ["ADDED a", "MODIFIED a", "DELETED a"]);
    let versions: Vec<u64> = events
        .iter()
        .map(|(_, object)| version(object).parse().unwrap())
        .collect();
    assert_eq!(versions[..2], [number(&created), number(&patched)]);
    assert!(versions[2] > versions[1], "{versions:?}");
    assert_eq!(events[2].1["data"]["x"], "1");
    let events = server
        .watch(&format!("{path}?watch=1&resourceVersion={}", version(&patched)), 1)
        .await;
    assert_eq!(summaries(&events), ["DELETED a"]);
}

pub(super) async fn watch_without_a_version_starts_with_existing_objects(server: Server) {
    server.create_config_map("a", json!({})).await;
    server.create_config_map("b", json!({})).await;
    for version in ["", "&resourceVersion=0"] {
        let selector = "labelSelector=!none&fieldSelector=metadata.name%3Db";
        let path = format!("{}?watch=true&{selector}{version}", server.path("configmaps"));
        assert_eq!(summaries(&server.watch(&path, 1).await), ["ADDED b"]);
    }
}

pub(super) async fn initial_events_end_with_a_bookmark(server: Server) {
    server.create_job("a", json!({})).await;
    server.create_job("b", json!({})).await;
    let path = server.path("jobs");
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let events = server.watch(&format!("{path}?{query}"), 3).await;
    assert_eq!(summaries(&events[..2]), ["ADDED a", "ADDED b"]);
    let (kind, bookmark) = &events[2];
    assert_eq!((kind.as_str(), &bookmark["kind"]), ("BOOKMARK", &json!("Job")));
    assert_eq!(
        bookmark["metadata"]["annotations"],
        json!({"k8s.io/initial-events-end": "true"})
    );
    assert!(version(bookmark).parse::<u64>().unwrap() >= version(&events[1].1).parse::<u64>().unwrap());
}

pub(super) async fn watch_by_label_yields_objects_that_enter_and_leave(server: Server) {
    let begun = list_version(&server, "configmaps").await;
    let path = server.path("configmaps");
    server.create_config_map("a", json!({"tier": "1"})).await;
    for tier in ["2", "2x", "1"] {
        let change = json!({"metadata": {"labels": {"tier": tier}}});
        server.merge_patch(&format!("{path}/a"), &change).await.expect(200);
    }
    let events = server
        .watch(
            &format!("{path}?watch=1&labelSelector=tier%3D1&resourceVersion={begun}"),
            3,
        )
        .await;
    assert_eq!(summaries(&events), ["ADDED a", "DELETED a", "ADDED a"]);
    assert_eq!(events[1].1["metadata"]["labels"]["tier"], "1");
}

pub(super) async fn watch_ends_after_its_timeout(server: Server) {
    let begun = list_version(&server, "leases").await;
    // Every value of a boolean parameter except `false` and `0` means true.
    let path = format!(
        "{}?watch=True&allowWatchBookmarks=FALSE&timeoutSeconds=1&resourceVersion={begun}",
        server.path("leases")
    );
    assert_eq!(server.watch_lines(&path, usize::MAX).await, []);
}

pub(super) async fn idle_watch_gets_a_bookmark_before_its_end(server: Server) {
    let path = server.path("jobs");
    let begun = list_version(&server, "jobs").await;
    // No Job changes, but the version does.
    let created = server.create_config_map("a", json!({})).await;
    let current = version(&server.get(&format!("{path}?limit=1")).await.expect(200));
    assert!(current.parse::<u64>().unwrap() >= number(&created));
    let query = "watch=true&timeoutSeconds=5&allowWatchBookmarks=true&labelSelector=none%3Dnone";
    let watch = format!("{path}?{query}&resourceVersion={begun}");
    let mut events = Vec::new();
    // On a busy server, a watch may end before its bookmark.
    for _ in 0..5 {
        if events.is_empty() {
            events = server.watch_lines(&watch, 1).await;
        }
    }
    let (kind, bookmark) = events.first().expect("a bookmark in one of five watches");
    assert_eq!(kind, "BOOKMARK");
    assert!(number(bookmark) >= current.parse::<u64>().unwrap(), "{bookmark}");
}

pub(super) async fn watch_from_version_1_begins_with_expired_or_the_first_change(server: Server) {
    // Version 1 precedes all changes since the server started.
    let path = format!("{}?watch=1&resourceVersion=1", server.path("configmaps"));
    for at in 0..3 {
        server.create_config_map(&format!("a-{at}"), json!({})).await;
    }
    let events = server.watch(&path, 1).await;
    // If the server no longer has the version, the first event is an error.
    if events[0].0 == "ERROR" {
        assert_eq!(
            (&events[0].1["code"], &events[0].1["reason"]),
            (&json!(410), &json!("Expired"))
        );
    } else {
        assert_eq!(summaries(&events), ["ADDED a-0"]);
    }
}

fn number(object: &Value) -> u64 {
    version(object).parse().unwrap()
}
