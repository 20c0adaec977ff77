//! Removes what is too old or too much, the oldest first, in slices that each take some tens of milliseconds.
//!
//! A sweep passes all CronJobs once and removes their runs before its horizon. By age, the horizon is the maximum age
//! before now. If the file is nearly full, each sweep moves the horizon by a part of the time that the file covers, until
//! enough is free. Space that is free serves new runs; more than they need is given back to the file system.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use super::{error::HistoryError, sql};

/// Nothing ages faster than this matters.
const SWEEP_EVERY: SignedDuration = SignedDuration::from_hours(1);
/// CronJobs in a slice.
const SLICE_CRON_JOBS: i64 = 1000;
/// Runs that a slice removes. Twenty times more than a cluster with 20,000 CronJobs creates in a second.
const SLICE_RUNS: i64 = 5000;
/// Changes of one CronJob that are kept. A client that changes a CronJob all the time must not fill the file.
const CHANGES_PER_CRON_JOB_MAX: i64 = 1000;
/// The part of the covered time that one sweep removes if the file is nearly full.
const SHRINK_PART: i64 = 16;
/// The least time that such a sweep removes.
const SHRINK_MIN_SECONDS: i64 = 60;

/// When and how far the history is shortened.
pub(super) struct Retention {
    age: SignedDuration,
    n_pages_max: i64,
    /// The sweep that goes on.
    sweep: Option<Sweep>,
    /// When the last sweep began, and the oldest run that it left.
    last: Option<(Timestamp, Option<i64>)>,
    /// Whether the file was nearly full and not enough is free yet.
    is_shrinking: bool,
}

struct Sweep {
    began: Timestamp,
    horizon: Timestamp,
    /// All CronJobs up to this one are done.
    cron_job: i64,
    oldest_left: Option<i64>,
}

impl Retention {
    pub(super) fn new(age: SignedDuration, n_pages_max: i64) -> Retention {
        Retention {
            age,
            n_pages_max,
            sweep: None,
            last: None,
            is_shrinking: false,
        }
    }

    /// Does a slice of what is to do, in one transaction.
    pub(super) fn step(&mut self, connection: &mut Connection, now: Timestamp) -> Result<(), HistoryError> {
        if self.sweep.is_none() {
            let n_free: i64 = connection.query_one("PRAGMA freelist_count", (), |row| row.get(0))?;
            let n_pages: i64 = connection.query_one("PRAGMA page_count", (), |row| row.get(0))?;
            self.sweep = self.next_sweep(n_pages - n_free, now);
            if self.sweep.is_none() {
                return vacuum(connection, n_free, n_pages);
            }
        }
        let Some(sweep) = &mut self.sweep else { return Ok(()) };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let position = sweep.slice(&transaction)?;
        transaction.commit()?;
        match position {
            Position::At { cron_job, oldest_left } => {
                sweep.cron_job = cron_job;
                sweep.oldest_left = oldest_left;
            }
            Position::End => {
                self.last = Some((sweep.began, sweep.oldest_left));
                self.sweep = None;
            }
        }
        Ok(())
    }

    /// The sweep that is due.
    fn next_sweep(&mut self, n_used: i64, now: Timestamp) -> Option<Sweep> {
        // The hard limit is further up, so that the file can grow while sweeps go on.
        let is_nearly_full = n_used > self.n_pages_max / 16 * 15;
        self.is_shrinking = is_nearly_full || self.is_shrinking && n_used > self.n_pages_max / 8 * 7;
        let by_age = now.checked_sub(self.age).unwrap_or(Timestamp::MIN);
        let horizon = match self.last {
            None => by_age,
            Some((_, Some(oldest))) if self.is_shrinking => {
                let part = (now.as_second().saturating_sub(oldest) / SHRINK_PART).max(SHRINK_MIN_SECONDS);
                let by_size = Timestamp::from_second(oldest.saturating_add(part)).unwrap_or(now);
                by_age.max(by_size)
            }
            Some((began, _)) if now.duration_since(began).abs() >= SWEEP_EVERY => by_age,
            Some(_) => return None,
        };
        Some(Sweep {
            began: now,
            horizon,
            cron_job: 0,
            oldest_left: None,
        })
    }
}

/// How far a sweep is.
enum Position {
    At { cron_job: i64, oldest_left: Option<i64> },
    End,
}

impl Sweep {
    fn slice(&self, transaction: &Transaction<'_>) -> Result<Position, HistoryError> {
        // The horizon comes first: from then on no period claims to know of the runs that are removed.
        let horizon_ms = self.horizon.as_millisecond();
        transaction.execute(sql::SET_HORIZON, (horizon_ms,))?;
        transaction.execute(sql::REMOVE_PERIODS, (horizon_ms,))?;
        transaction.execute(sql::REMOVE_FREEZES, (horizon_ms,))?;
        let mut statement = transaction.prepare(sql::NEXT_CRON_JOBS)?;
        let ids = statement.query_map((self.cron_job, SLICE_CRON_JOBS), |row| row.get(0))?;
        let ids: Vec<i64> = ids.collect::<Result<_, _>>()?;
        let mut removal = Removal::new(transaction, self.horizon)?;
        let mut done = None;
        let mut oldest_left = self.oldest_left;
        let mut n_removed_max = SLICE_RUNS;
        for id in ids {
            let n_removed = removal.runs(id, n_removed_max)?;
            n_removed_max -= n_removed;
            if n_removed_max <= 0 {
                // This CronJob may have more.
                let cron_job = done.unwrap_or(self.cron_job);
                return Ok(Position::At { cron_job, oldest_left });
            }
            let oldest = removal.rest(id)?;
            oldest_left = [oldest_left, oldest].into_iter().flatten().min();
            done = Some(id);
        }
        Ok(match done {
            Some(cron_job) => Position::At { cron_job, oldest_left },
            None => Position::End,
        })
    }
}

/// The statements of one slice.
struct Removal<'transaction> {
    horizon: Timestamp,
    runs: rusqlite::Statement<'transaction>,
    oldest_run: rusqlite::Statement<'transaction>,
    changes: rusqlite::Statement<'transaction>,
    deleted_changes: rusqlite::Statement<'transaction>,
    cron_job: rusqlite::Statement<'transaction>,
}

impl<'transaction> Removal<'transaction> {
    fn new(transaction: &'transaction Transaction<'_>, horizon: Timestamp) -> Result<Self, HistoryError> {
        Ok(Removal {
            horizon,
            runs: transaction.prepare(sql::REMOVE_RUNS)?,
            oldest_run: transaction.prepare(sql::OLDEST_RUN)?,
            changes: transaction.prepare(sql::REMOVE_CHANGES)?,
            deleted_changes: transaction.prepare(sql::REMOVE_DELETED_CHANGES)?,
            cron_job: transaction.prepare(sql::REMOVE_CRON_JOB)?,
        })
    }

    /// Removes `n_max` runs of a CronJob, or a few more, and returns their number.
    fn runs(&mut self, cron_job: i64, n_max: i64) -> Result<i64, HistoryError> {
        let n_removed = self.runs.execute((cron_job, self.horizon.as_second(), n_max))?;
        Ok(i64::try_from(n_removed).unwrap_or(n_max))
    }

    /// Removes the changes of a CronJob, and the CronJob if nothing of it is left. Returns its oldest run.
    fn rest(&mut self, cron_job: i64) -> Result<Option<i64>, HistoryError> {
        let horizon_ms = self.horizon.as_millisecond();
        self.changes.execute((cron_job, horizon_ms, CHANGES_PER_CRON_JOB_MAX))?;
        self.deleted_changes.execute((cron_job, horizon_ms))?;
        let oldest: Option<i64> = self.oldest_run.query_one((cron_job,), |row| row.get(0))?;
        if oldest.is_none() {
            self.cron_job.execute((cron_job,))?;
        }
        Ok(oldest)
    }
}

/// Gives a slice of free pages back if an eighth of the file is free.
fn vacuum(connection: &Connection, n_free: i64, n_pages: i64) -> Result<(), HistoryError> {
    const N_FREE_MIN: i64 = 128;
    if n_free > N_FREE_MIN && n_free > n_pages / 8 {
        let mut statement = connection.prepare(sql::INCREMENTAL_VACUUM)?;
        let mut rows = statement.query(())?;
        while rows.next()?.is_some() {}
    }
    Ok(())
}
