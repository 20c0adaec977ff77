//! Tests of a tenant whose status writes an admission webhook delays, or who has many, beside other tenants.

use super::*;

/// Returns when the write of a CronJob was sent, in milliseconds after the start.
fn sent_at(bench: &Bench, name: &str) -> Option<u128> {
    let requests = bench.requests();
    requests
        .iter()
        .find(|request| request.1 == name)
        .map(|request| request.0)
}

fn n_requests(bench: &Bench, prefix: &str) -> usize {
    let requests = bench.requests();
    requests.iter().filter(|request| request.1.starts_with(prefix)).count()
}

#[tokio::test(start_paused = true)]
async fn unanswered_status_writes_of_one_tenant_do_not_delay_other_tenants() {
    let bench = Bench::new(Vec::new());
    for number in 0..200 {
        bench.push(write_of("slow", &format!("slow{number}"), 7, number));
    }
    bench.pass(1_500).await;
    bench.push(write_of("quick", "quick", 7, 1));
    bench.pass(5_000).await;
    assert_eq!(sent_at(&bench, "quick"), Some(2_500));
    assert_eq!(
        n_requests(&bench, "slow"),
        32,
        "a slow namespace has at most half of the places"
    );
}

#[tokio::test(start_paused = true)]
async fn urgent_writes_of_a_slow_tenant_do_not_delay_others_during_a_burst() {
    let bench = Bench::new(Vec::new());
    bench.burst.set(true);
    for number in 0..200 {
        bench.push(StatusWrite {
            is_urgent: true,
            ..write_of("slow", &format!("slow{number}"), 7, number)
        });
    }
    bench.pass(3_000).await;
    bench.push(StatusWrite {
        is_urgent: true,
        ..write_of("quick", "quick", 7, 1)
    });
    bench.pass(5_000).await;
    assert_eq!(sent_at(&bench, "quick"), Some(3_000));
}

#[tokio::test(start_paused = true)]
async fn a_tenant_that_turns_slow_leaves_three_quarters_of_the_places() {
    let bench = Bench::new(Vec::new());
    for number in 0..100 {
        bench.push(write_of("slow", &format!("slow{number}"), 7, number));
        bench.push(write_of("quick", &format!("quick{number}"), 7, number));
    }
    bench.pass(1_100).await;
    assert_eq!(n_requests(&bench, "quick"), 100);
}

#[tokio::test(start_paused = true)]
async fn many_status_writes_of_one_tenant_do_not_delay_other_tenants() {
    let bench = Bench::with_latency(Vec::new(), Duration::from_millis(100));
    for number in 0..5_000 {
        bench.push(write_of("many", &format!("many{number}"), 7, number));
    }
    bench.push(write_of("few", "few", 7, 1));
    bench.pass(5_000).await;
    let sent = sent_at(&bench, "few");
    assert!(sent.is_some_and(|at| at <= 1_100), "{sent:?}");
}

/// An urgent write of a CronJob whose metadata is not in memory.
fn large(namespace: &str, name: &str) -> StatusWrite {
    StatusWrite {
        cron_job: write_of(namespace, name, 7, 1).cron_job,
        ..without_metadata(name, 7, 1)
    }
}

#[tokio::test(start_paused = true)]
async fn large_cron_jobs_of_a_slow_tenant_do_not_delay_those_of_others() {
    let bench = Bench::new(Vec::new());
    bench.api.seen.lock().unwrap().read_version = 7;
    for number in 0..20 {
        bench.push(large("slow", &format!("slow{number}")));
    }
    bench.pass(3_000).await;
    bench.push(large("quick", "quick"));
    bench.pass(5_000).await;
    assert_eq!(sent_at(&bench, "quick"), Some(3_005));
    assert_eq!(n_requests(&bench, "slow"), 4);
}

#[tokio::test(start_paused = true)]
async fn large_cron_jobs_of_two_slow_tenants_do_not_delay_those_of_others() {
    let bench = Bench::new(Vec::new());
    bench.api.seen.lock().unwrap().read_version = 7;
    for number in 0..20 {
        bench.push(large("slow-a", &format!("slow-a{number}")));
        bench.push(large("slow-b", &format!("slow-b{number}")));
    }
    bench.pass(500).await;
    bench.push(large("quick", "quick"));
    bench.pass(5_000).await;
    assert_eq!(
        sent_at(&bench, "quick"),
        Some(1_010),
        "the writes of the others turn slow after a second"
    );
    assert_eq!(n_requests(&bench, "slow"), 8);
}

#[tokio::test(start_paused = true)]
async fn at_most_twelve_large_writes_of_slow_tenants_are_in_flight() {
    let bench = Bench::new(Vec::new());
    bench.api.seen.lock().unwrap().read_version = 7;
    for number in 0..100 {
        let tenant = format!("slow{}", number % 10);
        bench.push(large(&tenant, &format!("{tenant}-{number}")));
    }
    bench.pass(120_000).await;
    assert_eq!(bench.api.seen.lock().unwrap().n_in_flight_max, 12);
}
