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

/// The user of the kubeconfig that probes the clock.
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
    let probe = probe_clock(&target)?;
    let running = contestant.start(&mut target, &scratch).await?;
    let first = create_between_slots(&load, &target).await?.start();
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
    let warnings = warnings(&target, &begin, &end, probe)?;
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
    probe: (Timestamp, Timestamp),
) -> anyhow::Result<Vec<String>> {
    let own = end.own.saturating_sub(begin.own);
    let by_admin = audit::read(target.audit_log(), ADMIN)?;
    let all = [
        end.machine.busy_warning(begin.machine, own),
        clock_warning(&by_admin, probe),
        dropped_warning(target.n_dropped_audit_lines()?),
    ];
    Ok(all.into_iter().flatten().collect())
}

/// Sends a request that nobody else sends as this user, and when.
fn probe_clock(target: &Target) -> anyhow::Result<(Timestamp, Timestamp)> {
    let begin = Timestamp::now();
    target.kubectl().run(&["get", "leases", "--namespace=kube-system"])?;
    Ok((begin, Timestamp::now()))
}

/// The probe must be in the audit log at the time at which it was sent.
fn clock_warning(requests: &[Request], probe: (Timestamp, Timestamp)) -> Option<String> {
    let probes = requests
        .iter()
        .filter(|one| one.verb == "list" && one.resource == "leases");
    let difference = |one: &Request| {
        let early = probe.0.duration_since(one.received);
        let late = one.received.duration_since(probe.1);
        early.max(late)
    };
    let Some(smallest) = probes.map(difference).min() else {
        return Some("the clocks of this machine and of the audit log could not be compared".to_owned());
    };
    (smallest > CLOCK_DIFFERENCE_MAX).then(|| {
        format!(
            "the clocks of this machine and of the audit log differ by {} ms or more",
            smallest.as_millis()
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

    fn list(milliseconds: i64) -> Request {
        let received = Timestamp::from_millisecond(milliseconds).unwrap();
        Request {
            verb: "list".into(),
            resource: "leases".into(),
            namespace: "kube-system".into(),
            name: String::new(),
            code: 200,
            received,
            answered: received,
        }
    }

    #[test]
    fn clocks_agree_where_the_probe_is_logged_when_it_was_sent() {
        let at = |milliseconds| Timestamp::from_millisecond(milliseconds).unwrap();
        let check = |received: i64, expected: Option<&str>| {
            let warning = clock_warning(&[list(received)], (at(10_000), at(10_100)));
            match (&warning, expected) {
                (Some(warning), Some(expected)) => assert!(warning.contains(expected), "{warning}"),
                _ => assert_eq!(warning.as_deref(), expected, "{received}"),
            }
        };
        check(10_050, None);
        check(9_960, None);
        check(10_140, None);
        check(10_800, Some("700 ms"));
        check(9_500, Some("500 ms"));
        assert!(
            clock_warning(&[], (at(10_000), at(10_100)))
                .unwrap()
                .contains("not be compared")
        );
    }

    #[test]
    fn dropped_lines_are_a_warning() {
        assert_eq!(dropped_warning(0.0), None);
        assert!(dropped_warning(3.0).unwrap().contains("dropped 3 lines"));
    }
}
