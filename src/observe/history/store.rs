//! One open history file: opens, checks and migrates it, writes records and reads them.

use std::{path::Path, time::Duration};

use jiff::Timestamp;
use rusqlite::{Connection, MAIN_DB, OpenFlags, OptionalExtension, TransactionBehavior};

use super::{
    Limits,
    error::HistoryError,
    location::{self, ClusterId},
    retention::Retention,
    rows, sql,
};
use crate::observe::facts::Record;

/// A file up to this size is checked as a whole when it is opened, which takes up to a second on a busy machine. In a
/// larger one, damage is found when it is read.
const CHECKED_BYTES_MAX: i64 = 16 << 20;
/// A smaller limit would leave no room for runs beside the tables.
const SIZE_MIN_BYTES: u64 = 256 << 10;

/// An open history file. While it exists, no other process can open the file.
pub(super) struct Store {
    connection: Connection,
    retention: Retention,
}

impl Store {
    pub(super) fn open(path: &Path, cluster: &ClusterId, limits: Limits) -> Result<Store, HistoryError> {
        location::create(path).map_err(HistoryError::NotCreated)?;
        match location::application_id(path).map_err(HistoryError::NotRead)? {
            None | Some(sql::APPLICATION_ID) => {}
            Some(_) if location::is_damaged_history(path, cluster).map_err(HistoryError::NotRead)? => {
                return Err(HistoryError::NoHeader);
            }
            Some(_) => return Err(HistoryError::Foreign),
        }
        let mut connection = connect(path)?;
        prepare_schema(&mut connection, sql::MIGRATIONS)?;
        check(&connection)?;
        let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
        debug_assert_eq!(mode, "wal");
        let page_bytes: u64 = connection
            .query_one("PRAGMA page_size", (), |row| row.get::<_, u32>(0))?
            .into();
        let size_bytes = limits.size_bytes.max(SIZE_MIN_BYTES);
        let n_pages_max = i64::try_from(size_bytes / page_bytes).unwrap_or(i64::MAX);
        connection.pragma_update_and_check(None, "max_page_count", n_pages_max, |_| Ok(()))?;
        check_cluster(&connection, cluster)?;
        let retention = Retention::new(limits.age, n_pages_max);
        Ok(Store { connection, retention })
    }

    /// Opens a file that exists, only to read it. SQLite still needs its lock, and moves what a killed process left in
    /// the WAL into the file; what the file says does not change.
    pub(super) fn open_to_read(path: &Path, cluster: &ClusterId) -> Result<Store, HistoryError> {
        match location::application_id(path).map_err(HistoryError::NotRead)? {
            None => return Err(HistoryError::Empty),
            Some(sql::APPLICATION_ID) => {}
            Some(_) if location::is_damaged_history(path, cluster).map_err(HistoryError::NotRead)? => {
                return Err(HistoryError::NoHeader);
            }
            Some(_) => return Err(HistoryError::Foreign),
        }
        let connection = connect(path)?;
        connection.pragma_update(None, "query_only", true)?;
        if schema_version(&connection, sql::MIGRATIONS.len())? < sql::MIGRATIONS.len() {
            return Err(HistoryError::Older);
        }
        check(&connection)?;
        compare_cluster(&connection, cluster)?;
        let retention = Retention::new(Limits::default().age, i64::MAX);
        Ok(Store { connection, retention })
    }

    /// Writes records in one transaction.
    pub(super) fn write(&mut self, records: &[Record]) -> Result<(), HistoryError> {
        let behavior = TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(behavior)?;
        let mut writer = rows::Writer::new(&transaction)?;
        for record in records {
            writer.write(record)?;
        }
        drop(writer);
        Ok(transaction.commit()?)
    }

    /// Removes a slice of what is too old or too much.
    pub(super) fn retain(&mut self, now: Timestamp) -> Result<(), HistoryError> {
        self.retention.step(&mut self.connection, now)
    }

    /// Passes on the changes, the runs, the freezes and the periods of observation, in this order: if the file turns out to be damaged,
    /// no period may claim that there were no other runs.
    pub(super) fn load(
        &self,
        since: Timestamp,
        n_runs_per_cron_job: usize,
        sink: &mut dyn FnMut(Record),
    ) -> Result<(), HistoryError> {
        let mut statement = self.connection.prepare(sql::CHANGES)?;
        let mut changes = statement.query(())?;
        while let Some(row) = changes.next()? {
            sink(Record::Change(rows::read_change(row)?));
        }
        let n_newest = i64::try_from(n_runs_per_cron_job).unwrap_or(i64::MAX).max(1);
        let mut runs = self.connection.prepare(sql::RUNS_SINCE)?;
        let mut statement = self.connection.prepare(sql::CRON_JOBS)?;
        let mut cron_jobs = statement.query(())?;
        while let Some(row) = cron_jobs.next()? {
            let cron_job = rows::read_cron_job(row)?;
            let mut runs = runs.query((cron_job.id, since.as_second(), n_newest))?;
            while let Some(row) = runs.next()? {
                sink(Record::Run {
                    namespace: cron_job.namespace.clone(),
                    cron_job_name: cron_job.name.clone(),
                    run: rows::read_run(row, &cron_job)?,
                });
            }
        }
        let mut statement = self.connection.prepare(sql::FREEZES)?;
        let mut freezes = statement.query(())?;
        while let Some(row) = freezes.next()? {
            sink(Record::Freeze(rows::read_freeze(row)?));
        }
        let mut statement = self.connection.prepare(sql::PERIODS)?;
        let mut periods = statement.query(())?;
        while let Some(row) = periods.next()? {
            sink(Record::Observation(rows::read_observation(row)?));
        }
        Ok(())
    }

    /// The connection, to look into the file and to make it fail.
    #[cfg(test)]
    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

fn connect(path: &Path) -> Result<Connection, HistoryError> {
    // Without `SQLITE_OPEN_URI`, and with an absolute path, a name is never a URI.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::ZERO)?;
    if connection.is_readonly(MAIN_DB)? {
        return Err(HistoryError::ReadOnly);
    }
    connection.execute_batch(sql::SETTINGS)?;
    Ok(connection)
}

/// Creates the tables in an empty file, and leads an older version to the last one. Changes no other file.
pub(super) fn prepare_schema(connection: &mut Connection, migrations: &[&str]) -> Result<(), HistoryError> {
    let latest = migrations.len();
    let from = schema_version(connection, latest)?;
    if from == latest {
        return Ok(());
    }
    if from == 0 {
        connection.execute_batch(sql::AUTO_VACUUM)?;
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
    for migration in &migrations[from..] {
        transaction.execute_batch(migration)?;
    }
    transaction.pragma_update(None, "application_id", sql::APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", i64::try_from(latest).unwrap_or(i64::MAX))?;
    Ok(transaction.commit()?)
}

/// The schema version of a file, at most `latest`; 0 for an empty file.
fn schema_version(connection: &Connection, latest: usize) -> Result<usize, HistoryError> {
    let application_id: i32 = connection.query_one("PRAGMA application_id", (), |row| row.get(0))?;
    let version: i64 = connection.query_one("PRAGMA user_version", (), |row| row.get(0))?;
    let n_tables: i64 = connection.query_one(sql::N_TABLES, (), |row| row.get(0))?;
    match usize::try_from(version) {
        Ok(0) if n_tables == 0 => Ok(0),
        Ok(from) if from > 0 && application_id == sql::APPLICATION_ID => {
            let is_known = from <= latest;
            is_known.then_some(from).ok_or(HistoryError::Newer(version))
        }
        _ if application_id == sql::APPLICATION_ID => Err(HistoryError::NoHeader),
        _ => Err(HistoryError::Foreign),
    }
}

fn check(connection: &Connection) -> Result<(), HistoryError> {
    let n_pages: i64 = connection.query_one("PRAGMA page_count", (), |row| row.get(0))?;
    let page_bytes: i64 = connection.query_one("PRAGMA page_size", (), |row| row.get(0))?;
    if n_pages.saturating_mul(page_bytes) > CHECKED_BYTES_MAX {
        return Ok(());
    }
    let mut statement = connection.prepare(sql::QUICK_CHECK)?;
    let mut rows = statement.query(())?;
    let verdict: Option<String> = rows.next()?.map(|row| row.get(0)).transpose()?;
    match verdict {
        Some(verdict) if verdict != "ok" => Err(HistoryError::FailedCheck(verdict)),
        _ => Ok(()),
    }
}

fn check_cluster(connection: &Connection, cluster: &ClusterId) -> Result<(), HistoryError> {
    connection.execute(sql::INSERT_CLUSTER, (cluster.server(),))?;
    compare_cluster(connection, cluster)
}

fn compare_cluster(connection: &Connection, cluster: &ClusterId) -> Result<(), HistoryError> {
    let stored: Option<String> = connection.query_row(sql::CLUSTER, (), |row| row.get(0)).optional()?;
    match stored {
        Some(stored) if stored != cluster.server() => Err(HistoryError::OtherCluster { cluster: stored }),
        _ => Ok(()),
    }
}
