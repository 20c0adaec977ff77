//! The scenarios of a turn: when the CronJobs are due, and the disturbances of controllers and API server.

use std::fmt::{self, Display, Formatter};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{
    generator::{SyntheticCronJob, Variety},
    slots::{Due, Slot},
};

/// What happens in a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Scenario {
    /// All CronJobs are due at every full minute.
    #[default]
    Minutely,
    /// All CronJobs are due at one instant, once.
    Burst,
    /// Schedules, policies, run times, failures and template sizes are drawn from the seed.
    Mixed,
    /// No CronJob is due: the cost of an idle controller.
    AtRest,
    /// Minutely. Three replicas are replaced one after the other.
    RollingRestart,
    /// Minutely. A leading replica is killed just before a minute and restarted five seconds later.
    LeaderKilled,
    /// Minutely. The API server is stopped for fifteen seconds around a minute.
    ApiServerAway,
    /// Minutely. Two replicas are added, and two others removed before the next minute.
    Scale,
    /// Minutely. From the first measured minute on, an admission webhook delays every Job of the first namespace by 29
    /// seconds. The other namespaces are evaluated.
    SlowTenant,
    /// Minutely. A quota refuses every Job of the first namespaces, and is removed half a minute before the end. The
    /// other namespaces are evaluated.
    FailingNamespaces,
}

/// The number of CronJobs, unless the command line sets it.
const CRON_JOBS: u32 = 500;

/// With 1,000 CronJobs in fifteen namespaces, each namespace has 66. From 60 refused CronJobs on, cronwheel treats the
/// whole namespace as failing.
const CRON_JOBS_BESIDE_FAILING: u32 = 1_000;

/// Webhook and quota must take effect after the Jobs of the previous minute and before the first measured instant.
const DISTURBED_BEFORE_SECONDS: i32 = 20;

/// Between two full minutes, so that refused CronJobs have time to start their late runs before the next slot.
const ALLOWED_BEFORE_END_SECONDS: i32 = 30;

/// An action in the middle of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Starts a new replica, and stops the oldest one when the new one is ready.
    Replace,
    /// Kills the oldest replica as in a crash.
    Kill,
    /// Restarts the replica that was killed.
    Restart,
    Add,
    /// Stops the oldest replica.
    Remove,
    StopApiServer,
    StartApiServer,
    /// Delays the creates of the slow tenant.
    DelayCreates,
    /// Refuses the creates in the failing namespaces.
    RefuseCreates,
    AllowCreates,
}

impl Step {
    /// The name in charts.
    pub(super) fn title(self) -> &'static str {
        match self {
            Step::Replace => "replaced",
            Step::Kill => "killed",
            Step::Restart => "restarted",
            Step::Add => "added",
            Step::Remove => "removed",
            Step::StopApiServer => "API server stops",
            Step::StartApiServer => "API server starts",
            Step::DelayCreates => "creates delayed",
            Step::RefuseCreates => "creates refused",
            Step::AllowCreates => "creates allowed",
        }
    }
}

impl Scenario {
    /// The steps by seconds after the first of `minutes` measured instants, in ascending order.
    pub(super) fn steps(self, minutes: u32) -> Vec<(i32, Step)> {
        match self {
            Scenario::RollingRestart => vec![(25, Step::Replace), (40, Step::Replace), (57, Step::Replace)],
            Scenario::LeaderKilled => vec![(58, Step::Kill), (63, Step::Restart)],
            Scenario::ApiServerAway => vec![(55, Step::StopApiServer), (70, Step::StartApiServer)],
            Scenario::Scale => vec![(15, Step::Add), (20, Step::Add), (45, Step::Remove), (57, Step::Remove)],
            Scenario::SlowTenant => vec![(-DISTURBED_BEFORE_SECONDS, Step::DelayCreates)],
            Scenario::FailingNamespaces => {
                let end = i32::try_from(60 * minutes).unwrap_or(i32::MAX);
                vec![
                    (-DISTURBED_BEFORE_SECONDS, Step::RefuseCreates),
                    (end - ALLOWED_BEFORE_END_SECONDS, Step::AllowCreates),
                ]
            }
            Scenario::Minutely | Scenario::Burst | Scenario::Mixed | Scenario::AtRest => Vec::new(),
        }
    }

    /// The number of measured minutes. Scenarios with steps need one minute before the steps and one after. Refusals
    /// last for two and a half minutes, since the first minute has a create of every CronJob.
    pub(super) fn minutes(self, wanted: u32) -> u32 {
        match self {
            Scenario::Burst => 1,
            Scenario::Minutely | Scenario::Mixed | Scenario::AtRest | Scenario::SlowTenant => wanted,
            Scenario::RollingRestart | Scenario::LeaderKilled | Scenario::ApiServerAway | Scenario::Scale => {
                wanted.max(2)
            }
            Scenario::FailingNamespaces => wanted.max(3),
        }
    }

    /// The number of warm-up minutes. A burst has none. Replicas need one to distribute the shards. Scenarios that
    /// disturb namespaces need two, because the second one shows the figures before the disturbance.
    pub(super) fn warm_up_minutes(self, wanted: u32) -> u32 {
        match self {
            Scenario::Burst => 0,
            Scenario::Minutely | Scenario::Mixed | Scenario::AtRest => wanted,
            Scenario::RollingRestart | Scenario::LeaderKilled | Scenario::ApiServerAway | Scenario::Scale => {
                wanted.max(1)
            }
            Scenario::SlowTenant | Scenario::FailingNamespaces => wanted.max(2),
        }
    }

    /// The number of CronJobs, unless the command line sets it.
    pub(super) fn cron_jobs(self) -> u32 {
        if self == Scenario::FailingNamespaces {
            CRON_JOBS_BESIDE_FAILING
        } else {
            CRON_JOBS
        }
    }

    /// The number of replicas of cronwheel, unless the command line sets it.
    pub(super) fn replicas(self) -> u32 {
        match self {
            Scenario::RollingRestart | Scenario::LeaderKilled | Scenario::Scale => 3,
            Scenario::Minutely
            | Scenario::Burst
            | Scenario::Mixed
            | Scenario::AtRest
            | Scenario::ApiServerAway
            | Scenario::SlowTenant
            | Scenario::FailingNamespaces => 1,
        }
    }

    /// Whether the floor is included. Bare creates ignore schedules and cannot be disturbed like a controller.
    pub(super) fn has_floor(self) -> bool {
        matches!(self, Scenario::Minutely | Scenario::Burst)
    }

    /// Whether the scenario needs its own control plane.
    pub(super) fn needs_own_server(self) -> bool {
        matches!(
            self,
            Scenario::ApiServerAway | Scenario::SlowTenant | Scenario::FailingNamespaces
        )
    }

    pub(super) fn variety(self, seed: u32, first: Slot) -> Variety {
        match self {
            Scenario::Burst => Variety::Same(Due::Once(first)),
            Scenario::AtRest => Variety::Same(Due::Never),
            Scenario::Mixed => Variety::Mixed { seed },
            Scenario::Minutely
            | Scenario::RollingRestart
            | Scenario::LeaderKilled
            | Scenario::ApiServerAway
            | Scenario::Scale
            | Scenario::SlowTenant
            | Scenario::FailingNamespaces => Variety::Same(Due::EveryMinutes(1)),
        }
    }

    /// The number of failing namespaces. Zero unless the scenario has failures.
    pub(super) fn n_failing(self, wanted: u32) -> u32 {
        if self == Scenario::FailingNamespaces { wanted } else { 0 }
    }

    /// The number of disturbed namespaces, including failing ones. They are the first of all namespaces.
    pub(super) fn n_disturbed(self, n_failing: u32) -> u32 {
        if self == Scenario::SlowTenant { 1 } else { n_failing }
    }
}

/// The CronJobs to evaluate: those outside the disturbed namespaces.
pub(super) fn evaluated(mut cron_jobs: Vec<SyntheticCronJob>, disturbed: &[String]) -> Vec<SyntheticCronJob> {
    cron_jobs.retain(|one| !disturbed.contains(&one.namespace));
    cron_jobs
}

impl Display for Scenario {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Scenario::Minutely => "minutely CronJobs",
            Scenario::Burst => "CronJobs due at one instant",
            Scenario::Mixed => "CronJobs of a realistic mix",
            Scenario::AtRest => "CronJobs that are not due",
            Scenario::RollingRestart => "minutely CronJobs, rolling restart",
            Scenario::LeaderKilled => "minutely CronJobs, a leader killed",
            Scenario::ApiServerAway => "minutely CronJobs, API server away",
            Scenario::Scale => "minutely CronJobs, scale out and in",
            Scenario::SlowTenant => "minutely CronJobs, beside a slow tenant",
            Scenario::FailingNamespaces => "minutely CronJobs, some in failing namespaces",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Load;

    #[test]
    fn steps_are_in_order_and_within_the_measured_minutes() {
        for scenario in Scenario::value_variants() {
            let minutes = scenario.minutes(1);
            let seconds: Vec<i32> = scenario.steps(minutes).iter().map(|step| step.0).collect();
            assert!(seconds.is_sorted(), "{scenario:?}");
            let begin = -60 * i32::try_from(scenario.warm_up_minutes(0)).unwrap();
            let end = 60 * i32::try_from(minutes).unwrap();
            assert!(
                seconds.iter().all(|second| (begin..end).contains(second)),
                "{scenario:?}"
            );
        }
    }

    #[test]
    fn disturbed_namespaces_are_not_evaluated() {
        let load = Load::minutely("load".into(), 10, 5, 3);
        let n_evaluated = |scenario: Scenario| {
            let n_failing = scenario.n_failing(3);
            let n_disturbed = usize::try_from(scenario.n_disturbed(n_failing)).unwrap();
            evaluated(load.cron_jobs(), &load.namespaces()[..n_disturbed]).len()
        };
        assert_eq!(n_evaluated(Scenario::SlowTenant), 8);
        assert_eq!(n_evaluated(Scenario::FailingNamespaces), 4);
        assert_eq!(n_evaluated(Scenario::Minutely), 10);
    }

    #[test]
    fn a_burst_is_one_minute_without_warm_up() {
        let minutes = |scenario: Scenario| (scenario.warm_up_minutes(1), scenario.minutes(3));
        assert_eq!(minutes(Scenario::Burst), (0, 1));
        assert_eq!(minutes(Scenario::Mixed), (1, 3));
        assert_eq!(Scenario::Scale.minutes(1), 2);
        assert_eq!(minutes(Scenario::SlowTenant), (2, 3));
        assert_eq!(minutes(Scenario::FailingNamespaces), (2, 3));
    }
}
