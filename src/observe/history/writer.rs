//! The thread that writes: one transaction a second, and a slice of the retention.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender},
    },
    time::Duration,
};

use super::{
    file::{HistoryFile, warning},
    queue::Queue,
};
use crate::observe::{facts::Record, view::Banner};

/// The time between two transactions. A process that is killed loses at most this.
const PERIOD: Duration = Duration::from_secs(1);
/// Seconds between two attempts to write a file that could not be written.
pub(super) const RETRY_SECONDS: u32 = 10;
/// Records in one transaction. More take several, so that a reader never waits longer than a tenth of a second.
const TRANSACTION_RECORDS_MAX: usize = 5000;
/// The queue wakes the thread when this many records wait, before the period is over.
pub(super) const WAKE_RECORDS: usize = 20_000;

/// What the caller and the thread share. Whoever needs several locks takes them in this order.
pub(super) struct Shared {
    pub(super) file: Mutex<HistoryFile>,
    pub(super) queue: Mutex<Queue>,
    pub(super) banners: Mutex<Vec<Banner>>,
}

/// A wish of the caller.
pub(super) enum Command {
    /// Write before the period is over.
    Wake,
    /// Write, even if the last attempt failed just before, and answer.
    Flush(SyncSender<()>),
}

impl Shared {
    /// Updates the banners, so that the page can read them without waiting for the file.
    pub(super) fn publish(&self, file: &HistoryFile) {
        let mut banners = file.banners();
        let n_lost = lock(&self.queue).n_lost();
        if n_lost > 0 {
            banners.push(warning(format!(
                "The history lacks {n_lost} changes of Jobs and CronJobs, because they came faster than the file could \
                 be written. Slots of that time are shown as unknown after a restart."
            )));
        }
        *lock(&self.banners) = banners;
    }
}

/// Locks. What these locks protect is whole between any two statements, so a panic elsewhere does not matter.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state of the thread.
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// Taken from the queue and not written yet.
    unwritten: Vec<Record>,
    /// Periods until the next attempt.
    n_periods_to_wait: u32,
}

impl Writer {
    pub(super) fn new(shared: Arc<Shared>) -> Writer {
        Writer {
            shared,
            unwritten: Vec::new(),
            n_periods_to_wait: 0,
        }
    }

    /// Runs until the sender of commands is dropped. The receiver of `_finished` sees that this has ended.
    pub(super) fn run(mut self, commands: &Receiver<Command>, _finished: SyncSender<()>) {
        loop {
            match commands.recv_timeout(PERIOD) {
                Ok(Command::Wake) if self.n_periods_to_wait > 0 => {}
                Ok(Command::Wake) => self.write(),
                Ok(Command::Flush(done)) => {
                    self.write();
                    // Whoever does not wait any more needs no answer.
                    let _ = done.try_send(());
                }
                Err(RecvTimeoutError::Timeout) => self.period(),
                Err(RecvTimeoutError::Disconnected) => {
                    self.write();
                    lock(&self.shared.file).close();
                    return;
                }
            }
        }
    }

    fn period(&mut self) {
        match self.n_periods_to_wait.checked_sub(1) {
            Some(n_periods) => self.n_periods_to_wait = n_periods,
            None => self.write(),
        }
        let mut file = lock(&self.shared.file);
        let now = lock(&self.shared.queue).now();
        // A full file has room again after this, and the next attempt to write clears the banner.
        let _ = file.read(now, |store| store.retain(now));
        self.shared.publish(&file);
    }

    /// Writes all records, or as many as can be written.
    fn write(&mut self) {
        self.n_periods_to_wait = 0;
        while self.n_periods_to_wait == 0 {
            let mut file = lock(&self.shared.file);
            let mut queue = lock(&self.shared.queue);
            let now = queue.now();
            if self.unwritten.is_empty() {
                self.unwritten = queue.take();
            }
            drop(queue);
            let n_records = self.unwritten.len().min(TRANSACTION_RECORDS_MAX);
            let is_written = file.open(now)
                && (n_records == 0 || file.write(now, |store| store.write(&self.unwritten[..n_records])));
            if is_written {
                self.unwritten.drain(..n_records);
                lock(&self.shared.queue).written(n_records);
            } else {
                self.n_periods_to_wait = RETRY_SECONDS - 1;
            }
            self.shared.publish(&file);
            if n_records == 0 {
                return;
            }
        }
    }
}
