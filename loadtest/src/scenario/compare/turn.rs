//! A turn: one controller on its own control plane, through the warm-up, the measured minutes and the time in which
//! late runs may still start.

use std::{collections::VecDeque, fs, path::Path, time::Duration};

use anyhow::{Context as _, ensure};
use jiff::{SignedDuration, Timestamp};

use super::{
    super::{BEFORE_SLOT, sleep_until, wait_for_room, whole_audit_log},
    contestant::Contestant,
    disturbed::DisturbedNamespaces,
    doubts,
    figures::{Evidence, Figures},
    progress::Progress,
    result::{Mark, Phase, Plan, Sample, Turn},
    running::Running,
    samples::{GroupUsage, MachineTicks},
    scenario::{self, Scenario, Step},
};
use crate::{
    clean,
    generator::{Load, SyntheticCronJob},
    slots::{Due, Slot, Slots},
    target::{Target, TargetOptions},
    tracker::{JobNames, Tally},
};

const SAMPLE_INTERVAL: SignedDuration = SignedDuration::from_secs(1);

/// The records of a running turn.
struct Notes<'a> {
    first: Timestamp,
    running: Running,
    disturbed: DisturbedNamespaces,
    steps: VecDeque<(Timestamp, Step)>,
    samples: Vec<Sample>,
    peak_memory_kib: u64,
    phases: Vec<Phase>,
    marks: Vec<Mark>,
    progress: &'a mut Progress,
}

/// The usage up to one moment.
pub(super) struct Moment {
    taken: Timestamp,
    controller: GroupUsage,
    pub(super) own: Duration,
    pub(super) machine: MachineTicks,
}

/// Runs one turn. `scratch` is a temporary folder.
pub(super) async fn run(
    plan: &Plan,
    options: &TargetOptions,
    contestant: &Contestant,
    round: u32,
    scratch: &Path,
    progress: &mut Progress,
) -> anyhow::Result<Turn> {
    progress.show("starting an API server");
    let scratch = scratch.join(format!("{round}-{}", contestant.name()));
    fs::create_dir(&scratch).with_context(|| format!("cannot make {}", scratch.display()))?;
    let mut target = Target::open(options, &scratch).await?;
    let run_id = format!("load-{}-{round}-{}", std::process::id(), contestant.name());
    let turn = run_on(plan, &mut target, contestant, round, &run_id, &scratch, progress).await;
    if target.is_foreign() {
        clean::run(target.kubeconfig(), Some(&run_id)).await?;
    }
    turn
}

async fn run_on(
    plan: &Plan,
    target: &mut Target,
    contestant: &Contestant,
    round: u32,
    run_id: &str,
    scratch: &Path,
    progress: &mut Progress,
) -> anyhow::Result<Turn> {
    // The first instant is not known yet, but namespaces do not depend on it.
    let namespaces = Load::minutely(run_id.to_owned(), plan.cronjobs, plan.namespaces, plan.job_seconds);
    target.kubectl().apply(&namespaces.namespaces_manifest())?;
    let n_disturbed = plan.scenario.n_disturbed(plan.failing_namespaces);
    let disturbed: Vec<String> = (0..n_disturbed).map(|number| namespaces.namespace(number)).collect();
    let probe = doubts::probe_clock(target)?;
    let running = Running::start(contestant, target, scratch).await?;
    progress.show("creating CronJobs");
    let first = if plan.scenario == Scenario::AtRest {
        Slot::at_or_after(Timestamp::now())
    } else {
        wait_for_room(plan.cronjobs).await
    };
    let load = plan.load(run_id.to_owned(), first);
    load.create(target.kubeconfig()).await?;
    let cron_jobs = scenario::evaluated(load.cron_jobs(), &disturbed);
    let slots = slots(plan, &cron_jobs)?;
    let measured = Slots::starting_at(slots.first_measured().start(), 0, plan.minutes);
    let disturbed = DisturbedNamespaces::new(plan.scenario, disturbed, load.cron_jobs());
    let mut notes = Notes::begin(plan, &slots, running, disturbed, progress);
    let (begin, end) = notes.measure(&slots, &measured, target).await?;
    notes.settle(plan, &cron_jobs, &measured, target).await?;
    let last = Timestamp::now();
    let user = notes.running.user();
    let (finished, running) = notes.end(target)?;
    running.stop(target).await?;

    let requests = whole_audit_log(target, &user).await?;
    let evidence = Evidence {
        cron_jobs: &cron_jobs,
        slots: &measured,
        requests: &requests,
        has_audit_log: target.has_audit_log(),
        end: last,
        window: (begin.taken, end.taken),
        cpu: end.controller.cpu.saturating_sub(begin.controller.cpu),
        peak_memory_kib: finished.peak_memory_kib,
    };
    let mut figures = Figures::of(&evidence);
    let before = after_first_minute(&slots);
    figures.columns.extend(finished.disturbed.columns(&evidence, &before));
    let warnings = doubts::warnings(plan.scenario, target, &begin, &end, probe)?;
    Ok(finished.into_turn(round, contestant.name(), figures, warnings))
}

/// The slots of a turn, from the first slot that all CronJobs have in common.
fn slots(plan: &Plan, cron_jobs: &[SyntheticCronJob]) -> anyhow::Result<Slots> {
    let first = Timestamp::now() + BEFORE_SLOT;
    let slots = Slots::starting_at(first, plan.warm_up_minutes, plan.minutes);
    for cron_job in cron_jobs {
        if let Due::Once(only) = cron_job.due {
            ensure!(
                only == slots.first(),
                "the CronJobs were not all created before their instant"
            );
        }
    }
    Ok(slots)
}

/// The minutes of the warm-up without the first, in which connections are still being opened.
fn after_first_minute(slots: &Slots) -> Slots {
    let n_before = slots.all().filter(|slot| !slots.is_measured(*slot)).count();
    let second = slots.first().start() + SignedDuration::from_mins(1);
    Slots::starting_at(second, 0, u32::try_from(n_before.saturating_sub(1)).unwrap_or(u32::MAX))
}

impl Moment {
    fn take(running: &Running, target: &Target) -> anyhow::Result<Moment> {
        let controller = running.usage(target)?;
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

/// The records of a turn after the controller has been stopped.
struct Finished {
    first: Timestamp,
    disturbed: DisturbedNamespaces,
    samples: Vec<Sample>,
    peak_memory_kib: u64,
    phases: Vec<Phase>,
    marks: Vec<Mark>,
}

impl<'a> Notes<'a> {
    fn begin(
        plan: &Plan,
        slots: &Slots,
        running: Running,
        disturbed: DisturbedNamespaces,
        progress: &'a mut Progress,
    ) -> Notes<'a> {
        let at = |second: i32| slots.first_measured().start() + SignedDuration::from_secs(i64::from(second));
        let steps = plan.scenario.steps(plan.minutes).into_iter();
        Notes {
            first: slots.first().start(),
            running,
            disturbed,
            steps: steps.map(|(second, step)| (at(second), step)).collect(),
            samples: Vec::new(),
            peak_memory_kib: 0,
            phases: Vec::new(),
            marks: Vec::new(),
            progress,
        }
    }

    fn second(&self, instant: Timestamp) -> f64 {
        instant.duration_since(self.first).as_secs_f64()
    }

    fn sample(&mut self, target: &Target) -> anyhow::Result<()> {
        let usage = self.running.usage(target)?;
        self.peak_memory_kib = self.peak_memory_kib.max(usage.resident_kib);
        self.samples.push(usage.sample(self.first, Timestamp::now()));
        Ok(())
    }

    /// Waits for the warm-up and the measured minutes. Returns the usage at the begin and the end of the latter.
    async fn measure(
        &mut self,
        slots: &Slots,
        measured: &Slots,
        target: &mut Target,
    ) -> anyhow::Result<(Moment, Moment)> {
        let before = |slot: Slot| slot.start() - BEFORE_SLOT;
        self.phase("before", before(slots.first()), target).await?;
        self.phase("warm-up", before(measured.first()), target).await?;
        let begin = Moment::take(&self.running, target)?;
        self.phase("measured", before(measured.end()), target).await?;
        Ok((begin, Moment::take(&self.running, target)?))
    }

    /// Waits until `end`, executes due steps, and takes samples.
    async fn phase(&mut self, name: &str, end: Timestamp, target: &mut Target) -> anyhow::Result<()> {
        let begin = Timestamp::now();
        while Timestamp::now() < end {
            self.progress.show_until(name, end);
            self.sample(target)?;
            while let Some((_, step)) = self.steps.pop_front_if(|(at, _)| *at <= Timestamp::now()) {
                self.marks.push(Mark {
                    name: step.title().to_owned(),
                    second: self.second(Timestamp::now()),
                });
                self.running.step(step, &mut self.disturbed, target).await?;
            }
            let next_step = self.steps.front().map_or(end, |step| step.0);
            sleep_until(end.min(next_step).min(Timestamp::now() + SAMPLE_INTERVAL)).await;
        }
        self.end_phase(name, begin);
        Ok(())
    }

    /// Records the end of a phase. A phase without duration, such as a warm-up of zero minutes, is skipped.
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

    /// Waits until every run has started, including those of refused CronJobs, or until the time for late runs is over.
    async fn settle(
        &mut self,
        plan: &Plan,
        cron_jobs: &[SyntheticCronJob],
        measured: &Slots,
        target: &Target,
    ) -> anyhow::Result<()> {
        let begin = Timestamp::now();
        let deadline = measured.end().start() + SignedDuration::from_secs(i64::from(plan.settle_seconds));
        let user = self.running.user();
        while Timestamp::now() < deadline {
            self.progress.show_until("late runs", deadline);
            self.sample(target)?;
            let requests = target.requests(&user)?;
            let tally = Tally::of(cron_jobs, measured, &requests, &JobNames::new());
            if tally.missed.is_empty() && self.disturbed.have_recovered(&requests) {
                break;
            }
            tokio::time::sleep(SAMPLE_INTERVAL.unsigned_abs()).await;
        }
        self.end_phase("late runs", begin);
        Ok(())
    }

    /// Ends the records and returns the controller, which still runs.
    fn end(self, target: &Target) -> anyhow::Result<(Finished, Running)> {
        let of_the_last = self.running.usage(target)?.resident_max_kib;
        let finished = Finished {
            first: self.first,
            disturbed: self.disturbed,
            samples: self.samples,
            peak_memory_kib: self.peak_memory_kib.max(of_the_last),
            phases: self.phases,
            marks: self.marks,
        };
        Ok((finished, self.running))
    }
}

impl Finished {
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
            marks: self.marks,
            warnings,
        }
    }
}
