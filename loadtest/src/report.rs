//! The figures of one run for human readers, and the verdict.

use std::{
    fmt::{self, Display, Formatter},
    time::Duration,
};

use testbed::Component;

use crate::{
    audit::RequestCounts,
    measure::ProcessUsage,
    own_figures::OwnFigures,
    tracker::{Burst, Tally},
};

/// The maximum number of missed and doubled Jobs to list.
const N_NAMES_MAX: usize = 5;

/// The result of a run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) machine: String,
    pub(crate) n_cron_jobs: u32,
    /// All slots, including those of the warm-up.
    pub(crate) tally: Tally,
    /// Requests in the measured period.
    pub(crate) counts: RequestCounts,
    /// The most Jobs created within one second of the clock, in the measured period.
    pub(crate) creates_per_second_max: usize,
    /// Resource usage in the measured period.
    pub(crate) controller: ProcessUsage,
    pub(crate) servers: Vec<(Component, ProcessUsage)>,
    pub(crate) own: OwnFigures,
}

impl Report {
    /// The verdict: no instant missed, none doubled.
    pub(crate) fn is_clean(&self) -> bool {
        self.tally.is_clean()
    }

    /// The number of runs started in the measured period. Request counts and CPU time refer to these. A controller that
    /// is more than a minute late starts some of them for earlier slots.
    fn n_runs(&self) -> u32 {
        let n_created = self.counts.n_job_creates();
        u32::try_from(n_created).unwrap_or(u32::MAX)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts of one run are small")]
    fn per_run(&self, count: u64) -> f64 {
        count as f64 / f64::from(self.n_runs().max(1))
    }

    fn cpu_per_run_ms(&self, cpu: Duration) -> f64 {
        (cpu / self.n_runs().max(1)).as_secs_f64() * 1e3
    }

    fn write_jobs(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tally = &self.tally;
        writeln!(
            f,
            "Jobs       expected {}, created {}",
            tally.n_expected, tally.n_created
        )?;
        writeln!(f, "  missed   {}{}", tally.missed.len(), names(&tally.missed))?;
        writeln!(f, "  doubled  {}{}", tally.doubled.len(), names(&tally.doubled))?;
        if tally.n_outside > 0 {
            writeln!(f, "  {} more for slots before or after, not counted", tally.n_outside)?;
        }
        Ok(())
    }

    fn write_lateness(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "Lateness from outside, slot to arrival at the API server, ms")?;
        writeln!(
            f,
            "  {:<22} {:>6} {:>9} {:>9} {:>9} {:>9} {:>9}",
            "slot", "Jobs", "first", "p50", "p90", "p99", "last"
        )?;
        for (slot, burst) in &self.tally.bursts {
            write_burst(f, &slot.start().to_string(), burst)?;
        }
        write_burst(f, "all", &self.tally.measured)
    }

    fn write_requests(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let counts = &self.counts;
        let peak = self.creates_per_second_max;
        writeln!(f, "Most Jobs created within one second: {peak}")?;
        writeln!(f, "Requests per run, of {} runs in the measured time", self.n_runs())?;
        for ((verb, resource), count) in &counts.accepted {
            writeln!(
                f,
                "  {:<8} {:<22} {:>8.3}   ({count})",
                verb,
                resource,
                self.per_run(*count)
            )?;
        }
        for ((verb, resource, code), count) in &counts.refused {
            writeln!(
                f,
                "  {:<8} {:<22} {:>8.3}   ({count}, answered {code})",
                verb,
                resource,
                self.per_run(*count)
            )?;
        }
        writeln!(
            f,
            "  writes, Events apart            {:>8.3}",
            self.per_run(counts.n_writes)
        )?;
        writeln!(
            f,
            "  writes, Events included         {:>8.3}",
            self.per_run(counts.n_writes + counts.n_event_writes)
        )
    }

    fn write_usage(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let own = &self.controller;
        writeln!(f, "CPU per run, ms")?;
        writeln!(
            f,
            "  {:<30} {:>8.2}   ({:.2} s)",
            "controller",
            self.cpu_per_run_ms(own.cpu),
            own.cpu.as_secs_f64()
        )?;
        for (component, usage) in &self.servers {
            let cpu = usage.cpu;
            writeln!(
                f,
                "  {component:<30} {:>8.2}   ({:.2} s)",
                self.cpu_per_run_ms(cpu),
                cpu.as_secs_f64()
            )?;
        }
        writeln!(
            f,
            "Memory of the controller: {} KiB resident, {} KiB at most",
            own.resident_kib, own.resident_max_kib
        )
    }

    fn write_own_figures(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "The controller's own figures")?;
        match &self.own.lateness {
            Some(lateness) => {
                write!(f, "  lateness, {} observations, between:", lateness.n_observations())?;
                for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
                    if let Some((lower, upper)) = lateness.quantile_bounds(share) {
                        write!(f, " {name} {} and {} ms,", lower * 1e3, upper * 1e3)?;
                    }
                }
                writeln!(f)?;
            }
            None => writeln!(f, "  lateness: not reported")?,
        }
        match &self.own.balance {
            Some(balance) => {
                let verdict = if balance.agrees() { "agree" } else { "DISAGREE" };
                write!(f, "  due instants {}, open {}, outcomes", balance.n_due, balance.n_open)?;
                for (outcome, count) in &balance.outcomes {
                    write!(f, " {outcome} {count}")?;
                }
                writeln!(f, ": they {verdict}")
            }
            None => writeln!(f, "  due instants and outcomes: not reported"),
        }
    }
}

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} CronJobs, all due at every whole minute", self.n_cron_jobs)?;
        writeln!(f, "{}\n", self.machine)?;
        self.write_jobs(f)?;
        self.write_lateness(f)?;
        self.write_requests(f)?;
        self.write_usage(f)?;
        self.write_own_figures(f)?;
        write!(f, "\nVerdict: {}", if self.is_clean() { "clean" } else { "NOT CLEAN" })
    }
}

fn write_burst(f: &mut Formatter<'_>, title: &str, burst: &Burst) -> fmt::Result {
    write!(f, "  {title:<22} {:>6}", burst.n_jobs())?;
    for share in [0.0, 0.5, 0.9, 0.99, 1.0] {
        match burst.quantile_us(share) {
            Some(microseconds) => {
                #[expect(clippy::cast_precision_loss, reason = "minutes in microseconds are far below 2^52")]
                let milliseconds = microseconds as f64 / 1e3;
                write!(f, " {milliseconds:>9.2}")?;
            }
            None => write!(f, " {:>9}", "-")?,
        }
    }
    writeln!(f)
}

fn names(all: &[String]) -> String {
    match all {
        [] => String::new(),
        few if few.len() <= N_NAMES_MAX => format!("  ({})", few.join(", ")),
        many => format!(
            "  ({}, and {} more)",
            many[..N_NAMES_MAX].join(", "),
            many.len() - N_NAMES_MAX
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(tally: Tally) -> Report {
        Report {
            machine: "2 cores".into(),
            n_cron_jobs: 1,
            tally,
            counts: RequestCounts::default(),
            creates_per_second_max: 0,
            controller: ProcessUsage::default(),
            servers: Vec::new(),
            own: OwnFigures {
                lateness: None,
                balance: None,
            },
        }
    }

    #[test]
    fn verdict_is_clean_without_missed_and_doubled_runs() {
        let check = |tally: Tally, is_clean: bool| {
            let report = report(tally);
            assert_eq!(report.is_clean(), is_clean, "{report}");
            assert!(report.to_string().ends_with(if is_clean {
                "Verdict: clean"
            } else {
                "Verdict: NOT CLEAN"
            }));
        };
        check(Tally::default(), true);
        check(
            Tally {
                n_outside: 3,
                ..Tally::default()
            },
            true,
        );
        check(
            Tally {
                missed: vec!["a/b-1".into()],
                ..Tally::default()
            },
            false,
        );
        check(
            Tally {
                doubled: vec!["a/b-1".into()],
                ..Tally::default()
            },
            false,
        );
    }

    #[test]
    fn at_most_five_names_are_printed() {
        let all: Vec<String> = (0..7).map(|number| number.to_string()).collect();
        assert_eq!(names(&all), "  (0, 1, 2, 3, 4, and 2 more)");
        assert_eq!(names(&all[..2]), "  (0, 1)");
        assert_eq!(names(&[]), "");
    }
}
