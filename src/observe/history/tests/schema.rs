//! Schema versions.

use rusqlite::Connection;

use super::*;
use crate::observe::history::{sql::MIGRATIONS, store::prepare_schema};

/// A file of schema version 1, as the first release wrote it. It never changes.
const VERSION_1: &str = include_str!("version_1.sql");

fn version_1(test: &str) -> (Folder, Connection) {
    let folder = Folder::new(&format!("version-1-{test}"));
    let connection = Connection::open(folder.file()).unwrap();
    connection.execute_batch(VERSION_1).unwrap();
    (folder, connection)
}

fn schema(connection: &Connection) -> Vec<String> {
    let mut statement = connection
        .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name")
        .unwrap();
    let rows = statement.query_map((), |row| row.get::<_, String>(0)).unwrap();
    // Without comments and line breaks.
    let plain = |sql: String| -> String {
        let lines = sql
            .lines()
            .map(|line| line.split_once("--").map_or(line, |(code, _)| code).trim());
        lines.collect::<Vec<_>>().join(" ")
    };
    rows.map(|sql| plain(sql.unwrap())).collect()
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_one(sql, (), |row| row.get(0)).unwrap()
}

#[test]
fn a_file_of_version_1_is_read() {
    let (folder, connection) = version_1("read");
    drop(connection);
    let history = folder.open();
    assert_eq!(history.banners(), []);
    let slot = at("2026-11-27T11:00:00Z");
    let failed = with(run(1, slot + minutes(1)), |run| {
        run.result = RunResult::Failed("BackoffLimitExceeded".into());
        run.creator = Creator::Other("kubectl-create".into());
        (run.slot, run.job_name) = (None, "by-hand".into());
        (run.created, run.started, run.finished) = (slot + minutes(1), None, None);
    });
    let mut expected = vec![Record::Change(change(1, slot)), run(1, slot), failed];
    for record in &mut expected {
        if let Record::Run { run, .. } = record {
            // The fixture has uids that a person can read.
            run.job_uid = if run.slot.is_some() {
                Uid::from_uuid_bytes([1; 16])
            } else {
                Uid::new("text")
            };
            run.cron_job = Uid::from_uuid_bytes([2; 16]);
        } else if let Record::Change(change) = record {
            change.cron_job = Uid::from_uuid_bytes([2; 16]);
        }
    }
    expected.push(Record::Observation(Observation {
        from: at("2026-11-27T10:00:00Z"),
        to: at("2026-11-27T12:00:00Z"),
        namespaces: Some("".into()),
    }));
    assert_eq!(load(&history), expected);
}

#[test]
fn the_first_migration_is_version_1() {
    let (_folder, fixture) = version_1("first");
    let mut connection = Connection::open_in_memory().unwrap();
    prepare_schema(&mut connection, &MIGRATIONS[..1]).unwrap();
    assert_eq!(schema(&connection), schema(&fixture));
    for pragma in ["PRAGMA application_id", "PRAGMA user_version"] {
        assert_eq!(number(&connection, pragma), number(&fixture, pragma), "{pragma}");
    }
}

#[test]
fn a_migration_keeps_the_rows() {
    let (_folder, mut connection) = version_1("rows");
    let migrations = [
        MIGRATIONS[0],
        "ALTER TABLE runs ADD COLUMN note TEXT",
        "CREATE TABLE third (id INTEGER)",
    ];
    prepare_schema(&mut connection, &migrations).unwrap();
    assert_eq!(number(&connection, "PRAGMA user_version"), 3);
    assert_eq!(number(&connection, "SELECT count(*) FROM runs WHERE note IS NULL"), 2);
    assert_eq!(number(&connection, "SELECT count(*) FROM third"), 0);
}

#[test]
fn a_migration_that_fails_changes_nothing() {
    let (_folder, mut connection) = version_1("fails");
    let before = schema(&connection);
    let migrations = [MIGRATIONS[0], "DROP TABLE periods", "DROP TABLE no_such_table"];
    prepare_schema(&mut connection, &migrations).unwrap_err();
    assert_eq!(number(&connection, "PRAGMA user_version"), 1);
    assert_eq!(schema(&connection), before);
}
