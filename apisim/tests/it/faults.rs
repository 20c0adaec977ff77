//! Fault rules in virtual time: each fault, the requests that a rule matches, and reproducible probabilities.

use std::{fmt::Write as _, time::Duration};

use crate::requests::{MAPS, WatchItem, create, names, next, request, send, try_request, watch};
use apisim::{Api, Fault, Options, Resource, Rule, ServiceTimes, Verb, WallClock};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, advance};

fn api(seed: u64) -> Api {
    let options = Options {
        seed,
        ..Options::default()
    };
    Api::new(options, WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap()))
}

#[expect(clippy::disallowed_methods, reason = "virtual time")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test(start_paused = true)]
async fn dropped_request_is_applied_by_drop_after_only() {
    let api = api(0);
    let client = api.client("a");
    let before = api.faults().add(Rule::new(Fault::DropBefore));
    assert_eq!(create(&client, "before").await, None);
    api.faults().remove(before);
    let after = Rule {
        times_max: Some(1),
        verbs: vec![Verb::Create],
        ..Rule::new(Fault::DropAfter)
    };
    api.faults().add(after);
    assert_eq!(create(&client, "after").await, None);
    assert_eq!(create(&client, "after").await, Some(409));
    assert_eq!(names(&client, "").await, ["after"]);
}

#[tokio::test(start_paused = true)]
async fn refusals_have_the_codes_and_the_reasons_of_the_api_server() {
    let api = api(0);
    let client = api.client("a");
    for (fault, code, reason) in [
        (Fault::Forbid("a policy denies it".to_owned()), 403, "Forbidden"),
        (Fault::NotPermitted, 403, "Forbidden"),
        (Fault::Conflict, 409, "Conflict"),
        (Fault::Expired, 410, "Expired"),
        (Fault::Throttle { retry_after_seconds: 7 }, 429, "TooManyRequests"),
        (Fault::InternalError, 500, "InternalError"),
        (Fault::Unavailable, 503, "ServiceUnavailable"),
    ] {
        let rule = api.faults().add(Rule::new(fault));
        let (received, status) = request(&client, "GET", &format!("{MAPS}/x"), &Value::Null).await;
        assert_eq!((received, &status["reason"]), (code, &json!(reason)), "{status}");
        api.faults().remove(rule);
    }
    api.faults().add(Rule::new(Fault::Throttle { retry_after_seconds: 7 }));
    let response = send(&client, "GET", MAPS, &Value::Null).await.unwrap();
    assert_eq!(response.headers()["retry-after"], "7");
}

#[tokio::test(start_paused = true)]
async fn access_review_reflects_what_the_authorizer_refuses() {
    let api = api(0);
    let client = api.client("a");
    let review = async |verb: &str, namespace: &str| {
        let attributes = json!({"verb": verb, "group": "batch", "resource": "jobs", "namespace": namespace});
        let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
        let (code, review) = request(
            &client,
            "POST",
            path,
            &json!({"spec": {"resourceAttributes": attributes}}),
        )
        .await;
        assert_eq!(code, 201, "{review}");
        review["status"]["allowed"].as_bool().unwrap()
    };
    assert!(review("list", "shop").await);
    api.faults().add(Rule {
        resource: Some(Resource::Job),
        namespace: Some("shop".to_owned()),
        verbs: vec![Verb::List],
        ..Rule::new(Fault::NotPermitted)
    });
    assert!(!review("list", "shop").await);
    assert!(review("create", "shop").await);
    assert!(review("list", "other").await);
    let (code, status) = request(&client, "GET", "/apis/batch/v1/namespaces/shop/jobs", &Value::Null).await;
    let message = "jobs.batch is forbidden: User \"a\" cannot list resource \"jobs\" in API group \"batch\" in the namespace \"shop\"";
    assert_eq!((code, &status["message"]), (403, &json!(message)));
}

#[tokio::test(start_paused = true)]
async fn outage_of_one_client_does_not_affect_others() {
    let api = api(0);
    let (cut, other) = (api.client("cut"), api.client("other"));
    let mut watched = watch(&cut, &format!("{MAPS}?watch=1&resourceVersion={}", api.version())).await;
    let outage = Rule {
        client: Some("cut".to_owned()),
        during: Duration::from_secs(10)..Duration::from_secs(20),
        ..Rule::new(Fault::Outage)
    };
    api.faults().add(outage);
    let begun = now();
    assert_eq!(create(&cut, "a").await, Some(201));
    assert_eq!(next(&mut watched, Duration::from_secs(1)).await.name(), "a");
    assert_eq!(next(&mut watched, Duration::from_mins(1)).await, WatchItem::Broken);
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    assert_eq!(create(&cut, "b").await, None);
    assert_eq!(create(&other, "b").await, Some(201));
    advance(Duration::from_secs(10)).await;
    assert_eq!(create(&cut, "c").await, Some(201));
}

#[tokio::test(start_paused = true)]
async fn watches_can_stall_slow_down_and_close() {
    let api = api(0);
    let client = api.client("a");
    let path = format!("{MAPS}?watch=1&resourceVersion={}", api.version());
    let mut watched = watch(&client, &path).await;
    let stall = api.faults().add(Rule::new(Fault::StallWatch));
    for name in ["a", "b", "c"] {
        create(&client, name).await;
    }
    assert_eq!(next(&mut watched, Duration::from_hours(2)).await, WatchItem::TimedOut);
    api.faults().remove(stall);
    // The timeout has passed, but the pending events are sent first.
    assert_eq!(next(&mut watched, Duration::from_secs(1)).await.name(), "a");
    let slow = api.faults().add(Rule::new(Fault::SlowWatch {
        pause: Duration::from_secs(3),
    }));
    assert_eq!(next(&mut watched, Duration::from_secs(1)).await.name(), "b");
    assert_eq!(next(&mut watched, Duration::from_secs(2)).await, WatchItem::TimedOut);
    assert_eq!(next(&mut watched, Duration::from_secs(2)).await.name(), "c");
    api.faults().remove(slow);
    assert_eq!(next(&mut watched, Duration::from_secs(1)).await, WatchItem::End);
    let close = Rule {
        times_max: Some(2),
        resource: Some(Resource::ConfigMap),
        ..Rule::new(Fault::CloseWatch)
    };
    let close = api.faults().add(close);
    for _ in 0..2 {
        let mut watched = watch(&client, &path).await;
        assert_eq!(next(&mut watched, Duration::from_secs(1)).await, WatchItem::End);
    }
    let mut watched = watch(&client, &path).await;
    for name in ["a", "b", "c"] {
        assert_eq!(next(&mut watched, Duration::from_secs(1)).await.name(), name);
    }
    assert_eq!(api.faults().count(close), 2);
}

#[tokio::test(start_paused = true)]
async fn stale_list_returns_past_objects() {
    let api = api(0);
    let client = api.client("a");
    create(&client, "old").await;
    advance(Duration::from_secs(5)).await;
    create(&client, "new").await;
    let stale = Rule {
        verbs: vec![Verb::List],
        ..Rule::new(Fault::StaleList {
            age: Duration::from_secs(3),
        })
    };
    api.faults().add(stale);
    assert_eq!(names(&client, "").await, ["old"]);
    assert_eq!(names(&client, "resourceVersion=0").await, ["old"]);
    advance(Duration::from_secs(3)).await;
    assert_eq!(names(&client, "").await, ["new", "old"]);
}

#[tokio::test(start_paused = true)]
async fn service_times_delay_writes_and_limit_requests_in_flight() {
    let api = api(0);
    let client = api.client("a");
    api.set_service_times(ServiceTimes {
        write: Duration::from_millis(10),
        ..ServiceTimes::default()
    });
    let names: Vec<String> = (0..100).map(|at| format!("a-{at}")).collect();
    let begun = now();
    let codes = join_all(names.iter().map(|name| create(&client, name))).await;
    assert!(codes.iter().all(|code| *code == Some(201)), "{codes:?}");
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
    api.set_service_times(ServiceTimes {
        in_flight_max: Some(30),
        write: Duration::from_millis(10),
        ..ServiceTimes::default()
    });
    let codes = join_all(names.iter().map(|name| create(&client, name))).await;
    assert_eq!(codes.iter().filter(|code| **code == Some(429)).count(), 70);
    assert_eq!(
        create(&client, "b").await,
        Some(201),
        "the requests in flight have completed"
    );
}

/// Sends 200 creates with random faults. Returns the time and result of each, one per line.
async fn run(seed: u64) -> String {
    let api = api(seed);
    let client = api.client("a");
    let delay = Fault::Delay {
        shortest: Duration::ZERO,
        longest: Duration::from_millis(50),
    };
    api.faults().add(Rule::new(delay));
    for fault in [Fault::DropBefore, Fault::DropAfter, Fault::Unavailable] {
        api.faults().add(Rule {
            per_million: 100_000,
            ..Rule::new(fault)
        });
    }
    let begun = now();
    let mut log = String::new();
    for at in 0..200 {
        let object = json!({"metadata": {"name": format!("a-{at}")}});
        let response = try_request(&client, "POST", MAPS, &object).await;
        writeln!(log, "{:?} {response:?}", begun.elapsed()).unwrap();
    }
    log
}

#[tokio::test(start_paused = true)]
async fn seed_determines_the_faults() {
    let first = run(7).await;
    let n_dropped = first.matches("None").count();
    assert!((20..60).contains(&n_dropped), "{n_dropped} of 200 were dropped");
    assert_eq!(first, run(7).await);
    assert_ne!(first, run(8).await);
}

#[tokio::test(start_paused = true)]
async fn rule_for_a_namespace_affects_only_requests_in_it() {
    let api = api(1);
    let client = api.client("a");
    api.faults().add(Rule {
        namespace: Some("kube-system".to_owned()),
        ..Rule::new(Fault::Unavailable)
    });
    let mut codes = Vec::new();
    for path in [
        "/api/v1/namespaces/kube-system/configmaps",
        "/api/v1/namespaces/kube-system/configmaps/a",
        MAPS,
        "/api/v1/configmaps",
    ] {
        let (code, _) = try_request(&client, "GET", path, &json!(null)).await.unwrap();
        codes.push(code);
    }
    assert_eq!(codes, [503, 503, 200, 200]);
}
