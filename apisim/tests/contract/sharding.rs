//! `shardSelector`: lists, watches and deletions of objects by ranges of a hash.

use serde_json::{Value, json};

use super::{
    formats::{PARTIAL_LIST, TABLE},
    server::{Server, text, uid},
};

const START: &str = "0x0000000000000000";
const HALF: &str = "0x8000000000000000";
const END: &str = "0x10000000000000000";
const N_OBJECTS: usize = 24;

fn range(field: &str, start: &str, end: &str) -> String {
    format!("shardRange(object.metadata.{field}, '{start}', '{end}')")
}

/// Adds a shard selector to the query of a path.
fn selected(path: &str, selector: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    let value: String = form_urlencoded::byte_serialize(selector.as_bytes()).collect();
    format!("{path}{separator}shardSelector={value}")
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|item| text(&item["metadata"]["name"])).collect()
}

fn fnv_1a(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Creates Leases. Returns the names of those whose hash is in the lower half, and of those in the upper half.
async fn create(server: &Server) -> [Vec<String>; 2] {
    let mut halves = [Vec::new(), Vec::new()];
    for at in 0..N_OBJECTS {
        let name = format!("a-{at:02}");
        let object = json!({"metadata": {"name": name, "labels": {"even": at.is_multiple_of(2).to_string()}}});
        let created = server.post(&server.path("leases"), &object).await.expect(201);
        halves[usize::from(fnv_1a(&uid(&created)) >= 1 << 63)].push(name);
    }
    assert!(
        halves.iter().all(|half| !half.is_empty()),
        "a half is empty: the probability is one in eight million"
    );
    halves
}

pub(super) async fn shard_ranges_partition_the_objects(server: Server) {
    let [lower, upper] = create(&server).await;
    let path = server.path("leases");
    let (low, high) = (range("uid", START, HALF), range("uid", HALF, END));
    let list = server.get(&selected(&path, &low)).await.expect(200);
    assert_eq!(names(&list), lower);
    assert_eq!(list["metadata"]["shardInfo"]["selector"], low);
    assert_eq!(names(&server.get(&selected(&path, &high)).await.expect(200)), upper);
    let both = format!("({low})||{high}");
    let list = server.get(&selected(&path, &both)).await.expect(200);
    assert_eq!(names(&list).len(), N_OBJECTS);
    assert_eq!(list["metadata"]["shardInfo"]["selector"], format!("{low} || {high}"));
    let even = selected(&format!("{path}?labelSelector=even%3Dtrue"), &low);
    let expected: Vec<_> = lower
        .iter()
        .filter(|name| number(name).is_multiple_of(2))
        .cloned()
        .collect();
    assert_eq!(names(&server.get(&even).await.expect(200)), expected);
    let by_namespace = format!(
        "{} || {}",
        range("namespace", START, HALF),
        range("namespace", HALF, END)
    );
    let list = server.get(&selected(&path, &by_namespace)).await.expect(200);
    assert_eq!(names(&list).len(), N_OBJECTS);
    // A page contains only selected objects, but the remaining count includes the others.
    let page = server
        .get(&selected(&format!("{path}?limit=2"), &low))
        .await
        .expect(200);
    assert_eq!(names(&page), lower[..2]);
    assert_eq!(page["metadata"]["remainingItemCount"], N_OBJECTS - 2);
    let token = text(&page["metadata"]["continue"]);
    let next = server
        .get(&selected(&format!("{path}?limit=2&continue={token}"), &low))
        .await
        .expect(200);
    assert_eq!(names(&next), lower[2..4]);
    for accept in [TABLE, PARTIAL_LIST] {
        let list = server.get_as(accept, &selected(&path, &low)).await;
        assert_eq!(list["metadata"]["shardInfo"], Value::Null);
    }
}

fn number(name: &str) -> usize {
    name["a-".len()..].parse().unwrap()
}

pub(super) async fn watch_yields_only_its_shard_range(server: Server) {
    let [lower, upper] = create(&server).await;
    let path = format!(
        "{}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true",
        server.path("leases")
    );
    let path = format!("{path}&resourceVersionMatch=NotOlderThan");
    let query = selected(&path, &range("uid", HALF, END));
    let events = server.watch(&query, upper.len() + 1).await;
    let initial: Vec<_> = events[..upper.len()]
        .iter()
        .map(|(_, object)| text(&object["metadata"]["name"]))
        .collect();
    assert_eq!(initial, upper);
    let (kind, bookmark) = &events[upper.len()];
    assert_eq!(kind, "BOOKMARK");
    assert_eq!(bookmark["metadata"]["shardInfo"], Value::Null);
    let version = text(&bookmark["metadata"]["resourceVersion"]);
    for name in lower.iter().take(3).chain(upper.iter().take(1)) {
        let path = format!("{}/{name}", server.path("leases"));
        let change = json!({"spec": {"holderIdentity": "me"}});
        server.merge_patch(&path, &change).await.expect(200);
    }
    let path = format!("{}?watch=1&resourceVersion={version}", server.path("leases"));
    let events = server.watch(&selected(&path, &range("uid", HALF, END)), 1).await;
    assert_eq!(
        (events[0].0.as_str(), &events[0].1["metadata"]["name"]),
        ("MODIFIED", &json!(upper[0]))
    );
}

pub(super) async fn collection_is_deleted_by_shard_range(server: Server) {
    let [_, upper] = create(&server).await;
    let path = server.path("leases");
    let low = range("uid", START, HALF);
    server.delete(&selected(&path, &low), &Value::Null).await.expect(200);
    assert_eq!(names(&server.get(&path).await.expect(200)), upper);
}

/// Invalid selectors with their error messages.
fn invalid_selectors() -> Vec<(String, &'static str)> {
    let uid = "object.metadata.uid";
    vec![
        (
            " ".to_owned(),
            "empty shard selector is not allowed; omit the parameter for unfiltered lists",
        ),
        (
            range("uid", "0x0", HALF),
            "hexStart must be a 0x-prefixed 16-digit hex value, got \"0x0\" (did you mean \"0x0000000000000000\"?)",
        ),
        (range("uid", START, "8"), "hexEnd must have '0x' prefix, got \"8\""),
        (
            range("uid", START, "0x80000000000000AB"),
            "hexEnd: invalid hex character \"A\" in \"0x80000000000000AB\"",
        ),
        (
            range("uid", START, "0x10000000000000001"),
            "hexEnd: 17-digit hex value must be '0x10000000000000000' (2^64), got \"0x10000000000000001\"",
        ),
        (
            range("uid", HALF, START),
            "shard range start 0x8000000000000000 must be less than end 0x0000000000000000",
        ),
        (
            range("name", START, HALF),
            "unsupported field path \"object.metadata.name\"; supported: object.metadata.uid, object.metadata.namespace",
        ),
        (
            format!("{} || {}", range("uid", START, HALF), range("namespace", HALF, END)),
            "all shard ranges must use the same field, got \"object.metadata.uid\" and \"object.metadata.namespace\"",
        ),
        (
            format!("{0} && {0}", range("uid", START, HALF)),
            "unsupported function \"_&&_\"; only shardRange() and || are allowed",
        ),
        (
            format!("shardRange({uid}, '{START}')"),
            "shardRange() requires exactly 3 arguments, got 2",
        ),
        (
            format!("shardRange({uid}, 1, 2)"),
            "hexStart must be a string literal, got int64",
        ),
        (
            format!("shardRange({uid}, {uid}, '{END}')"),
            "hexStart must be a string literal (e.g. '0xff'), got expression kind 7",
        ),
        (
            uid.to_owned(),
            "unexpected expression kind 7; expected shardRange() call or || operator",
        ),
        (
            "'x'".to_owned(),
            "unexpected expression kind 5; expected shardRange() call or || operator",
        ),
    ]
}

pub(super) async fn invalid_shard_selector_is_refused(server: Server) {
    let path = server.path("leases");
    for (selector, expected) in invalid_selectors() {
        for path in [path.clone(), format!("{path}?watch=1")] {
            let response = server.get(&selected(&path, &selector)).await;
            let expected = format!("invalid shard selector: {expected}");
            let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": expected, "code": 500});
            assert_eq!(response.expect(500), status);
        }
    }
    let response = server.get(&selected(&path, "shardRange(")).await;
    let message = text(&response.expect(500)["message"]);
    assert!(
        message.starts_with("invalid shard selector: CEL parse error: Syntax error"),
        "{message}"
    );
}

pub(super) async fn shard_selector_is_ignored_without_the_feature_gate(server: Server) {
    create(&server).await;
    let path = server.path("leases");
    for selector in [range("uid", START, HALF), "x".to_owned()] {
        let list = server.get(&selected(&path, &selector)).await.expect(200);
        assert_eq!(names(&list).len(), N_OBJECTS);
        assert_eq!(list["metadata"]["shardInfo"], Value::Null);
    }
}
