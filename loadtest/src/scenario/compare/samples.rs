//! The resource usage of a turn's processes, second by second, and whether other processes used the machine.

use std::{fs, time::Duration};

use anyhow::Context as _;
use jiff::Timestamp;

use super::result::Sample;
use crate::measure::ProcessUsage;

/// The share of the machine that other processes may use without a warning.
const BUSY_SHARE: f64 = 0.1;

/// The combined usage of a group of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct GroupUsage {
    pub(super) cpu: Duration,
    pub(super) resident_kib: u64,
    pub(super) resident_max_kib: u64,
}

impl GroupUsage {
    pub(super) fn of(pids: &[u32]) -> anyhow::Result<GroupUsage> {
        let mut all = GroupUsage::default();
        for pid in pids {
            let one = ProcessUsage::of(*pid)?;
            all.cpu += one.cpu;
            all.resident_kib += one.resident_kib;
            all.resident_max_kib += one.resident_max_kib;
        }
        Ok(all)
    }

    /// Returns a point of the curve for `now`, relative to the first instant.
    pub(super) fn sample(&self, first: Timestamp, now: Timestamp) -> Sample {
        #[expect(clippy::cast_precision_loss, reason = "memory in KiB is far below 2^52")]
        let memory_mib = self.resident_kib as f64 / 1_024.0;
        Sample {
            second: now.duration_since(first).as_secs_f64(),
            cpu_ms: self.cpu.as_secs_f64() * 1e3,
            memory_mib,
        }
    }
}

/// Processor time of the machine since boot, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MachineTicks {
    busy: u64,
    all: u64,
}

impl MachineTicks {
    pub(super) fn read() -> anyhow::Result<MachineTicks> {
        let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        MachineTicks::parse(&text).context("unknown form of /proc/stat")
    }

    fn parse(text: &str) -> Option<MachineTicks> {
        // The fields are user, nice, system, idle, iowait, irq, softirq and steal. Guest time follows and is already
        // included in user and nice.
        let fields = text.lines().next()?.strip_prefix("cpu ")?;
        let ticks = fields.split_ascii_whitespace().take(8).map(str::parse);
        let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
        let all: u64 = ticks.iter().sum();
        let idle = ticks.get(3)? + ticks.get(4)?;
        Some(MachineTicks { busy: all - idle, all })
    }

    /// The share of the machine that other processes used since `before`.
    fn share_of_others(self, before: MachineTicks, own: Duration) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "ticks of minutes are far below 2^52")]
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        // A tick is a hundredth of a second on every architecture.
        let own_ticks = own.as_secs_f64() * 100.0;
        let all = since(self.all, before.all).max(1.0);
        ((since(self.busy, before.busy) - own_ticks) / all).max(0.0)
    }

    /// A warning, if other processes used much of the machine.
    pub(super) fn busy_warning(self, before: MachineTicks, own: Duration) -> Option<String> {
        let share = self.share_of_others(before, own);
        (share > BUSY_SHARE).then(|| {
            format!(
                "the machine was busy: other processes used {:.0} % of it in the measured time",
                share * 100.0
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "cpu  100 10 50 800 40 0 0 0 7 7\ncpu0 1 2 3\n";
    const AFTER: &str = "cpu  180 20 80 860 60 0 0 0 9 9\n";

    #[test]
    fn busy_time_beyond_our_own_belongs_to_others() {
        let (before, after) = (
            MachineTicks::parse(BEFORE).unwrap(),
            MachineTicks::parse(AFTER).unwrap(),
        );
        assert_eq!(before, MachineTicks { busy: 160, all: 1_000 });
        // Of 200 ticks, 120 were busy.
        let check = |own: Duration, expected: f64| {
            let share = after.share_of_others(before, own);
            assert!((share - expected).abs() < 1e-9, "{own:?}: {share}");
        };
        check(Duration::from_secs(1), 0.1);
        check(Duration::ZERO, 0.6);
        check(Duration::from_secs(9), 0.0);
        assert_eq!(after.busy_warning(before, Duration::from_secs(1)), None);
        let warning = after.busy_warning(before, Duration::from_millis(200)).unwrap();
        assert!(warning.contains("50 %"), "{warning}");
        assert_eq!(MachineTicks::parse("cpu0 1 2"), None);
    }

    #[test]
    fn a_group_is_the_sum_of_its_processes() {
        let pid = std::process::id();
        let (one, two) = (GroupUsage::of(&[pid]).unwrap(), GroupUsage::of(&[pid, pid]).unwrap());
        assert!(one.resident_kib > 0 && two.resident_max_kib > one.resident_max_kib);
        assert_eq!(GroupUsage::of(&[]).unwrap(), GroupUsage::default());
    }

    #[test]
    fn sample_time_is_relative_to_the_first_instant() {
        let usage = GroupUsage {
            cpu: Duration::from_millis(30),
            resident_kib: 2_048,
            resident_max_kib: 4_096,
        };
        let first = Timestamp::from_second(100).unwrap();
        let sample = usage.sample(first, Timestamp::from_second(99).unwrap());
        let expected = Sample {
            second: -1.0,
            cpu_ms: 30.0,
            memory_mib: 2.0,
        };
        assert_eq!(sample, expected);
    }
}
