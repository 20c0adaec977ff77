//! Tests of a tenant whose creates an admission webhook delays, beside tenants whose creates are quick.

use super::*;

/// The lateness of the last but ten of a thousand creates in each minute, in milliseconds, while `n_slow` creates of
/// another namespace are due every minute too.
async fn lateness_p99(n_minutes: i64, n_slow: usize, slow_latency: Duration) -> Vec<i128> {
    let mut bench = Bench::new(Vec::new());
    bench.seen().slow_prefix = "slow";
    bench.seen().slow_latency = slow_latency;
    bench.start();
    let mut p99 = Vec::new();
    for minute in 0..n_minutes {
        let begun = bench.clock.boot();
        for number in 0..n_slow {
            bench.push(create("slow", &format!("slow-{minute}-{number}"), 60 * (minute + 1)));
        }
        for number in 0..1_000 {
            let namespace = format!("quick-{}", number % 20);
            bench.push(create(
                &namespace,
                &format!("quick-{minute}-{number}"),
                60 * (minute + 1),
            ));
        }
        let end = begun + Duration::from_mins(1);
        while tokio::time::timeout(end.since(bench.clock.boot()), bench.answers.recv())
            .await
            .is_ok()
        {}
        let prefix = format!("quick-{minute}-");
        let mut lateness: Vec<i128> = {
            let seen = bench.seen();
            let quick = seen.requests.iter().filter(|(_, name)| name.starts_with(&prefix));
            quick
                .map(|(at, _)| at - i128::try_from(begun.since_boot().as_millis()).unwrap())
                .collect()
        };
        lateness.sort_unstable();
        assert_eq!(lateness.len(), 1_000);
        p99.push(lateness[989]);
    }
    p99
}

#[tokio::test(start_paused = true)]
async fn a_slow_tenant_does_not_delay_a_thousand_creates_a_minute() {
    let without = lateness_p99(2, 0, Duration::ZERO).await;
    for (n_slow, slow_millis) in [(600, 29_000), (300, 5_000), (20, 10_000), (3_000, 600), (3_000, 300)] {
        let with = lateness_p99(2, n_slow, Duration::from_millis(slow_millis)).await;
        for (with, without) in with.iter().zip(&without) {
            assert!(
                with * 10 <= without * 13,
                "{n_slow} creates of {slow_millis} ms: {with} ms instead of {without} ms"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_tenant_gets_half_of_the_in_flight_limit() {
    let mut bench = Bench::new(Vec::new());
    bench.seen().slow_prefix = "slow";
    bench.seen().slow_latency = Duration::from_secs(29);
    for number in 0..300 {
        bench.push(create("slow", &format!("slow-{number}"), 60));
    }
    bench.start();
    tokio::time::sleep(Duration::from_millis(58_500)).await;
    let seen = bench.seen();
    assert_eq!((seen.requests.len(), seen.n_in_flight_max), (192, 64));
}

#[tokio::test(start_paused = true)]
async fn creates_of_a_slow_tenant_count_as_a_burst_for_one_second() {
    let mut bench = Bench::new(Vec::new());
    bench.seen().slow_prefix = "slow";
    bench.seen().slow_latency = Duration::from_secs(29);
    for number in 0..300 {
        bench.push(create("slow", &format!("slow-{number}"), 60));
    }
    bench.start();
    bench.burst.wait_for(|is_burst| *is_burst).await;
    bench.burst.wait_for(|is_burst| !*is_burst).await;
    assert_eq!(bench.clock.boot().since_boot(), Duration::from_secs(1));
}
