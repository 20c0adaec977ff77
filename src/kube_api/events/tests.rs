//! Tests of B-14.1: Events that are created, merged and dropped.

use std::sync::Arc;

use serde_json::Value;

use super::*;
use crate::shard::{CronJobIdentity, ResourceVersion};

fn event(name: &str, reason: EventReason, message: &str) -> CronJobEvent {
    CronJobEvent {
        cron_job: Arc::new(CronJobIdentity {
            namespace: "shop".into(),
            name: name.into(),
            uid: Uid::new(&format!("uid of {name}")),
        }),
        resource_version: ResourceVersion(1),
        reason,
        message: message.into(),
    }
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_776_000_000 + seconds).unwrap()
}

/// The action as text: its verb, message and count, or `dropped`.
fn text(action: Option<&EventAction>) -> String {
    match action {
        Some(EventAction { body, patch: None, .. }) => format!("create {}", message_and_count(body)),
        Some(EventAction {
            body,
            patch: Some((_, patch)),
            ..
        }) => {
            assert_eq!(message_and_count(patch), message_and_count(body));
            format!("patch {}", message_and_count(patch))
        }
        None => "dropped".to_owned(),
    }
}

fn message_and_count(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    format!("{} x{}", body["message"].as_str().unwrap(), body["count"])
}

fn name_of(action: &EventAction) -> String {
    if let Some((name, _)) = &action.patch {
        return name.to_string();
    }
    let body: Value = serde_json::from_slice(&action.body).unwrap();
    body["metadata"]["name"].as_str().unwrap().to_owned()
}

#[test]
fn b_14_1_a_repeated_event_raises_the_count() {
    // B-14.1
    let mut events = EventAggregator::new();
    let failed = event("a", EventReason::FailedCreate, "m");
    let first = events.admit(&failed, at(0)).unwrap();
    assert_eq!(text(Some(&first)), "create m x1");
    assert_eq!(name_of(&first), "a.18a59e9721180000");
    let second = events.admit(&failed, at(60)).unwrap();
    assert_eq!(text(Some(&second)), "patch m x2");
    assert_eq!(name_of(&second), name_of(&first));
    let body: Value = serde_json::from_slice(&second.body).unwrap();
    assert_eq!(body["firstTimestamp"], at(0).to_string());
    assert_eq!(body["lastTimestamp"], at(60).to_string());
    for other in [
        event("b", EventReason::FailedCreate, "m"),
        event("a", EventReason::FailedDelete, "m"),
        event("a", EventReason::FailedCreate, "n"),
    ] {
        assert!(text(events.admit(&other, at(60)).as_ref()).starts_with("create"));
    }
}

#[test]
fn b_14_1_more_than_ten_similar_events_are_combined() {
    // B-14.1
    let mut events = EventAggregator::new();
    let mut admit = |number: i64, seconds: i64| {
        let event = event("a", EventReason::SuccessfulCreate, &format!("m{number}"));
        text(events.admit(&event, at(seconds)).as_ref())
    };
    for number in 0..10 {
        assert_eq!(admit(number, number), format!("create m{number} x1"));
    }
    assert_eq!(admit(10, 10), "create (combined from similar events): m10 x1");
    assert_eq!(admit(11, 11), "patch (combined from similar events): m11 x2");
    assert_eq!(admit(3, 12), "patch (combined from similar events): m3 x3");
    assert_eq!(admit(12, 612), "patch (combined from similar events): m12 x4");
    assert_eq!(admit(13, 1213), "create m13 x1");
}

#[test]
fn b_14_1_a_cron_job_has_a_burst_of_25_events() {
    // B-14.1
    let mut events = EventAggregator::new();
    let failed = event("a", EventReason::FailedCreate, "m");
    for _ in 0..25 {
        assert_ne!(events.admit(&failed, at(0)), None);
    }
    assert_eq!(events.admit(&failed, at(299)), None);
    assert_eq!(text(events.admit(&failed, at(301)).as_ref()), "patch m x27");
    assert_eq!(events.admit(&failed, at(599)), None);
    let other = event("a", EventReason::FailedCreate, "n");
    assert_eq!(events.admit(&other, at(599)), None);
    assert_eq!(text(events.admit(&other, at(600)).as_ref()), "create n x1");
    assert_eq!(
        text(
            events
                .admit(&event("b", EventReason::FailedCreate, "m"), at(600))
                .as_ref()
        ),
        "create m x1"
    );
}

#[test]
fn a_token_bucket_refills_and_survives_a_clock_set_back() {
    let mut bucket = Bucket {
        tokens: 3,
        refilled: at(0),
    };
    bucket.refill(at(-10_000));
    assert_eq!((bucket.tokens, bucket.refilled), (3, at(-10_000)));
    bucket.refill(Timestamp::MAX);
    assert_eq!(bucket.tokens, BUCKET_TOKENS);
}

#[test]
fn event_names_are_unique_at_one_instant_and_bounded() {
    let mut events = EventAggregator::new();
    let mut name = |cron_job: &str, message: &str, seconds: i64| {
        let failed = event(cron_job, EventReason::FailedCreate, message);
        name_of(&events.admit(&failed, at(seconds)).unwrap())
    };
    assert_eq!(name("a", "m", 0), "a.18a59e9721180000");
    assert_eq!(name("a", "n", 0), "a.18a59e9721180001");
    let long = format!("{}.x", "a".repeat(235));
    assert_eq!(name(&long, "m", 1), format!("{}.18a59e975cb2ca00", "a".repeat(235)));
}

#[test]
fn aggregation_forgets_cron_jobs_after_an_hour_without_events() {
    let mut events = EventAggregator::new();
    let mut admit = |number: usize, seconds: i64| {
        let event = event(&number.to_string(), EventReason::FailedCreate, "m");
        text(events.admit(&event, at(seconds)).as_ref())
    };
    for number in 0..20_000 {
        assert_eq!(admit(number, 0), "create m x1");
    }
    for number in 0..20_000 {
        assert_eq!(admit(number, 60), "patch m x2");
    }
    assert_eq!(admit(0, 3_000), "patch m x3");
    assert_eq!(admit(1, 6_000), "create m x1");
    assert_eq!(admit(0, 6_000), "patch m x4");
    assert_eq!(events.recent.len(), 2);
}

#[test]
fn an_unsent_event_is_counted_by_the_next() {
    let mut events = EventAggregator::new();
    let failed = event("a", EventReason::FailedCreate, "m");
    events.count(&failed);
    assert!(!events.is_repeat(&failed));
    events.admit(&failed, at(0));
    assert!(events.is_repeat(&failed));
    events.count(&failed);
    events.count(&failed);
    assert_eq!(text(events.admit(&failed, at(60)).as_ref()), "patch m x4");
}

#[test]
fn aggregation_state_of_a_cron_job_is_small() {
    let n_kinds = 2;
    // A key and a record, in a table that is at least seven sixteenths full, and the memory that they point to.
    let table = (size_of::<(Uid, Recent)>() + 1) * 16 / 7;
    let bytes = table + n_kinds * size_of::<Kind>();
    // During the first minutes, each message has a separate count.
    let first_minutes = bytes + n_kinds * SIMILAR_MAX * size_of::<(u32, Sent)>();
    assert!(bytes <= 512 && first_minutes <= 1_024, "{bytes}, {first_minutes}");
}

#[test]
fn unexpected_job_events_do_not_use_the_limit_of_other_events() {
    let mut events = EventAggregator::new();
    for number in 0..10_000 {
        events.admit(
            &event("a", EventReason::UnexpectedJob, &format!("job {number}")),
            at(number / 100),
        );
    }
    let failed = events.admit(&event("a", EventReason::FailedCreate, "m"), at(100));
    assert_eq!(text(failed.as_ref()), "create m x1");
}
