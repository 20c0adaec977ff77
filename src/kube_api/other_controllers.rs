//! Evidence that another controller works on the same CronJobs, such as the built-in controller if it was not
//! switched off.
//!
//! The evidence is the field manager of the last status write of a CronJob, and Jobs of a slot that cronwheel did not
//! create. Field managers of a stopped controller stay in the metadata, so evidence counts only from the start of this
//! process, and for [`DECAY`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::{SignedDuration, Timestamp};

use super::http::USER_AGENT;
use crate::shard::{CronJobIdentity, JobRecord};

/// The time for which evidence counts. CronJobs that run every five minutes renew it.
pub const DECAY: SignedDuration = SignedDuration::from_mins(10);

/// Interval after which persistent evidence is logged again.
const REPORT_INTERVAL: SignedDuration = SignedDuration::from_hours(1);

/// The maximum lead of the API server's clock. Later times are forged.
const AHEAD_MAX: SignedDuration = SignedDuration::from_mins(1);

/// Maximum length of the name of a field manager, as in the API server.
const MANAGER_MAX_CHARS: usize = 128;

/// The remedy.
const REMEDY: &str = "only one may run these CronJobs: append ,-cronjob-controller to --controllers of \
                      kube-controller-manager (* if it is not set), or stop the other instance";

/// The kind of evidence, in the order of [`Evidence::ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// Another field manager wrote the status of a CronJob.
    StatusWrite,
    /// A Job of a slot has neither the label nor the annotation that cronwheel creates Jobs with.
    Job,
}

impl Evidence {
    /// All kinds.
    pub const ALL: [Evidence; 2] = [Evidence::StatusWrite, Evidence::Job];

    /// The kind as a label value.
    pub fn as_str(self) -> &'static str {
        match self {
            Evidence::StatusWrite => "status_write",
            Evidence::Job => "job",
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
        write!(f, "another controller {}; {REMEDY}", self.action)
    }
}

/// The evidence that this process has. Clones share it. The default collects nothing before [`OtherControllers::begin`].
#[derive(Clone, Debug, Default)]
pub struct OtherControllers(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    since: Option<Timestamp>,
    newest: [Option<Sighting>; Evidence::ALL.len()],
    reported: Option<Timestamp>,
}

impl OtherControllers {
    /// Starts to collect evidence of actions after this instant.
    pub fn begin(&self, since: Timestamp) {
        self.lock().since.get_or_insert(since);
    }

    /// Takes note of a status write.
    pub fn note_status_write(&self, cron_job: &CronJobIdentity, writer: &StatusWriter) {
        self.note(Evidence::StatusWrite, writer.at, || {
            format!(
                "wrote the status of CronJob {}/{}: field manager {}, at {}",
                cron_job.namespace, cron_job.name, writer.manager, writer.at
            )
        });
    }

    /// Records a Job without the label of its shard as evidence. Manual runs, Jobs for a future slot, and Jobs that
    /// cronwheel created and that lost their label are no evidence.
    pub fn note_unlabelled(&self, job: &JobRecord, since: Timestamp, now: Timestamp) {
        let minutes = job.name.rsplit_once('-').and_then(|(_, minutes)| minutes.parse().ok());
        if let (Some(_), Some(slot)) = (&job.controller, job.scheduled)
            && (since..now + AHEAD_MAX).contains(&slot)
            && minutes == Some(slot.as_second() / 60)
            && !job.is_created_by_cronwheel
        {
            self.note(Evidence::Job, slot, || {
                format!("created Job {}/{}", job.namespace, job.name)
            });
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

    fn note(&self, evidence: Evidence, at: Timestamp, action: impl FnOnce() -> String) {
        let mut state = self.lock();
        let newest = state.newest[evidence as usize].as_ref().map(|sighting| sighting.at);
        if state.since.is_none_or(|since| at < since) || newest.is_some_and(|newest| at <= newest) {
            return;
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
    }

    /// The lock is held for a few assignments.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::{ResourceVersion, ShardLabels, Uid};

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
        others.begin(at("10:00:00"));
        note(&others, "kube-controller-manager", "09:59:59");
        note(&others, "cronwheel", "10:01:00");
        note(&others, "kubectl-edit", "10:01:00");
        assert!(texts(&others, "10:01:00").is_empty());
        note(&others, "kube-controller-manager", "10:01:00");
        note(&others, "k3s", "10:00:30");
        let expected = "another controller wrote the status of CronJob shop/report: field manager \
                        kube-controller-manager, at 2026-03-01T10:01:00Z; only one may run these CronJobs: append \
                        ,-cronjob-controller to --controllers of kube-controller-manager (* if it is not set), or \
                        stop the other instance";
        assert_eq!(texts(&others, "10:10:59"), [expected]);
        assert!(texts(&others, "10:11:00").is_empty());
    }

    #[test]
    fn a_status_write_in_the_future_is_ignored() {
        let others = OtherControllers::default();
        others.begin(at("10:00:00"));
        note(&others, "forger", "23:00:00");
        assert!(texts(&others, "10:00:00").is_empty());
        note(&others, "k3s", "10:00:01");
        assert_eq!(texts(&others, "10:00:01").len(), 1);
    }

    #[test]
    fn a_status_write_at_the_maximum_timestamp_is_ignored() {
        let others = OtherControllers::default();
        others.begin(at("10:00:00"));
        for time in [Timestamp::MAX - SignedDuration::from_mins(1), Timestamp::MAX] {
            others.note_status_write(&cron_job(), &StatusWriter::other("forger", time).unwrap());
            assert!(others.active(at("10:00:00")).is_empty());
        }
    }

    /// A Job without the label that cronwheel creates Jobs with.
    fn unlabelled_job(name: &str, scheduled: Option<Timestamp>) -> JobRecord {
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
            is_created_by_cronwheel: false,
            shard_labels: ShardLabels::default(),
        }
    }

    /// The same, with the name of its slot.
    fn job_of_slot(slot: Timestamp) -> JobRecord {
        unlabelled_job(&format!("report-{}", slot.as_second() / 60), Some(slot))
    }

    #[test]
    fn an_unlabelled_job_of_a_slot_is_evidence_unless_cronwheel_created_it() {
        let others = OtherControllers::default();
        others.begin(at("10:00:00"));
        let note = |job: &JobRecord, since| others.note_unlabelled(job, at(since), at("10:01:00"));
        let slot = at("10:01:00");
        note(&unlabelled_job("report-manual", None), "10:00:00");
        note(&unlabelled_job("report-7", Some(slot)), "10:00:00");
        let unlabelled_later = JobRecord {
            is_created_by_cronwheel: true,
            ..job_of_slot(slot)
        };
        note(&unlabelled_later, "10:00:00");
        // This replica did not lead the shard that labels Jobs yet.
        note(&job_of_slot(slot), "10:02:00");
        assert!(texts(&others, "10:01:00").is_empty());
        note(&job_of_slot(slot), "10:00:00");
        let name = job_of_slot(slot).name;
        assert_eq!(
            texts(&others, "10:01:00"),
            [format!("another controller created Job shop/{name}; {REMEDY}")]
        );
    }

    #[test]
    fn a_job_of_a_future_slot_hides_no_evidence() {
        let others = OtherControllers::default();
        others.begin(at("10:00:00"));
        let note = |slot| others.note_unlabelled(&job_of_slot(slot), at("10:00:00"), at("10:01:00"));
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
