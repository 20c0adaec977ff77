//! Tests of what goes in and comes out; the modules have the rest.

use std::{fs, path::PathBuf};

use super::{store::Store, *};
use crate::{
    observe::facts::{Creator, CronJobChange, Hindrance, Observation, Run, RunResult},
    schedule::ConcurrencyPolicy,
    shard::{Uid, naming},
};

mod damage;
mod kill;
mod measure;
mod overflow;
mod read_only;
mod removal;
mod schema;
mod trouble;

/// A folder that is removed when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("cronwheel-history-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("history.sqlite")
    }

    /// The file in the state directory of a user.
    fn default_file(&self) -> PathBuf {
        let variable = |name: &str| (name == "XDG_STATE_HOME").then(|| self.0.clone().into_os_string());
        default_path(&cluster(), variable).unwrap()
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn open(&self) -> History {
        History::open(&self.file(), &cluster(), Limits::default(), now())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn cluster() -> ClusterId {
    ClusterId::new("test", "https://127.0.0.1:6443/")
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    at("2026-11-27T12:00:00Z")
}

fn minutes(number: i64) -> SignedDuration {
    SignedDuration::from_mins(number)
}

fn uid(kind: u8, number: u64) -> Uid {
    let mut bytes = [kind; 16];
    // Like a real uid, the first bytes differ most.
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Uid::from_uuid_bytes(bytes)
}

/// A run of CronJob `cron_job` for a slot, that succeeded.
fn run(cron_job: u64, slot: Timestamp) -> Record {
    let name = format!("job-{cron_job}");
    Record::Run {
        namespace: "default".into(),
        run: Run {
            job_uid: uid(1, cron_job << 40 | slot.as_second().unsigned_abs()),
            job_name: naming::job_name(&name, slot),
            cron_job: uid(2, cron_job),
            slot: Some(slot),
            created: slot + SignedDuration::from_secs(1),
            started: Some(slot + SignedDuration::from_secs(1)),
            finished: Some(slot + SignedDuration::from_secs(90)),
            result: RunResult::Succeeded,
            creator: Creator::BuiltIn,
            hindrance: None,
        },
        cron_job_name: name.into(),
    }
}

fn with(mut record: Record, change: impl FnOnce(&mut Run)) -> Record {
    if let Record::Run { run, .. } = &mut record {
        change(run);
    }
    record
}

fn change(cron_job: u64, at: Timestamp) -> CronJobChange {
    CronJobChange {
        at,
        cron_job: uid(2, cron_job),
        namespace: "default".into(),
        name: format!("job-{cron_job}").into(),
        schedule: "* * * * *".into(),
        time_zone: None,
        is_suspended: false,
        concurrency_policy: ConcurrencyPolicy::Allow,
        starting_deadline_seconds: None,
        is_deleted: false,
    }
}

fn observation(from: Timestamp, to: Timestamp) -> Record {
    Record::Observation(Observation {
        from,
        to,
        namespaces: None,
    })
}

fn load(history: &History) -> Vec<Record> {
    load_since(history, Timestamp::MIN, 1)
}

fn load_since(history: &History, since: Timestamp, n_runs: usize) -> Vec<Record> {
    let mut records = Vec::new();
    history.load(since, n_runs, &mut |record| records.push(record));
    records
}

/// Writes and loads in a new process's place.
fn written(folder: &Folder, records: Vec<Record>) -> Vec<Record> {
    let history = folder.open();
    history.record(records, now());
    history.close();
    let history = folder.open();
    assert_eq!(history.banners(), []);
    load(&history)
}

#[test]
fn every_form_of_record_survives_a_restart() {
    let folder = Folder::new("forms");
    let slot = at("2026-11-27T11:00:00Z");
    let forms: [&dyn Fn(&mut Run); 12] = [
        &|_| {},
        &|run| run.job_name = "job-1-by-hand".into(),
        &|run| (run.slot, run.job_name) = (None, "by-hand".into()),
        &|run| run.slot = Some(run.created + minutes(1)),
        &|run| (run.started, run.finished, run.result) = (None, None, RunResult::Running),
        &|run| run.result = RunResult::Failed("BackoffLimitExceeded".into()),
        &|run| run.result = RunResult::Failed("".into()),
        &|run| (run.result, run.finished) = (RunResult::Deleted, None),
        &|run| (run.creator, run.hindrance) = (Creator::Cronwheel, Some(Hindrance::Suspended)),
        &|run| (run.creator, run.hindrance) = (Creator::Other("kubectl".into()), Some(Hindrance::Terminating)),
        &|run| run.hindrance = Some(Hindrance::HeldByFinalizers("example.com/a, é".into())),
        &|run| (run.job_uid, run.cron_job) = (Uid::new("not a UUID"), Uid::new("nor this")),
    ];
    let mut records = vec![
        Record::Change(change(1, slot)),
        Record::Change(CronJobChange {
            at: at("2026-11-27T11:00:01.123Z"),
            schedule: "TZ=UTC 0 0 * * *".into(),
            time_zone: Some("Europe/Berlin".into()),
            is_suspended: true,
            concurrency_policy: ConcurrencyPolicy::Forbid,
            starting_deadline_seconds: Some(0),
            ..change(1, slot)
        }),
        Record::Change(CronJobChange {
            concurrency_policy: ConcurrencyPolicy::Replace,
            is_deleted: true,
            ..change(2, slot)
        }),
    ];
    let forms = forms.iter().zip(0..);
    records.extend(forms.map(|(form, number)| with(run(1, slot + minutes(number)), form)));
    records.push(observation(
        at("2026-11-27T10:00:00.5Z"),
        at("2026-11-27T11:59:59.999Z"),
    ));
    assert_eq!(written(&folder, records.clone()), records);
}

#[test]
fn a_later_record_of_a_job_or_period_replaces_the_former_one() {
    let folder = Folder::new("replaced");
    let start = at("2026-11-27T11:00:00Z");
    let running = with(run(1, start), |run| {
        (run.finished, run.result) = (None, RunResult::Running);
    });
    let records = vec![
        observation(start, start + minutes(1)),
        running,
        observation(start, start + minutes(2)),
        run(1, start),
    ];
    let expected = [run(1, start), observation(start, start + minutes(2))];
    assert_eq!(written(&folder, records), expected);
    // The end of a period never moves back.
    assert_eq!(written(&folder, vec![observation(start, start + minutes(1))]), expected);
}

#[test]
fn a_change_is_stored_only_if_it_differs_from_the_last_one() {
    let folder = Folder::new("changes");
    let start = at("2026-11-27T11:00:00Z");
    let suspended = |at| CronJobChange {
        is_suspended: true,
        ..change(1, at)
    };
    let changes = [
        change(1, start),
        change(1, start + minutes(1)),
        suspended(start + minutes(2)),
        suspended(start + minutes(3)),
        change(1, start + minutes(4)),
    ];
    let expected = [0, 2, 4].map(|number| Record::Change(changes[number].clone()));
    assert_eq!(written(&folder, changes.map(Record::Change).into()), expected);
}

#[test]
fn a_text_of_any_length_is_cut_between_characters() {
    let folder = Folder::new("text");
    let hindered = |text: String| {
        with(run(1, now()), |run| {
            run.hindrance = Some(Hindrance::HeldByFinalizers(text.into()));
        })
    };
    let records = written(&folder, vec![hindered(format!("a{}", "é".repeat(100_000)))]);
    assert_eq!(records, [hindered(format!("a{}", "é".repeat(511)))]);
}

#[test]
fn load_has_the_newest_runs_and_all_since_an_instant() {
    let folder = Folder::new("load");
    let history = folder.open();
    let start = at("2026-11-20T00:00:00Z");
    let hours = |number| start + SignedDuration::from_hours(number);
    let daily = (0..7).map(|day| run(1, hours(day * 24)));
    let hourly = (0..7 * 24).map(|hour| run(2, hours(hour)));
    history.record(hourly.chain(daily).collect(), now());
    assert!(history.flush());
    let slots = |since: Timestamp, n_runs: usize, cron_job: u64| -> Vec<i64> {
        let runs = load_since(&history, since, n_runs)
            .into_iter()
            .filter_map(|record| match record {
                Record::Run { run, .. } if run.cron_job == uid(2, cron_job) => run.slot,
                Record::Run { .. } | Record::Change(_) | Record::Freeze(_) | Record::Observation(_) => None,
            });
        runs.map(|slot| (slot.as_second() - start.as_second()) / 3600).collect()
    };
    // The last one was on the seventh day, at midnight and at 23:00.
    assert_eq!(slots(hours(6 * 24), 3, 1), [4 * 24, 5 * 24, 6 * 24]);
    assert_eq!(slots(hours(6 * 24), 3, 2), (6 * 24..7 * 24).collect::<Vec<_>>());
    assert_eq!(slots(now(), 3, 2), [165, 166, 167]);
    assert_eq!(slots(now(), 1000, 2).len(), 168);
    assert_eq!(slots(now(), 1, 1), [6 * 24]);
}

#[test]
fn the_thread_writes_without_being_told() {
    let folder = Folder::new("period");
    let history = folder.open();
    history.record(vec![run(1, now())], now());
    while load(&history).is_empty() {
        thread::yield_now();
    }
}

#[test]
fn the_file_is_in_the_state_directory_and_for_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;

    let folder = Folder::new("place");
    let state = folder.0.join("state");
    let path = default_path(&cluster(), |name| {
        (name == "XDG_STATE_HOME").then(|| state.clone().into())
    })
    .unwrap();
    let history = History::open(&path, &cluster(), Limits::default(), now());
    history.record(vec![run(1, now())], now());
    assert!(history.flush());
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(state.join("cronwheel")), 0o700);
    assert_eq!(mode(path.clone()), 0o600);
    assert_eq!(mode(location::with_suffix(&path, "-wal")), 0o600);
}

#[test]
fn each_cluster_has_its_file() {
    let path = |cluster: ClusterId, variables: &[(&str, &str)]| {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).into())
        };
        default_path(&cluster, variable).map(|path| path.display().to_string())
    };
    let named = |name: &str, server: &str| path(ClusterId::new(name, server), &[("HOME", "/home/u")]).unwrap();
    let first = named("prod", "https://10.0.0.1:6443");
    assert!(first.starts_with("/home/u/.local/state/cronwheel/prod-"), "{first}");
    assert!(first.ends_with(".sqlite"), "{first}");
    assert_eq!(named("prod", "https://10.0.0.1:6443/"), first);
    assert_ne!(named("prod", "https://10.0.0.2:6443"), first);
    let hostile = named("../../etc/é\0passwd", "https://10.0.0.1");
    assert!(
        hostile.starts_with("/home/u/.local/state/cronwheel/______etc___passwd-"),
        "{hostile}"
    );
    let both = [("HOME", "/home/u"), ("XDG_STATE_HOME", "/state")];
    assert!(path(cluster(), &both).unwrap().starts_with("/state/cronwheel/test-"));
    let relative = [("HOME", "/home/u"), ("XDG_STATE_HOME", "state")];
    assert!(path(cluster(), &relative).unwrap().starts_with("/home/u/.local/state/"));
    assert_eq!(path(cluster(), &[]), None);
}

#[test]
fn a_period_has_the_namespaces_that_were_watched_all_the_time() {
    let folder = Folder::new("namespaces");
    let (start, end) = (now(), now() + minutes(1));
    let period = |to: Timestamp, namespaces: &str| {
        Record::Observation(Observation {
            from: start,
            to,
            namespaces: Some(namespaces.into()),
        })
    };
    assert_eq!(written(&folder, vec![period(start, "a,b")]), [period(start, "a,b")]);
    // One of them left it, at once and later.
    let records = vec![period(start, "a,b"), period(end, "a")];
    assert_eq!(written(&folder, records), [period(end, "a")]);
    assert_eq!(written(&folder, vec![period(end, "")]), [period(end, "")]);
}
