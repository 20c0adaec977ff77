//! N CronJobs, all due at every full minute: the hardest regular load, with every instant known in advance.

use std::{collections::BTreeMap, path::Path, time::Duration};

use jiff::{SignedDuration, Timestamp};
use testbed::Component;

use super::{BEFORE_SLOT, create_between_slots, progress, sleep_until, whole_audit_log};
use crate::{
    audit::RequestCounts,
    controller::{Candidate, Controller},
    exposition::Exposition,
    generator::Load,
    measure::{self, ProcessUsage},
    own_figures::OwnFigures,
    report::Report,
    slots::Slots,
    target::Target,
    tracker::{JobNames, Tally},
};

/// How long after the last minute a Job may be created before it counts as missed.
const SETTLE_MAX: SignedDuration = SignedDuration::from_secs(60);

/// The parameters of a run.
#[derive(Clone, Debug)]
pub(crate) struct Minutely {
    pub(crate) load: Load,
    pub(crate) candidate: Candidate,
    /// The minutes whose Jobs must exist, but whose figures do not count: connections are still being opened, and
    /// nothing is cleaned up yet.
    pub(crate) n_warm_up_minutes: u32,
    /// The measured minutes.
    pub(crate) n_minutes: u32,
}

/// Usage and metrics up to one moment.
#[derive(Debug)]
struct Snapshot {
    taken: Timestamp,
    controller: ProcessUsage,
    servers: Vec<(Component, ProcessUsage)>,
    metrics: Exposition,
}

impl Snapshot {
    fn take(controller: &Controller, target: &Target) -> anyhow::Result<Snapshot> {
        let server = |(component, pid): (Component, u32)| Ok((component, ProcessUsage::of(pid)?));
        Ok(Snapshot {
            taken: Timestamp::now(),
            controller: ProcessUsage::of(controller.pid(target)?)?,
            servers: target
                .server_pids()
                .into_iter()
                .map(server)
                .collect::<anyhow::Result<_>>()?,
            metrics: controller.metrics(target)?,
        })
    }
}

impl Minutely {
    /// Runs the scenario on `target`. `scratch` is a temporary folder.
    pub(crate) async fn run(&self, target: &mut Target, scratch: &Path) -> anyhow::Result<Report> {
        target.kubectl().apply(&self.load.namespaces_manifest())?;
        let controller = Controller::start(&self.candidate, target, scratch).await?;
        let first_slot = create_between_slots(&self.load, target).await?;
        let slots = Slots::starting_at(first_slot.start(), self.n_warm_up_minutes, self.n_minutes);
        progress(&format!(
            "first slot {}, last one before {}",
            slots.first().start(),
            slots.end().start()
        ));

        sleep_until(slots.first_measured().start() - BEFORE_SLOT).await;
        let begin = Snapshot::take(&controller, target)?;
        sleep_until(slots.end().start() - BEFORE_SLOT).await;
        let end = Snapshot::take(&controller, target)?;

        let user = controller.user();
        let names = controller.metric_names();
        self.settle(target, &user, &slots).await?;
        controller.stop(target).await?;
        let requests = whole_audit_log(target, &user).await?;
        target.check_audit_log()?;
        let tally = Tally::of(&self.load.cron_jobs(), &slots, &requests, &JobNames::new());
        let measured = requests
            .iter()
            .filter(|one| (begin.taken..end.taken).contains(&one.received));
        let creates = measured.clone().filter(|one| one.is_job_create());
        Ok(Report {
            machine: measure::machine_line(target.kubectl(), self.candidate.program()),
            counts: RequestCounts::of(measured),
            creates_per_second_max: most_in_a_second(creates.map(|one| one.received)),
            controller: end.controller.since(begin.controller),
            servers: usage_between(&begin, &end),
            own: OwnFigures::of(names, &begin.metrics, &end.metrics),
            n_cron_jobs: self.load.n_cron_jobs,
            tally,
        })
    }

    /// Waits until every Job was created, or until the time for late Jobs is over.
    async fn settle(&self, target: &Target, user: &str, slots: &Slots) -> anyhow::Result<()> {
        let deadline = slots.end().start() + SETTLE_MAX;
        let cron_jobs = self.load.cron_jobs();
        while Timestamp::now() < deadline {
            let requests = target.requests(user)?;
            if Tally::of(&cron_jobs, slots, &requests, &JobNames::new())
                .missed
                .is_empty()
            {
                break;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(())
    }
}

/// The most instants within one second of the clock.
fn most_in_a_second(instants: impl Iterator<Item = Timestamp>) -> usize {
    let mut n_in_second: BTreeMap<i64, usize> = BTreeMap::new();
    for instant in instants {
        *n_in_second.entry(instant.as_second()).or_default() += 1;
    }
    n_in_second.into_values().max().unwrap_or(0)
}

fn usage_between(begin: &Snapshot, end: &Snapshot) -> Vec<(Component, ProcessUsage)> {
    let pairs = begin.servers.iter().zip(&end.servers);
    pairs
        .map(|((component, before), (_, after))| (*component, after.since(*before)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fullest_second_is_counted() {
        let at = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap();
        let instants = [999, 1_000, 1_400, 1_999, 2_000, 3_500, 3_600].map(at);
        assert_eq!(most_in_a_second(instants.into_iter()), 3);
        assert_eq!(most_in_a_second(std::iter::empty()), 0);
    }
}
