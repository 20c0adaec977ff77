//! The namespaces that a scenario disturbs, and the lateness in the other namespaces during the disturbance.

use std::collections::BTreeMap;

use super::{
    column::Column,
    failing_namespaces::FailingNamespaces,
    figures::{Evidence, Figures},
    scenario::Scenario,
    slow_tenant::SlowTenant,
};
use crate::{audit::Request, generator::SyntheticCronJob, slots::Slots, target::Target};

/// The disturbed namespaces of a turn. Most scenarios have none.
pub(super) struct DisturbedNamespaces {
    names: Vec<String>,
    pub(super) failing: FailingNamespaces,
    /// The webhook, once it exists.
    slow_tenant: Option<SlowTenant>,
}

impl DisturbedNamespaces {
    /// `cron_jobs` are those of all namespaces.
    pub(super) fn new(scenario: Scenario, names: Vec<String>, cron_jobs: Vec<SyntheticCronJob>) -> DisturbedNamespaces {
        let failing = if scenario == Scenario::FailingNamespaces {
            FailingNamespaces::new(names.clone(), cron_jobs)
        } else {
            FailingNamespaces::default()
        };
        DisturbedNamespaces {
            names,
            failing,
            slow_tenant: None,
        }
    }

    /// Delays the creates of Jobs in these namespaces.
    pub(super) async fn delay_creates(&mut self, target: &Target) -> anyhow::Result<()> {
        self.slow_tenant = Some(SlowTenant::install(target, &self.names).await?);
        Ok(())
    }

    /// Whether these namespaces need no more time to recover.
    pub(super) fn have_recovered(&self, requests: &[Request]) -> bool {
        self.failing.have_recovered(requests)
    }

    /// The figures of the disturbance. `evidence` is from the other namespaces in the minutes of the disturbance, and
    /// `before` has the minutes before it.
    pub(super) fn columns(&self, evidence: &Evidence<'_>, before: &Slots) -> BTreeMap<Column, f64> {
        let mut columns = self.failing.columns(evidence);
        if self.names.is_empty() {
            return columns;
        }
        let p99 = |slots: &Slots| {
            let figures = Figures::of(&Evidence { slots, ..*evidence });
            figures.columns.get(&Column::LatenessP99Ms).copied()
        };
        if let (Some(p99), Some(p99_before)) = (p99(evidence.slots), p99(before)) {
            columns.insert(Column::LatenessUndisturbedP99Ms, p99_before);
            columns.insert(Column::LatenessP99Ratio, p99 / p99_before);
        }
        columns
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;
    use crate::generator::Load;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(100 * 60_000 + milliseconds).unwrap()
    }

    fn create(cron_job: &str, minute: i64, milliseconds: i64) -> Request {
        Request {
            verb: "create".into(),
            resource: "jobs".into(),
            namespace: "run-1".into(),
            name: format!("{cron_job}-{minute}"),
            code: 201,
            received: at(milliseconds),
            answered: at(milliseconds),
        }
    }

    /// The figures of a CronJob outside of `names`. It starts 100 ms late before the disturbance, and 130 ms late after
    /// it.
    fn columns(scenario: Scenario, names: &[&str]) -> BTreeMap<Column, f64> {
        let all = Load::minutely("run".into(), 2, 2, 3).cron_jobs();
        let mut evaluated = all.clone();
        evaluated.retain(|one| one.namespace == "run-1");
        let evidence = Evidence {
            cron_jobs: &evaluated,
            slots: &Slots::starting_at(at(0), 0, 1),
            requests: &[create("load-00001", 99, -59_900), create("load-00001", 100, 130)],
            has_audit_log: true,
            end: at(90_000),
            window: (at(0), at(60_000)),
            cpu: Duration::from_millis(10),
            peak_memory_kib: 2_048,
        };
        let names = names.iter().map(|&name| name.to_owned()).collect();
        DisturbedNamespaces::new(scenario, names, all).columns(&evidence, &Slots::starting_at(at(-60_000), 0, 1))
    }

    #[test]
    fn the_others_are_compared_with_the_minutes_before() {
        let expected = BTreeMap::from([
            (Column::LatenessUndisturbedP99Ms, 100.0),
            (Column::LatenessP99Ratio, 1.3),
        ]);
        assert_eq!(columns(Scenario::SlowTenant, &["run-0"]), expected);
        assert_eq!(columns(Scenario::FailingNamespaces, &["run-0"]), expected);
    }

    #[test]
    fn scenarios_without_disturbed_namespaces_compare_nothing() {
        assert!(columns(Scenario::Minutely, &[]).is_empty());
    }

    #[test]
    fn namespaces_fail_in_one_scenario_alone() {
        let none_started = |scenario: Scenario| {
            let all = Load::minutely("run".into(), 2, 2, 3).cron_jobs();
            DisturbedNamespaces::new(scenario, vec!["run-0".into()], all).have_recovered(&[])
        };
        assert!(none_started(Scenario::SlowTenant));
        assert!(!none_started(Scenario::FailingNamespaces));
    }
}
