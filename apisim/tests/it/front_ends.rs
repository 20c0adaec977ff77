//! Several front ends on one store, with lag and clock offset. Bookmarks, 410 and the expiry of Events in virtual time.

use std::time::Duration;

use crate::requests::{MAPS, WatchItem, create, names, next, request, watch};
use apisim::{Api, Options, WallClock};
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::time::advance;

fn api() -> Api {
    let options = Options {
        n_front_ends: 2,
        ..Options::default()
    };
    Api::new(options, WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap()))
}

#[tokio::test(start_paused = true)]
async fn lagging_front_end_serves_past_objects() {
    let api = api();
    let (first, second) = (api.client("a"), api.client("a").at_front_end(1));
    create(&first, "old").await;
    api.set_lag(1, Duration::from_secs(5));
    create(&first, "new").await;
    let version = api.version();
    assert_eq!(names(&first, "resourceVersion=0").await, ["new", "old"]);
    assert_eq!(names(&second, "resourceVersion=0").await, ["old"]);
    // A list of the latest version reads the store, not the watch cache.
    assert_eq!(names(&second, "").await, ["new", "old"]);
    let (code, _) = request(
        &second,
        "GET",
        &format!("{MAPS}?resourceVersion={version}"),
        &Value::Null,
    )
    .await;
    assert_eq!(code, 504, "the version is not visible after three seconds");
    assert_eq!(
        names(&second, &format!("resourceVersion={version}")).await,
        ["new", "old"]
    );
    advance(Duration::from_secs(5)).await;
    assert_eq!(names(&second, "resourceVersion=0").await, ["new", "old"]);
}

#[tokio::test(start_paused = true)]
async fn front_end_stamps_objects_with_its_own_clock() {
    let api = api();
    api.set_clock_ahead(1, SignedDuration::from_secs(-30));
    let (first, second) = (api.client("a"), api.client("a").at_front_end(1));
    let created = async |client, name: &str| {
        create(client, name).await;
        let (_, object) = request(client, "GET", &format!("{MAPS}/{name}"), &Value::Null).await;
        object["metadata"]["creationTimestamp"].clone()
    };
    assert_eq!(created(&first, "right").await, json!("2026-01-02T03:04:05Z"));
    assert_eq!(created(&second, "wrong").await, json!("2026-01-02T03:03:35Z"));
}

#[tokio::test(start_paused = true)]
async fn watch_at_a_lagging_front_end_is_late_and_loses_nothing() {
    let api = api();
    let (first, second) = (api.client("a"), api.client("a").at_front_end(1));
    api.set_lag(1, Duration::from_secs(5));
    let query = format!("{MAPS}?watch=1&resourceVersion={}", api.version());
    let mut current = watch(&first, &query).await;
    let mut lagging = watch(&second, &query).await;
    create(&first, "a").await;
    create(&first, "b").await;
    let immediate = Duration::from_millis(1);
    assert_eq!(next(&mut current, immediate).await.name(), "a");
    assert_eq!(
        next(&mut lagging, Duration::from_millis(4900)).await,
        WatchItem::TimedOut
    );
    assert_eq!(next(&mut lagging, Duration::from_millis(200)).await.name(), "a");
    assert_eq!(next(&mut lagging, immediate).await.name(), "b");
    // A visible change stays visible when the lag grows. Without lag, all changes are visible at once.
    create(&first, "c").await;
    api.set_lag(1, Duration::ZERO);
    assert_eq!(next(&mut lagging, immediate).await.name(), "c");
    api.set_lag(1, Duration::from_hours(1));
    assert_eq!(names(&second, "resourceVersion=0").await, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn idle_watch_gets_bookmarks_every_minute_and_before_its_end() {
    let api = api();
    let client = api.client("a");
    create(&client, "a").await;
    let version = api.version();
    let query = format!("{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion={version}");
    let mut body = watch(&client, &query).await;
    let begun = tokio_now();
    let mut events = Vec::new();
    while let WatchItem::Event(kind, object) = next(&mut body, Duration::from_mins(5)).await {
        assert_eq!(object["metadata"]["resourceVersion"], version.to_string());
        events.push((kind, begun.elapsed().as_secs()));
    }
    let bookmark = |seconds| ("BOOKMARK".to_owned(), seconds);
    assert_eq!(events, [bookmark(60), bookmark(120), bookmark(148)]);
    assert_eq!(begun.elapsed().as_secs(), 150);
}

#[tokio::test(start_paused = true)]
async fn watch_accepts_any_timeout() {
    let api = api();
    let client = api.client("a");
    let path = format!("{MAPS}?watch=1&timeoutSeconds={}", u64::MAX);
    let mut body = watch(&client, &path).await;
    create(&client, "a").await;
    assert_eq!(next(&mut body, Duration::from_secs(1)).await.name(), "a");
    assert_eq!(next(&mut body, Duration::from_hours(24)).await, WatchItem::TimedOut);
}

#[expect(clippy::disallowed_methods, reason = "virtual time")]
fn tokio_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

#[tokio::test(start_paused = true)]
async fn compacted_version_is_410() {
    let api = api();
    let client = api.client("a");
    let before = api.version();
    for name in ["a", "b", "c"] {
        create(&client, name).await;
    }
    let (_, page) = request(&client, "GET", &format!("{MAPS}?limit=1"), &Value::Null).await;
    let token = page["metadata"]["continue"].as_str().unwrap();
    create(&client, "bb").await;
    api.compact();
    let query = format!("{MAPS}?watch=1&resourceVersion={before}");
    let mut body = watch(&client, &query).await;
    let WatchItem::Event(kind, status) = next(&mut body, Duration::from_secs(1)).await else {
        panic!("no event")
    };
    assert_eq!(
        (kind.as_str(), &status["code"], &status["reason"]),
        ("ERROR", &json!(410), &json!("Expired"))
    );
    assert_eq!(next(&mut body, Duration::from_secs(1)).await, WatchItem::End);
    let (code, status) = request(
        &client,
        "GET",
        &format!("{MAPS}?limit=1&continue={token}"),
        &Value::Null,
    )
    .await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    let next_token = status["metadata"]["continue"].as_str().unwrap();
    assert_eq!(
        names(&client, &format!("continue={next_token}")).await,
        ["b", "bb", "c"]
    );
    let (code, _) = request(
        &client,
        "GET",
        &format!("{MAPS}?resourceVersion={before}&resourceVersionMatch=Exact"),
        &Value::Null,
    )
    .await;
    assert_eq!(code, 410);
}

#[tokio::test(start_paused = true)]
async fn event_expires_an_hour_after_its_last_write() {
    const EVENTS: &str = "/api/v1/namespaces/default/events";
    let api = api();
    let client = api.client("a");
    let create = async |name: &str| {
        let event = json!({"metadata": {"name": name}, "involvedObject": {"namespace": "default"}, "count": 1,
            "reason": "Tested", "type": "Normal", "source": {"component": "test"},
            "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z"});
        let (code, response) = request(&client, "POST", EVENTS, &event).await;
        assert_eq!(code, 201, "{response}");
    };
    create("old").await;
    create("patched").await;
    advance(Duration::from_mins(30)).await;
    request(&client, "PATCH", &format!("{EVENTS}/patched"), &json!({"count": 2})).await;
    advance(Duration::from_mins(30)).await;
    create("new").await;
    for (name, expected) in [("old", 404), ("patched", 200), ("new", 200)] {
        let (code, _) = request(&client, "GET", &format!("{EVENTS}/{name}"), &Value::Null).await;
        assert_eq!(code, expected, "{name}");
    }
}
