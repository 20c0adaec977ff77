//! A process, identified by process id, start time and program.
//!
//! Process ids are reused, so an id from a file proves nothing. A [`ProcessRecord`] is signalled only if start time and
//! program still match. The signal goes through a pidfd, so the process cannot be replaced between check and signal.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Child,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal},
};
use serde::{Deserialize, Serialize};

/// Poll interval while waiting for a process to exit.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum wait after SIGKILL. The kernel frees the memory of the process first.
const KILL_WAIT_MAX: Duration = Duration::from_secs(10);

/// Why an operation on a process failed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// `/proc` has no such process or cannot be read.
    #[error("cannot read /proc/{pid} (the test bed needs Linux)")]
    Inspect {
        /// The process id.
        pid: u32,
        /// The cause.
        source: io::Error,
    },
    /// The kernel refused the signal.
    #[error("cannot signal process {pid}")]
    Signal {
        /// The process id.
        pid: u32,
        /// The cause.
        source: io::Error,
    },
    /// The process survived SIGKILL.
    #[error("process {pid} is still there after SIGKILL")]
    Unkillable {
        /// The process id.
        pid: u32,
    },
}

/// The identity of a process on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessRecord {
    pid: u32,
    /// The start time in clock ticks since boot, as in `/proc/<pid>/stat`.
    start_ticks: u64,
    executable: PathBuf,
}

impl ProcessRecord {
    /// Records the identity of a running process.
    pub(crate) fn of(pid: u32) -> Result<ProcessRecord, ProcessError> {
        let inspect = |source| ProcessError::Inspect { pid, source };
        let stat = Stat::read(pid).map_err(inspect)?;
        let executable = fs::read_link(proc_path(pid, "exe")).map_err(inspect)?;
        Ok(ProcessRecord {
            pid,
            start_ticks: stat.start_ticks,
            executable,
        })
    }

    /// Records the identity of this process.
    pub(crate) fn of_this_process() -> Result<ProcessRecord, ProcessError> {
        ProcessRecord::of(std::process::id())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns whether this very process runs. Zombies do not count.
    pub(crate) fn is_running(&self) -> bool {
        let Ok(stat) = Stat::read(self.pid) else { return false };
        let is_same_start = stat.start_ticks == self.start_ticks && !stat.has_ended();
        is_same_start
            && fs::read_link(proc_path(self.pid, "exe")).is_ok_and(|now| is_same_program(&self.executable, &now))
    }

    /// Sends SIGTERM, waits for at most `grace`, then kills the process. Returns at once if it does not run.
    pub(crate) fn stop(&self, grace: Duration) -> Result<(), ProcessError> {
        self.terminate()?;
        if self.has_ended_within(grace) {
            return Ok(());
        }
        self.kill()
    }

    /// Kills the process as in a crash, if it runs.
    pub(crate) fn kill(&self) -> Result<(), ProcessError> {
        self.signal(Signal::KILL)?;
        if self.has_ended_within(KILL_WAIT_MAX) {
            Ok(())
        } else {
            Err(ProcessError::Unkillable { pid: self.pid })
        }
    }

    /// Freezes the process. Its connections stay open, but it does not respond.
    pub(crate) fn freeze(&self) -> Result<(), ProcessError> {
        self.signal(Signal::STOP)
    }

    /// Resumes a frozen process.
    pub(crate) fn thaw(&self) -> Result<(), ProcessError> {
        self.signal(Signal::CONT)
    }

    /// Sends SIGTERM, if the process runs.
    pub(crate) fn terminate(&self) -> Result<(), ProcessError> {
        self.signal(Signal::TERM)
    }

    fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Ok(());
        };
        let handle = pidfd_open(pid, PidfdFlags::empty());
        // The record is checked after the handle was opened: if it matches now, the handle refers to the same process.
        if !self.is_running() {
            return Ok(());
        }
        let sent = match handle {
            Ok(handle) => pidfd_send_signal(handle, signal),
            Err(Errno::NOSYS) => kill_process(pid, signal),
            Err(error) => Err(error),
        };
        match sent {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(error) => Err(ProcessError::Signal {
                pid: self.pid,
                source: error.into(),
            }),
        }
    }

    fn has_ended_within(&self, limit: Duration) -> bool {
        let begin = Instant::now();
        while self.is_running() {
            if begin.elapsed() >= limit {
                return false;
            }
            thread::sleep(POLL_INTERVAL);
        }
        true
    }
}

/// Sends SIGTERM to a child process, which the standard library cannot do.
pub fn terminate(child: &Child) -> Result<(), ProcessError> {
    ProcessRecord::of(child.id())?.terminate()
}

/// The fields of `/proc/<pid>/stat` that identify a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    start_ticks: u64,
}

impl Stat {
    fn read(pid: u32) -> io::Result<Stat> {
        let text = fs::read_to_string(proc_path(pid, "stat"))?;
        Stat::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unknown form of stat"))
    }

    /// The program name is in brackets and may itself contain brackets and spaces, so fields are counted from the last
    /// bracket.
    fn parse(text: &str) -> Option<Stat> {
        let (_, after_name) = text.rsplit_once(')')?;
        let mut fields = after_name.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        // Field 22 of the line. The state was field 3.
        let start_ticks = fields.nth(18)?.parse().ok()?;
        Some(Stat { state, start_ticks })
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// Returns whether the program is the recorded one. A program whose file was replaced or removed still is.
fn is_same_program(recorded: &Path, now: &Path) -> bool {
    let plain = |path: &Path| {
        let text = path.to_string_lossy().into_owned();
        text.strip_suffix(" (deleted)").map(str::to_owned).unwrap_or(text)
    };
    plain(recorded) == plain(now)
}

fn proc_path(pid: u32, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{file}"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A process that runs until it is stopped, and is killed if the test fails.
    struct Sleeper(Child);

    impl Sleeper {
        fn start() -> Sleeper {
            Sleeper(Command::new("sleep").arg("600").spawn().unwrap())
        }

        fn record(&self) -> ProcessRecord {
            ProcessRecord::of(self.0.id()).unwrap()
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn stat_with_brackets_and_spaces_in_the_name_is_parsed() {
        let text = "77 (a) R (b) S 1 77 77 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 9 10";
        assert_eq!(
            Stat::parse(text),
            Some(Stat {
                state: 'S',
                start_ticks: 123_456
            })
        );
        assert_eq!(Stat::parse("77 (short) S 1"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn process_with_another_start_time_or_program_does_not_match() {
        let sleeper = Sleeper::start();
        let record = sleeper.record();
        assert!(record.is_running());
        let successor = ProcessRecord {
            start_ticks: record.start_ticks + 1,
            ..record.clone()
        };
        assert!(!successor.is_running());
        let other_program = ProcessRecord {
            executable: "/bin/other".into(),
            ..record
        };
        assert!(!other_program.is_running());
    }

    #[test]
    fn process_that_does_not_match_its_record_is_not_signalled() {
        let mut sleeper = Sleeper::start();
        let record = sleeper.record();
        let successor = ProcessRecord {
            start_ticks: record.start_ticks + 1,
            ..record.clone()
        };
        successor.stop(Duration::ZERO).unwrap();
        assert!(sleeper.0.try_wait().unwrap().is_none());
        assert!(record.is_running());
    }

    #[test]
    fn zombie_process_does_not_count_as_running() {
        let sleeper = Sleeper::start();
        let record = sleeper.record();
        record.stop(Duration::from_secs(5)).unwrap();
        assert!(!record.is_running());
        record.stop(Duration::ZERO).unwrap();
    }

    #[test]
    fn frozen_process_counts_as_running_and_resumes_when_thawed() {
        let sleeper = Sleeper::start();
        let record = sleeper.record();
        let is_frozen = || Stat::read(record.pid).unwrap().state == 'T';
        record.freeze().unwrap();
        while !is_frozen() {
            thread::yield_now();
        }
        assert!(record.is_running());
        record.thaw().unwrap();
        while is_frozen() {
            thread::yield_now();
        }
    }

    #[test]
    fn a_frozen_process_can_be_killed() {
        let sleeper = Sleeper::start();
        let record = sleeper.record();
        record.freeze().unwrap();
        record.kill().unwrap();
        assert!(!record.is_running());
    }

    #[test]
    fn program_matches_after_its_file_was_removed() {
        assert!(is_same_program(Path::new("/a/etcd"), Path::new("/a/etcd (deleted)")));
        assert!(!is_same_program(Path::new("/a/etcd"), Path::new("/b/etcd")));
    }
}
