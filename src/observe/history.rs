//! Runs beyond the Jobs that a cluster keeps, in an SQLite file for each cluster.
//!
//! [`History`] takes [`Record`]s and never makes the caller wait: a thread writes them, one transaction a second. It
//! never fails the program either. A damaged file is set aside, and if no file can be written, runs are in memory only; a
//! [`Banner`] says so. The file of another application is never touched. What a killed process loses, at most the last second, the kept Jobs repair at the
//! next start.
//!
//! Read in this order: [`sql`], the tables; [`rows`], the columns of a record; [`store`], an open file;
//! [`retention`], what is removed; [`file`](mod@file), a file with its troubles; [`queue`] and [`writer`], the thread;
//! [`reader`], a file that is only read.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};

use super::{facts::Record, view::Banner};

mod error;
mod file;
mod location;
mod queue;
mod reader;
mod retention;
mod rows;
mod sql;
mod store;
#[cfg(test)]
mod tests;
mod writer;

use error::HistoryError;
use file::HistoryFile;
pub use location::{ClusterId, default_path};
use queue::Queue;
pub use reader::{HistoryReader, UnreadableHistory};
use writer::{Command, Shared, WAKE_RECORDS, Writer, lock};

/// The longest time that the end of the program waits for the file.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// How much history is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Runs that were created earlier are removed.
    pub age: SignedDuration,
    /// The maximum size of the file. The oldest runs are removed before it is reached. SQLite's write-ahead log beside
    /// the file takes some 16 MiB more.
    ///
    /// A run takes 41 bytes, and some 20 more if it failed. 1 GiB holds 24 million runs: 30 days of 8,000 CronJobs that
    /// run every 15 minutes, or 12 days of 20,000. All 30 days of the latter, 58 million runs, need 2.5 GiB.
    pub size_bytes: u64,
}

impl Default for Limits {
    /// 30 days and 1 GiB.
    fn default() -> Limits {
        Limits {
            age: SignedDuration::from_hours(30 * 24),
            size_bytes: 1 << 30,
        }
    }
}

/// The history of one cluster.
pub struct History {
    shared: Arc<Shared>,
    /// `None` after the end.
    commands: Option<SyncSender<Command>>,
    finished: Receiver<()>,
}

impl History {
    /// Opens or creates the file. If that fails, [`banners`](Self::banners) says why.
    pub fn open(path: &Path, cluster: &ClusterId, limits: Limits, now: Timestamp) -> History {
        // A relative path would be another file after a change of the working directory.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut file = HistoryFile::new(path, cluster.clone(), limits);
        file.open(now);
        let shared = Arc::new(Shared {
            file: Mutex::new(file),
            queue: Mutex::new(Queue::new(now)),
            banners: Mutex::default(),
        });
        let (commands, receiver) = mpsc::sync_channel(1);
        let (sender, finished) = mpsc::sync_channel(0);
        let writer = Writer::new(Arc::clone(&shared));
        let spawned = thread::Builder::new()
            .name("history".to_owned())
            .spawn(move || writer.run(&receiver, sender));
        let mut file = lock(&shared.file);
        if let Err(error) = spawned {
            file.fail(HistoryError::NoThread(error));
        }
        shared.publish(&file);
        drop(file);
        History {
            shared,
            commands: Some(commands),
            finished,
        }
    }

    /// Hands over records to be written within a second. Call this every second, also without records: `now` is the time
    /// from which the age of runs is counted.
    pub fn record(&self, records: Vec<Record>, now: Timestamp) {
        let n_waiting = lock(&self.shared.queue).add(records, now);
        if n_waiting >= WAKE_RECORDS
            && let Some(commands) = &self.commands
        {
            // If the channel is full, the thread is about to write.
            let _ = commands.try_send(Command::Wake);
        }
    }

    /// What is wrong with the file at the moment, and files that were set aside. Does not wait.
    pub fn banners(&self) -> Vec<Banner> {
        lock(&self.shared.banners).clone()
    }

    /// Passes on what is stored: all changes of CronJobs; the runs that were created since `since`, and for each CronJob
    /// its newest `n_runs_per_cron_job`, the oldest first; the periods of observation.
    ///
    /// Of a CronJob with more runs than that, earlier ones exist in the file. A slot before the oldest run passed on is therefore not known to be lost. The records come one at a time, because
    /// a day of 20,000 CronJobs that run every 15 minutes has two million of them.
    ///
    /// Reads a file and waits for a transaction; not for an asynchronous task.
    pub fn load(&self, since: Timestamp, n_runs_per_cron_job: usize, sink: &mut dyn FnMut(Record)) {
        self.read(|store| store.load(since, n_runs_per_cron_job, sink));
    }

    /// Waits until all records so far are written or could not be. Returns `false` if that takes more than five seconds.
    pub fn flush(&self) -> bool {
        let (done, answer) = mpsc::sync_channel(1);
        let sent = self
            .commands
            .as_ref()
            .is_some_and(|commands| commands.send(Command::Flush(done)).is_ok());
        sent && answer.recv_timeout(CLOSE_MAX).is_ok()
    }

    /// Writes what waits and closes the file, within five seconds. A drop does the same.
    pub fn close(self) {
        drop(self);
    }

    fn read<T>(&self, action: impl FnOnce(&mut store::Store) -> Result<T, HistoryError>) -> Option<T> {
        let mut file = lock(&self.shared.file);
        let now = lock(&self.shared.queue).now();
        let value = file.read(now, action);
        if value.is_none() {
            self.shared.publish(&file);
        }
        value
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.commands = None;
        // An error says that the thread has ended, or that the time is over. Then the process ends without the thread.
        let _ = self.finished.recv_timeout(CLOSE_MAX);
    }
}
