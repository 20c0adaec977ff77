//! Tests of creates whose template is not in memory.

use super::*;

/// A create whose template is not in memory.
fn without_template(namespace: &str, name: &str) -> Request {
    let mut record = record(&cron_job(namespace, name, 1, IMAGE));
    record.drop_template();
    Request::Create(JobCreate {
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
async fn a_create_is_abandoned_if_the_template_has_changed() {
    let mut bench = Bench::new(Vec::new());
    bench.api.seen.lock().unwrap().image = "another";
    bench.push(without_template("a", "large"));
    bench.start();
    assert_eq!(bench.answer().await, "large Abandoned");
    assert_eq!(bench.api.requests(), ["read large"]);
}

#[tokio::test(start_paused = true)]
async fn a_throttled_read_is_retried() {
    let mut bench = Bench::new(vec![Some(Response::throttled(Some(1)))]);
    bench.push(without_template("a", "large"));
    bench.start();
    assert_eq!(bench.answer().await, "large Created");
    assert_eq!(bench.api.requests(), ["read large", "read large", "large"]);
}

#[tokio::test(start_paused = true)]
async fn a_create_is_abandoned_if_the_shard_is_lost_during_the_read() {
    let mut bench = Bench::new(Vec::new());
    bench.push(without_template("a", "large"));
    bench.start();
    tokio::time::sleep(LATENCY / 2).await;
    bench.leadership.send_modify(|leadership| leadership.begin(of_term(2)));
    assert_eq!(bench.answer().await, "large Abandoned");
    assert_eq!(bench.api.requests(), ["read large"]);
}

#[tokio::test(start_paused = true)]
async fn at_most_eight_creates_with_a_read_are_in_flight() {
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
async fn a_paused_lane_delays_a_create_after_its_read() {
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
async fn a_slow_namespace_does_not_delay_large_creates_of_others() {
    let mut bench = Bench::new(Vec::new());
    bench.seen().slow_prefix = "slow";
    for number in 0..20 {
        bench.push(without_template("tenant-slow", &format!("slow-{number}")));
    }
    bench.start();
    tokio::time::sleep(Duration::from_secs(1)).await;
    bench.push(without_template("tenant-quick", "quick"));
    assert_eq!(bench.answer().await, "quick Created");
    assert!(bench.clock.boot().since_boot() < Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn two_slow_namespaces_do_not_delay_large_creates_of_others() {
    let mut bench = Bench::new(Vec::new());
    bench.seen().slow_prefix = "slow";
    for number in 0..20 {
        bench.push(without_template("tenant-a", &format!("slow-a{number}")));
        bench.push(without_template("tenant-b", &format!("slow-b{number}")));
    }
    bench.start();
    tokio::time::sleep(Duration::from_millis(500)).await;
    bench.push(without_template("tenant-quick", "quick"));
    assert_eq!(bench.answer().await, "quick Created");
    assert_eq!(
        bench.clock.boot().since_boot(),
        Duration::from_secs(1) + LATENCY * 3,
        "the creates of the others turn slow a second after their reads"
    );
}

#[tokio::test(start_paused = true)]
async fn large_creates_of_a_slow_namespace_are_no_burst() {
    let mut bench = Bench::new(Vec::new());
    bench.seen().slow_prefix = "slow";
    for number in 0..100 {
        bench.push(without_template("tenant-slow", &format!("slow-{number}")));
    }
    bench.start();
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!bench.burst.get());
    }
}

#[tokio::test(start_paused = true)]
async fn the_lateness_of_a_create_with_a_read_is_that_of_the_create() {
    for script in [Vec::new(), vec![Some(Response::throttled(Some(1)))]] {
        let n_throttled = script.len();
        let mut bench = Bench::new(script);
        bench.push(without_template("a", "large"));
        bench.start();
        assert_eq!(bench.answer().await, "large Created");
        let text = bench.metrics.text();
        assert!(text.contains("cronwheel_lateness_seconds_count 1"), "{text}");
        let sum = ["0.005", "1.01"][n_throttled];
        assert!(
            text.contains(&format!("cronwheel_lateness_seconds_sum {sum}\n")),
            "{text}"
        );
    }
}
