//! The figures at one instant, as lines of the output.

use jiff::{SignedDuration, Timestamp};

use super::{audit::RunCounts, faults::FaultCounts, figures::Figures, lateness::Lateness};
use crate::{explain::calendar::duration_text, observe::words::thousands};

/// The state at one instant.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    pub(super) now: Timestamp,
    pub(super) begun: Timestamp,
    pub(super) figures: Figures,
    /// The faults that were injected, with `--faults`.
    pub(super) faults: Option<FaultCounts>,
    /// Number of CronJobs that are still to be created.
    pub(super) n_to_fill: u32,
}

impl Snapshot {
    /// Returns the line of a minute: its slots and starts, and what was counted since the start.
    pub(super) fn minute_line(&self, lateness: Option<Lateness>) -> String {
        let figures = &self.figures;
        let size = |number: usize| thousands(u64::try_from(number).unwrap_or(u64::MAX));
        let mut parts = vec![
            format!("{} due", size(figures.n_due)),
            format!("{} started", size(figures.n_started)),
        ];
        parts.extend(lateness.map(lateness_text));
        parts.push(format!("{} running", size(figures.n_running)));
        let RunCounts { missed, doubled, .. } = figures.runs;
        let mut so_far = vec![
            format!("{} missed", thousands(missed)),
            format!("{} doubled", thousands(doubled)),
        ];
        so_far.extend(self.faults.map(FaultCounts::total_text));
        let time = self.now.strftime("%H:%M:%S UTC");
        format!("{time}: {}; so far {}", parts.join(", "), so_far.join(", "))
    }

    /// Whether the page shows the same at both instants.
    pub(super) fn shows_the_same(&self, other: &Snapshot) -> bool {
        let shown = |snapshot: &Snapshot| (snapshot.figures.runs, snapshot.faults, snapshot.n_to_fill);
        shown(self) == shown(other) && self.figures.findings == other.figures.findings
    }

    /// Returns the line that remains at the end.
    pub(super) fn totals_line(&self) -> String {
        let up: SignedDuration = self.now.duration_since(self.begun);
        let up = duration_text(u64::try_from(up.as_secs()).unwrap_or(0));
        let faults = self.faults.map(|faults| format!("; {faults}")).unwrap_or_default();
        let runs = &self.figures.runs;
        let others = [(runs.held_back, "held back"), (runs.waiting, "waiting")];
        let others = others.into_iter().filter(|(count, _)| *count > 0);
        let counts = [(runs.started, "started")]
            .into_iter()
            .chain(others)
            .chain([(runs.missed, "missed"), (runs.doubled, "doubled")]);
        let counts: Vec<String> = counts
            .map(|(count, what)| format!("{} {what}", thousands(count)))
            .collect();
        format!("cronwheel dev ran for {up}: runs {}{faults}", counts.join(", "))
    }
}

fn lateness_text(lateness: Lateness) -> String {
    let [p50, p99, max] = [lateness.p50, lateness.p99, lateness.max].map(at_most);
    format!("lateness p50 {p50}, p99 {p99}, max {max}")
}

/// Formats an upper bound in seconds in a suitable unit.
fn at_most(seconds: f64) -> String {
    if seconds.is_infinite() {
        "over 1 min".to_owned()
    } else if seconds < 1.0 {
        format!("<= {:.1} ms", seconds * 1e3)
    } else {
        format!("<= {seconds:.1} s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot() -> Snapshot {
        Snapshot {
            now: "2026-05-05T10:05:30.7Z".parse().unwrap(),
            begun: "2026-05-05T10:03:17Z".parse().unwrap(),
            figures: Figures {
                n_due: 1_144,
                n_started: 143,
                n_running: 12,
                runs: RunCounts {
                    started: 1_440,
                    waiting: 1,
                    missed: 2,
                    doubled: 3,
                    ..RunCounts::default()
                },
                findings: Vec::new(),
            },
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_minute_has_one_line() {
        let lateness = Lateness {
            p50: 0.001,
            p99: 2.5,
            max: f64::INFINITY,
        };
        assert_eq!(
            snapshot().minute_line(Some(lateness)),
            "10:05:30 UTC: 1,144 due, 143 started, lateness p50 <= 1.0 ms, p99 <= 2.5 s, max over 1 min, 12 running; so far \
             2 missed, 3 doubled"
        );
        let quiet = Snapshot {
            faults: Some(FaultCounts::default()),
            ..Snapshot::default()
        };
        assert_eq!(
            quiet.minute_line(None),
            "00:00:00 UTC: 0 due, 0 started, 0 running; so far 0 missed, 0 doubled, 0 faults"
        );
    }

    #[test]
    fn the_last_line_has_the_totals() {
        assert_eq!(
            snapshot().totals_line(),
            "cronwheel dev ran for 2m 13s: runs 1,440 started, 1 waiting, 2 missed, 3 doubled"
        );
        let faulty = Snapshot {
            faults: Some(FaultCounts::default()),
            ..Snapshot::default()
        };
        assert_eq!(
            faulty.totals_line(),
            "cronwheel dev ran for 0s: runs 0 started, 0 missed, 0 doubled; 0 faults"
        );
    }

    #[test]
    fn bounds_have_a_suitable_unit() {
        for (seconds, expected) in [(0.0005, "<= 0.5 ms"), (0.25, "<= 250.0 ms"), (2.5, "<= 2.5 s")] {
            assert_eq!(at_most(seconds), expected);
        }
    }
}
