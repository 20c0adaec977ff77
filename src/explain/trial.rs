//! Runs one CronJob through a separate shard: the production decision code, with requests that are answered at once.
//!
//! The objects or an assumption determine the answer to a create; deletes and status writes succeed. The trial ends
//! when the shard has no more effects.

mod cause;
mod encoded;
mod stage;

use jiff::{SignedDuration, Timestamp};

use self::{
    encoded::{sent_job, status_change},
    stage::SyncStage,
};
use super::{
    error::ExplainError,
    explanation::{EventLine, Explanation},
    reason::Reason,
    world::{Subject, World},
};
use crate::{
    kube_api::objects::resumption::Resumption,
    schedule::policy::{ConcurrencyPolicy, Decision, SkipReason, Verdict},
    shard::{
        ContainedPanic, CreateOutcome, CronJobEvent, CronJobRecord, CronJobStatus, DeleteOutcome, Effect, Input,
        InstantOutcome, JobCreate, JobCreator, JobDelete, JobLookUp, JobRecord, LookUpOutcome, OrderAnswer,
        ResourceVersion, Scope, ShardConfig, ShardState, StatusOutcome, StatusWrite, TemplateMemory, Uid,
        WatchedResource,
    },
};

/// The default of `--max-clock-skew`.
const CLOCK_SKEW_MAX: SignedDuration = SignedDuration::from_secs(2);

/// The assumed answer to the create of a Job, if the objects do not decide it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssumedCreate {
    /// The Job is created (B-12.1).
    #[default]
    Created,
    /// A Job of the name exists and belongs to this CronJob (B-12.3).
    Exists,
    /// A Job of the name exists and belongs to another owner (B-12.3).
    Foreign,
    /// The create fails temporarily (B-12.4).
    Error,
}

/// Maximum number of effects and answered status writes in a trial without Jobs.
const STEPS_MAX: usize = 64;
/// Additional steps for each Job and each entry of the active list.
const STEPS_EACH: usize = 8;

/// The uid of a Job that is created or assumed to exist.
const UNKNOWN_JOB: &str = "explain: a Job of which only the name is known";

/// Explains the actions of the controller for the CronJob.
pub(super) fn explain(
    subject: &Subject,
    world: &World,
    assumed: AssumedCreate,
    now: Timestamp,
) -> Result<Explanation, ExplainError> {
    let record = match &subject.record {
        Ok(record) => record,
        Err(error) => return Ok(Explanation::undecodable(error, &subject.refusals)),
    };
    let resumed = match subject.changes.resumption {
        // The clock of the API server may be ahead.
        Some(Resumption::At(at)) => Some(at.min(now)),
        Some(Resumption::Perhaps(_)) | None => None,
    };
    let mut explanation = Trial::new(record, world, assumed, (resumed, now)).run()?;
    if explanation.reason == Reason::Suspended {
        let record = CronJobRecord {
            is_suspended: false,
            ..record.clone()
        };
        let trial = Trial::new(&record, world, assumed, (Some(now), now));
        explanation.resumed = Some(Box::new(trial.run()?));
    }
    Ok(explanation)
}

struct Trial<'a> {
    record: &'a CronJobRecord,
    /// The end of its last suspension, which the shard sees.
    resumed: Option<Timestamp>,
    world: &'a World,
    assumed: AssumedCreate,
    now: Timestamp,
    shard: ShardState,
    seen: Seen,
}

/// The effects so far.
#[derive(Default)]
struct Seen {
    order: Option<JobCreate>,
    /// The error of the last failed look-up.
    look_up_failure: Option<String>,
    /// The deletes, in order.
    deletes: Vec<JobDelete>,
    /// The Events, each with its stage in a sync.
    events: Vec<(SyncStage, EventLine)>,
    written: Option<CronJobStatus>,
    /// The write to answer next; the last one replaces those before.
    waiting: Option<StatusWrite>,
}

impl<'a> Trial<'a> {
    fn new(
        record: &'a CronJobRecord,
        world: &'a World,
        assumed: AssumedCreate,
        (resumed, now): (Option<Timestamp>, Timestamp),
    ) -> Trial<'a> {
        let config = ShardConfig {
            clock_skew_max: CLOCK_SKEW_MAX,
            scopes: vec![Scope::Cluster],
        };
        let mut shard = ShardState::new(config, resumed.unwrap_or(now));
        shard.calendars = world.calendars.calendars().clone();
        world.namespaces.tell(&mut shard, &record.identity.namespace, now);
        shard.lead(now);
        shard.template_memory = TemplateMemory::new(u64::MAX);
        shard.decisions = Some(Vec::new());
        Trial {
            record,
            resumed,
            world,
            assumed,
            now,
            shard,
            seen: Seen::default(),
        }
    }

    fn run(mut self) -> Result<Explanation, ExplainError> {
        self.list();
        self.shard.handle_timeout(self.now);
        let n_jobs = self.world.jobs_of(&self.record.identity.uid).len();
        let n_things = n_jobs.saturating_add(self.record.status.active.len());
        for _ in 0..STEPS_MAX.saturating_add(n_things.saturating_mul(STEPS_EACH)) {
            if let Some(effect) = self.shard.poll_effect() {
                self.perform(effect);
            } else if let Some(write) = self.seen.waiting.take() {
                self.answer_write(write);
            } else {
                return self.conclude();
            }
        }
        Err(self.unsettled())
    }

    fn unsettled(&self) -> ExplainError {
        let identity = &self.record.identity;
        ExplainError::Unsettled {
            cron_job: format!("{}/{}", identity.namespace, identity.name),
        }
    }

    /// Sends both lists, as at the start of a run.
    fn list(&mut self) {
        self.input(Input::list_begun(WatchedResource::CronJobs, Scope::Cluster));
        if let Some(resumed) = self.resumed {
            let mut suspended = self.record.clone();
            suspended.is_suspended = true;
            for record in [suspended, self.record.clone()] {
                self.shard.handle(Input::CronJobApplied(Box::new(record)), resumed);
            }
        }
        self.input(Input::CronJobApplied(Box::new(self.record.clone())));
        self.input(Input::list_done(WatchedResource::CronJobs, Scope::Cluster));
        self.input(Input::list_begun(WatchedResource::Jobs, Scope::Cluster));
        let world = self.world;
        for job in world.jobs_of(&self.record.identity.uid) {
            if self.is_replaced(job) {
                continue;
            }
            self.input(Input::JobApplied(Box::new(job.clone())));
        }
        self.input(Input::list_done(WatchedResource::Jobs, Scope::Cluster));
    }

    /// Whether `Replace` deleted a Job that a finalizer holds: the controller removed it from the active list and does not
    /// list it again.
    fn is_replaced(&self, job: &JobRecord) -> bool {
        let facts = self.world.job_facts(&job.namespace, &job.name);
        self.record.concurrency_policy == ConcurrencyPolicy::Replace
            && facts.is_some_and(|facts| facts.deleted.is_some())
            && !self.record.status.active.iter().any(|active| active.uid == job.uid)
    }

    fn input(&mut self, input: Input) {
        self.shard.handle(input, self.now);
    }

    fn answer(&mut self, answer: OrderAnswer) {
        self.shard.handle_answer(answer, self.now);
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::CreateJob(order) => self.create(order),
            Effect::DeleteJob(delete) => self.delete(delete),
            Effect::LookUpJob(look_up) => self.look_up(look_up),
            Effect::WriteStatus(write) => {
                self.seen.written = Some(write.status.clone());
                self.seen.waiting = Some(write);
            }
            Effect::EmitEvent(event) => self.note_event(event),
            // All requests are answered at once, so nothing waits.
            Effect::Withdraw(_) => {}
        }
    }

    fn create(&mut self, order: JobCreate) {
        let identity = &order.cron_job;
        let exists = || CreateOutcome::AlreadyExists {
            message: format!("jobs.batch {:?} already exists", order.name),
        };
        let answer = match self.assumed {
            _ if self.world.job(&identity.namespace, &order.name).is_some() => exists(),
            AssumedCreate::Created => CreateOutcome::Created {
                uid: Uid::new(UNKNOWN_JOB),
                resource_version: "".into(),
                created: self.now,
            },
            AssumedCreate::Exists | AssumedCreate::Foreign => exists(),
            AssumedCreate::Error => CreateOutcome::Failed {
                message: "the API server's error, as assumed".to_owned(),
                status: None,
                retry_after: None,
            },
        };
        let (cron_job, slot) = (identity.uid.clone(), order.slot);
        // The run that is asked for is beside the slot that is explained.
        if order.run_token.is_none() {
            self.seen.order = Some(order);
        }
        self.answer(OrderAnswer::Create { cron_job, slot, answer });
    }

    fn delete(&mut self, delete: JobDelete) {
        self.seen.deletes.push(delete.clone());
        let answer = DeleteOutcome::Deleted;
        self.answer(OrderAnswer::Delete { delete, answer });
    }

    fn look_up(&mut self, look_up: JobLookUp) {
        let answer = match self.world.job(&look_up.namespace, &look_up.name) {
            Some(Ok(job)) => LookUpOutcome::Found(Box::new(job.clone())),
            Some(Err(error)) => {
                self.seen.look_up_failure = Some(error.to_string());
                LookUpOutcome::Failed {
                    message: error.to_string(),
                    retry_after: None,
                }
            }
            None => self.assumed_job(&look_up),
        };
        self.answer(OrderAnswer::LookUp { look_up, answer });
    }

    /// Returns the Job that is assumed to exist under the slot's name.
    fn assumed_job(&self, look_up: &JobLookUp) -> LookUpOutcome {
        let Some(order) = self.seen.order.as_ref().filter(|order| order.name == look_up.name) else {
            return LookUpOutcome::Gone;
        };
        let controller = match self.assumed {
            AssumedCreate::Exists => Some(order.cron_job.uid.clone()),
            AssumedCreate::Foreign => None,
            AssumedCreate::Created | AssumedCreate::Error => return LookUpOutcome::Gone,
        };
        LookUpOutcome::Found(Box::new(JobRecord {
            uid: Uid::new(UNKNOWN_JOB),
            namespace: look_up.namespace.clone(),
            name: look_up.name.clone(),
            resource_version: ResourceVersion(0),
            controller,
            scheduled: Some(order.slot),
            finish: None,
            started: None,
            completed: None,
            creator: JobCreator::Cronwheel,
            run_token: None,
        }))
    }

    fn answer_write(&mut self, write: StatusWrite) {
        self.answer(OrderAnswer::Status {
            cron_job: write.cron_job.uid.clone(),
            sent: Box::new(write.status),
            answer: StatusOutcome::Stored {
                resource_version: ResourceVersion(write.resource_version.0.saturating_add(1)),
            },
        });
    }

    fn note_event(&mut self, event: CronJobEvent) {
        let line = EventLine {
            reason: event.reason,
            message: event.message,
        };
        self.seen.events.push((self.stage_of(&line), line));
    }

    fn conclude(mut self) -> Result<Explanation, ExplainError> {
        if let Some(ContainedPanic { cron_job, message }) = self.shard.panics.take().pop() {
            let cron_job = cron_job.to_string();
            return Err(ExplainError::Panicked { cron_job, message });
        }
        let decisions = self.shard.decisions.take().unwrap_or_default();
        let verdict = final_verdict(&decisions, self.seen.order.as_ref());
        let failure = self.seen.look_up_failure.take();
        let (reason, cause) = match (self.reason_of_job(), verdict) {
            (Some(reason), _) => (reason, None),
            // A slot that is still open or was refused has no Job.
            (None, Some(_)) if self.seen.order.is_some() => (Reason::CreateFailed, failure),
            (None, Some(verdict)) => Reason::of_decision(&verdict.decision),
            (None, None) if failure.is_some() => (Reason::LookUpFailed, failure),
            (None, None) => return Err(self.unsettled()),
        };
        let slot = verdict.and_then(|verdict| verdict.decision.slot());
        let cause = cause.map(|error| self.with_advice(reason, error));
        let cause = cause.or_else(|| self.cause(reason, slot?));
        self.seen.events.sort_by_key(|(stage, _)| *stage);
        let (before, written) = (&self.record.status, self.seen.written.as_ref());
        let written = written.filter(|written| *written != before);
        let job = self.seen.order.as_ref().map(sent_job).transpose()?;
        let missing_jobs = self.missing_jobs();
        Ok(Explanation {
            reason,
            cause,
            is_conditional: self.is_start_conditional(&missing_jobs),
            missing_jobs,
            resumed: None,
            slot,
            job,
            deletes: self.seen.deletes,
            status: written.map(|after| status_change(before, after)).transpose()?,
            events: self.seen.events.into_iter().map(|(_, event)| event).collect(),
            n_passed: [InstantOutcome::Superseded, InstantOutcome::HeldByForbid]
                .map(|outcome| self.shard.outcome_counts().outcome(outcome))
                .iter()
                .sum(),
            // The next slot of a suspended CronJob does not start.
            next_wakeup: verdict
                .and_then(|verdict| self.record.schedule.wanted_from(verdict.next?))
                .filter(|_| reason != Reason::Suspended),
        })
    }

    /// Returns the reason of a slot that ended with a Job of its name. The Job may have ended before the decision, so
    /// that no create was ordered, or before a deadline that has passed.
    fn reason_of_job(&self) -> Option<Reason> {
        let ended = [
            (InstantOutcome::Created, Reason::Created),
            (InstantOutcome::ForeignJob, Reason::ForeignJob),
            (InstantOutcome::Adopted, Reason::Adopted),
        ];
        let outcome_counts = self.shard.outcome_counts();
        let ended = ended
            .into_iter()
            .find(|(outcome, _)| outcome_counts.outcome(*outcome) > 0);
        ended.map(|(_, reason)| reason)
    }
}

/// Returns the verdict of the order, otherwise the last one with a reason.
fn final_verdict<'a>(verdicts: &'a [Verdict], order: Option<&JobCreate>) -> Option<&'a Verdict> {
    let is_final = |verdict: &&Verdict| match (&verdict.decision, order) {
        (Decision::Start { slot, .. }, Some(order)) => *slot == order.slot,
        (Decision::Skip(SkipReason::NotDue), _) | (Decision::Skip(_), Some(_)) => false,
        (Decision::Start { .. } | Decision::Skip(_), None) => true,
    };
    verdicts.iter().rev().find(is_final).or(verdicts.last())
}

#[cfg(test)]
mod tests;
