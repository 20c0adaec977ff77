//! Several front ends on one store, one of them behind; bookmarks and 410 by virtual time.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use apisim::{Api, ApiBody, ApiService, Options, WallClock};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::time::{advance, timeout};
use tower::ServiceExt as _;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn api() -> Api {
    let options = Options {
        n_front_ends: 2,
        ..Options::default()
    };
    Api::new(options, WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap()))
}

async fn send(service: &ApiService, method: &str, path: &str, body: &Value) -> Response<ApiBody> {
    let body = if body.is_null() {
        Bytes::new()
    } else {
        serde_json::to_vec(body).unwrap().into()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .body(Full::new(body))
        .unwrap();
    service.clone().oneshot(request).await.unwrap()
}

async fn ask(service: &ApiService, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let response = send(service, method, path, body).await;
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap())
}

async fn create(service: &ApiService, name: &str) -> String {
    let (code, object) = ask(service, "POST", MAPS, &json!({"metadata": {"name": name}})).await;
    assert_eq!(code, 201, "{object}");
    object["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

async fn names(service: &ApiService, query: &str) -> Vec<String> {
    let (code, list) = ask(service, "GET", &format!("{MAPS}?{query}"), &Value::Null).await;
    assert_eq!(code, 200, "{list}");
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    list["items"].as_array().unwrap().iter().map(name).collect()
}

/// The next event of a watch, if it comes within a time.
async fn next(body: &mut ApiBody, within: Duration) -> Option<(String, Value)> {
    let frame = timeout(within, body.frame()).await.ok()??.unwrap();
    let event: Value = serde_json::from_slice(&frame.into_data().unwrap()).unwrap();
    Some((event["type"].as_str().unwrap().to_owned(), event["object"].clone()))
}

#[tokio::test(start_paused = true)]
async fn a_front_end_that_lags_shows_what_was_and_then_what_is() {
    let api = api();
    let (first, second) = (api.client("a"), api.client("a").at_front_end(1));
    create(&first, "old").await;
    api.set_lag(1, Duration::from_secs(5));
    let version = create(&first, "new").await;
    assert_eq!(names(&first, "resourceVersion=0").await, ["new", "old"]);
    assert_eq!(names(&second, "resourceVersion=0").await, ["old"]);
    // A list that asks for the latest is of the store.
    assert_eq!(names(&second, "").await, ["new", "old"]);
    let (code, _) = ask(
        &second,
        "GET",
        &format!("{MAPS}?resourceVersion={version}"),
        &Value::Null,
    )
    .await;
    assert_eq!(code, 504, "after three seconds it is not there yet");
    assert_eq!(
        names(&second, &format!("resourceVersion={version}")).await,
        ["new", "old"]
    );
    advance(Duration::from_secs(5)).await;
    assert_eq!(names(&second, "resourceVersion=0").await, ["new", "old"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_at_a_front_end_that_lags_is_late_by_its_lag_and_loses_nothing() {
    let api = api();
    let (first, second) = (api.client("a"), api.client("a").at_front_end(1));
    api.set_lag(1, Duration::from_secs(5));
    let query = format!("{MAPS}?watch=1&resourceVersion={}", api.version());
    let mut prompt = send(&first, "GET", &query, &Value::Null).await.into_body();
    let mut late = send(&second, "GET", &query, &Value::Null).await.into_body();
    create(&first, "a").await;
    create(&first, "b").await;
    let at_once = Duration::from_millis(1);
    assert_eq!(next(&mut prompt, at_once).await.unwrap().1["metadata"]["name"], "a");
    assert!(next(&mut late, Duration::from_millis(4900)).await.is_none());
    assert_eq!(
        next(&mut late, Duration::from_millis(200)).await.unwrap().1["metadata"]["name"],
        "a"
    );
    assert_eq!(next(&mut late, at_once).await.unwrap().1["metadata"]["name"], "b");
    // What was shown is not hidden again, and a lag that is taken away shows the rest at once.
    create(&first, "c").await;
    api.set_lag(1, Duration::ZERO);
    assert_eq!(next(&mut late, at_once).await.unwrap().1["metadata"]["name"], "c");
    api.set_lag(1, Duration::from_hours(1));
    assert_eq!(names(&second, "resourceVersion=0").await, ["a", "b", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_has_bookmarks_every_minute_and_one_before_its_end() {
    let api = api();
    let client = api.client("a");
    create(&client, "a").await;
    let version = api.version();
    let query = format!("{MAPS}?watch=1&allowWatchBookmarks=true&timeoutSeconds=150&resourceVersion={version}");
    let mut body = send(&client, "GET", &query, &Value::Null).await.into_body();
    let begun = tokio_now();
    let mut told = Vec::new();
    while let Some((kind, object)) = next(&mut body, Duration::from_mins(5)).await {
        assert_eq!(object["metadata"]["resourceVersion"], version.to_string());
        told.push((kind, begun.elapsed().as_secs()));
    }
    let bookmark = |seconds| ("BOOKMARK".to_owned(), seconds);
    assert_eq!(told, [bookmark(60), bookmark(120), bookmark(148)]);
    assert_eq!(begun.elapsed().as_secs(), 150);
}

#[expect(clippy::disallowed_methods, reason = "virtual time")]
fn tokio_now() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

#[tokio::test(start_paused = true)]
async fn what_the_log_has_lost_is_410() {
    let api = api();
    let client = api.client("a");
    let before = api.version();
    for name in ["a", "b", "c"] {
        create(&client, name).await;
    }
    let (_, page) = ask(&client, "GET", &format!("{MAPS}?limit=1"), &Value::Null).await;
    let token = page["metadata"]["continue"].as_str().unwrap();
    create(&client, "bb").await;
    api.compact();
    let query = format!("{MAPS}?watch=1&resourceVersion={before}");
    let mut body = send(&client, "GET", &query, &Value::Null).await.into_body();
    let (kind, status) = next(&mut body, Duration::from_secs(1)).await.unwrap();
    assert_eq!(
        (kind.as_str(), &status["code"], &status["reason"]),
        ("ERROR", &json!(410), &json!("Expired"))
    );
    assert!(next(&mut body, Duration::from_secs(1)).await.is_none());
    let (code, status) = ask(
        &client,
        "GET",
        &format!("{MAPS}?limit=1&continue={token}"),
        &Value::Null,
    )
    .await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    let on = status["metadata"]["continue"].as_str().unwrap();
    assert_eq!(names(&client, &format!("continue={on}")).await, ["b", "bb", "c"]);
    let (code, _) = ask(
        &client,
        "GET",
        &format!("{MAPS}?resourceVersion={before}&resourceVersionMatch=Exact"),
        &Value::Null,
    )
    .await;
    assert_eq!(code, 410);
}
