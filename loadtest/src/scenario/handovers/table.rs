//! The figures of handovers as a Markdown table, and the verdict.

use std::{
    fmt::{self, Display, Formatter},
    time::Duration,
};

use jiff::Timestamp;
use testbed::replica::turns::Handover;

use crate::tracker::Tally;

/// The seconds after a full minute in which a small machine is busy.
const BURST_SECONDS: i64 = 3;

/// A drained replica.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drain {
    /// When SIGTERM was sent.
    pub(crate) requested: Timestamp,
    /// The time until it had handed over its last shard.
    pub(crate) handed_over: Duration,
    /// The time until its process had exited.
    pub(crate) took: Duration,
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct HandoverReport {
    pub(crate) machine: String,
    pub(crate) n_replicas: usize,
    pub(crate) n_shards: u32,
    pub(crate) n_cron_jobs: u32,
    pub(crate) n_foreign_jobs: u32,
    /// The time from the start of all replicas until all shards were led.
    pub(crate) start: Duration,
    /// The handovers while replicas were drained.
    pub(crate) handovers: Vec<Handover>,
    /// The handovers that balance shares after a start or a kill.
    pub(crate) other_handovers: Vec<Handover>,
    /// The number of seals without a following handover.
    pub(crate) n_without: usize,
    /// The durations of the bare client's Lease writes while replicas were drained.
    pub(crate) lease_writes: Vec<Duration>,
    pub(crate) drains: Vec<Drain>,
    /// Times from a kill until all shards were led, if the replica was restarted at once.
    pub(crate) restarted: Vec<Duration>,
    /// The same for replicas that were not restarted.
    pub(crate) lost: Vec<Duration>,
    pub(crate) rest_writes_per_second: f64,
    pub(crate) tally: Tally,
    /// Requests about missed Jobs, with their results.
    pub(crate) about_missed: Vec<String>,
}

impl HandoverReport {
    /// The verdict: no instant missed, none doubled.
    pub(crate) fn is_clean(&self) -> bool {
        self.tally.is_clean()
    }

    fn handovers(&self, is_wanted: impl Fn(i64) -> bool) -> Quantiles {
        let wanted = self
            .handovers
            .iter()
            .filter(|handover| is_wanted(handover.sealed.as_second().rem_euclid(60)));
        Quantiles::of(wanted.map(duration))
    }

    fn drains(&self, is_burst: bool, duration: impl Fn(&Drain) -> Duration) -> Quantiles {
        let drains = self.drains.iter();
        let wanted = drains.filter(|drain| (drain.requested.as_second().rem_euclid(60) < BURST_SECONDS) == is_burst);
        Quantiles::of(wanted.map(duration))
    }

    /// Writes the lines between the table and the verdict.
    fn write_counts(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "Seals without a handover: {}.", self.n_without)?;
        writeln!(
            f,
            "Lease writes a second at rest, all replicas: {:.2}.",
            self.rest_writes_per_second
        )?;
        let tally = &self.tally;
        writeln!(
            f,
            "Jobs expected {}, created {}, missed {}, doubled {}.",
            tally.n_expected,
            tally.n_created,
            tally.missed.len(),
            tally.doubled.len()
        )?;
        if tally.n_unanswered > 0 {
            let n_unanswered = tally.n_unanswered;
            writeln!(
                f,
                "Of the created Jobs, {n_unanswered} are from replicas that were killed before the response."
            )?;
        }
        for name in tally.missed.iter().chain(&tally.doubled).take(10) {
            writeln!(f, "  {name}")?;
        }
        for request in self.about_missed.iter().take(20) {
            writeln!(f, "  {request}")?;
        }
        Ok(())
    }
}

impl Display for HandoverReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} replicas, {} shards, {} CronJobs `* * * * *`, {} Jobs of no CronJob; {}\n",
            self.n_replicas, self.n_shards, self.n_cron_jobs, self.n_foreign_jobs, self.machine
        )?;
        writeln!(f, "| | n | p50 | p99 | most |\n|---|---|---|---|---|")?;
        row(
            f,
            "start of all replicas, to all shards led",
            &Quantiles::of([self.start].into_iter()),
        )?;
        let all = self.handovers(|_| true);
        let bare = Quantiles::of(self.lease_writes.iter().copied());
        row(f, "handover of a shard in a drain, seal to live", &all)?;
        row(
            f,
            "of these, sealed in the first three seconds of a minute",
            &self.handovers(|second| second < BURST_SECONDS),
        )?;
        row(
            f,
            "of these, sealed later",
            &self.handovers(|second| second >= BURST_SECONDS),
        )?;
        row(f, "bare Lease write in the same time", &bare)?;
        row(
            f,
            "handover to balance shares, after a start or a kill",
            &Quantiles::of(self.other_handovers.iter().map(duration)),
        )?;
        for (is_burst, time) in [(true, ":00"), (false, "another time")] {
            let title = format!("drained replica, asked at {time}, to its last shard handed over");
            row(f, &title, &self.drains(is_burst, |drain| drain.handed_over))?;
            let title = format!("drained replica, asked at {time}, to its exit");
            row(f, &title, &self.drains(is_burst, |drain| drain.took))?;
        }
        row(
            f,
            "killed and restarted in its pod, to all shards led",
            &Quantiles::of(self.restarted.iter().copied()),
        )?;
        row(
            f,
            "killed and not restarted, to all shards led",
            &Quantiles::of(self.lost.iter().copied()),
        )?;
        let ratio = |share| all.ms(share).zip(bare.ms(share)).map(|(ours, bare)| ours / bare);
        if let (Some(half), Some(most)) = (ratio(0.5), ratio(0.99)) {
            writeln!(f, "\nHandover to bare write: {half:.1} x at p50, {most:.1} x at p99.")?;
        }
        self.write_counts(f)?;
        write!(f, "\nVerdict: {}", if self.is_clean() { "clean" } else { "NOT CLEAN" })
    }
}

fn duration(handover: &Handover) -> Duration {
    let took = handover.live.duration_since(handover.sealed);
    Duration::try_from(took).unwrap_or_default()
}

fn row(f: &mut Formatter<'_>, title: &str, quantiles: &Quantiles) -> fmt::Result {
    write!(f, "| {title} | {} |", quantiles.0.len())?;
    for share in [0.5, 0.99, 1.0] {
        match quantiles.ms(share) {
            Some(ms) if ms < 100.0 => write!(f, " {ms:.1} ms |")?,
            Some(ms) if ms < 1_000.0 => write!(f, " {ms:.0} ms |")?,
            Some(ms) => write!(f, " {:.2} s |", ms / 1e3)?,
            None => write!(f, " - |")?,
        }
    }
    writeln!(f)
}

/// Durations in ascending order.
pub(in crate::scenario) struct Quantiles(Vec<Duration>);

impl Quantiles {
    pub(in crate::scenario) fn of(durations: impl Iterator<Item = Duration>) -> Quantiles {
        let mut durations: Vec<Duration> = durations.collect();
        durations.sort_unstable();
        Quantiles(durations)
    }

    /// The quantile in milliseconds, by nearest rank.
    pub(in crate::scenario) fn ms(&self, share: f64) -> Option<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            clippy::cast_sign_loss,
            reason = "a rank is between 0 and the number of durations"
        )]
        let rank = (share * self.0.len() as f64).ceil() as usize;
        Some(self.0.get(rank.saturating_sub(1))?.as_secs_f64() * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn handover(second: i64, took_ms: i64) -> Handover {
        let sealed = Timestamp::from_second(second).unwrap();
        Handover {
            shard: 0,
            term: 1,
            sealed,
            live: sealed + SignedDuration::from_millis(took_ms),
        }
    }

    #[test]
    fn table_separates_the_handovers_during_the_burst() {
        let ms = Duration::from_millis;
        let report = HandoverReport {
            machine: "2 cores".into(),
            n_replicas: 5,
            n_shards: 256,
            n_cron_jobs: 2_000,
            n_foreign_jobs: 7,
            start: ms(2_100),
            handovers: vec![
                handover(60, 40),
                handover(62, 1_500),
                handover(90, 9),
                handover(119, 11),
            ],
            other_handovers: vec![handover(10, 70)],
            n_without: 1,
            lease_writes: vec![ms(4), ms(5), ms(30)],
            drains: vec![Drain {
                requested: Timestamp::from_second(120).unwrap(),
                handed_over: ms(600),
                took: ms(700),
            }],
            restarted: vec![ms(1_900)],
            lost: Vec::new(),
            rest_writes_per_second: 2.5,
            tally: Tally::default(),
            about_missed: Vec::new(),
        };
        let expected = "\
5 replicas, 256 shards, 2000 CronJobs `* * * * *`, 7 Jobs of no CronJob; 2 cores

| | n | p50 | p99 | most |
|---|---|---|---|---|
| start of all replicas, to all shards led | 1 | 2.10 s | 2.10 s | 2.10 s |
| handover of a shard in a drain, seal to live | 4 | 11.0 ms | 1.50 s | 1.50 s |
| of these, sealed in the first three seconds of a minute | 2 | 40.0 ms | 1.50 s | 1.50 s |
| of these, sealed later | 2 | 9.0 ms | 11.0 ms | 11.0 ms |
| bare Lease write in the same time | 3 | 5.0 ms | 30.0 ms | 30.0 ms |
| handover to balance shares, after a start or a kill | 1 | 70.0 ms | 70.0 ms | 70.0 ms |
| drained replica, asked at :00, to its last shard handed over | 1 | 600 ms | 600 ms | 600 ms |
| drained replica, asked at :00, to its exit | 1 | 700 ms | 700 ms | 700 ms |
| drained replica, asked at another time, to its last shard handed over | 0 | - | - | - |
| drained replica, asked at another time, to its exit | 0 | - | - | - |
| killed and restarted in its pod, to all shards led | 1 | 1.90 s | 1.90 s | 1.90 s |
| killed and not restarted, to all shards led | 0 | - | - | - |

Handover to bare write: 2.2 x at p50, 50.0 x at p99.
Seals without a handover: 1.
Lease writes a second at rest, all replicas: 2.50.
Jobs expected 0, created 0, missed 0, doubled 0.

Verdict: clean";
        assert_eq!(report.to_string(), expected);
    }
}
