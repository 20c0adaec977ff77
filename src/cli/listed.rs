//! Lists the CronJobs and Jobs of a cluster once, for the commands that print what became of slots. Only reads.

use std::{io::Write, path::Path};

use jiff::{SignedDuration, Timestamp};

use super::{
    error::CommandError,
    ui::{Cluster, SLOTS_MAX, SourceArgs, past, server_clock::ServerClock},
};
use crate::{
    controller::clock::Clock,
    observe::{
        fleet::{Fleet, FleetConfig, KEPT_SLOTS_MAX},
        history::ClusterId,
        observer::{NoHistory, Observed, Observer, Settings, source::Source},
        words::{frozen_text, thousands},
    },
    schedule::Zone,
    shard::Scope,
};

/// What is listed.
pub(super) struct Question<'a> {
    /// The cluster, or some namespaces.
    pub(super) scopes: Vec<Scope>,
    /// The time zone of schedules that name none.
    pub(super) default_zone: &'a Zone,
    /// A file with runs beyond the Jobs that the cluster keeps.
    pub(super) history: Option<&'a Path>,
    /// Slots from this time before now on are kept.
    pub(super) since: SignedDuration,
}

impl<'a> Question<'a> {
    /// What a command lists by its flags.
    pub(super) fn of(source: &'a SourceArgs, history: Option<&'a Path>, since: SignedDuration) -> Question<'a> {
        Question {
            scopes: source.scopes(),
            default_zone: &source.default_time_zone,
            history,
            since,
        }
    }
}

/// Lists once. The answers tell `clock` the time of the API server. Namespaces that cannot be read go to `notes`, one per
/// line.
pub(super) async fn list(
    cluster: &Cluster,
    question: Question<'_>,
    clock: &ServerClock,
    notes: &mut impl Write,
) -> Result<Observed, CommandError> {
    let now = || clock.now();
    let Question {
        scopes,
        default_zone,
        history,
        since,
    } = question;
    let mut fleet = Fleet::new(FleetConfig::of_slots(SLOTS_MAX), now());
    fleet.keep_since(now().saturating_sub(since).unwrap_or(Timestamp::MIN));
    fleet.set_scopes(&scopes);
    if let Some(path) = history {
        let id = ClusterId::new(&cluster.name, &cluster.address);
        let read = past::read(&mut fleet, path, &id, since, now());
        read.map_err(|error| CommandError::from(format!("--history: {error}")))?;
    }
    let observed = Observed::new(fleet);
    let settings = Settings {
        client: clock.listening(cluster.client.clone()),
        scopes,
        default_zone: default_zone.clone(),
        now,
    };
    Observer::new(settings, observed.clone(), NoHistory).list().await?;
    for one in &observed.source().unreadable {
        // Standard error may be closed.
        let _ = writeln!(notes, "cronwheel: note: namespace {}: {}", one.namespace, one.problem);
    }
    Ok(observed)
}

/// The clock of this machine, corrected by that of the API server.
pub(super) async fn server_clock(cluster: &Cluster, clock: &Clock) -> ServerClock {
    let clock = ServerClock::new(clock.clone());
    clock.ask(&clock.listening(cluster.client.clone())).await;
    clock
}

/// What the reader must know about the slots from an instant to another.
pub(super) fn notes(fleet: &Fleet, source: &Source, (since, now): (Timestamp, Timestamp)) -> Vec<String> {
    let frozen = frozen_text(&fleet.frozen_namespaces(now));
    let undecodable = source.last_undecodable.as_ref().map(|last| {
        let n_undecodable = source.n_undecodable;
        format!(
            "{n_undecodable} objects have a field that cannot be decoded and counts as absent; the last one: {last}."
        )
    });
    let n_cut = fleet
        .cron_jobs()
        .filter(|cron_job| cron_job.is_cut_after(since))
        .count();
    let cut = (n_cut > 0).then(|| {
        let n_slots = thousands(KEPT_SLOTS_MAX as u64);
        let cron_jobs = if n_cut == 1 { "CronJob" } else { "CronJobs" };
        format!("Of {n_cut} {cron_jobs} with more slots in this time, only the latest {n_slots} are known here.")
    });
    let notes = source.notes.iter().cloned();
    let limits = fleet.limits_reached();
    limits
        .into_iter()
        .chain(frozen)
        .chain(notes)
        .chain(undecodable)
        .chain(cut)
        .collect()
}

#[cfg(test)]
mod tests;
