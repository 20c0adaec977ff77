//! Records to columns and back. [`sql`](super::sql) describes the columns.

use jiff::{SignedDuration, Timestamp};
use rusqlite::{
    Row, Statement, Transaction,
    types::{ToSqlOutput, Value, ValueRef},
};

use super::{error::HistoryError, sql};
use crate::{
    observe::facts::{Creator, CronJobChange, FreezeSpan, Hindrance, Observation, Record, Run, RunResult},
    schedule::ConcurrencyPolicy,
    shard::{Uid, naming},
};

/// Maximum length of a text, in bytes. Names are shorter. Finalizers of a Job can be as long as the Job, and are cut.
const TEXT_LENGTH_MAX: usize = 1024;

/// A row of `cron_jobs`.
pub(super) struct CronJobRow {
    pub(super) id: i64,
    pub(super) uid: Uid,
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
}

/// The value of a column that has a number for what is frequent, and otherwise a text.
enum Cell {
    Number(i64),
    Text(Box<str>),
}

/// The statements of one transaction.
pub(super) struct Writer<'transaction> {
    transaction: &'transaction Transaction<'transaction>,
    cron_job_id: Statement<'transaction>,
    upsert_run: Statement<'transaction>,
    insert_change: Statement<'transaction>,
    upsert_freeze: Statement<'transaction>,
    upsert_period: Statement<'transaction>,
}

impl<'transaction> Writer<'transaction> {
    pub(super) fn new(transaction: &'transaction Transaction<'transaction>) -> Result<Self, HistoryError> {
        Ok(Writer {
            transaction,
            cron_job_id: transaction.prepare(sql::CRON_JOB_ID)?,
            upsert_run: transaction.prepare(sql::UPSERT_RUN)?,
            insert_change: transaction.prepare(sql::INSERT_CHANGE)?,
            upsert_freeze: transaction.prepare(sql::UPSERT_FREEZE)?,
            upsert_period: transaction.prepare(sql::UPSERT_PERIOD)?,
        })
    }

    pub(super) fn write(&mut self, record: &Record) -> Result<(), HistoryError> {
        match record {
            Record::Run {
                namespace,
                cron_job_name,
                run,
            } => self.write_run(namespace, cron_job_name, run),
            Record::Change(change) => self.write_change(change),
            Record::Freeze(span) => self.write_freeze(span),
            Record::Observation(Observation { from, to, namespaces }) => {
                self.upsert_period
                    .execute((from.as_millisecond(), to.as_millisecond(), namespaces))?;
                Ok(())
            }
        }
    }

    fn write_run(&mut self, namespace: &str, cron_job_name: &str, run: &Run) -> Result<(), HistoryError> {
        let Run {
            job_uid,
            job_name,
            cron_job,
            slot,
            created,
            started,
            finished,
            result,
            creator,
            hindrance,
        } = run;
        let cron_job = self.cron_job_id(cron_job, namespace, cron_job_name)?;
        let created = created.as_second();
        let follows = slot.is_some_and(|slot| naming::is_job_name(job_name, cron_job_name, slot));
        self.upsert_run.execute((
            cron_job,
            created,
            uid_value(job_uid),
            (!follows).then(|| bounded(job_name)),
            slot.map(|slot| created - slot.as_second()),
            started.map(|started| started.as_second() - created),
            finished.map(|finished| finished.as_second() - created),
            result_value(result),
            creator_value(creator),
            hindrance.as_ref().map(hindrance_value),
        ))?;
        Ok(())
    }

    fn write_change(&mut self, change: &CronJobChange) -> Result<(), HistoryError> {
        let CronJobChange {
            at,
            cron_job,
            namespace,
            name,
            schedule,
            time_zone,
            is_suspended,
            concurrency_policy,
            starting_deadline_seconds,
            is_deleted,
        } = change;
        let cron_job = self.cron_job_id(cron_job, namespace, name)?;
        self.insert_change.execute((
            cron_job,
            at.as_millisecond(),
            bounded(schedule),
            time_zone.as_deref().map(bounded),
            is_suspended,
            policy_number(*concurrency_policy),
            starting_deadline_seconds,
            is_deleted,
        ))?;
        Ok(())
    }

    fn write_freeze(&mut self, span: &FreezeSpan) -> Result<(), HistoryError> {
        let FreezeSpan {
            namespace,
            earliest_begin,
            from,
            until,
            latest_end,
            reason,
        } = span;
        self.upsert_freeze.execute((
            bounded(namespace),
            from.as_second(),
            earliest_begin.as_second(),
            until.as_second(),
            latest_end.as_second(),
            bounded(reason),
        ))?;
        Ok(())
    }

    fn cron_job_id(&mut self, uid: &Uid, namespace: &str, name: &str) -> Result<i64, HistoryError> {
        let mut rows = self.cron_job_id.query((uid_value(uid),))?;
        if let Some(row) = rows.next()? {
            return Ok(row.get(0)?);
        }
        drop(rows);
        let columns = (uid_value(uid), bounded(namespace), bounded(name));
        self.transaction.execute(sql::INSERT_CRON_JOB, columns)?;
        Ok(self.transaction.last_insert_rowid())
    }
}

/// Reads the columns `id`, `uid`, `namespace`, `name`.
pub(super) fn read_cron_job(row: &Row<'_>) -> Result<CronJobRow, HistoryError> {
    Ok(CronJobRow {
        id: row.get(0)?,
        uid: read_uid(row.get_ref(1)?)?,
        namespace: row.get(2)?,
        name: row.get(3)?,
    })
}

/// Reads the columns of `runs` from `created` to `hindrance`.
pub(super) fn read_run(row: &Row<'_>, cron_job: &CronJobRow) -> Result<Run, HistoryError> {
    let created = timestamp(row.get(0)?)?;
    let slot = row.get::<_, Option<i64>>(3)?.map(i64::saturating_neg);
    let slot = slot.map(|seconds| after(created, seconds)).transpose()?;
    let moment = |column: usize| -> Result<Option<Timestamp>, HistoryError> {
        let seconds: Option<i64> = row.get(column)?;
        seconds.map(|seconds| after(created, seconds)).transpose()
    };
    let job_name = match (row.get::<_, Option<Box<str>>>(2)?, slot) {
        (Some(name), _) => name,
        (None, Some(slot)) => naming::job_name(&cron_job.name, slot),
        (None, None) => return Err(HistoryError::Implausible { column: "job_name" }),
    };
    Ok(Run {
        job_uid: read_uid(row.get_ref(1)?)?,
        job_name,
        cron_job: cron_job.uid.clone(),
        slot,
        created,
        started: moment(4)?,
        finished: moment(5)?,
        result: match cell(row.get_ref(6)?, "result")? {
            Cell::Number(0) => RunResult::Running,
            Cell::Number(1) => RunResult::Succeeded,
            Cell::Number(2) => RunResult::Deleted,
            Cell::Number(_) => RunResult::Gone,
            Cell::Text(reason) => RunResult::Failed(reason),
        },
        creator: match cell(row.get_ref(7)?, "creator")? {
            Cell::Number(0) => Creator::BuiltIn,
            Cell::Number(_) => Creator::Cronwheel,
            Cell::Text(manager) => Creator::Other(manager),
        },
        hindrance: read_hindrance(row.get_ref(8)?)?,
    })
}

fn read_hindrance(value: ValueRef<'_>) -> Result<Option<Hindrance>, HistoryError> {
    if value == ValueRef::Null {
        return Ok(None);
    }
    Ok(Some(match cell(value, "hindrance")? {
        Cell::Number(0) => Hindrance::Suspended,
        Cell::Number(_) => Hindrance::Terminating,
        Cell::Text(finalizers) => Hindrance::HeldByFinalizers(finalizers),
    }))
}

/// Reads the columns of `sql::CHANGES`.
pub(super) fn read_change(row: &Row<'_>) -> Result<CronJobChange, HistoryError> {
    Ok(CronJobChange {
        cron_job: read_uid(row.get_ref(0)?)?,
        namespace: row.get(1)?,
        name: row.get(2)?,
        at: timestamp_ms(row.get(3)?)?,
        schedule: row.get(4)?,
        time_zone: row.get(5)?,
        is_suspended: row.get(6)?,
        concurrency_policy: match row.get(7)? {
            0i64 => ConcurrencyPolicy::Allow,
            1 => ConcurrencyPolicy::Forbid,
            2 => ConcurrencyPolicy::Replace,
            _ => {
                return Err(HistoryError::Implausible {
                    column: "concurrency_policy",
                });
            }
        },
        starting_deadline_seconds: row.get(8)?,
        is_deleted: row.get(9)?,
    })
}

/// Reads the columns of `sql::FREEZES`.
pub(super) fn read_freeze(row: &Row<'_>) -> Result<FreezeSpan, HistoryError> {
    Ok(FreezeSpan {
        namespace: row.get(0)?,
        from: timestamp(row.get(1)?)?,
        earliest_begin: timestamp(row.get(2)?)?,
        until: timestamp(row.get(3)?)?,
        latest_end: timestamp(row.get(4)?)?,
        reason: row.get(5)?,
    })
}

/// Reads the start, the end and the namespaces of a period.
pub(super) fn read_observation(row: &Row<'_>) -> Result<Observation, HistoryError> {
    Ok(Observation {
        from: timestamp_ms(row.get(0)?)?,
        to: timestamp_ms(row.get(1)?)?,
        namespaces: row.get(2)?,
    })
}

pub(super) fn uid_value(uid: &Uid) -> ToSqlOutput<'_> {
    match uid.uuid_bytes() {
        Some(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        None => ToSqlOutput::Owned(Value::Text(bounded(&uid.to_string()).to_owned())),
    }
}

fn read_uid(value: ValueRef<'_>) -> Result<Uid, HistoryError> {
    if let ValueRef::Blob(bytes) = value {
        let bytes = bytes
            .try_into()
            .map_err(|_| HistoryError::Implausible { column: "uid" })?;
        return Ok(Uid::from_uuid_bytes(bytes));
    }
    Ok(Uid::new(&text(value, "uid")?))
}

fn result_value(result: &RunResult) -> ToSqlOutput<'_> {
    match result {
        RunResult::Running => number_value(0),
        RunResult::Succeeded => number_value(1),
        RunResult::Deleted => number_value(2),
        RunResult::Gone => number_value(3),
        RunResult::Failed(reason) => text_value(reason),
    }
}

fn creator_value(creator: &Creator) -> ToSqlOutput<'_> {
    match creator {
        Creator::BuiltIn => number_value(0),
        Creator::Cronwheel => number_value(1),
        Creator::Other(manager) => text_value(manager),
    }
}

fn hindrance_value(hindrance: &Hindrance) -> ToSqlOutput<'_> {
    match hindrance {
        Hindrance::Suspended => number_value(0),
        Hindrance::Terminating => number_value(1),
        Hindrance::HeldByFinalizers(finalizers) => text_value(finalizers),
    }
}

fn policy_number(policy: ConcurrencyPolicy) -> i64 {
    match policy {
        ConcurrencyPolicy::Allow => 0,
        ConcurrencyPolicy::Forbid => 1,
        ConcurrencyPolicy::Replace => 2,
    }
}

fn number_value(number: i64) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(Value::Integer(number))
}

fn text_value(text: &str) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(ValueRef::Text(bounded(text).as_bytes()))
}

fn bounded(text: &str) -> &str {
    &text[..text.floor_char_boundary(TEXT_LENGTH_MAX)]
}

fn cell(value: ValueRef<'_>, column: &'static str) -> Result<Cell, HistoryError> {
    match value.as_i64() {
        Ok(number) => Ok(Cell::Number(number)),
        Err(_) => Ok(Cell::Text(text(value, column)?)),
    }
}

fn text(value: ValueRef<'_>, column: &'static str) -> Result<Box<str>, HistoryError> {
    let text = value.as_str().map_err(|_| HistoryError::Implausible { column })?;
    Ok(text.into())
}

fn timestamp(seconds: i64) -> Result<Timestamp, HistoryError> {
    Timestamp::from_second(seconds).map_err(|_| HistoryError::Implausible { column: "created" })
}

fn timestamp_ms(milliseconds: i64) -> Result<Timestamp, HistoryError> {
    Timestamp::from_millisecond(milliseconds).map_err(|_| HistoryError::Implausible { column: "at" })
}

fn after(created: Timestamp, seconds: i64) -> Result<Timestamp, HistoryError> {
    let sum = created.checked_add(SignedDuration::from_secs(seconds));
    sum.map_err(|_| HistoryError::Implausible { column: "slot" })
}
