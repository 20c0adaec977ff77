//! The figures of a run beside the built-in controller, and the verdict.

use std::fmt::{self, Display, Formatter};

use jiff::Timestamp;

use super::silenced::Spending;
use crate::{slots::Slot, tracker::Tally};

/// The last Job of cronwheel's minutes beside the built-in controller comes at most this much later than alone.
const LAST_JOB_RATIO_MAX: f64 = 1.3;

/// How long the built-in controller may take to stand in, in seconds.
const STAND_IN_SECONDS_MAX: f64 = 75.0;

/// The figures of some minutes.
#[derive(Clone, Debug, Default)]
pub(super) struct Period {
    /// The slots of the CronJobs in labelled namespaces.
    pub(super) managed: Tally,
    /// Missed slots of the other CronJobs; `None` if the built-in controller did not run.
    pub(super) n_unmanaged_missed: Option<usize>,
    /// Writes of the built-in controller that were stored in labelled namespaces.
    pub(super) n_stored_by_built_in: usize,
    /// Writes of the built-in controller that were refused.
    pub(super) n_refused_to_built_in: usize,
    /// Requests of cronwheel that were refused, for which its account lacks a right.
    pub(super) n_refused: usize,
    /// Writes of cronwheel that were stored in namespaces of others: without the label, or of another installation.
    pub(super) n_stored_outside: usize,
    /// Status writes of cronwheel that met a conflict.
    pub(super) n_conflicts: usize,
    /// Deletes of cronwheel that met a Job that was gone.
    pub(super) n_deletes_missing: usize,
    /// Slots without a Job that a later slot superseded in an outage.
    pub(super) n_superseded: usize,
}

/// The figures of one installation.
#[derive(Clone, Debug, Default)]
pub(super) struct Periods {
    /// Before the built-in controller was started.
    pub(super) alone: Period,
    /// While both run.
    pub(super) beside: Period,
    /// During outages and moves.
    pub(super) after: Period,
}

/// One time without cronwheel.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    pub(super) killed: Timestamp,
    /// The first Job by the built-in controller.
    pub(super) stood_in: Timestamp,
    /// When cronwheel was ready again.
    pub(super) back: Timestamp,
    /// Each conflict of cronwheel's status writes later than ten seconds after that, with its cause.
    pub(super) late_conflicts: Vec<String>,
}

impl Outage {
    /// Whether the slot, of a full minute, had passed when the built-in controller started the next one of its CronJob. That
    /// supersedes it, as after a restart.
    fn supersedes(&self, slot: Slot) -> bool {
        let next = slot.before(-1).start();
        self.killed < next && next <= self.stood_in
    }

    fn stand_in_seconds(&self) -> f64 {
        self.stood_in.duration_since(self.killed).as_secs_f64()
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub(super) struct BesideReport {
    pub(super) machine: String,
    pub(super) n_managed: u32,
    pub(super) n_unmanaged: u32,
    pub(super) first: Periods,
    pub(super) second: Option<Periods>,
    /// What the built-in controller did while both run.
    pub(super) spending: Spending,
    pub(super) outages: Vec<Outage>,
    /// How often a namespace moved from one controller to the other.
    pub(super) moves: u32,
}

impl Period {
    /// Counts the slots that were superseded in an outage apart from the missed ones.
    pub(super) fn with_outages(mut self, outages: &[Outage]) -> Period {
        let n_without = self.managed.missed.len();
        let is_superseded =
            |name: &String| Slot::of_job(name).is_some_and(|slot| outages.iter().any(|outage| outage.supersedes(slot)));
        self.managed.missed.retain(|name| !is_superseded(name));
        self.n_superseded = n_without - self.managed.missed.len();
        self
    }
}

impl Periods {
    pub(super) fn with_outages(self, outages: &[Outage]) -> Periods {
        Periods {
            after: self.after.with_outages(outages),
            ..self
        }
    }

    /// The lateness of the last Job beside the built-in controller, as a multiple of that alone.
    fn ratio(&self) -> f64 {
        let last = |period: &Period| period.managed.measured.quantile_us(1.0).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "microseconds of a minute")]
        let ratio = last(&self.beside) as f64 / last(&self.alone).max(1) as f64;
        ratio
    }

    /// Whether no run was missed or doubled, no request was refused, and nobody stored anything in the namespaces of another
    /// controller.
    fn is_clean(&self) -> bool {
        let periods = [&self.alone, &self.beside, &self.after];
        let are_quiet = periods[..2]
            .iter()
            .all(|period| period.n_stored_by_built_in + period.n_conflicts + period.n_deletes_missing == 0);
        let are_own = |period: &&Period| period.managed.is_clean() && period.n_stored_outside + period.n_refused == 0;
        are_quiet && periods.iter().all(are_own) && self.ratio() <= LAST_JOB_RATIO_MAX
    }

    fn write(&self, f: &mut Formatter<'_>, prefix: &str) -> fmt::Result {
        self.alone.write(f, &format!("{prefix}alone"))?;
        self.beside.write(f, &format!("{prefix}beside"))?;
        if self.after.managed.n_expected > 0 {
            self.after.write(f, &format!("{prefix}outages and moves"))?;
        }
        Ok(())
    }
}

impl BesideReport {
    fn installations(&self) -> impl Iterator<Item = &Periods> {
        std::iter::once(&self.first).chain(&self.second)
    }

    pub(super) fn is_clean(&self) -> bool {
        self.installations().all(Periods::is_clean)
            && self
                .outages
                .iter()
                .all(|outage| outage.stand_in_seconds() <= STAND_IN_SECONDS_MAX && outage.late_conflicts.is_empty())
    }
}

impl Display for BesideReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} CronJobs in labelled namespaces{}, {} in others, all due at every full minute; {}\n",
            self.n_managed,
            self.second.as_ref().map_or("", |_| " of each of two installations"),
            self.n_unmanaged,
            self.machine
        )?;
        writeln!(
            f,
            "| | due | superseded | missed | doubled | last Job | stored by the built-in controller | refused to it | conflicts | \
             deletes without a Job | stored by cronwheel elsewhere | refused to cronwheel | missed elsewhere |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|---|---|---|---|---|")?;
        self.first.write(f, "")?;
        if let Some(second) = &self.second {
            second.write(f, "second installation, ")?;
        }
        for periods in self.installations() {
            writeln!(
                f,
                "\nlast Job, beside as a multiple of alone: {:.2} (at most {LAST_JOB_RATIO_MAX})",
                periods.ratio()
            )?;
        }
        write!(f, "{}", self.spending)?;
        for outage in &self.outages {
            writeln!(
                f,
                "killed at {}: first Job by the built-in controller after {:.1} s (at most {STAND_IN_SECONDS_MAX}); back \
                 at {}, {} conflicts later than ten seconds after that",
                outage.killed,
                outage.stand_in_seconds(),
                outage.back,
                outage.late_conflicts.len()
            )?;
            for conflict in &outage.late_conflicts {
                writeln!(f, "- {conflict}")?;
            }
        }
        if self.moves > 0 {
            writeln!(
                f,
                "a namespace moved {} times while controllers were killed",
                self.moves
            )?;
        }
        for periods in self.installations() {
            let missed = &periods.after.managed.missed;
            if !missed.is_empty() {
                writeln!(f, "missed: {}", missed.join(", "))?;
            }
        }
        Ok(())
    }
}

impl Period {
    fn write(&self, f: &mut Formatter<'_>, name: &str) -> fmt::Result {
        let tally = &self.managed;
        #[expect(clippy::cast_precision_loss, reason = "microseconds of a minute")]
        let last = tally.measured.quantile_us(1.0).unwrap_or_default() as f64 / 1e6;
        let missed_elsewhere = self
            .n_unmanaged_missed
            .map_or_else(|| "-".to_owned(), |n| n.to_string());
        writeln!(
            f,
            "| {name} | {} | {} | {} | {} | {last:.2} s | {} | {} | {} | {} | {} | {} | {missed_elsewhere} |",
            tally.n_expected,
            self.n_superseded,
            tally.missed.len(),
            tally.doubled.len(),
            self.n_stored_by_built_in,
            self.n_refused_to_built_in,
            self.n_conflicts,
            self.n_deletes_missing,
            self.n_stored_outside,
            self.n_refused
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn report() -> BesideReport {
        BesideReport {
            machine: "2 cores".to_owned(),
            n_managed: 500,
            n_unmanaged: 100,
            first: Periods::default(),
            second: None,
            spending: Spending::default(),
            outages: vec![Outage {
                killed: at("2026-03-01T10:00:00Z"),
                stood_in: at("2026-03-01T10:00:59Z"),
                back: at("2026-03-01T10:02:20Z"),
                late_conflicts: Vec::new(),
            }],
            moves: 0,
        }
    }

    #[test]
    fn a_write_in_the_namespaces_of_the_other_controller_fails_the_run() {
        assert!(report().is_clean());
        let mut stored = report();
        stored.first.beside.n_stored_by_built_in = 1;
        assert!(!stored.is_clean());
        let mut outside = report();
        outside.first.after.n_stored_outside = 1;
        assert!(!outside.is_clean());
        let mut refused = report();
        refused.first.beside.n_refused = 1;
        assert!(!refused.is_clean());
        let mut of_second = report();
        of_second.second = Some(outside.first);
        assert!(!of_second.is_clean());
        let mut missed = report();
        missed.first.after.managed.missed.push("a/b-1".to_owned());
        assert!(!missed.is_clean());
        assert!(missed.to_string().contains("\nmissed: a/b-1\n"));
    }

    #[test]
    fn a_slot_before_the_one_of_the_stand_in_is_superseded() {
        let outage = |stood_in: &str| Outage {
            stood_in: at(stood_in),
            ..report().outages[0].clone()
        };
        let period = |outage: Outage| {
            let mut period = Period::default();
            let slots =
                ["09:59", "10:00", "10:01"].map(|time| Slot::at_or_after(at(&format!("2026-03-01T{time}:00Z"))));
            period.managed.missed = slots.map(|slot| slot.job_name("a/b")).to_vec();
            let period = period.with_outages(&[outage]);
            (period.n_superseded, period.managed.missed.len())
        };
        // Killed at 10:00:00: the slot of 10:00 is superseded once that of 10:01 was due.
        assert_eq!(period(outage("2026-03-01T10:00:59Z")), (0, 3));
        assert_eq!(period(outage("2026-03-01T10:01:00.2Z")), (1, 2));
    }

    #[test]
    fn a_late_conflict_fails_the_run_and_is_explained() {
        let mut late = report();
        late.outages[0].late_conflicts = vec!["shop/report at 10:02:40".to_owned()];
        assert!(!late.is_clean());
        assert!(
            late.to_string()
                .contains("1 conflicts later than ten seconds after that\n- shop/report at 10:02:40\n")
        );
    }

    #[test]
    fn a_stand_in_after_more_than_75_seconds_fails_the_run() {
        let mut late = report();
        late.outages[0].stood_in = at("2026-03-01T10:01:16Z");
        assert!(!late.is_clean());
        assert!(
            late.to_string()
                .contains("first Job by the built-in controller after 76.0 s")
        );
    }
}
