//! Tests of creates that the fence policy refuses, as if one of several API servers had a wrong clock.

use super::*;

/// Whether the fence refuses a create. It does over the first connection, which leads to the API server with the
/// wrong clock, and for names that begin with `fenced` over every connection.
pub(super) fn refuses(received: &Received) -> bool {
    let name = received.name();
    name.starts_with("fenced") && (received.connection == 0 || name.starts_with("fenced-everywhere"))
}

pub(super) fn refusal() -> Response {
    let message = "jobs.batch \"fenced\" is forbidden: ValidatingAdmissionPolicy 'cronwheel-fence' with binding \
                   'cronwheel-fence' denied request: too late";
    Response::status(403, "Forbidden", message)
}

#[tokio::test(start_paused = true)]
async fn a_fenced_create_is_sent_again_over_another_connection() {
    let mut bench = Bench::new(Vec::new());
    bench.push(create("a", "fenced-once", 60));
    bench.start();
    assert_eq!(bench.answer().await, "fenced-once Created");
    assert_eq!(bench.api.requests(), ["fenced-once", "fenced-once"]);
    let text = bench.metrics.text();
    for code in [200, 403] {
        let line = format!(r#"cronwheel_api_requests_total{{code="{code}",resource="jobs",verb="create"}} 1"#);
        assert!(text.contains(&line), "both answers count: {text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_refused_by_every_fence_is_sent_twice() {
    let mut bench = Bench::new(Vec::new());
    bench.push(create("a", "fenced-everywhere", 60));
    bench.start();
    assert_eq!(bench.answer().await, "fenced-everywhere Failed");
    assert_eq!(bench.api.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_second_send_is_reported_as_unanswered() {
    let mut bench = Bench::new(vec![None, Some(Response::Unreachable)]);
    bench.push(create("a", "fenced-once", 60));
    bench.start();
    assert_eq!(bench.answer().await, "fenced-once Unanswered");
}

#[tokio::test(start_paused = true)]
async fn a_fenced_create_is_not_sent_again_after_the_lead_is_lost() {
    let mut bench = Bench::new(Vec::new());
    bench.push(create("a", "fenced-once", 60));
    bench.start();
    tokio::time::sleep(Duration::from_millis(2)).await;
    bench.leadership.send_modify(|leadership| leadership.end(WHOLE));
    assert_eq!(bench.answer().await, "fenced-once Failed");
    assert_eq!(bench.api.requests().len(), 1);
}
