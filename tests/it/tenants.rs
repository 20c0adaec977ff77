//! Isolation of tenants: the actions of an offender, and faults that affect only the offender, have no effect on the
//! other tenants.
//!
//! Each scenario runs twice from the same seed on the in-memory API server in virtual time: without its offender and
//! with it. The comparison covers all results of the innocent tenants: the Job of every slot and its lateness, the
//! outcome of each Job, the Jobs within the history limits, the status, and the Warnings. `docs/spec/threats.md` names
//! the scenario for each attack.

mod cluster;
mod offenders;
mod received;
mod workload;

use std::cell::RefCell;

use cronwheel::{controller::settings::RunSettings, telemetry::metrics::Metrics};
use jiff::SignedDuration;

use self::{cluster::Cluster, received::Received};

/// The parameters of a scenario, apart from its offender.
struct Scenario {
    seed: u64,
    /// The duration of the scenario.
    length: SignedDuration,
    /// Changes to the settings of the controller.
    configure: fn(&mut RunSettings),
    /// The reasons of Warnings that innocent tenants may get because of the offender.
    warnings_allowed: &'static [&'static str],
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            seed: 1,
            length: SignedDuration::from_mins(10),
            configure: |_| {},
            warnings_allowed: &[],
        }
    }
}

/// The state at the end of a scenario.
struct Outcome {
    received: Received,
    metrics: String,
}

impl Outcome {
    /// The value of a metric series of the controller, or zero if the series does not exist.
    fn metric(&self, series: &str) -> f64 {
        let line = self.metrics.lines().find_map(|line| line.strip_prefix(series));
        line.map_or(0.0, |value| value.trim().parse().unwrap())
    }
}

/// Runs a scenario without and with its offender. Asserts that the innocent tenants get the same results. Returns the
/// final state of the run with the offender.
fn compare(scenario: &Scenario, offend: impl AsyncFn(&Cluster)) -> Outcome {
    let without = play(scenario, async |_| {});
    let with = play(scenario, offend);
    let differences = received::differences(&without.received, &with.received, scenario.warnings_allowed);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    with
}

fn play(scenario: &Scenario, offend: impl AsyncFn(&Cluster)) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let cluster = Cluster::new(scenario.seed);
        let received = RefCell::new(Received::default());
        let metrics = Metrics::register();
        let end = cluster.start + scenario.length;
        let act = async {
            workload::create(&cluster).await;
            let innocent = async {
                cluster.until(cluster.start + scenario.length / 2).await;
                workload::run_manually(&cluster).await;
            };
            tokio::select! {
                biased;
                never = cluster.run_controller(scenario.configure, metrics.clone()) => match never {},
                ((), (), ()) = async { tokio::join!(offend(&cluster), innocent, cluster.until(end)) } => {}
            }
        };
        tokio::select! {
            biased;
            never = received::record(&cluster, &received) => match never {},
            () = cluster.run_jobs() => unreachable!("the runner never ends"),
            () = act => {}
        }
        let mut received = received.into_inner();
        received.finish(&cluster).await;
        Outcome {
            received,
            metrics: metrics.render(end).unwrap(),
        }
    })
}

#[test]
fn innocent_tenants_get_every_run_and_every_warning() {
    let scenario = Scenario::default();
    let alone = play(&scenario, async |_| {});
    workload::assert_complete(&alone.received, scenario.length);
    let again = play(&scenario, async |_| {});
    assert_eq!(received::differences(&alone.received, &again.received, &[]), [""; 0]);
}
