//! Tests of creates whose template is not in memory.

use super::*;

/// A create whose template is not in memory.
fn without_template(namespace: &str, name: &str) -> Request {
    let mut record = record(&cron_job(namespace, name, 1, IMAGE));
    record.drop_template();
    Request::Create(JobOrder {
        template: record.template,
        ..order(namespace, name, 60)
    })
}

#[tokio::test(start_paused = true)]
async fn a_create_without_its_template_reads_the_cron_job_first() {
    let mut bench = Bench::new(Vec::new());
    bench.push(without_template("a", "large"));
    bench.push(create("a", "small", 60));
    bench.start();
    assert_eq!(bench.n_answers(2).await, ["small Created", "large Created"]);
    assert_eq!(bench.api.requests(), ["read large", "small", "large"]);
}

#[tokio::test(start_paused = true)]
async fn a_create_is_given_back_when_the_template_has_changed() {
    let mut bench = Bench::new(Vec::new());
    bench.api.seen.lock().unwrap().image = "another";
    bench.push(without_template("a", "large"));
    bench.start();
    assert_eq!(bench.answer().await, "large Abandoned");
    assert_eq!(bench.api.requests(), ["read large"]);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_is_throttled_is_tried_again() {
    let mut bench = Bench::new(vec![Some(Response::throttled(Some(1)))]);
    bench.push(without_template("a", "large"));
    bench.start();
    assert_eq!(bench.answer().await, "large Created");
    assert_eq!(bench.api.requests(), ["read large", "read large", "large"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_when_the_shard_was_lost_while_the_cron_job_was_read() {
    let mut bench = Bench::new(Vec::new());
    bench.push(without_template("a", "large"));
    bench.start();
    tokio::time::sleep(LATENCY / 2).await;
    bench.leadership.send_modify(|leadership| leadership.begin(of_term(2)));
    assert_eq!(bench.answer().await, "large Abandoned");
    assert_eq!(bench.api.requests(), ["read large"]);
}

#[tokio::test(start_paused = true)]
async fn few_creates_that_read_their_cron_job_are_on_the_way_at_a_time() {
    let mut bench = Bench::new(Vec::new());
    for number in 0..100 {
        bench.push(without_template(
            &format!("tenant-{}", number % 3),
            &format!("large-{number}"),
        ));
    }
    bench.start();
    bench.n_answers(100).await;
    assert_eq!(bench.api.seen.lock().unwrap().n_in_flight_max, 8);
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_the_lane_holds_back_a_create_whose_cron_job_was_read() {
    let mut bench = Bench::new(vec![None, Some(Response::throttled(Some(10)))]);
    bench.seen().slow_prefix = "read";
    bench.push(without_template("a", "large"));
    bench.push(create("a", "small", 60));
    bench.start();
    bench.n_answers(2).await;
    assert_eq!(bench.api.requests()[..2], ["read large", "small"]);
    let at = bench.api.requests_at();
    assert!(at[2..].iter().all(|at| *at >= 10_000), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_whose_webhooks_are_slow_takes_half_of_the_places_of_large_creates() {
    let mut bench = Bench::new(Vec::new());
    bench.seen().slow_prefix = "slow";
    for number in 0..20 {
        bench.push(without_template("tenant-slow", &format!("slow-{number}")));
    }
    bench.push(without_template("tenant-quick", "quick"));
    bench.start();
    assert_eq!(bench.answer().await, "quick Created");
    assert!(bench.clock.boot().since_boot() < Duration::from_secs(1));
}
