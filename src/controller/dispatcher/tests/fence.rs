//! Tests of creates that the fence policy refuses, as if one of several API servers had a wrong clock.

use super::*;

/// The connection to the API server with the wrong clock.
const WRONG: usize = 3;

/// Refuses requests over the wrong connection, and over every connection if the name demands it.
pub(super) async fn answer(api: &FakeApi, order: &JobOrder) -> Answered<CreateOutcome> {
    let is_refused = api.avoided != Some(WRONG) || order.name.starts_with("fenced-everywhere");
    let outcome = if is_refused {
        CreateOutcome::Failed {
            message: "too late".into(),
            retry_after: None,
        }
    } else {
        CreateOutcome::Expired
    };
    Answered {
        fenced_over: is_refused.then_some(WRONG),
        ..api.ask(&order.name, outcome).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_that_the_fence_refuses_goes_once_more_over_another_connection() {
    let mut bench = Bench::new(Vec::new());
    bench.push(create("a", "fenced-once", 60));
    bench.start();
    assert_eq!(bench.answer().await, "fenced-once Expired");
    assert_eq!(bench.api.requests(), ["fenced-once", "fenced-once"]);
    let text = bench.metrics.render().unwrap();
    assert!(
        text.contains("cronwheel_api_requests_total{code=\"201\",resource=\"jobs\",verb=\"create\"} 2"),
        "both answers count: {text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_create_that_every_fence_refuses_is_sent_twice() {
    let mut bench = Bench::new(Vec::new());
    bench.push(create("a", "fenced-everywhere", 60));
    bench.start();
    assert_eq!(bench.answer().await, "fenced-everywhere Failed");
    assert_eq!(bench.api.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_answer_to_the_second_send_is_no_refusal() {
    let mut bench = Bench::new(vec![Answer::Outcome(()), unavailable()]);
    bench.push(create("a", "fenced-once", 60));
    bench.start();
    assert_eq!(bench.answer().await, "fenced-once Unanswered");
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_leads_no_more_sends_it_no_second_time() {
    let mut bench = Bench::new(Vec::new());
    bench.push(create("a", "fenced-once", 60));
    bench.start();
    tokio::time::sleep(Duration::from_millis(2)).await;
    bench.leadership.send_modify(|leadership| leadership.end(WHOLE));
    assert_eq!(bench.answer().await, "fenced-once Failed");
    assert_eq!(bench.api.requests().len(), 1);
}
