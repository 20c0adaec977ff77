//! Evidence that another controller works on the same CronJobs, such as the built-in controller if it was not
//! switched off.
//!
//! The evidence is the field manager of the last status write of a CronJob, and Jobs of a slot that this installation of
//! cronwheel did not create. Field managers of a stopped controller stay in the metadata, so evidence counts only from the start of this
//! process, and for [`DECAY`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::http::USER_AGENT;
use crate::shard::{CronJobIdentity, JobCreator, JobRecord, ManagedNamespaces, namespaces::SETTLE_TIME};

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

/// The kind of evidence, in the order of [`Evidence::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Another field manager wrote the status of a CronJob.
    StatusWrite,
    /// A Job of a slot lacks the annotation that cronwheel creates Jobs with.
    Job,
    /// Another installation of cronwheel created a Job of a slot.
    Installation,
}

impl Evidence {
    /// All kinds.
    pub const ALL: [Evidence; 3] = [Evidence::StatusWrite, Evidence::Job, Evidence::Installation];

    /// The kind as a label value.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::StatusWrite => "status_write",
            Evidence::Job => "job",
            Evidence::Installation => "installation",
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
    let minutes = job.name.rsplit_once('-').and_then(|(_, minutes)| minutes.parse().ok());
    let slot = job.scheduled.filter(|slot| minutes == Some(slot.as_second() / 60))?;
    (job.controller.is_some() && slot < now + AHEAD_MAX).then_some(slot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::{NamespaceUpdate, ResourceVersion, Uid};

    fn at(text: &str) -> Timestamp {
        format!("2026-03-01T{text}Z").parse().unwrap()
    }

    fn cron_job() -> CronJobIdentity {
        CronJobIdentity {
            namespace: "shop".into(),
            name: "report".into(),
            uid: Uid::new("0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"),
        }
    }

    fn note(others: &OtherControllers, manager: &str, time: &str) {
        if let Some(writer) = StatusWriter::other(manager, at(time)) {
            others.note_status_write(&cron_job(), &writer);
        }
    }

    fn texts(others: &OtherControllers, now: &str) -> Vec<String> {
        let active = others.active(at(now));
        active.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_status_write_of_another_controller_counts_for_ten_minutes() {
        let others = OtherControllers::default();
        note(&others, "kube-controller-manager", "10:00:00");
        others.begin(at("10:00:00"), "kube-system/cronwheel".into());
        note(&others, "kube-controller-manager", "09:59:59");
        note(&others, "kube-controller-manager", "10:00:09");
        note(&others, "cronwheel", "10:01:00");
        note(&others, "kubectl-edit", "10:01:00");
        assert!(texts(&others, "10:01:00").is_empty());
        note(&others, "kube-controller-manager", "10:01:00");
        note(&others, "k3s", "10:00:30");
        let expected = "another controller wrote the status of CronJob shop/report: field manager \
                        kube-controller-manager, at 2026-03-01T10:01:00Z; only one may run these CronJobs: cronwheel \
                        check shows whether the admission policy refuses its writes; without the policy, append \
                        ,-cronjob-controller to --controllers of kube-controller-manager (* if it is not set)";
        assert_eq!(texts(&others, "10:10:59"), [expected]);
        assert!(texts(&others, "10:11:00").is_empty());
    }

    #[test]
    fn a_status_write_in_the_future_is_ignored() {
        let others = OtherControllers::default();
        others.begin(at("10:00:00"), "kube-system/cronwheel".into());
        note(&others, "forger", "23:00:00");
        assert!(texts(&others, "10:00:00").is_empty());
        note(&others, "k3s", "10:00:10");
        assert_eq!(texts(&others, "10:00:10").len(), 1);
    }

    #[test]
    fn a_status_write_at_the_maximum_timestamp_is_ignored() {
        let others = OtherControllers::default();
        others.begin(at("10:00:00"), "kube-system/cronwheel".into());
        for time in [Timestamp::MAX - SignedDuration::from_mins(1), Timestamp::MAX] {
            others.note_status_write(&cron_job(), &StatusWriter::other("forger", time).unwrap());
            assert!(others.active(at("10:00:00")).is_empty());
        }
    }

    /// A Job without the annotation that cronwheel creates Jobs with.
    fn foreign_job(name: &str, scheduled: Option<Timestamp>) -> JobRecord {
        JobRecord {
            uid: Uid::new("1"),
            namespace: "shop".into(),
            name: name.into(),
            resource_version: ResourceVersion(1),
            controller: Some(cron_job().uid),
            scheduled,
            finish: None,
            started: None,
            completed: None,
            creator: JobCreator::Unknown,
        }
    }

    /// The same, with the name of its slot.
    fn job_of_slot(slot: Timestamp) -> JobRecord {
        foreign_job(&format!("report-{}", slot.as_second() / 60), Some(slot))
    }

    #[test]
    fn a_job_of_a_slot_is_evidence_unless_cronwheel_created_it() {
        let others = OtherControllers::default();
        others.begin(at("10:00:00"), "kube-system/cronwheel".into());
        let note = |job: &JobRecord| others.note_job(job, at("10:01:00"));
        let slot = at("10:01:00");
        note(&foreign_job("report-manual", None));
        note(&foreign_job("report-7", Some(slot)));
        note(&JobRecord {
            creator: JobCreator::Cronwheel,
            ..job_of_slot(slot)
        });
        // The Job existed before this process started.
        note(&job_of_slot(at("09:59:00")));
        assert!(texts(&others, "10:01:00").is_empty());
        note(&job_of_slot(slot));
        let name = job_of_slot(slot).name;
        assert_eq!(
            texts(&others, "10:01:00"),
            [format!("another controller created Job shop/{name}; {REMEDY}")]
        );
    }

    #[test]
    fn a_job_of_another_installation_is_evidence() {
        let others = OtherControllers::default();
        others.begin(at("10:00:00"), "kube-system/cronwheel".into());
        let note = |installation: &str, slot| {
            let creator = JobCreator::Installation(installation.into());
            let job = JobRecord {
                creator,
                ..job_of_slot(at(slot))
            };
            others.note_job(&job, at("10:01:00"));
        };
        note("kube-system/cronwheel", "10:01:00");
        note("team/cronwheel", "09:59:00");
        note("team/cronwheel", "23:00:00");
        assert!(texts(&others, "10:01:00").is_empty());
        note(&format!("team/\n{}", "a".repeat(1_000)), "10:01:00");
        let name = job_of_slot(at("10:01:00")).name;
        let expected = format!(
            "another installation team/{} created Job shop/{name}; {REMEDY_INSTALLATION}",
            "a".repeat(123)
        );
        assert_eq!(texts(&others, "10:01:00"), [expected]);
    }

    #[test]
    fn only_actions_in_managed_namespaces_are_evidence() {
        let others = OtherControllers::default();
        others.begin(at("10:00:00"), "kube-system/cronwheel".into());
        let namespaces = ManagedNamespaces::selected();
        others.observe_only(namespaces.clone());
        let note = |slot| others.note_job(&job_of_slot(at(slot)), at("10:04:00"));
        note("10:01:00");
        namespaces.apply(NamespaceUpdate::selected("shop".into()), at("10:01:55"));
        // The other controller acted while the namespace was its own, and as it changed hands.
        note("10:01:00");
        note("10:02:00");
        assert!(texts(&others, "10:04:00").is_empty());
        note("10:03:00");
        assert_eq!(texts(&others, "10:04:00").len(), 1);
    }

    #[test]
    fn a_job_of_a_future_slot_hides_no_evidence() {
        let others = OtherControllers::default();
        others.begin(at("10:00:00"), "kube-system/cronwheel".into());
        let note = |slot| others.note_job(&job_of_slot(slot), at("10:01:00"));
        note(at("23:00:00"));
        note(Timestamp::MAX);
        note(at("10:01:00"));
        assert_eq!(texts(&others, "10:01:00").len(), 1);
    }

    #[test]
    fn field_manager_names_are_bounded_and_printable() {
        let writer = StatusWriter::other(&"a\nb".repeat(100), at("10:00:00")).unwrap();
        assert_eq!(&*writer.manager, "ab".repeat(64));
    }
}
