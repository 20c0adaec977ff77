//! The due slot of a CronJob that has not ended.

use std::sync::Arc;

use jiff::Timestamp;

use super::{LookUp, LookUpProgress};
use crate::shard::{
    effect::JobLookUp,
    ids::{CronJobIdentity, Uid},
    outcome_counts::InstantOutcome,
};

/// A due slot that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct OpenSlot {
    pub(crate) slot: Timestamp,
    pub(crate) stage: SlotStage,
    /// Failed creates of this slot.
    pub(crate) n_failures: u32,
    /// Creates of this slot after which no Job of its name was found.
    pub(crate) n_creates_without_job: u32,
    /// The tenant caused the last refusal of its Job, so the slot is not lost by cronwheel or the API server.
    pub(crate) is_refused_due_to_tenant: bool,
    /// Whether its tenant has delayed it: a suspension, a freeze or `Forbid` held it back, or the tenant caused a refusal.
    pub(crate) is_delayed_by_tenant: bool,
    /// The slot's Job, if the watch delivered its creation and deletion before the create was answered.
    pub(crate) gone: Option<Box<Uid>>,
}

/// The stage of an open slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SlotStage {
    /// Held back by `spec.suspend`.
    Suspended,
    /// Held back by a freeze of its namespace.
    Frozen,
    /// Held back by Forbid.
    HeldByForbid,
    /// Held back by a running Job with its name.
    AlreadyActive,
    /// The Jobs to be replaced are being deleted.
    Replacing { jobs: Vec<Uid>, has_failed: bool },
    /// Its create was emitted and is not answered yet.
    Creating,
    /// A Job of its name may exist and is looked up. Holds the error text of the create.
    LookingUp { look_up: Box<LookUp>, message: String },
    /// Will be decided again at `until`.
    BackingOff { until: Timestamp },
}

impl SlotStage {
    /// Whether the tenant holds the slot back in this stage.
    pub(crate) fn is_held_by_tenant(&self) -> bool {
        match self {
            SlotStage::Suspended | SlotStage::Frozen | SlotStage::HeldByForbid | SlotStage::AlreadyActive => true,
            SlotStage::Replacing { .. }
            | SlotStage::Creating
            | SlotStage::LookingUp { .. }
            | SlotStage::BackingOff { .. } => false,
        }
    }
}

impl OpenSlot {
    /// Holds the slot back in a stage that its tenant causes.
    pub(crate) fn hold(&mut self, stage: SlotStage) {
        debug_assert!(stage.is_held_by_tenant(), "{stage:?}");
        self.stage = stage;
        self.is_delayed_by_tenant = true;
    }

    /// Whether nothing is decided before an answer settles whether a Job exists or is deleted.
    pub(crate) fn must_be_settled(&self) -> bool {
        matches!(
            self.stage,
            SlotStage::Replacing { .. } | SlotStage::Creating | SlotStage::LookingUp { .. }
        )
    }

    /// The end of its back-off, if it is backing off.
    pub(crate) fn back_off_end(&self) -> Option<Timestamp> {
        let SlotStage::BackingOff { until } = self.stage else {
            return None;
        };
        Some(until)
    }

    /// Whether a request about the slot is in flight, rather than a look-up that waits to be repeated.
    pub(crate) fn has_request_in_flight(&self) -> bool {
        let is_waiting = |look_up: &LookUp| look_up.progress != LookUpProgress::InFlight;
        self.must_be_settled() && !self.look_up().is_some_and(is_waiting)
    }

    /// The look-up of the Job of its name.
    pub(crate) fn look_up(&self) -> Option<&LookUp> {
        let SlotStage::LookingUp { look_up, .. } = &self.stage else {
            return None;
        };
        Some(look_up)
    }

    pub(crate) fn look_up_mut(&mut self) -> Option<&mut LookUp> {
        let SlotStage::LookingUp { look_up, .. } = &mut self.stage else {
            return None;
        };
        Some(look_up)
    }

    /// The outcome if its starting deadline has passed. A slot that was suspended or frozen until then is not lost.
    pub(crate) fn outcome_at_deadline(&self) -> InstantOutcome {
        match self.stage {
            SlotStage::Suspended => InstantOutcome::Suspended,
            SlotStage::Frozen => InstantOutcome::Frozen,
            SlotStage::HeldByForbid
            | SlotStage::AlreadyActive
            | SlotStage::Replacing { .. }
            | SlotStage::Creating
            | SlotStage::LookingUp { .. }
            | SlotStage::BackingOff { .. } => {
                if self.is_refused_due_to_tenant {
                    InstantOutcome::RefusedDueToTenant
                } else {
                    InstantOutcome::DeadlineExceeded
                }
            }
        }
    }

    /// Looks up the Job of this name, which a create with this error may have created. Returns the request.
    pub(crate) fn look_up_job(
        &mut self,
        cron_job: &Arc<CronJobIdentity>,
        name: Box<str>,
        message: String,
    ) -> JobLookUp {
        let request = JobLookUp {
            namespace: cron_job.namespace.clone(),
            name,
            cron_job: Arc::clone(cron_job),
            listed_uid: None,
        };
        let look_up = Box::new(LookUp::new(request.clone()));
        self.stage = SlotStage::LookingUp { look_up, message };
        request
    }

    /// The error text of the create that this look-up follows, while the look-up is not answered.
    pub(crate) fn error_looked_up_by(&self, request: &JobLookUp) -> Option<&str> {
        let SlotStage::LookingUp { look_up, message } = &self.stage else {
            return None;
        };
        look_up.is_in_flight(request).then_some(message)
    }

    /// The outcome if a later slot replaces it.
    pub(crate) fn outcome_when_passed(&self) -> InstantOutcome {
        match self.stage {
            SlotStage::Suspended => InstantOutcome::Suspended,
            SlotStage::Frozen => InstantOutcome::Frozen,
            SlotStage::HeldByForbid => InstantOutcome::HeldByForbid,
            SlotStage::AlreadyActive => InstantOutcome::AlreadyActive,
            SlotStage::LookingUp { .. } => InstantOutcome::LookUpRefused,
            SlotStage::Replacing { .. } | SlotStage::Creating | SlotStage::BackingOff { .. } => {
                if self.is_refused_due_to_tenant {
                    InstantOutcome::RefusedDueToTenant
                } else {
                    InstantOutcome::Superseded
                }
            }
        }
    }
}
