//! Who is answered, and that data stays data.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    body::Body,
    http::{Method, Request, StatusCode},
};
use futures::StreamExt;
use tokio::time::timeout;
use tower::ServiceExt;

use super::{
    super::{allowed_hosts, router},
    HOST, app, fixture,
    fixture::Fleet,
    get,
    markup::{elements, visible_text},
    send,
};
use crate::observe::view::CronJobName;

const MARKUP: &str = r#"<img src=x onerror="alert(1)">&amp;</script><script>alert('2')</script>"#;

#[tokio::test]
async fn markup_in_data_is_shown_as_text() {
    let mut fleet = fixture::small();
    fleet.text = MARKUP.to_owned();
    fleet.heading.cluster = MARKUP.to_owned();
    fleet.heading.banners = vec![MARKUP.to_owned()];
    fleet.heading.unreadable_namespaces = vec![MARKUP.into()];
    fleet.heading.namespaces[0] = MARKUP.into();
    fleet.rows[0].cron_job = CronJobName {
        namespace: MARKUP.into(),
        name: MARKUP.into(),
    };
    fleet.rows[1].schedule_text = MARKUP.to_owned();
    fleet.rows[1].schedule = MARKUP.into();
    fleet.overview.attention[0].reason = MARKUP.to_owned();
    fleet.overview.advice[1].sentence = MARKUP.to_owned();
    fleet.overview.advice[2].cron_jobs[0] = fleet.rows[0].cron_job.clone();
    let app = app(fleet);
    for (uri, n_shown) in [("/", 10), ("/cronjobs/billing/invoice-export", 8)] {
        let answer = get(&app, uri).await;
        assert!(!answer.text.contains("<img"), "{uri}");
        assert_eq!(answer.text.matches("<script").count(), 1, "{uri}");
        let shown = visible_text(&answer.text).matches("alert('2')").count();
        assert!(shown >= n_shown, "shown {shown} times on {uri}");
        for element in elements(&answer.text) {
            assert!(element.attribute("style").is_none(), "{element:?}");
            assert!(
                element.attributes.iter().all(|(name, _)| !name.starts_with("on")),
                "{element:?}"
            );
        }
    }
}

#[tokio::test]
async fn other_methods_are_refused() {
    let app = app(fixture::small());
    for method in [
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::PATCH,
        Method::OPTIONS,
        Method::CONNECT,
        Method::TRACE,
    ] {
        for uri in ["/", "/cronjobs/data/compact-eu", "/events", "/nothing"] {
            let request = Request::builder().method(&method).uri(uri).header("host", HOST);
            let answer = send(&app, request.body(Body::empty()).unwrap()).await;
            assert_eq!(answer.status, StatusCode::METHOD_NOT_ALLOWED, "{method} {uri}");
            assert_eq!(answer.headers["allow"], "GET, HEAD", "{method} {uri}");
        }
    }
    let head = Request::head("/").header("host", HOST).body(Body::empty()).unwrap();
    let head = send(&app, head).await;
    assert_eq!((head.status, head.text.as_str()), (StatusCode::OK, ""));
}

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused() {
    let app = app(fixture::small());
    let cases: [(&[(&str, &str)], u16); 10] = [
        (&[("host", HOST)], 200),
        (&[("host", HOST), ("origin", "http://localhost:8080")], 200),
        (&[("host", HOST), ("origin", "https://localhost:8080")], 200),
        (&[("host", HOST), ("origin", "http://localhost:3000")], 403),
        (&[("host", HOST), ("origin", "http://evil.example.com")], 403),
        (&[("host", HOST), ("origin", "null")], 403),
        (
            &[
                ("host", HOST),
                ("origin", "http://localhost:8080"),
                ("origin", "http://evil.example.com"),
            ],
            403,
        ),
        (&[("host", "evil.example.com:8080")], 421),
        (&[("host", HOST), ("host", "evil.example.com")], 400),
        (&[], 400),
    ];
    for (headers, expected) in cases {
        for uri in ["/", "/events", "/style.css"] {
            let request = headers.iter().fold(Request::get(uri), |request, (name, value)| {
                request.header(*name, *value)
            });
            let response = app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
            assert_eq!(response.status().as_u16(), expected, "{headers:?} {uri}");
        }
    }
    let absolute = Request::get("http://evil.example.com/")
        .header("host", HOST)
        .body(Body::empty())
        .unwrap();
    assert_eq!(send(&app, absolute).await.status, StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn probe_of_a_pod_is_answered_by_its_address_alone() {
    let hosts = allowed_hosts("0.0.0.0:8090".parse().unwrap(), &[]).unwrap();
    let app = router(Arc::new(fixture::small()), hosts);
    for (host, status, text) in [
        ("10.1.2.3:8090", StatusCode::OK, "ok\n"),
        ("[fd00::7]:8090", StatusCode::OK, "ok\n"),
        ("evil.example.com:8090", StatusCode::MISDIRECTED_REQUEST, ""),
    ] {
        let request = Request::get("/healthz").header("host", host).body(Body::empty());
        let answer = send(&app, request.unwrap()).await;
        assert_eq!(answer.status, status, "{host}");
        assert!(text.is_empty() || answer.text == text, "{}", answer.text);
    }
}

#[tokio::test]
async fn wrong_addresses_are_explained() {
    let app = app(fixture::small());
    let cases = [
        (
            "/?sate=late",
            400,
            "sate is no parameter of this page. The parameters are q, namespace, state, from, to and page.",
        ),
        (
            "/?state=bad",
            400,
            "state is no state. The states are running, late, failed, lost, suspended, never, due, blocked, frozen.",
        ),
        ("/?page=0", 400, "page is no number of a page. Pages count from 1."),
        ("/?page=1e9", 400, "page is no number of a page. Pages count from 1."),
        (
            "/?namespace=A_b",
            400,
            "namespace is no name of a namespace. Names have lower case letters, digits and -.",
        ),
        (
            "/?from=yesterday&to=now",
            400,
            "from is no instant. Write it as 2026-11-21T10:30Z.",
        ),
        ("/?from=2026-11-28T01:00Z", 400, "to is missing. Give both from and to."),
        (
            "/?from=2026-11-28T01:00Z&to=2026-11-28T01:00Z",
            400,
            "to is not within 48 hours after from.",
        ),
        (
            "/?from=1970-01-01T00:00Z&to=1970-01-01T01:00Z",
            400,
            "from is more than a year away.",
        ),
        (
            "/cronjobs/data/A%2Fb",
            400,
            "name is no name of a CronJob. Names have lower case letters, digits, - and ..",
        ),
        (
            "/cronjobs/data/compact-eu?explain=perhaps",
            400,
            "explain is neither yes nor no. Leave it out.",
        ),
        (
            "/cronjobs/data/unknown",
            404,
            "There is no CronJob data/unknown, or this view may not read its namespace.",
        ),
        ("/cronjobs/data", 404, "There is no such page."),
        ("/../etc/passwd", 404, "There is no such page."),
    ];
    for (uri, status, sentence) in cases {
        let answer = get(&app, uri).await;
        assert_eq!(answer.status.as_u16(), status, "{uri}");
        let text = visible_text(&answer.text);
        assert!(text.contains(sentence), "{uri}: {text}");
    }
    let long = get(&app, &format!("/?q={}", "a".repeat(201))).await;
    assert_eq!(long.status, StatusCode::BAD_REQUEST);
    assert_eq!(get(&app, "/cronjobs/%FF/a").await.status, StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn every_answer_has_the_headers_of_safety() {
    let app = app(fixture::small());
    for uri in [
        "/",
        "/cronjobs/data/compact-eu",
        "/strip.json",
        "/style.css",
        "/script.js",
        "/favicon.svg",
        "/nothing",
        "/?x=y",
    ] {
        let headers = get(&app, uri).await.headers;
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"),
            "{uri}: {policy}"
        );
        assert!(!policy.contains("unsafe"), "{uri}: {policy}");
        assert_eq!(headers["x-content-type-options"], "nosniff", "{uri}");
        assert_eq!(headers["referrer-policy"], "no-referrer", "{uri}");
        assert_eq!(headers["cross-origin-opener-policy"], "same-origin", "{uri}");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin", "{uri}");
        let is_asset = uri.contains("style") || uri.contains("script") || uri.contains("favicon");
        let cache = if is_asset { "private, max-age=86400" } else { "no-store" };
        assert_eq!(headers["cache-control"], cache, "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_are_bounded_and_begin_with_the_version() {
    let app = app(fixture::small());
    let open = async || {
        let request = Request::get("/events")
            .header("host", HOST)
            .body(Body::empty())
            .unwrap();
        app.clone().oneshot(request).await.unwrap()
    };
    let mut connections = Vec::new();
    for _ in 0..100 {
        connections.push(open().await);
    }
    assert_eq!(connections[99].headers()["content-type"], "text/event-stream");
    assert_eq!(connections[99].headers()["cache-control"], "no-cache");
    assert_eq!(open().await.status(), StatusCode::SERVICE_UNAVAILABLE);
    let mut events = connections.pop().unwrap().into_body().into_data_stream();
    assert_eq!(events.next().await.unwrap().unwrap(), "data: 1\n\n");
    assert_eq!(events.next().await.unwrap().unwrap(), ":\n\n", "a sign of life");
    drop(events);
    assert_eq!(open().await.status(), StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn two_explanations_are_computed_at_a_time() {
    let n_explaining = Arc::new(AtomicUsize::new(0));
    let fleet = Fleet {
        n_explaining: Some(Arc::clone(&n_explaining)),
        ..fixture::small()
    };
    let app = app(fleet);
    let answers = futures::future::join_all((0..5).map(|_| get(&app, "/cronjobs/reports/nightly-close")));
    assert!(timeout(Duration::from_secs(1), answers).await.is_err(), "answered");
    assert_eq!(n_explaining.load(Ordering::Relaxed), 2);
}
