//! Computes the figures of a turn from the audit log and the resource usage of the processes.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use super::{column::Column, statistics::quantile};
use crate::{
    audit::{Request, RequestCounts},
    generator::SyntheticCronJob,
    slots::{Slot, Slots},
    tracker::{Burst, JobNames, Tally},
};

/// Creates that are a minute late or later share a bucket.
const SECONDS_OF_MINUTE: usize = 60;

const QUANTILES: [(Column, f64); 4] = [
    (Column::LatenessP50Ms, 0.5),
    (Column::LatenessP90Ms, 0.9),
    (Column::LatenessP99Ms, 0.99),
    (Column::LatenessP999Ms, 0.999),
];

/// The records of a turn.
pub(super) struct Evidence<'a> {
    /// The CronJobs to evaluate.
    pub(super) cron_jobs: &'a [SyntheticCronJob],
    /// The measured minutes.
    pub(super) slots: &'a Slots,
    /// All requests of the controller.
    pub(super) requests: &'a [Request],
    /// Without an audit log, the requests are only creates, with a precision of one second.
    pub(super) has_audit_log: bool,
    /// The end of the period in which runs could start.
    pub(super) end: Timestamp,
    /// The period in which processor time and writes count.
    pub(super) window: (Timestamp, Timestamp),
    pub(super) cpu: Duration,
    pub(super) peak_memory_kib: u64,
}

/// The figures of a turn.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) expected: usize,
    pub(super) columns: BTreeMap<Column, f64>,
    pub(super) writes_per_run: BTreeMap<String, f64>,
    pub(super) creates_by_second: Vec<u32>,
    pub(super) lateness_curve: Vec<(f64, f64)>,
}

impl Figures {
    pub(super) fn of(evidence: &Evidence<'_>) -> Figures {
        let tally = Tally::of(evidence.cron_jobs, evidence.slots, evidence.requests, &JobNames::new());
        let by_slot: Vec<Vec<f64>> = evidence
            .slots
            .all()
            .map(|slot| evidence.lateness_ms(slot, &tally))
            .collect();
        let mut all: Vec<f64> = by_slot.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);

        let mut columns = BTreeMap::new();
        for (column, share) in QUANTILES {
            columns.extend(quantile(&all, share).map(|lateness| (column, lateness)));
        }
        let latest = |of: fn(&Vec<f64>) -> Option<&f64>| by_slot.iter().filter_map(of).copied().reduce(f64::max);
        columns.extend(latest(|slot| slot.first()).map(|it| (Column::FirstOfMinuteMs, it)));
        columns.extend(latest(|slot| slot.last()).map(|it| (Column::LastOfMinuteMs, it)));
        if tally.n_expected > 0 {
            columns.insert(Column::Missed, count(tally.missed.len()));
            columns.insert(Column::Doubled, count(tally.doubled.len()));
            columns.insert(Column::Overlaps, count(evidence.n_overlaps()));
        }
        columns.insert(Column::PeakMemoryMib, count(evidence.peak_memory_kib) / 1_024.0);
        columns.extend(evidence.status_age_p99_ms().map(|age| (Column::StatusAgeP99Ms, age)));
        let writes_per_run = evidence.add_costs_per_run(&mut columns);
        Figures {
            expected: tally.n_expected,
            columns,
            writes_per_run,
            creates_by_second: creates_by_second(&tally),
            lateness_curve: curve(&all),
        }
    }
}

impl Evidence<'_> {
    /// The lateness of the runs of a slot, in ascending order. A run that never started counts with the whole time in
    /// which it could have started.
    fn lateness_ms(&self, slot: Slot, tally: &Tally) -> Vec<f64> {
        let burst = tally.bursts.get(&slot);
        let microseconds = burst.map(Burst::lateness_us).unwrap_or_default();
        let n_runs = self.cron_jobs.iter().filter(|one| one.due.is_at(slot)).count();
        let mut lateness_ms: Vec<f64> = microseconds
            .iter()
            .map(|microseconds| count(*microseconds) / 1e3)
            .collect();
        let window_ms = milliseconds(self.end.duration_since(slot.start()));
        lateness_ms.resize(n_runs.max(lateness_ms.len()), window_ms);
        lateness_ms.sort_by(f64::total_cmp);
        lateness_ms
    }

    fn is_in_window(&self, request: &Request) -> bool {
        (self.window.0..self.window.1).contains(&request.received)
    }

    /// Adds writes and processor time per run. Returns the writes by verb and resource.
    fn add_costs_per_run(&self, columns: &mut BTreeMap<Column, f64>) -> BTreeMap<String, f64> {
        let writes = self
            .requests
            .iter()
            .filter(|one| one.is_write() && self.is_in_window(one));
        let mut by_kind: BTreeMap<String, f64> = BTreeMap::new();
        for write in writes.clone() {
            let refused = match write.code {
                code if code < 400 => String::new(),
                code => format!(", answered {code}"),
            };
            let kind = format!("{} {}{refused}", write.verb, write.resource);
            *by_kind.entry(kind).or_default() += 1.0;
        }
        let seconds = self.window.1.duration_since(self.window.0).as_secs_f64();
        columns.insert(Column::CpuMsPerSecond, self.cpu.as_secs_f64() * 1e3 / seconds);
        let counts = RequestCounts::of(writes);
        if counts.n_job_creates() == 0 {
            return BTreeMap::new();
        }
        let n_runs = count(counts.n_job_creates());
        columns.insert(Column::CpuMsPerRun, self.cpu.as_secs_f64() * 1e3 / n_runs);
        if !self.has_audit_log {
            return BTreeMap::new();
        }
        columns.insert(Column::WritesPerRun, count(counts.n_writes) / n_runs);
        columns.insert(Column::EventWritesPerRun, count(counts.n_event_writes) / n_runs);
        let n_all = counts.n_writes + counts.n_event_writes;
        columns.insert(Column::AllWritesPerRun, count(n_all) / n_runs);
        for number in by_kind.values_mut() {
            *number /= n_runs;
        }
        by_kind
    }

    /// The number of creates in measured minutes that arrived before the previous Job of the CronJob can have
    /// completed.
    fn n_overlaps(&self) -> usize {
        let mut creates: HashMap<(&str, &str), Vec<Timestamp>> = HashMap::new();
        for create in self.requests.iter().filter(|one| one.is_job_create()) {
            creates.entry(cron_job_of(create)).or_default().push(create.received);
        }
        let from = self.slots.first().start();
        let overlaps = |cron_job: &SyntheticCronJob| {
            let key = (cron_job.namespace.as_str(), cron_job.name.as_str());
            let mut times = creates.get(&key).cloned().unwrap_or_default();
            let run_time = SignedDuration::from_secs(i64::from(cron_job.job_seconds));
            times.sort_unstable();
            let pairs = times.windows(2);
            pairs
                .filter(|pair| pair[1] >= from && pair[1].duration_since(pair[0]) < run_time)
                .count()
        };
        self.cron_jobs.iter().map(overlaps).sum()
    }

    /// The p99 of the time from the response to a create to the next stored status of its CronJob. `None` if no status
    /// was written.
    fn status_age_p99_ms(&self) -> Option<f64> {
        let mut stored: HashMap<(&str, &str), Vec<Timestamp>> = HashMap::new();
        let is_status = |one: &&Request| one.resource == "cronjobs/status" && one.is_write() && one.code < 400;
        for status in self.requests.iter().filter(is_status) {
            let cron_job = (status.namespace.as_str(), status.name.as_str());
            stored.entry(cron_job).or_default().push(status.answered);
        }
        if stored.is_empty() {
            return None;
        }
        for times in stored.values_mut() {
            times.sort_unstable();
        }
        let age = |create: &Request| {
            let next = stored.get(&cron_job_of(create)).and_then(|times| {
                let position = times.partition_point(|time| *time < create.answered);
                times.get(position).copied()
            });
            milliseconds(next.unwrap_or(self.end).duration_since(create.answered)).max(0.0)
        };
        let names = self
            .cron_jobs
            .iter()
            .map(|one| (one.namespace.as_str(), one.name.as_str()));
        let evaluated: HashSet<(&str, &str)> = names.collect();
        let of_measured = |create: &&Request| {
            create.is_job_create()
                && evaluated.contains(&cron_job_of(create))
                && (self.slots.first().start()..self.slots.end().start()).contains(&create.received)
        };
        let mut ages: Vec<f64> = self.requests.iter().filter(of_measured).map(age).collect();
        ages.sort_by(f64::total_cmp);
        quantile(&ages, 0.99)
    }
}

/// The namespace and name of the CronJob of a created Job. The name of a Job ends with its minute.
pub(super) fn cron_job_of(create: &Request) -> (&str, &str) {
    let name = create
        .name
        .rsplit_once('-')
        .map_or(create.name.as_str(), |(name, _)| name);
    (create.namespace.as_str(), name)
}

/// The number of runs by full seconds after their instant.
fn creates_by_second(tally: &Tally) -> Vec<u32> {
    let mut creates = vec![0; SECONDS_OF_MINUTE + 1];
    for microseconds in tally.measured.lateness_us() {
        let second = usize::try_from(microseconds.div_euclid(1_000_000)).unwrap_or_default();
        creates[second.min(SECONDS_OF_MINUTE)] += 1;
    }
    creates
}

fn curve(ascending_ms: &[f64]) -> Vec<(f64, f64)> {
    let mut shares: Vec<f64> = (0..=100).map(|hundredth| f64::from(hundredth) / 100.0).collect();
    shares.insert(100, 0.999);
    let point = |share: f64| Some((share, quantile(ascending_ms, share)?));
    shares.into_iter().filter_map(point).collect()
}

pub(super) fn milliseconds(duration: SignedDuration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Converts a count, or the microseconds of some minutes. Both are far below 2^52.
pub(super) fn count(number: impl TryInto<i64>) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "see above")]
    let float = number.try_into().unwrap_or(i64::MAX) as f64;
    float
}

#[cfg(test)]
#[path = "figures/tests.rs"]
mod tests;
