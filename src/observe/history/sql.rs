//! All SQL of the history.
//!
//! A run takes about 41 bytes, so that 30 days of a large cluster fit. Therefore `runs` is ordered by CronJob and time
//! and has no further index: the key serves the upsert of a Job, the newest runs of a CronJob, and the removal of its
//! oldest runs. Names are stored once for each CronJob, times as short differences, and values that most runs share
//! as 0, 1 or NULL, which take no space.

/// Marks our files in the header of SQLite: "cron".
pub(super) const APPLICATION_ID: i32 = 0x6372_6f6e;

/// A part of the tables of each version, by which a damaged file is recognized. SQLite keeps the text of statements.
pub(super) const TABLE_MARK: &str = "horizon INTEGER NOT NULL";

/// The statements that lead from each schema version to the next. The number of entries is the version of this program.
/// A released entry never changes.
pub(super) const MIGRATIONS: &[&str] = &[VERSION_1, VERSION_2, VERSION_3];

const VERSION_1: &str = "
-- One row.
CREATE TABLE history (
    cluster TEXT NOT NULL,           -- the address of the API server
    horizon INTEGER NOT NULL         -- runs before this are removed; milliseconds since 1970
) STRICT;
CREATE TABLE cron_jobs (
    id INTEGER PRIMARY KEY,
    uid ANY NOT NULL UNIQUE,         -- the 16 bytes of a UUID; otherwise text
    namespace TEXT NOT NULL,
    name TEXT NOT NULL
) STRICT;
CREATE TABLE runs (
    cron_job INTEGER NOT NULL,       -- cron_jobs.id
    created INTEGER NOT NULL,        -- seconds since 1970
    job_uid ANY NOT NULL,            -- as cron_jobs.uid
    job_name TEXT,                   -- NULL: the name that follows from CronJob and slot
    slot INTEGER,                    -- seconds from the slot to the creation; NULL: no slot
    started INTEGER,                 -- seconds after the creation
    finished INTEGER,                -- seconds after the creation
    result ANY NOT NULL,             -- 0 running, 1 succeeded, 2 deleted, 3 gone; text: failed, with this reason
    creator ANY NOT NULL,            -- 0 kube-controller-manager, 1 cronwheel; text: another field manager
    hindrance ANY,                   -- NULL none, 0 suspended, 1 terminating; text: the finalizers that hold the Job
    PRIMARY KEY (cron_job, created, job_uid)
) STRICT, WITHOUT ROWID;
CREATE TABLE changes (
    cron_job INTEGER NOT NULL,
    at INTEGER NOT NULL,             -- milliseconds since 1970
    schedule TEXT NOT NULL,
    time_zone TEXT,
    is_suspended INTEGER NOT NULL,
    concurrency_policy INTEGER NOT NULL, -- 0 Allow, 1 Forbid, 2 Replace
    starting_deadline_seconds INTEGER,
    is_deleted INTEGER NOT NULL,
    PRIMARY KEY (cron_job, at)
) STRICT, WITHOUT ROWID;
-- Periods in which both watches were current.
CREATE TABLE periods (
    started INTEGER PRIMARY KEY,     -- milliseconds since 1970
    ended INTEGER NOT NULL
) STRICT;
";

/// Of the periods of version 1 nobody knows the namespaces.
const VERSION_2: &str = "
-- The namespaces that were watched, by name and with commas; NULL: all.
ALTER TABLE periods ADD COLUMN namespaces TEXT;
UPDATE periods SET namespaces = '';
";

const VERSION_3: &str = "
-- Freezes of namespaces, as far as they were observed. Times in seconds since 1970.
CREATE TABLE freezes (
    namespace TEXT NOT NULL,
    began INTEGER NOT NULL,          -- it had begun by then
    earliest_begin INTEGER NOT NULL,
    ended INTEGER NOT NULL,          -- it still held until then
    latest_end INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (namespace, began)
) STRICT, WITHOUT ROWID;
";

/// Before anything is read. The exclusive lock is SQLite's own, and ends with the process. WAL with `NORMAL` is
/// consistent after a kill and after a power failure; only the latter can lose transactions that were committed. A
/// checkpoint every 16 MiB writes a page once that many transactions changed.
pub(super) const SETTINGS: &str = "
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA synchronous = NORMAL;
PRAGMA cache_size = -8192;
PRAGMA wal_autocheckpoint = 4096;
PRAGMA journal_size_limit = 16777216;
PRAGMA temp_store = MEMORY;
PRAGMA trusted_schema = OFF;
PRAGMA cell_size_check = ON;
";

/// Before the first table: free pages can be given back to the file system in slices.
pub(super) const AUTO_VACUUM: &str = "PRAGMA auto_vacuum = INCREMENTAL";

pub(super) const N_TABLES: &str = "SELECT count(*) FROM sqlite_schema";
pub(super) const QUICK_CHECK: &str = "PRAGMA quick_check(1)";

pub(super) const CLUSTER: &str = "SELECT cluster FROM history";
pub(super) const INSERT_CLUSTER: &str =
    "INSERT INTO history (cluster, horizon) SELECT ?1, -9223372036854775808 WHERE NOT EXISTS (SELECT 1 FROM history)";
pub(super) const SET_HORIZON: &str = "UPDATE history SET horizon = max(horizon, ?1)";

pub(super) const CRON_JOB_ID: &str = "SELECT id FROM cron_jobs WHERE uid = ?1";
pub(super) const INSERT_CRON_JOB: &str = "INSERT INTO cron_jobs (uid, namespace, name) VALUES (?1, ?2, ?3)";
pub(super) const CRON_JOBS: &str = "SELECT id, uid, namespace, name FROM cron_jobs ORDER BY id";

pub(super) const UPSERT_RUN: &str = "
INSERT INTO runs (cron_job, created, job_uid, job_name, slot, started, finished, result, creator, hindrance)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT DO UPDATE SET job_name = excluded.job_name, slot = excluded.slot, started = excluded.started,
    finished = excluded.finished, result = excluded.result, creator = excluded.creator, hindrance = excluded.hindrance";
/// The runs of a CronJob, the oldest first: those since ?2, and those among the newest ?3.
pub(super) const RUNS_SINCE: &str = "
SELECT created, job_uid, job_name, slot, started, finished, result, creator, hindrance FROM runs
WHERE cron_job = ?1 AND created >= min(?2, ifnull(
    (SELECT created FROM runs WHERE cron_job = ?1 ORDER BY created DESC LIMIT 1 OFFSET ?3 - 1),
    -9223372036854775808))
ORDER BY created";

/// A change that says what the latest one says is not stored.
pub(super) const INSERT_CHANGE: &str = "
INSERT OR REPLACE INTO changes (cron_job, at, schedule, time_zone, is_suspended, concurrency_policy,
    starting_deadline_seconds, is_deleted)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 WHERE NOT EXISTS (
    SELECT 1 FROM (SELECT * FROM changes WHERE cron_job = ?1 ORDER BY at DESC LIMIT 1)
    WHERE schedule = ?3 AND time_zone IS ?4 AND is_suspended = ?5 AND concurrency_policy = ?6
        AND starting_deadline_seconds IS ?7 AND is_deleted = ?8)";
pub(super) const CHANGES: &str = "
SELECT uid, namespace, name, at, schedule, time_zone, is_suspended, concurrency_policy, starting_deadline_seconds,
    is_deleted
FROM changes JOIN cron_jobs ON id = cron_job ORDER BY cron_job, at";

pub(super) const UPSERT_FREEZE: &str = "
INSERT OR REPLACE INTO freezes (namespace, began, earliest_begin, ended, latest_end, reason)
VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
pub(super) const FREEZES: &str = "
SELECT namespace, began, earliest_begin, ended, latest_end, reason FROM freezes, history
WHERE latest_end * 1000 > horizon ORDER BY namespace, began";
pub(super) const REMOVE_FREEZES: &str = "DELETE FROM freezes WHERE latest_end * 1000 <= ?1";

pub(super) const UPSERT_PERIOD: &str = "
INSERT INTO periods (started, ended, namespaces) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET ended = max(ended, excluded.ended), namespaces = excluded.namespaces";
/// Runs before the horizon are removed, so nothing is known of that time.
pub(super) const PERIODS: &str = "
SELECT max(started, horizon), ended, namespaces FROM periods, history WHERE ended > horizon ORDER BY started";

pub(super) const REMOVE_PERIODS: &str = "DELETE FROM periods WHERE ended <= ?1";
pub(super) const NEXT_CRON_JOBS: &str = "SELECT id FROM cron_jobs WHERE id > ?1 ORDER BY id LIMIT ?2";
/// The oldest ?3 runs of a CronJob before ?2, and those of the same second.
pub(super) const REMOVE_RUNS: &str = "
DELETE FROM runs WHERE cron_job = ?1 AND created < ?2 AND created <= ifnull(
    (SELECT created FROM runs WHERE cron_job = ?1 AND created < ?2 ORDER BY created LIMIT 1 OFFSET ?3 - 1),
    9223372036854775807)";
pub(super) const OLDEST_RUN: &str = "SELECT min(created) FROM runs WHERE cron_job = ?1";
/// The last change before ?2 stays, because it applies at ?2. At most ?3 later ones stay.
pub(super) const REMOVE_CHANGES: &str = "
DELETE FROM changes WHERE cron_job = ?1 AND at < max(
    ifnull((SELECT max(at) FROM changes WHERE cron_job = ?1 AND at <= ?2), -9223372036854775808),
    ifnull((SELECT at FROM changes WHERE cron_job = ?1 ORDER BY at DESC LIMIT 1 OFFSET ?3 - 1), -9223372036854775808))";
/// A CronJob that was deleted before ?2, or of which only the name is left.
pub(super) const REMOVE_DELETED_CHANGES: &str = "
DELETE FROM changes WHERE cron_job = ?1 AND at <= ?2 AND is_deleted
    AND at = (SELECT max(at) FROM changes WHERE cron_job = ?1)";
pub(super) const REMOVE_CRON_JOB: &str = "
DELETE FROM cron_jobs WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM runs WHERE cron_job = ?1)
    AND NOT EXISTS (SELECT 1 FROM changes WHERE cron_job = ?1)";
pub(super) const INCREMENTAL_VACUUM: &str = "PRAGMA incremental_vacuum(256)";
