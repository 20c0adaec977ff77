-- A history file of schema version 1.
PRAGMA application_id = 1668444014;
PRAGMA user_version = 1;
CREATE TABLE history (
cluster TEXT NOT NULL,
horizon INTEGER NOT NULL
) STRICT;
CREATE TABLE cron_jobs (
id INTEGER PRIMARY KEY,
uid ANY NOT NULL UNIQUE,
namespace TEXT NOT NULL,
name TEXT NOT NULL
) STRICT;
CREATE TABLE runs (
cron_job INTEGER NOT NULL,
created INTEGER NOT NULL,
job_uid ANY NOT NULL,
job_name TEXT,
slot INTEGER,
started INTEGER,
finished INTEGER,
result ANY NOT NULL,
creator ANY NOT NULL,
hindrance ANY,
PRIMARY KEY (cron_job, created, job_uid)
) STRICT, WITHOUT ROWID;
CREATE TABLE changes (
cron_job INTEGER NOT NULL,
at INTEGER NOT NULL,
schedule TEXT NOT NULL,
time_zone TEXT,
is_suspended INTEGER NOT NULL,
concurrency_policy INTEGER NOT NULL,
starting_deadline_seconds INTEGER,
is_deleted INTEGER NOT NULL,
PRIMARY KEY (cron_job, at)
) STRICT, WITHOUT ROWID;
CREATE TABLE periods (
started INTEGER PRIMARY KEY,
ended INTEGER NOT NULL
) STRICT;
INSERT INTO history VALUES ('https://127.0.0.1:6443', -9223372036854775808);
INSERT INTO cron_jobs VALUES (1, x'02020202020202020202020202020202', 'default', 'job-1');
-- 2026-11-27T11:00:01Z
INSERT INTO runs VALUES (1, 1795777201, x'01010101010101010101010101010101', NULL, 1, 0, 89, 1, 0, NULL);
INSERT INTO runs VALUES (1, 1795777260, 'text', 'by-hand', NULL, NULL, NULL, 'BackoffLimitExceeded', 'kubectl-create', NULL);
INSERT INTO changes VALUES (1, 1795777200000, '* * * * *', NULL, 0, 0, NULL, 0);
INSERT INTO periods VALUES (1795773600000, 1795780800000);
