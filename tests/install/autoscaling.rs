//! The chart's `HorizontalPodAutoscaler`, with Kubernetes' controller and metrics of a real Prometheus. It scales from
//! one replica to five and then to two, while minutely CronJobs run. It never scales in when metrics are missing.
//!
//! Windows and periods are a sixtieth of the chart's, and `minReplicas` is lower; one case uses the chart's values. The
//! cases take minutes and need root: `make hpa-test`.

mod metrics_api;
mod rig;
mod shards;

use std::time::{Duration, Instant};

use serde_json::json;
use testbed::Autoscaling;

use self::{
    metrics_api::ResponseMode,
    rig::{Kill, Rig},
    shards::Shares,
};
use super::{
    audit::Audit,
    cluster::{is_wanted, last_minute, next_minute},
    release::name_of,
};

/// Set to run the cases, which take minutes.
const WANTED: &str = "CRONWHEEL_HPA_TEST";
/// Longer than the window and the period of a scale-in together.
const HOLD: Duration = Duration::from_secs(45);
/// The longest time for a scale-in from five replicas to two.
const SCALE_IN_MAX: Duration = Duration::from_mins(3);
/// The processor time of any replica is above the first and below the second, in percent of the request.
const ALWAYS_ABOVE: u32 = 1;
const ALWAYS_BELOW: u32 = 100_000;
/// The interval between two Pods by the chart's policy, one per minute, minus the time the test takes to observe it.
const SCALE_OUT_MIN: Duration = Duration::from_secs(57);
/// CronJobs per replica, and the numbers of CronJobs that lead to five, three and two replicas.
const PER_REPLICA: usize = 40;
const FOR_FIVE: usize = 5 * PER_REPLICA;
const FOR_THREE: usize = 3 * PER_REPLICA;
const FOR_TWO: usize = 2 * PER_REPLICA;

#[test]
fn processor_time_alone_scales_from_one_to_five_to_two() {
    if !is_wanted(WANTED) {
        return;
    }
    let rig = Rig::start(Autoscaling::Fast);
    rig.install(&json!({"targetCPUUtilizationPercentage": ALWAYS_BELOW}));
    rig.wait_for_replicas(1);
    let minutely = rig.create_minutely("kept", FOR_TWO);
    let first = next_minute();
    let one = rig.cluster.wait_until_even(1);

    rig.set("autoscaling.targetCPUUtilizationPercentage", ALWAYS_ABOVE);
    rig.wait_for_replicas(5);
    let five = rig.cluster.wait_until_even(5);
    five.assert_moves("1 to 5", &one, one.moves_needed_to_share(5));

    rig.wait_for_cron_jobs_led(FOR_TWO);
    // With the target below the usage of the others, a missing replica must not count as an idle one.
    rig.lose_a_replica();
    assert_eq!(rig.pods_with_processor_time(), 4);
    rig.assert_replicas("processor time of one replica is missing", 5, HOLD);
    rig.prometheus.lose(None);

    rig.metrics_api.set_mode(ResponseMode::Empty);
    rig.wait_for_failure("FailedGetResourceMetric");
    rig.set("autoscaling.minReplicas", 2);
    rig.set("autoscaling.targetCPUUtilizationPercentage", ALWAYS_BELOW);
    rig.assert_replicas("no Pod has metrics", 5, HOLD);
    rig.assert_failure("FailedGetResourceMetric");
    rig.metrics_api.set_mode(ResponseMode::None);
    rig.assert_replicas("no API for metrics", 5, HOLD);
    rig.assert_failure("FailedGetResourceMetric");

    rig.metrics_api.set_mode(ResponseMode::Real);
    scale_in_to_two(&rig);
    Audit::read(&rig.cluster).assert_runs_of(&minutely, first..=last_minute());
}

#[test]
fn cron_jobs_led_and_processor_time_scale_from_one_to_five_to_two() {
    if !is_wanted(WANTED) {
        return;
    }
    let rig = Rig::start(Autoscaling::Fast);
    rig.install(&json!({
        "targetCPUUtilizationPercentage": ALWAYS_BELOW,
        "targetCronJobsPerReplica": PER_REPLICA,
    }));
    rig.wait_for_replicas(1);
    let one = rig.cluster.wait_until_even(1);

    let minutely = rig.create_minutely("kept", FOR_TWO);
    let first = next_minute();
    rig.create_spare(FOR_FIVE - FOR_TWO);
    rig.wait_for_replicas(5);
    let five = rig.cluster.wait_until_even(5);
    five.assert_moves("1 to 5", &one, one.moves_needed_to_share(5));
    rig.wait_for_cron_jobs_led(FOR_FIVE);

    rig.lose_a_replica();
    rig.wait_for_failure("FailedGetExternalMetric");
    rig.delete_spare();
    rig.assert_replicas("one replica is not scraped", 5, HOLD);
    rig.assert_failure("FailedGetExternalMetric");
    rig.metrics_api.set_mode(ResponseMode::Empty);
    rig.prometheus.lose(None);
    // By the values in Prometheus, the autoscaler would scale in.
    rig.wait_for_cron_jobs_led(FOR_TWO);
    rig.assert_replicas("no metric has a value", 5, HOLD);
    rig.assert_failure("FailedGet");
    rig.metrics_api.set_mode(ResponseMode::None);
    rig.assert_replicas("no API for metrics", 5, HOLD);
    rig.assert_failure("FailedGet");

    rig.metrics_api.set_mode(ResponseMode::Real);
    scale_in_to_two(&rig);
    rig.wait_for_cron_jobs_led(FOR_TWO);
    Audit::read(&rig.cluster).assert_runs_of(&minutely, first..=last_minute());
}

#[test]
fn default_windows_and_periods_scale_from_three_to_five() {
    if !is_wanted(WANTED) {
        return;
    }
    let rig = Rig::start(Autoscaling::Usual);
    rig.install(&json!({
        "targetCPUUtilizationPercentage": ALWAYS_BELOW,
        "targetCronJobsPerReplica": PER_REPLICA,
    }));
    rig.wait_for_replicas(3);
    let minutely = rig.create_minutely("kept", FOR_THREE);
    let first = next_minute();
    let three = rig.cluster.wait_until_even(3);
    rig.wait_for_cron_jobs_led(FOR_THREE);

    rig.create_spare(FOR_FIVE - FOR_THREE);
    let begin = Instant::now();
    rig.wait_for_replicas(4);
    let fourth = begin.elapsed();
    let four = rig.cluster.wait_until_even(4);
    rig.wait_for_replicas(5);
    let fifth = begin.elapsed();
    let five = rig.cluster.wait_until_even(5);
    eprintln!("4 replicas after {fourth:.0?}, 5 after {fifth:.0?}");
    assert!(fifth >= fourth + SCALE_OUT_MIN, "{fourth:?}, {fifth:?}");
    let n_shards = three.len();
    four.assert_moves("3 to 4", &three, n_shards / 4);
    five.assert_moves("4 to 5", &four, n_shards / 5);
    Audit::read(&rig.cluster).assert_runs_of(&minutely, first..=last_minute());
}

/// Observes a scale-in from five replicas to two, kills a replica when it begins, and counts the moves of shards.
fn scale_in_to_two(rig: &Rig) {
    let begin = Instant::now();
    let before = rig.cluster.shards();
    let mut shares = Shares::default();
    let mut kill: Option<Kill> = None;
    while !rig.has_two_replicas() {
        let state = rig.state();
        shares.note(&state, kill.as_ref());
        if kill.is_none() && state.n_replicas < 5 {
            kill = Some(rig.kill_a_replica());
        }
        assert!(state.n_replicas >= 2 && begin.elapsed() < SCALE_IN_MAX, "{state:?}");
    }
    let after = rig.cluster.wait_until_even(2);
    let kill = kill.unwrap();
    let stay: Vec<String> = rig.cluster.pods().iter().map(|pod| name_of(pod).to_owned()).collect();
    after.assert_moves("5 to 2", &before, shares.moves_needed(&kill, &stay));
}
