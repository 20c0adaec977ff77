//! Reads resource usage of processes and facts about the machine from `/proc`.

use std::{env, fs, path::Path, process::Command, thread, time::Duration};

use anyhow::Context as _;
use testbed::Kubectl;

/// Linux reports CPU time to user programs in hundredths of a second, on every architecture.
const CLOCK_TICK: Duration = Duration::from_millis(10);

/// The resource usage of a process since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessUsage {
    /// User and system time.
    pub(crate) cpu: Duration,
    /// Current resident memory.
    pub(crate) resident_kib: u64,
    /// Peak resident memory, since [`reset_resident_max`] if that was called.
    pub(crate) resident_max_kib: u64,
}

impl ProcessUsage {
    /// Reads the usage so far.
    pub(crate) fn of(pid: u32) -> anyhow::Result<ProcessUsage> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}"));
        let context = || format!("cannot read what process {pid} uses");
        let (stat, status) = (
            read("stat").with_context(context)?,
            read("status").with_context(context)?,
        );
        ProcessUsage::parse(&stat, &status).with_context(context)
    }

    fn parse(stat: &str, status: &str) -> Option<ProcessUsage> {
        // The program name is in brackets and may contain spaces. User time is field 14 of the line, system time field
        // 15.
        let mut times = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
        let user: u32 = times.next()?.parse().ok()?;
        let system: u32 = times.next()?.parse().ok()?;
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_ascii_whitespace().next()?.parse().ok()
        };
        Some(ProcessUsage {
            cpu: CLOCK_TICK * (user + system),
            resident_kib: kib("VmRSS:")?,
            resident_max_kib: kib("VmHWM:")?,
        })
    }

    /// Returns the usage with CPU time counted from `earlier`.
    #[must_use]
    pub(crate) fn since(self, earlier: ProcessUsage) -> ProcessUsage {
        ProcessUsage {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            ..self
        }
    }
}

/// Resets the peak resident memory of a process to its current resident memory, as proc(5) documents for
/// `/proc/PID/clear_refs`.
pub(crate) fn reset_resident_max(pid: u32) -> anyhow::Result<()> {
    fs::write(format!("/proc/{pid}/clear_refs"), "5")
        .with_context(|| format!("cannot reset the peak memory of process {pid}"))
}

/// Describes in one line where the figures were taken.
pub(crate) fn machine_line(kubectl: &Kubectl, cronwheel: Option<&Path>) -> String {
    let server = kubectl
        .run(&["version", "--output=json"])
        .ok()
        .and_then(|text| server_version(&text));
    let controller = cronwheel.map_or_else(|| "the built-in controller".to_owned(), program_version);
    format!(
        "{} cores ({}), Linux {}, kube-apiserver {}, {controller}",
        n_cores(),
        processor(),
        kernel(),
        server.as_deref().unwrap_or("of unknown version"),
    )
}

pub(crate) fn n_cores() -> usize {
    thread::available_parallelism().map_or(0, usize::from)
}

/// The model of the processor.
pub(crate) fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name"));
    let model = model.unwrap_or("unknown CPU").trim_start_matches([':', ' ', '\t']);
    model.to_owned()
}

/// The release of Linux.
pub(crate) fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// The memory of the machine. 0 if unknown.
pub(crate) fn memory_mib() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = total.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() / 1_024
}

/// The short commit id of this working tree, with `-dirty` if it has changes. Empty if unknown.
pub(crate) fn revision() -> String {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty", "--exclude=*"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default()
}

/// The command that repeats this run, from the root of the repository.
pub(crate) fn command() -> Vec<String> {
    ["cargo", "run", "--release", "--package", "loadtest", "--"]
        .map(str::to_owned)
        .into_iter()
        .chain(env::args().skip(1))
        .collect()
}

fn server_version(text: &str) -> Option<String> {
    let version: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(version.get("serverVersion")?.get("gitVersion")?.as_str()?.to_owned())
}

/// The output of an executable for `--version`.
pub(crate) fn program_version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let text = output
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        .unwrap_or_default();
    if text.is_empty() {
        format!("{} of unknown version", program.display())
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "77 (kube (x) y) S 1 77 77 0 -1 4194560 1 2 3 4 150 50 7 8 20 0 1 0 123456 9 10";
    const STATUS: &str = "Name:\tx\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\n";

    #[test]
    fn cpu_time_and_memory_are_read() {
        let usage = ProcessUsage::parse(STAT, STATUS).unwrap();
        assert_eq!(usage.cpu, Duration::from_secs(2));
        assert_eq!((usage.resident_kib, usage.resident_max_kib), (1_024, 2_048));
        assert_eq!(ProcessUsage::parse("77 (x) S", STATUS), None);
        assert_eq!(ProcessUsage::parse(STAT, ""), None);
    }

    #[test]
    fn this_process_can_be_measured() {
        reset_resident_max(std::process::id()).unwrap();
        assert!(ProcessUsage::of(std::process::id()).unwrap().resident_kib > 0);
    }

    #[test]
    fn server_version_is_parsed() {
        assert_eq!(
            server_version(r#"{"serverVersion":{"gitVersion":"v1.36.3"}}"#).as_deref(),
            Some("v1.36.3")
        );
        assert_eq!(server_version("{}"), None);
    }
}
