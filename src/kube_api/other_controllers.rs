//! Evidence that another controller works on the same CronJobs, such as the built-in controller if it was not
//! switched off.
//!
//! The evidence is the field manager of the last status write of a CronJob, and Jobs of a slot that this installation of
//! cronwheel did not create. Field managers of a stopped controller stay in the metadata, so evidence counts only from the start of this
//! process, and for [`DECAY`]. A missing admission policy is evidence too, until it is there again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::http::USER_AGENT;
use crate::shard::{
    CronJobIdentity, JobCreator, JobRecord, ManagedNamespaces, namespaces::SETTLE_TIME, naming::is_any_job_name,
};

/// The time for which evidence counts. CronJobs that run every five minutes renew it.
pub const DECAY: SignedDuration = SignedDuration::from_mins(10);

/// Interval after which persistent evidence is logged again.
const REPORT_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// The maximum lead of the API server's clock. Later times are forged.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(1);

/// Maximum length of the name of an installation: a namespace and the name. Longer ones are forged.
const INSTALLATION_MAX_CHARS: usize = 128;

/// Maximum length of the name of a field manager, as in the API server.
const MANAGER_MAX_CHARS: usize = 128;

/// The remedy.
const REMEDY: &str = "only one may run these CronJobs: cronwheel check shows whether the admission policy refuses its \
                      writes; without the policy, append ,-cronjob-controller to --controllers of \
                      kube-controller-manager (* if it is not set)";

/// The remedy for two installations.
const REMEDY_INSTALLATION: &str = "give each installation other namespaces, by --namespace or --namespace-selector";

/// The remedy for a missing policy.
const REMEDY_POLICY: &str = "helm upgrade installs it again, or the commands of docs/operate/runbooks.md give the \
                             namespaces to the built-in controller";

/// The kind of evidence, in the order of [`Evidence::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Another field manager wrote the status of a CronJob.
    StatusWrite,
    /// A Job of a slot lacks the annotation that cronwheel creates Jobs with.
    Job,
    /// Another installation of cronwheel created a Job of a slot.
    Installation,
    /// An admission policy that keeps the built-in controller out is missing.
    Policy,
}

impl Evidence {
    /// All kinds.
    pub const ALL: [Evidence; 4] = [
        Evidence::StatusWrite,
        Evidence::Job,
        Evidence::Installation,
        Evidence::Policy,
    ];

    /// The kind as a label value.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::StatusWrite => "status_write",
            Evidence::Job => "job",
            Evidence::Installation => "installation",
            Evidence::Policy => "policy",
        }
    }
}

/// The last status write by another field manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusWriter {
    /// The name of the field manager.
    pub manager: Box<str>,
    /// The time of the write.
    pub at: Timestamp,
}

impl StatusWriter {
    /// Returns the writer, unless the name is that of cronwheel or of a person at kubectl.
    pub fn other(manager: &str, at: Timestamp) -> Option<StatusWriter> {
        let ours = USER_AGENT.split('/').next().unwrap_or_default();
        if manager == ours || manager.starts_with("kubectl") {
            return None;
        }
        let printable = manager.chars().filter(|letter| !letter.is_control());
        Some(StatusWriter {
            manager: printable.take(MANAGER_MAX_CHARS).collect::<String>().into(),
            at,
        })
    }
}

/// The newest evidence of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The kind.
    pub evidence: Evidence,
    /// The time of the action, by the API server's clock.
    pub at: Timestamp,
    /// The action in words.
    action: String,
}

impl std::fmt::Display for Sighting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (controller, remedy) = match self.evidence {
            Evidence::StatusWrite | Evidence::Job => ("another controller", REMEDY),
            Evidence::Installation => ("another installation", REMEDY_INSTALLATION),
            Evidence::Policy => ("the built-in controller", REMEDY_POLICY),
        };
        write!(f, "{controller} {}; {remedy}", self.action)
    }
}

/// The evidence that this process has. Clones share it. The default collects nothing before [`OtherControllers::begin`].
#[derive(Clone, Debug, Default)]
pub struct OtherControllers(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    since: Option<Timestamp>,
    /// The name of this installation.
    installation: Box<str>,
    /// The namespaces of this installation. In all others, other controllers may work.
    namespaces: ManagedNamespaces,
    newest: [Option<Sighting>; Evidence::ALL.len()],
    reported: Option<Timestamp>,
}

impl State {
    /// Whether an action at this instant is evidence.
    fn counts(&self, namespace: &str, at: Timestamp) -> bool {
        let settling = at.checked_sub(SETTLE_TIME);
        let was_managed = settling.is_ok_and(|settling| self.namespaces.contained(namespace, settling));
        was_managed && self.since.is_some_and(|since| since <= at)
    }
}

impl OtherControllers {
    /// Starts to collect evidence of actions, some seconds after this instant, that are not of this installation.
    pub fn begin(&self, since: Timestamp, installation: Box<str>) {
        let mut state = self.lock();
        state
            .since
            .get_or_insert(since.checked_add(SETTLE_TIME).unwrap_or(since));
        state.installation = installation;
    }

    /// Restricts the evidence to these namespaces, in each from the instant from which it is managed.
    pub fn observe_only(&self, namespaces: ManagedNamespaces) {
        self.lock().namespaces = namespaces;
    }

    /// Takes note of a status write. Returns whether it is evidence.
    pub fn note_status_write(&self, cron_job: &CronJobIdentity, writer: &StatusWriter) -> bool {
        self.note(Evidence::StatusWrite, &cron_job.namespace, writer.at, || {
            format!(
                "wrote the status of CronJob {}/{}: field manager {}, at {}",
                cron_job.namespace, cron_job.name, writer.manager, writer.at
            )
        })
    }

    /// Records a Job of a CronJob as evidence, unless this installation created it. Manual runs and Jobs for a future slot
    /// are no evidence.
    pub fn note_job(&self, job: &JobRecord, now: Timestamp) {
        let Some(slot) = slot_of(job, now) else { return };
        match &job.creator {
            JobCreator::Unknown => {
                self.note(Evidence::Job, &job.namespace, slot, || {
                    format!("created Job {}/{}", job.namespace, job.name)
                });
            }
            JobCreator::Installation(theirs) if self.lock().installation != *theirs => {
                let printable = theirs.chars().filter(|letter| !letter.is_control());
                let theirs: String = printable.take(INSTALLATION_MAX_CHARS).collect();
                self.note(Evidence::Installation, &job.namespace, slot, || {
                    format!("{theirs} created Job {}/{}", job.namespace, job.name)
                });
            }
            JobCreator::Installation(_) | JobCreator::Cronwheel => {}
        }
    }

    /// Takes note of the admission policies that keep the built-in controller out and refuse nothing, because they or their
    /// bindings are missing or do not deny. Soon after this process has begun they may not be installed yet.
    pub fn note_policies(&self, missing: &[&str], now: Timestamp) {
        let mut state = self.lock();
        if state.since.is_none_or(|since| now < since) {
            return;
        }
        let sighting = (!missing.is_empty()).then(|| Sighting {
            evidence: Evidence::Policy,
            at: now,
            action: format!(
                "is not kept out, since these admission policies or their bindings are missing or do not deny: {}",
                missing.join(", ")
            ),
        });
        let newest = &mut state.newest[Evidence::Policy as usize];
        match (&newest, &sighting) {
            (None, Some(sighting)) => tracing::error!("{sighting}"),
            (Some(_), None) => tracing::info!("the admission policies against the built-in controller are there again"),
            _ => {}
        }
        *newest = sighting;
    }

    /// Returns the evidence that counts at this instant.
    pub fn active(&self, now: Timestamp) -> Vec<Sighting> {
        let mut state = self.lock();
        for newest in &mut state.newest {
            let counts = |sighting: &Sighting| sighting.at > now - DECAY && sighting.at < now + AHEAD_MAX;
            *newest = newest.take().filter(counts);
        }
        state.newest.iter().flatten().cloned().collect()
    }

    /// Takes note of an action. Returns whether it is evidence, even if there is newer one.
    fn note(&self, evidence: Evidence, namespace: &str, at: Timestamp, action: impl FnOnce() -> String) -> bool {
        let mut state = self.lock();
        if !state.counts(namespace, at) {
            return false;
        }
        let newest = state.newest[evidence as usize].as_ref().map(|sighting| sighting.at);
        if newest.is_some_and(|newest| at <= newest) {
            return true;
        }
        let action = action();
        let sighting = Sighting { evidence, at, action };
        // Times may be forged: a difference does not overflow, and a time in the future silences no later report.
        let is_reported = |reported: Timestamp| at.duration_since(reported).abs() < REPORT_INTERVAL;
        if !state.reported.is_some_and(is_reported) {
            state.reported = Some(at);
            tracing::error!("{sighting}");
        }
        state.newest[evidence as usize] = Some(sighting);
        true
    }

    /// The lock is held for a few assignments.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of a run, unless it is in the future. A manual run has none.
fn slot_of(job: &JobRecord, now: Timestamp) -> Option<Timestamp> {
    let slot = job.scheduled.filter(|slot| is_any_job_name(&job.name, *slot))?;
    (job.controller.is_some() && slot < now + AHEAD_MAX).then_some(slot)
}

#[cfg(test)]
mod tests;
