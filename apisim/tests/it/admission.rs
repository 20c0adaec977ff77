//! The admission of creates in virtual time: webhooks before and after `creationTimestamp`, a policy against late
//! creates between them, and the time limit of a write.

use std::time::Duration;

use apisim::{Api, ApiService, Fault, Options, Rule, Verb, WallClock};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::{Instant, advance};

use crate::requests::{MAPS, request};

const BEGIN: &str = "2026-01-02T03:04:05Z";
const CREATE_BEFORE: &str = "example.com/create-before";
const POLICY: &str = "not-too-late";

/// A create. Times are in milliseconds since its arrival.
#[derive(Clone, Copy, Debug, Default)]
struct Case {
    mutating: u64,
    validating: u64,
    /// The latest creation time, in the annotation. `None` means no annotation.
    create_before: Option<i64>,
    /// The query of the request.
    query: &'static str,
}

/// The result of a create: the code, the time of the response, and the `creationTimestamp` of the stored object.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    code: u16,
    responded_at: u128,
    created: Option<i64>,
}

fn stored(responded_at: u128, created: i64) -> Outcome {
    Outcome {
        code: 201,
        responded_at,
        created: Some(created),
    }
}

fn refused(code: u16, responded_at: u128) -> Outcome {
    Outcome {
        code,
        responded_at,
        created: None,
    }
}

#[expect(clippy::disallowed_methods, reason = "virtual time")]
fn now() -> Instant {
    Instant::now()
}

fn begin() -> Timestamp {
    BEGIN.parse().unwrap()
}

/// Creates an API with these webhook delays and the policy for all creates.
fn api(mutating: u64, validating: u64) -> Api {
    let api = Api::new(Options::default(), WallClock::starting_at(begin()));
    for fault in [
        // The order of the rules does not affect the order of admission.
        Fault::DenyLate {
            policy: POLICY.to_owned(),
            annotation: CREATE_BEFORE.to_owned(),
        },
        Fault::SlowAdmission {
            mutating: Duration::from_millis(mutating),
            validating: Duration::from_millis(validating),
        },
    ] {
        api.faults().add(Rule {
            verbs: vec![Verb::Create],
            ..Rule::new(fault)
        });
    }
    api
}

async fn post(client: &ApiService, query: &str, annotations: &Value) -> (u16, Value) {
    let object = json!({"metadata": {"name": "a", "annotations": annotations}});
    request(client, "POST", &format!("{MAPS}{query}"), &object).await
}

async fn run(case: Case) -> Outcome {
    let client = api(case.mutating, case.validating).client("a");
    let annotations = case.create_before.map_or(Value::Null, |milliseconds| {
        let latest = begin() + SignedDuration::from_millis(milliseconds);
        json!({CREATE_BEFORE: latest.to_string()})
    });
    let begun = now();
    let (code, response) = post(&client, case.query, &annotations).await;
    let responded_at = begun.elapsed().as_millis();
    // A request that timed out does not store its object later.
    advance(Duration::from_mins(1)).await;
    let (found, object) = request(&client, "GET", &format!("{MAPS}/a"), &Value::Null).await;
    assert_eq!(found, if code == 201 { 200 } else { 404 }, "{case:?}: {response}");
    let created = object["metadata"]["creationTimestamp"].as_str().map(|created| {
        let created: Timestamp = created.parse().unwrap();
        i64::try_from(created.duration_since(begin()).as_millis()).unwrap()
    });
    Outcome {
        code,
        responded_at,
        created,
    }
}

async fn check(cases: impl IntoIterator<Item = (Case, Outcome)>) {
    for (case, expected) in cases {
        assert_eq!(run(case).await, expected, "{case:?}");
    }
}

fn case(mutating: u64, validating: u64, create_before: i64) -> Case {
    Case {
        mutating,
        validating,
        create_before: Some(create_before),
        query: "",
    }
}

#[tokio::test(start_paused = true)]
async fn only_mutating_webhooks_count_against_the_latest_create_time() {
    check([
        // The create arrives in time, in the same second, or late.
        (case(0, 0, 60_000), stored(0, 0)),
        (case(0, 0, 0), stored(0, 0)),
        (case(0, 0, -1_000), refused(403, 0)),
        // `creationTimestamp` has whole seconds, so every create within the second of the latest time is in time.
        (case(5_999, 0, 5_000), stored(5_999, 5_000)),
        (case(6_000, 0, 5_000), refused(403, 6_000)),
        (case(6_000, 0, 5_999), refused(403, 6_000)),
        // Validating webhooks run after the policy, so they neither make a create late nor delay a refusal.
        (case(0, 10_000, 5_000), stored(10_000, 0)),
        (case(3_000, 10_000, 5_000), stored(13_000, 3_000)),
        (case(6_000, 10_000, 5_000), refused(403, 6_000)),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn request_timeout_bounds_admission_up_to_34_seconds() {
    let with = |mutating, validating, query| Case {
        mutating,
        validating,
        query,
        ..Case::default()
    };
    check([
        (with(4_000, 4_000, "?timeout=9s"), stored(8_000, 4_000)),
        (with(4_000, 4_000, "?timeout=7s"), refused(504, 7_000)),
        (with(8_000, 0, "?timeout=7s"), refused(504, 7_000)),
        (with(0, 8_000, "?timeout=6890ms"), refused(504, 6_890)),
        // The server's limit of 34 s holds without `timeout`, with zero, and with a longer one.
        (with(3_000, 30_000, ""), stored(33_000, 3_000)),
        (with(0, 35_000, ""), refused(504, 34_000)),
        (with(35_000, 0, "?timeout=0s"), refused(504, 34_000)),
        (with(0, 35_000, "?timeout=60s"), refused(504, 34_000)),
        // The earlier of denial and timeout applies.
        (
            Case {
                query: "?timeout=7s",
                ..case(6_000, 9_000, 5_000)
            },
            refused(403, 6_000),
        ),
        (
            Case {
                query: "?timeout=7s",
                ..case(8_000, 0, 5_000)
            },
            refused(504, 7_000),
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn denial_names_the_policy_and_both_times() {
    let client = api(6_000, 0).client("a");
    let (code, status) = post(&client, "", &json!({CREATE_BEFORE: "2026-01-02T03:04:10Z"})).await;
    assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
    let message = status["message"].as_str().unwrap();
    for part in [
        "ValidatingAdmissionPolicy 'not-too-late' with binding 'not-too-late' denied request",
        "2026-01-02T03:04:11Z",
        "2026-01-02T03:04:10Z",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn latest_create_time_must_be_absent_or_valid() {
    let client = api(30_000, 0).client("a");
    assert_eq!(post(&client, "", &Value::Null).await.0, 201);
    let client = api(0, 0).client("a");
    assert_eq!(post(&client, "", &json!({CREATE_BEFORE: "soon"})).await.0, 403);
    assert_eq!(post(&client, "", &json!({"example.com/other": "soon"})).await.0, 201);
}

#[tokio::test(start_paused = true)]
async fn only_creates_pass_through_admission() {
    let api = api(6_000, 6_000);
    let client = api.client("a");
    let begun = now();
    assert_eq!(post(&client, "", &Value::Null).await.0, 201);
    assert_eq!(begun.elapsed(), Duration::from_secs(12));
    let late = json!({"metadata": {"annotations": {CREATE_BEFORE: "2026-01-02T03:04:05Z"}}});
    let (code, response) = request(&client, "PATCH", &format!("{MAPS}/a"), &late).await;
    assert_eq!((code, begun.elapsed()), (200, Duration::from_secs(12)), "{response}");
}
