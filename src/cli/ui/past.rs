//! The history of the page: its file, and what of it the fleet loads.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use jiff::{SignedDuration, Timestamp};

use super::{Cluster, SLOTS_MAX};
use crate::{
    observe::{
        facts::Record,
        fleet::{Fleet, FleetConfig},
        history::{ClusterId, History, HistoryReader, Limits, UnreadableHistory, default_path},
        observer::{Keeper, NoHistory},
    },
    shard::Scope,
};

/// The value of `--history` for no file.
const NO_HISTORY: &str = "none";

/// The tiles count the runs of this time.
const LOADED: SignedDuration = SignedDuration::from_hours(24);

/// The records between two additions to the fleet. A day of a large cluster has two million.
const PART: usize = 4_096;

/// Returns the file of a cluster; `None` if there is to be none, or if there is no place for it.
pub(super) fn file(
    flag: Option<&OsString>,
    cluster: &ClusterId,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    match flag {
        Some(flag) if flag == NO_HISTORY => None,
        Some(flag) => Some(flag.into()),
        None => default_path(cluster, variable),
    }
}

/// Returns a fleet with the past of the cluster, and the history that goes on. May take seconds.
pub(super) fn load(
    (flag, days): (Option<&OsString>, u32),
    cluster: &Cluster,
    scopes: &[Scope],
    now: Timestamp,
) -> (Fleet, Box<dyn Keeper>) {
    let mut fleet = Fleet::new(FleetConfig::of_slots(SLOTS_MAX), now);
    fleet.set_scopes(scopes);
    let id = ClusterId::new(&cluster.name, &cluster.address);
    let Some(path) = file(flag, &id, |name| env::var_os(name)) else {
        return (fleet, Box::new(NoHistory));
    };
    let limits = Limits {
        age: SignedDuration::from_hours(i64::from(days) * 24),
        ..Limits::default()
    };
    let history = History::open(&path, &id, limits, now);
    fill(&mut fleet, now, |sink| {
        history.load(before(now, LOADED), SLOTS_MAX, sink);
    });
    (fleet, Box::new(history))
}

/// Adds the runs of the last time in a file, and the last slots of each CronJob. Changes no file.
pub(in crate::cli) fn read(
    fleet: &mut Fleet,
    path: &Path,
    cluster: &ClusterId,
    time: SignedDuration,
    now: Timestamp,
) -> Result<(), UnreadableHistory> {
    let history = HistoryReader::open(path, cluster)?;
    fill(fleet, now, |sink| history.load(before(now, time), SLOTS_MAX, sink))
}

/// Adds the records that `load` passes on.
fn fill<T>(fleet: &mut Fleet, now: Timestamp, load: impl FnOnce(&mut dyn FnMut(Record)) -> T) -> T {
    let mut part: Vec<Record> = Vec::with_capacity(PART);
    let loaded = load(&mut |record| {
        part.push(record);
        if part.len() == PART {
            fleet.load(part.drain(..), now);
        }
    });
    fleet.load(part, now);
    loaded
}

fn before(now: Timestamp, time: SignedDuration) -> Timestamp {
    now.saturating_sub(time).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flag_selects_the_file() {
        let cluster = ClusterId::new("test", "https://test.example.com");
        let variable = |name: &str| (name == "HOME").then(|| OsString::from("/home/user"));
        assert_eq!(file(Some(&"none".into()), &cluster, variable), None);
        assert_eq!(
            file(Some(&"runs.sqlite".into()), &cluster, variable),
            Some(PathBuf::from("runs.sqlite"))
        );
        let default = file(None, &cluster, variable).unwrap();
        assert!(
            default.starts_with("/home/user/.local/state/cronwheel"),
            "{}",
            default.display()
        );
        assert_eq!(file(None, &cluster, |_| None), None, "no home");
    }
}
