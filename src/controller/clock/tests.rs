//! Tests of the clock and its sleeper, mostly in virtual time.

use std::sync::atomic::{AtomicI64, Ordering};

use super::*;
use futures::FutureExt as _;

fn epoch() -> Timestamp {
    "2026-11-01T12:00:00Z".parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_sleeper_wakes_at_its_instant() {
    let clock = Clock::simulated(epoch());
    let mut sleeper = clock.sleeper();
    for after in [
        Duration::ZERO,
        Duration::from_micros(300),
        Duration::from_millis(1),
        Duration::from_secs(3_601),
    ] {
        let instant = clock.now() + after;
        sleeper.sleep_until(instant).await;
        let late = clock.now().duration_since(instant);
        assert!(
            late >= SignedDuration::ZERO && late <= SignedDuration::from_millis(2),
            "{late:?} after {after:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_sleeper_returns_at_once_for_a_past_instant() {
    let clock = Clock::simulated(epoch());
    clock
        .sleeper()
        .sleep_until(epoch() - SignedDuration::from_hours(1))
        .await;
    assert_eq!(clock.now(), epoch());
}

#[tokio::test]
async fn the_kernel_timer_can_be_reused_after_a_cancelled_sleep() {
    let clock = Clock::system(SignedDuration::ZERO, SignedDuration::from_secs(2));
    let mut sleeper = clock.sleeper();
    let far = clock.now() + SignedDuration::from_hours(1);
    tokio::select! {
        biased;
        () = sleeper.sleep_until(far) => panic!("an hour has not passed"),
        () = std::future::ready(()) => {}
    }
    let near = clock.now() + SignedDuration::from_millis(2);
    sleeper.sleep_until(near).await;
    assert!(clock.now() >= near);
}

#[test]
fn the_clock_offset_does_not_count_as_skew() {
    let clock = Clock::system(SignedDuration::from_hours(-2), SignedDuration::from_secs(2));
    let machine = system_wall();
    let behind = machine.duration_since(clock.now());
    assert!(
        (behind - SignedDuration::from_hours(2)).abs() < SignedDuration::from_secs(1),
        "{behind:?}"
    );
    let answer = ProbeAnswer {
        sent: clock.boot(),
        received: clock.boot(),
        date: Some(machine),
    };
    clock.observe(&[answer; 4]);
    assert_eq!(clock.verdict(), ClockVerdict::Fine);
}

#[tokio::test(start_paused = true)]
async fn verdict_watchers_are_notified_of_changes_only() {
    let clock = Clock::simulated(epoch());
    let mut verdict = clock.subscribe_verdict();
    clock.compare(SignedDuration::ZERO);
    assert!(verdict.changed().now_or_never().is_some());
    assert_eq!(verdict.get(), ClockVerdict::Fine);
    clock.compare(SignedDuration::ZERO);
    assert!(verdict.changed().now_or_never().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_frozen_process_does_nothing_while_time_goes_on() {
    let wall = SimulatedWall::starting_at(epoch()).with_boot_rate(1_050_000);
    let ticks = Arc::new(AtomicI64::new(0));
    let process = {
        let (wall, ticks) = (wall.clone(), Arc::clone(&ticks));
        async move {
            wall.run(async {
                loop {
                    sleep(Duration::from_secs(1)).await;
                    ticks.fetch_add(1, Ordering::Relaxed);
                }
            })
            .await
        }
    };
    let process = tokio::spawn(process);
    let clock = Clock::of_simulated(wall.clone());
    let begun = clock.boot();
    for (pause_ms, is_frozen, n_ticks) in [(2_500, false, 2), (10_000, true, 2), (1_600, false, 4)] {
        if is_frozen {
            wall.freeze();
        } else {
            wall.thaw();
        }
        sleep(Duration::from_millis(pause_ms)).await;
        assert_eq!(ticks.load(Ordering::Relaxed), n_ticks, "{pause_ms}");
    }
    assert_eq!(clock.boot().since(begun), Duration::from_millis(14_100) * 105 / 100);
    process.abort();
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_are_in_doubt() {
    let clock = Clock::simulated(epoch());
    let answer = |ahead_seconds| {
        clock.compare(SignedDuration::from_secs(ahead_seconds));
        (clock.verdict(), clock.is_in_doubt())
    };
    assert!(clock.is_in_doubt(), "nothing is known yet");
    assert_eq!(answer(0), (ClockVerdict::Fine, false));
    assert_eq!(answer(30), (ClockVerdict::Alarm, true));
    assert_eq!(answer(0), (ClockVerdict::Fine, false));
}
