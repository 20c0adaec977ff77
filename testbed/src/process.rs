//! One started process, known beyond doubt: by process id, start time and program.
//!
//! Process ids are used again, so an id read from a file proves nothing. A [`ProcessRecord`] is signalled only while
//! start time and program still agree, and through a pidfd, so the process cannot be replaced between look and signal.

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

/// How often a process is looked at while it is expected to end.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// How long a process may take to vanish after SIGKILL: the kernel frees its memory first.
const KILL_WAIT_MAX: Duration = Duration::from_secs(10);

/// What went wrong with a process.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// `/proc` has no such process, or cannot be read.
    #[error("cannot read /proc/{pid} (the test bed needs Linux)")]
    Inspect {
        /// Its process id.
        pid: u32,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused the signal.
    #[error("cannot signal process {pid}")]
    Signal {
        /// Its process id.
        pid: u32,
        /// Why.
        source: io::Error,
    },
    /// It outlived SIGKILL.
    #[error("process {pid} is still there after SIGKILL")]
    Unkillable {
        /// Its process id.
        pid: u32,
    },
}

/// The identity of a process on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessRecord {
    pid: u32,
    /// When it started, in clock ticks since boot, as in `/proc/<pid>/stat`.
    start_ticks: u64,
    executable: PathBuf,
}

impl ProcessRecord {
    /// Takes the identity of a process that runs now.
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

    /// The identity of this process.
    pub(crate) fn of_this_process() -> Result<ProcessRecord, ProcessError> {
        ProcessRecord::of(std::process::id())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether that very process runs; one that ended and was not waited for yet does not.
    pub(crate) fn is_running(&self) -> bool {
        let Ok(stat) = Stat::read(self.pid) else { return false };
        let is_same_start = stat.start_ticks == self.start_ticks && !stat.has_ended();
        is_same_start
            && fs::read_link(proc_path(self.pid, "exe")).is_ok_and(|now| is_same_program(&self.executable, &now))
    }

    /// Asks the process to end, waits for at most `grace`, then kills it. Done at once where it does not run.
    pub(crate) fn stop(&self, grace: Duration) -> Result<(), ProcessError> {
        self.ask_to_end()?;
        if self.has_ended_within(grace) {
            return Ok(());
        }
        self.kill()
    }

    /// Ends the process as a crash does, where it runs.
    pub(crate) fn kill(&self) -> Result<(), ProcessError> {
        self.signal(Signal::KILL)?;
        if self.has_ended_within(KILL_WAIT_MAX) {
            Ok(())
        } else {
            Err(ProcessError::Unkillable { pid: self.pid })
        }
    }

    /// Halts the process where it stands: its connections stay open, and nobody answers on them.
    pub(crate) fn freeze(&self) -> Result<(), ProcessError> {
        self.signal(Signal::STOP)
    }

    /// Lets a frozen process go on.
    pub(crate) fn thaw(&self) -> Result<(), ProcessError> {
        self.signal(Signal::CONT)
    }

    /// Sends SIGTERM, where the process runs.
    pub(crate) fn ask_to_end(&self) -> Result<(), ProcessError> {
        self.signal(Signal::TERM)
    }

    fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        let Some(pid) = i32::try_from(self.pid).ok().and_then(Pid::from_raw) else {
            return Ok(());
        };
        let handle = pidfd_open(pid, PidfdFlags::empty());
        // Looked at after the handle was taken: if it is the right process now, the handle is of the right process.
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

/// Asks a child process to end, by SIGTERM, which the standard library cannot send.
pub fn ask_to_end(child: &Child) -> Result<(), ProcessError> {
    ProcessRecord::of(child.id())?.ask_to_end()
}

/// The two facts that we need of `/proc/<pid>/stat`.
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

    /// The program's name is in brackets and may itself hold brackets and spaces, so fields count from the last bracket.
    fn parse(text: &str) -> Option<Stat> {
        let (_, after_name) = text.rsplit_once(')')?;
        let mut fields = after_name.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        // Field 22 of the line; the state was field 3.
        let start_ticks = fields.nth(18)?.parse().ok()?;
        Some(Stat { state, start_ticks })
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

/// A program whose file was replaced or removed meanwhile still is the program that was started.
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

    /// A process that ends only when told to, killed should the test fail.
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
    fn stat_is_read_past_a_name_with_brackets_and_spaces() {
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
    fn a_process_that_bears_another_start_time_or_program_is_not_the_one_recorded() {
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
    fn a_process_that_is_not_the_one_recorded_is_not_signalled() {
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
    fn a_stopped_process_does_not_run_though_nobody_waited_for_it() {
        let sleeper = Sleeper::start();
        let record = sleeper.record();
        record.stop(Duration::from_secs(5)).unwrap();
        assert!(!record.is_running());
        record.stop(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_frozen_process_is_there_and_goes_on_once_thawed() {
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
    fn a_program_is_the_same_after_its_file_was_removed() {
        assert!(is_same_program(Path::new("/a/etcd"), Path::new("/a/etcd (deleted)")));
        assert!(!is_same_program(Path::new("/a/etcd"), Path::new("/b/etcd")));
    }
}
