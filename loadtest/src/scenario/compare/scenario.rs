//! The scenarios of a turn: when the CronJobs are due, and what is done to controllers and API server.

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
    /// Minutely. An admission webhook delays every Job of the first namespace by 29 seconds. The other namespaces are
    /// judged.
    SlowTenant,
}

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
        }
    }
}

impl Scenario {
    /// The steps by seconds after the first measured instant, in ascending order.
    pub(super) fn steps(self) -> &'static [(u32, Step)] {
        match self {
            Scenario::RollingRestart => &[(25, Step::Replace), (40, Step::Replace), (57, Step::Replace)],
            Scenario::LeaderKilled => &[(58, Step::Kill), (63, Step::Restart)],
            Scenario::ApiServerAway => &[(55, Step::StopApiServer), (70, Step::StartApiServer)],
            Scenario::Scale => &[(15, Step::Add), (20, Step::Add), (45, Step::Remove), (57, Step::Remove)],
            Scenario::Minutely | Scenario::Burst | Scenario::Mixed | Scenario::AtRest | Scenario::SlowTenant => &[],
        }
    }

    /// The number of measured minutes. Scenarios with steps need one minute before the steps and one after.
    pub(super) fn minutes(self, wanted: u32) -> u32 {
        if self == Scenario::Burst {
            1
        } else if self.steps().is_empty() {
            wanted
        } else {
            wanted.max(2)
        }
    }

    /// A burst has nothing to warm up with. Replicas need some time to distribute the shards.
    pub(super) fn warm_up_minutes(self, wanted: u32) -> u32 {
        if self == Scenario::Burst {
            0
        } else if self.steps().is_empty() {
            wanted
        } else {
            wanted.max(1)
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
            | Scenario::SlowTenant => 1,
        }
    }

    /// Whether the floor is included. Bare creates ignore schedules and cannot be disturbed like a controller.
    pub(super) fn has_floor(self) -> bool {
        matches!(self, Scenario::Minutely | Scenario::Burst)
    }

    /// Whether the scenario needs its own control plane.
    pub(super) fn needs_own_server(self) -> bool {
        matches!(self, Scenario::ApiServerAway | Scenario::SlowTenant)
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
            | Scenario::SlowTenant => Variety::Same(Due::EveryMinutes(1)),
        }
    }

    /// The CronJobs to judge. `slow` is the namespace of the slow tenant.
    pub(super) fn judged(self, mut cron_jobs: Vec<SyntheticCronJob>, slow: &str) -> Vec<SyntheticCronJob> {
        if self == Scenario::SlowTenant {
            cron_jobs.retain(|one| one.namespace != slow);
        }
        cron_jobs
    }
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
            let seconds: Vec<u32> = scenario.steps().iter().map(|step| step.0).collect();
            assert!(seconds.is_sorted(), "{scenario:?}");
            let end = scenario.minutes(1) * 60;
            assert!(seconds.iter().all(|second| *second < end), "{scenario:?}");
        }
    }

    #[test]
    fn a_slow_tenant_is_not_judged() {
        let load = Load::minutely("load".into(), 10, 5, 3);
        let n_judged = |scenario: Scenario| scenario.judged(load.cron_jobs(), &load.namespace(0)).len();
        assert_eq!(n_judged(Scenario::SlowTenant), 8);
        assert_eq!(n_judged(Scenario::Minutely), 10);
    }

    #[test]
    fn a_burst_is_one_minute_without_warm_up() {
        let minutes = |scenario: Scenario| (scenario.warm_up_minutes(1), scenario.minutes(3));
        assert_eq!(minutes(Scenario::Burst), (0, 1));
        assert_eq!(minutes(Scenario::Mixed), (1, 3));
        assert_eq!(Scenario::Scale.minutes(1), 2);
    }
}
