//! What a shard knows of one CronJob beyond its record: our view of its status, what is armed, the slot in work.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{
    effect::JobLookUp,
    ids::{ResourceVersion, Uid},
    outcome_counts::InstantOutcome,
    record::{ActiveJob, ConcurrencyPolicy, CronJobRecord, CronJobStatus},
    template_memory::{KeptPart, Reservation, TemplateMemory},
};

/// One CronJob of the shard.
pub(crate) struct CronJobState {
    /// As last seen, or as stored by our own last write.
    pub(crate) record: CronJobRecord,
    /// The memory for the template and the metadata of the record.
    pub(crate) reservation: Option<Reservation>,
    /// The relist in which it was last seen.
    pub(crate) mark: u32,
    /// The object as it is now cannot be understood: it must not run on what it was before, and nothing can be stored.
    pub(crate) is_undecodable: bool,
    /// The status as it will be when all that we know is stored: what decisions are made on (B-5.3 and its difference).
    pub(crate) view: CronJobStatus,
    /// The status write that was handed out and not answered.
    pub(crate) emitted: Option<Box<EmittedStatus>>,
    /// No status write before this: the last one failed or met a conflict.
    pub(crate) status_not_before: Option<Timestamp>,
    /// Status writes that failed since one succeeded.
    pub(crate) n_status_failures: u32,
    /// History cannot go on until the cursor is stored, or the Job may be gone before a flush: the next write is urgent.
    pub(crate) is_status_urgent: bool,
    /// The first activation that is not decided yet; a timer stands for it.
    pub(crate) armed: Option<Timestamp>,
    /// Something changed that bears on the decision: what was armed for later does not stand in the way of a look.
    pub(crate) must_look: bool,
    /// Instants up to here are in the account.
    pub(crate) counted_until: Option<Timestamp>,
    /// The due slot in work.
    pub(crate) open: Option<OpenSlot>,
    /// The last slot that ended without a Job: it is not taken up again.
    pub(crate) ended_slot: Option<Timestamp>,
    /// When the schedule was changed, where we saw it.
    pub(crate) schedule_changed: Option<Timestamp>,
    /// Entries of `status.active` without a Job that we know, by uid (B-5.4).
    pub(crate) lookups: BTreeMap<Uid, LookUp>,
    /// When to look up its running Jobs that no watch shows; none if there are none.
    pub(crate) ask_unlabelled_at: Option<Timestamp>,
    /// When its Jobs were last looked at; kept only of a CronJob with very many.
    pub(crate) jobs_looked_at: Option<Timestamp>,
    /// Since when creates are answered that we may not make any.
    pub(crate) not_permitted_since: Option<Timestamp>,
    /// No history deletes before this: one failed.
    pub(crate) history_not_before: Option<Timestamp>,
    /// History deletes that failed since one succeeded.
    pub(crate) n_history_failures: u32,
    /// Which complaints about the schedule were told already.
    pub(crate) reported: Reported,
    /// Events about Jobs that no run explains.
    pub(crate) unexpected_events: UnexpectedEvents,
}

/// Events of a CronJob about Jobs that no run explains: so many within an hour, however many such Jobs there are. Anyone
/// who may create Jobs in any namespace can make them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UnexpectedEvents {
    begun: Option<Timestamp>,
    n_emitted: u8,
}

impl UnexpectedEvents {
    /// As many as client-go lets through at once.
    const PER_HOUR_MAX: u8 = 25;

    /// Whether one more may be emitted now; then it counts as emitted.
    pub(crate) fn take(&mut self, now: Timestamp) -> bool {
        if self.begun.is_none_or(|begun| now.duration_since(begun).as_hours() != 0) {
            *self = UnexpectedEvents {
                begun: Some(now),
                n_emitted: 0,
            };
        }
        let may_emit = self.n_emitted < Self::PER_HOUR_MAX;
        self.n_emitted = self.n_emitted.saturating_add(1);
        may_emit
    }
}

/// A status that was handed out.
pub(crate) struct EmittedStatus {
    pub(crate) status: CronJobStatus,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) is_urgent: bool,
}

/// A due slot that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct OpenSlot {
    pub(crate) slot: Timestamp,
    pub(crate) stage: SlotStage,
    /// Creates of this slot that failed.
    pub(crate) n_failures: u32,
    /// Look-ups in a row that were not permitted.
    pub(crate) n_look_up_refusals: u32,
    /// The slot's Job, if the watch showed it come and go before the create was answered.
    pub(crate) gone: Option<Uid>,
}

/// Where an open slot stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlotStage {
    /// Held back by `spec.suspend`.
    Suspended,
    /// Held back by Forbid.
    Forbidden,
    /// Held back by a running Job of its name.
    AlreadyActive,
    /// The Jobs that it replaces are being deleted.
    Replacing { jobs: Vec<Uid>, has_failed: bool },
    /// Its create was handed out.
    Ordered,
    /// A Job of its name exists, and we ask whose it is; the server's refusal.
    LookingUp { message: String },
    /// The look-up was not answered: to be asked again.
    AskingLater { message: String, until: Timestamp },
    /// To be tried again.
    BackingOff { until: Timestamp },
}

impl OpenSlot {
    /// Whether an answer is awaited: nothing is decided until it comes.
    pub(crate) fn is_in_flight(&self) -> bool {
        match self.stage {
            SlotStage::Replacing { .. }
            | SlotStage::Ordered
            | SlotStage::LookingUp { .. }
            | SlotStage::AskingLater { .. } => true,
            SlotStage::Suspended | SlotStage::Forbidden | SlotStage::AlreadyActive | SlotStage::BackingOff { .. } => {
                false
            }
        }
    }

    /// How it ends when a later slot takes its place.
    pub(crate) fn outcome_when_passed(&self) -> InstantOutcome {
        match self.stage {
            SlotStage::Suspended => InstantOutcome::Suspended,
            SlotStage::Forbidden => InstantOutcome::Forbidden,
            SlotStage::AlreadyActive => InstantOutcome::AlreadyActive,
            SlotStage::Replacing { .. }
            | SlotStage::Ordered
            | SlotStage::LookingUp { .. }
            | SlotStage::BackingOff { .. } => InstantOutcome::Superseded,
            SlotStage::AskingLater { .. } => InstantOutcome::LookUpRefused,
        }
    }
}

/// An entry of `status.active` whose Job we do not know.
pub(crate) struct LookUp {
    /// As it was put, or will be again.
    pub(crate) question: JobLookUp,
    pub(crate) progress: LookUpProgress,
    /// Look-ups of it that failed.
    pub(crate) n_failures: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookUpProgress {
    /// Asked.
    Pending,
    /// Something of that name exists: the entry stays (B-5.4).
    Kept,
    /// Not answered: to be asked again.
    Failed { until: Timestamp },
}

/// So many entries are searched one by one: nearly every list is as short.
const N_LISTED_SEARCHED_MAX: usize = 16;

/// The uids of an active list.
pub(crate) enum Listed<'a> {
    Few(&'a [ActiveJob]),
    Many(BTreeSet<&'a Uid>),
}

impl Listed<'_> {
    pub(crate) fn contains(&self, uid: &Uid) -> bool {
        match self {
            Listed::Few(active) => active.iter().any(|active| active.uid == *uid),
            Listed::Many(uids) => uids.contains(uid),
        }
    }
}

/// Complaints that are told once for each schedule, not at each look.
#[derive(Clone, Copy, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "a set of independent flags, each with a name"
)]
pub(crate) struct Reported {
    pub(crate) unknown_time_zone: bool,
    pub(crate) unsupported_schedule: bool,
    pub(crate) unparseable_schedule: bool,
    pub(crate) invalid_schedule: bool,
    pub(crate) reserved_annotations: bool,
    pub(crate) future_cursor: bool,
    pub(crate) template_not_kept: bool,
}

impl LookUp {
    /// Whether this is the question and its answer is awaited.
    pub(crate) fn is_pending(&self, question: &JobLookUp) -> bool {
        self.progress == LookUpProgress::Pending && self.question == *question
    }
}

impl CronJobState {
    pub(crate) fn new(record: CronJobRecord, mark: u32) -> CronJobState {
        CronJobState {
            view: record.status.clone(),
            record,
            reservation: None,
            mark,
            is_undecodable: false,
            emitted: None,
            status_not_before: None,
            n_status_failures: 0,
            is_status_urgent: false,
            armed: None,
            must_look: false,
            counted_until: None,
            open: None,
            ended_slot: None,
            schedule_changed: None,
            lookups: BTreeMap::new(),
            ask_unlabelled_at: None,
            jobs_looked_at: None,
            not_permitted_since: None,
            history_not_before: None,
            n_history_failures: 0,
            reported: Reported::default(),
            unexpected_events: UnexpectedEvents::default(),
        }
    }

    /// Keeps the template and the metadata of the record as far as there is memory for them.
    pub(crate) fn keep_within(&mut self, memory: &TemplateMemory) {
        let record = &mut self.record;
        let reservation = self
            .reservation
            .get_or_insert_with(|| memory.reservation(&record.identity.namespace));
        let kept = reservation.renew(record.template_bytes(), record.metadata_bytes());
        if kept != KeptPart::All {
            record.drop_template();
        }
        if kept == KeptPart::Nothing {
            record.drop_metadata();
        }
    }

    /// Whether the decision waits for an answer about the open slot. Under Allow a later slot that is due does not wait for
    /// a look-up that is not permitted: no earlier Job could hold it back.
    pub(crate) fn awaits_answer(&self, now: Timestamp) -> bool {
        let Some(open) = &self.open else { return false };
        let is_look_up_refused = open.n_look_up_refusals > 0 && matches!(open.stage, SlotStage::AskingLater { .. });
        let is_later_due = self.armed.is_some_and(|armed| open.slot < armed && armed <= now);
        let is_allow = self.record.concurrency_policy == ConcurrencyPolicy::Allow;
        open.is_in_flight() && !(is_look_up_refused && is_later_due && is_allow)
    }

    /// Whether all that we know is stored.
    pub(crate) fn is_status_stored(&self) -> bool {
        self.view == self.record.status
    }

    /// The uids of the active list, to ask many times.
    pub(crate) fn listed(&self) -> Listed<'_> {
        if self.view.active.len() > N_LISTED_SEARCHED_MAX {
            Listed::Many(self.view.active.iter().map(|active| &active.uid).collect())
        } else {
            Listed::Few(&self.view.active)
        }
    }

    pub(crate) fn is_listed_active(&self, uid: &Uid) -> bool {
        self.view.active.iter().any(|active| active.uid == *uid)
    }

    /// Takes a Job off the active list; says whether it was on it.
    pub(crate) fn remove_active(&mut self, uid: &Uid) -> bool {
        let n_before = self.view.active.len();
        self.view.active.retain(|active| active.uid != *uid);
        self.view.active.len() != n_before
    }

    /// Puts a Job on the active list (B-12.5).
    pub(crate) fn add_active(&mut self, active: ActiveJob) {
        if !self.is_listed_active(&active.uid) {
            self.view.active.push(active);
        }
    }

    /// A Job that is deleted so soon after its end is no lock until the next flush: its slot is stored at once (B-13.1).
    pub(crate) fn note_short_life(&mut self) {
        const SHORT_TTL_SECS: i64 = 60;
        let ttl_secs = self.record.template.ttl_seconds_after_finished;
        self.is_status_urgent |= ttl_secs.is_some_and(|secs| secs < SHORT_TTL_SECS);
    }

    /// Lets no wait go on beyond `now`: its end was reckoned by a clock that was wrong.
    pub(crate) fn end_waits(&mut self, now: Timestamp) {
        if let Some(OpenSlot {
            stage: SlotStage::AskingLater { until, .. } | SlotStage::BackingOff { until },
            ..
        }) = &mut self.open
        {
            *until = now.min(*until);
        }
        for look_up in self.lookups.values_mut() {
            if let LookUpProgress::Failed { until } = &mut look_up.progress {
                *until = now.min(*until);
            }
        }
    }

    /// Moves the cursor forward, never back (B-12.5).
    pub(crate) fn advance_cursor(&mut self, slot: Timestamp) {
        if self.view.last_schedule_time.is_none_or(|last| last < slot) {
            self.view.last_schedule_time = Some(slot);
        }
    }

    /// Takes a status in that was seen; says whether it is news to us, not our own echo.
    ///
    /// Without an unsaved change of ours what was seen is the truth, wherever it moved the cursor (B-16.4). With
    /// one, ours is put on top of it.
    pub(crate) fn take_status(&mut self, seen: &CronJobStatus) -> bool {
        if self.is_status_stored() {
            let is_news = self.view != *seen;
            self.view = seen.clone();
            return is_news;
        }
        let is_cursor_news = seen.last_schedule_time > self.view.last_schedule_time;
        self.view.last_schedule_time = self.view.last_schedule_time.max(seen.last_schedule_time);
        self.view.last_successful_time = self.view.last_successful_time.max(seen.last_successful_time);
        self.view.unknown_members.clone_from(&seen.unknown_members);
        is_cursor_news
    }

    /// Takes the version in which our own write was stored.
    pub(crate) fn take_version(&mut self, resource_version: ResourceVersion) {
        self.record.resource_version = self.record.resource_version.max(resource_version);
    }
}

/// Which parts of a CronJob that we act on differ between two versions.
pub(crate) struct SpecChange {
    pub(crate) is_schedule: bool,
    pub(crate) is_any: bool,
}

impl SpecChange {
    pub(crate) fn between(old: &CronJobRecord, new: &CronJobRecord) -> SpecChange {
        let is_schedule = new.schedule.differs_from(&old.schedule);
        let key = |record: &CronJobRecord| {
            (
                record.is_deleting,
                record.is_suspended,
                record.starting_deadline_seconds,
                record.concurrency_policy,
                record.successful_jobs_history_limit,
                record.failed_jobs_history_limit,
                record.created,
            )
        };
        SpecChange {
            is_schedule,
            is_any: is_schedule || key(old) != key(new),
        }
    }
}
