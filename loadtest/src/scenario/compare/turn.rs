//! One turn: one controller on a control plane of its own, through warm-up, measured minutes and the time in which late
//! runs may still come.

use std::{fs, path::Path, time::Duration};

use anyhow::Context as _;
use jiff::{SignedDuration, Timestamp};

use super::{
    super::{BEFORE_SLOT, create_between_slots, sleep_until, whole_audit_log},
    contestant::{Contestant, Running},
    figures::{Evidence, Figures},
    progress::Progress,
    result::{Phase, Plan, Sample, Turn},
    samples::{GroupUsage, MachineTicks},
};
use crate::{
    audit::{self, Request},
    generator::Load,
    slots::Slots,
    target::Target,
    tracker::{JobNames, Tally},
};

/// The user of the kubeconfig that creates the `CronJobs`.
const ADMIN: &str = "admin";

/// The clocks of machine and audit log may differ by this much before a warning says so.
const CLOCK_DIFFERENCE_MAX: SignedDuration = SignedDuration::from_millis(50);

const SAMPLE_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// What has been noted of a turn so far.
struct Notes {
    first: Timestamp,
    pids: Vec<u32>,
    samples: Vec<Sample>,
    phases: Vec<Phase>,
}

/// What was used up to one moment.
struct Moment {
    taken: Timestamp,
    controller: GroupUsage,
    own: Duration,
    machine: MachineTicks,
}

/// Runs one turn. `scratch` is a folder for what is needed meanwhile.
pub(super) async fn run(
    plan: &Plan,
    contestant: &Contestant,
    round: u32,
    scratch: &Path,
    progress: &mut Progress,
) -> anyhow::Result<Turn> {
    progress.say("starting a control plane");
    let scratch = scratch.join(format!("{round}-{}", contestant.name()));
    fs::create_dir(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let mut target = Target::start()?;
    let load = plan.load();
    target.kubectl().apply(&load.namespaces_manifest())?;
    let running = contestant.start(&mut target, &scratch).await?;
    let before_creation = Timestamp::now();
    let first = create_between_slots(&load, &target).await?.start();
    let creation = (before_creation, Timestamp::now());
    let slots = Slots::starting_at(first, plan.warm_up_minutes, plan.minutes);
    let mut notes = Notes {
        first,
        pids: running.pids(&target)?,
        samples: Vec::new(),
        phases: Vec::new(),
    };

    notes.phase("before", first - BEFORE_SLOT, progress).await?;
    let begin_measured = slots.first_measured().start() - BEFORE_SLOT;
    notes.phase("warm-up", begin_measured, progress).await?;
    let begin = Moment::take(&running, &target)?;
    notes
        .phase("measured", slots.end().start() - BEFORE_SLOT, progress)
        .await?;
    let end = Moment::take(&running, &target)?;
    let measured = Slots::starting_at(slots.first_measured().start(), 0, plan.minutes);
    let user = running.user();
    settle(plan, &load, &measured, &target, &user, &mut notes, progress).await?;
    let last = Timestamp::now();
    let peak_memory_kib = GroupUsage::of(&notes.pids)?.resident_max_kib;
    running.stop(&mut target).await?;

    let requests = whole_audit_log(&target, &user).await?;
    let warnings = warnings(&target, &begin, &end, creation)?;
    let figures = Figures::of(&Evidence {
        load: &load,
        slots: &measured,
        requests: &requests,
        end: last,
        window: (begin.taken, end.taken),
        cpu: end.controller.cpu.saturating_sub(begin.controller.cpu),
        peak_memory_kib,
    });
    Ok(notes.into_turn(round, contestant.name(), figures, warnings))
}

impl Moment {
    fn take(running: &Running, target: &Target) -> anyhow::Result<Moment> {
        let controller = GroupUsage::of(&running.pids(target)?)?;
        let mut others = target.own_pids();
        others.push(std::process::id());
        Ok(Moment {
            taken: Timestamp::now(),
            own: controller.cpu + GroupUsage::of(&others)?.cpu,
            controller,
            machine: MachineTicks::read()?,
        })
    }
}

impl Notes {
    fn second(&self, instant: Timestamp) -> f64 {
        instant.duration_since(self.first).as_secs_f64()
    }

    fn sample(&mut self) -> anyhow::Result<()> {
        let usage = GroupUsage::of(&self.pids).context("the controller has ended")?;
        self.samples.push(usage.sample(self.first, Timestamp::now()));
        Ok(())
    }

    /// Waits until `end`, and samples meanwhile.
    async fn phase(&mut self, name: &str, end: Timestamp, progress: &mut Progress) -> anyhow::Result<()> {
        let begin = Timestamp::now();
        while Timestamp::now() < end {
            progress.say_until(name, end);
            self.sample()?;
            sleep_until(end.min(Timestamp::now() + SAMPLE_INTERVAL)).await;
        }
        self.end_phase(name, begin);
        Ok(())
    }

    /// A phase that took no time, as a warm-up of no minutes, is left out.
    fn end_phase(&mut self, name: &str, begin: Timestamp) {
        if Timestamp::now().duration_since(begin) < SAMPLE_INTERVAL / 2 {
            return;
        }
        self.phases.push(Phase {
            name: name.to_owned(),
            begin_second: self.second(begin),
            end_second: self.second(Timestamp::now()),
        });
    }

    fn into_turn(self, round: u32, controller: &str, figures: Figures, warnings: Vec<String>) -> Turn {
        Turn {
            round,
            controller: controller.to_owned(),
            started: self.first,
            expected: figures.expected,
            figures: figures.columns,
            writes_per_run: figures.writes_per_run,
            creates_by_second: figures.creates_by_second,
            lateness_curve: figures.lateness_curve,
            samples: self.samples,
            phases: self.phases,
            warnings,
        }
    }
}

/// Waits until every run has come, or for as long as late runs may come.
async fn settle(
    plan: &Plan,
    load: &Load,
    measured: &Slots,
    target: &Target,
    user: &str,
    notes: &mut Notes,
    progress: &mut Progress,
) -> anyhow::Result<()> {
    let begin = Timestamp::now();
    let deadline = measured.end().start() + SignedDuration::from_secs(i64::from(plan.settle_seconds));
    let cron_jobs = load.cron_jobs();
    while Timestamp::now() < deadline {
        progress.say_until("late runs", deadline);
        notes.sample()?;
        let requests = audit::read(target.audit_log(), user)?;
        if Tally::of(&cron_jobs, measured, &requests, &JobNames::new())
            .missed
            .is_empty()
        {
            break;
        }
        tokio::time::sleep(SAMPLE_INTERVAL.unsigned_abs()).await;
    }
    notes.end_phase("late runs", begin);
    Ok(())
}

/// What makes the figures of the time between two moments doubtful.
fn warnings(
    target: &Target,
    begin: &Moment,
    end: &Moment,
    creation: (Timestamp, Timestamp),
) -> anyhow::Result<Vec<String>> {
    let own = end.own.saturating_sub(begin.own);
    let created = audit::read(target.audit_log(), ADMIN)?;
    let all = [
        end.machine.busy_warning(begin.machine, own),
        clock_warning(&created, creation),
        dropped_warning(target.n_dropped_audit_lines()?),
    ];
    Ok(all.into_iter().flatten().collect())
}

/// Creates by this process must be in the audit log at the time at which it made them.
fn clock_warning(requests: &[Request], creation: (Timestamp, Timestamp)) -> Option<String> {
    let creates = requests
        .iter()
        .filter(|one| one.verb == "create" && one.resource == "cronjobs");
    let difference = |one: &Request| {
        let early = creation.0.duration_since(one.received);
        let late = one.received.duration_since(creation.1);
        early.max(late)
    };
    let largest = creates.map(difference).max()?;
    (largest > CLOCK_DIFFERENCE_MAX).then(|| {
        format!(
            "the clocks of this machine and of the audit log differ by {} ms or more",
            largest.as_millis()
        )
    })
}

fn dropped_warning(n_dropped: f64) -> Option<String> {
    (n_dropped > 0.0)
        .then(|| format!("the API server dropped {n_dropped} lines of its audit log: missed runs may not be"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn create(milliseconds: i64) -> Request {
        let received = Timestamp::from_millisecond(milliseconds).unwrap();
        Request {
            verb: "create".into(),
            resource: "cronjobs".into(),
            namespace: "n".into(),
            name: "c".into(),
            code: 201,
            received,
            answered: received,
        }
    }

    #[test]
    fn clocks_agree_where_creates_are_logged_when_they_were_made() {
        let at = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap();
        let warning = |requests: &[Request]| clock_warning(requests, (at(10_000), at(12_000)));
        assert_eq!(warning(&[create(10_000), create(12_000)]), None);
        assert_eq!(warning(&[create(9_960), create(12_040)]), None);
        assert!(warning(&[create(11_000), create(12_700)]).unwrap().contains("700 ms"));
        assert!(warning(&[create(9_500)]).unwrap().contains("500 ms"));
        assert_eq!(warning(&[]), None);
    }

    #[test]
    fn dropped_lines_are_a_warning() {
        assert_eq!(dropped_warning(0.0), None);
        assert!(dropped_warning(3.0).unwrap().contains("dropped 3 lines"));
    }
}
