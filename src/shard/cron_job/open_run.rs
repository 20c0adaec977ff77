//! The run that a CronJob is asked for by the option `run-now` and that is not answered (O-10).

use jiff::Timestamp;

use super::{CronJobState, LookUp, OpenSlot, SlotStage};
use crate::shard::{index::Job, record::ConcurrencyPolicy};

/// A run that is asked for. Its Job is created, looked up and replaces others in the same stages as that of a slot.
#[derive(Clone, Debug)]
pub(crate) struct OpenRun {
    pub(crate) token: Box<str>,
    /// The instant at which this leader took it up.
    pub(crate) begun: Timestamp,
    /// Its slot is the whole second of its last create.
    pub(crate) open: OpenSlot,
}

impl OpenRun {
    pub(crate) fn new(token: &str, now: Timestamp) -> OpenRun {
        OpenRun {
            token: token.into(),
            begun: now,
            open: OpenSlot {
                slot: now,
                stage: SlotStage::BackingOff { until: now },
                n_failures: 0,
                n_creates_without_job: 0,
                is_refused_due_to_tenant: false,
                is_delayed_by_tenant: false,
                gone: None,
            },
        }
    }

    pub(crate) fn retry_at(&mut self, until: Timestamp) {
        self.open.stage = SlotStage::BackingOff { until };
    }

    /// Ends its wait, since the end was computed from a wrong clock. Returns its look-up, whose wait ends too.
    pub(crate) fn end_wait(&mut self, now: Timestamp) -> Option<&mut LookUp> {
        if let SlotStage::BackingOff { until } = &mut self.open.stage {
            *until = now.min(*until);
        }
        self.begun = now.min(self.begun);
        self.open.look_up_mut()
    }
}

impl CronJobState {
    /// The token of the run that is asked for and not answered.
    pub(crate) fn asked_run(&self) -> Option<&str> {
        let token = self.record.schedule.options().run_now.as_deref()?;
        (!self.current_status().is_run_done(token)).then_some(token)
    }

    /// Remembers the token that is asked for again, for as long as it is asked for: such as that of a manifest, which
    /// Argo CD restores after each run of another token.
    pub(crate) fn remember_asked_run(&mut self) {
        let status = self.current_status();
        let asked = self.record.schedule.options().run_now.as_deref();
        let asked = asked.filter(|asked| status.tokens_done().next() != Some(*asked) && status.is_run_done(asked));
        if let Some(token) = asked.map(Box::<str>::from) {
            self.current_status_mut().set_run_done(&token);
        }
    }

    /// Whether slots wait for an answer about the run: at most one create of a CronJob is in flight, and except under
    /// Allow the decision depends on whether the Job of the run exists.
    pub(super) fn awaits_run(&self) -> bool {
        self.run
            .as_ref()
            .is_some_and(|run| match self.record.concurrency_policy {
                ConcurrencyPolicy::Allow => run.open.has_request_in_flight(),
                ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace => run.open.must_be_settled(),
            })
    }

    /// Whether the run waits for an answer about the open slot, for the same reasons.
    pub(crate) fn run_awaits_slot(&self) -> bool {
        self.open
            .as_ref()
            .is_some_and(|open| match self.record.concurrency_policy {
                ConcurrencyPolicy::Allow => open.has_request_in_flight(),
                ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace => open.must_be_settled(),
            })
    }

    /// Whether a request about the open slot or the run is in flight.
    pub(crate) fn has_request_in_flight(&self) -> bool {
        let of_run = self.run.as_ref().map(|run| &run.open);
        self.open.iter().chain(of_run).any(OpenSlot::has_request_in_flight)
    }

    /// The run whose Job has this name, if an answer about it is outstanding.
    pub(crate) fn run_awaiting(&mut self, job: &Job) -> Option<&mut OpenRun> {
        let identity = &self.record.identity;
        let run = self.run.as_mut().filter(|run| run.open.must_be_settled())?;
        let is_its_job = job.is_in_namespace_of(identity) && job.name == self.record.run_job_name(&run.token);
        is_its_job.then_some(run)
    }

    /// The tokens whose Jobs are known by their names: the one that is asked for, and those that are remembered as
    /// answered.
    fn known_tokens(&self) -> impl Iterator<Item = &str> {
        let asked = self.record.schedule.options().run_now.as_deref();
        asked.into_iter().chain(self.current_status().tokens_done())
    }

    /// Whether the Job is that of the run that is asked for, or of one that is remembered as answered.
    pub(crate) fn is_job_of_run(&self, job: &Job) -> bool {
        self.known_tokens()
            .any(|token| job.name == self.record.run_job_name(token))
    }

    /// Whether the Job is the only lock against a second run for its token, until the token is stored.
    pub(crate) fn is_lock_of_run(&self, job: &Job) -> bool {
        let mut unstored = self
            .known_tokens()
            .filter(|token| !self.record.status.is_run_done(token));
        unstored.any(|token| job.name == self.record.run_job_name(token))
    }
}
