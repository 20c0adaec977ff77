//! What waits while another replica hands its shards over.

use super::*;

#[tokio::test(start_paused = true)]
async fn while_it_is_quiet_what_can_wait_does() {
    let mut bench = Bench::new(Vec::new());
    bench.start();
    let begun = bench.clock.boot();
    bench.quiet_until.set(Some(begun + Duration::from_secs(1)));
    bench.burst.wait_for(|is_burst| *is_burst).await.unwrap();
    bench.push(history_delete("a", "old"));
    bench.push(create("a", "due", 60));
    assert_eq!(bench.answer().await, "due Created");
    assert!(bench.clock.boot().since(begun) < Duration::from_millis(100));
    assert_eq!(bench.answer().await, "old Deleted");
    assert!(bench.clock.boot().since(begun) >= Duration::from_secs(1));
    assert!(!bench.burst.get(), "statuses and Events go on as well");

    bench.quiet_until.set(Some(bench.clock.boot() + Duration::from_secs(1)));
    bench.burst.wait_for(|is_burst| *is_burst).await.unwrap();
    bench.quiet_until.set(None);
    bench.push(history_delete("a", "older"));
    assert_eq!(bench.answer().await, "older Deleted");
    assert!(
        bench.clock.boot().since(begun) < Duration::from_millis(1_100),
        "it ended early"
    );
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_quiet_time_is_told_also_while_the_lane_pauses() {
    let mut bench = Bench::new(vec![throttled(Some(20))]);
    bench.push(create("a", "due", 60));
    bench.start();
    tokio::time::sleep(Duration::from_millis(100)).await;
    bench.quiet_until.set(Some(bench.clock.boot() + Duration::from_secs(1)));
    bench.burst.wait_for(|is_burst| *is_burst).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_010)).await;
    assert!(!bench.burst.get());
    assert_eq!(bench.answer().await, "due Created");
}
