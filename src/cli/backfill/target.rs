//! The requests of a backfill: the CronJob, its Jobs, and their creation, with pauses between attempts.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use super::plan::Start;
use crate::{
    cli::error::CommandError,
    kube_api::{Answer, ApiClient},
    observe::words::harmless,
    shard::{
        CreateOutcome, CronJobIdentity, CronJobRecord, Finish, JobCreate, JobLookUp, JobRecord, ReadOutcome, Uid,
        back_off::BackOff, naming,
    },
};

/// Attempts to make one request.
const ATTEMPTS_MAX: u32 = 6;

/// The pauses between them: half a minute in all, in which an API server restarts.
const PAUSES: BackOff = BackOff {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(16),
};

/// The CronJob whose slots start.
pub(super) struct Target {
    pub(super) client: ApiClient,
    pub(super) cron_job: Arc<CronJobIdentity>,
    /// `status.lastScheduleTime` when the plan was made.
    pub(super) cursor: Option<Timestamp>,
}

/// A Job of the CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FoundJob {
    pub(super) uid: Uid,
    /// Its end; `None` while it runs.
    pub(super) finish: Option<Finish>,
}

/// What became of the start of a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Started {
    Created(Uid),
    /// The CronJob has the Job already.
    Exists(FoundJob),
    /// The name belongs to a Job of another owner.
    Foreign,
    /// The slot was open, and a controller has reached it since. Its Job may have been deleted already.
    Reached,
}

/// Why a request has no result.
enum Problem {
    /// It may succeed later.
    Passing(String),
    /// It would fail again.
    Lasting(String),
}

impl Target {
    /// Creates the Job of a slot from the CronJob in its present form.
    pub(super) async fn start(&self, start: &Start) -> Result<Started, CommandError> {
        // An unanswered create may have succeeded.
        let mut may_be_ours = false;
        let created = self.repeated(async || {
            let record = self.read().await?;
            self.create(&record, start, &mut may_be_ours).await
        });
        created.await.map_err(|problem| {
            let (namespace, name) = (&self.cron_job.namespace, &start.job_name);
            format!("cannot create Job {namespace}/{name}: {}", harmless(&problem)).into()
        })
    }

    /// Finds a Job of the CronJob by its name. `None` if there is none.
    pub(super) async fn find(&self, name: &str) -> Result<Option<FoundJob>, CommandError> {
        let found = self.repeated(async || self.look_up(name).await).await;
        let job = found.map_err(|problem| {
            let namespace = &self.cron_job.namespace;
            CommandError::from(format!("cannot get Job {namespace}/{name}: {}", harmless(&problem)))
        })?;
        Ok(job.filter(|job| self.is_owner(job)).map(|job| FoundJob {
            uid: job.uid.clone(),
            finish: job.finish,
        }))
    }

    /// Makes a request until it has a result, a few times.
    async fn repeated<T>(&self, mut request: impl AsyncFnMut() -> Result<T, Problem>) -> Result<T, String> {
        let mut n_failures = 0;
        loop {
            match request().await {
                Ok(result) => return Ok(result),
                Err(Problem::Lasting(text)) => return Err(text),
                Err(Problem::Passing(text)) => {
                    n_failures += 1;
                    if n_failures == ATTEMPTS_MAX {
                        return Err(text);
                    }
                    tokio::time::sleep(PAUSES.after(n_failures)).await;
                }
            }
        }
    }

    /// Reads the CronJob, since users may have changed or replaced it.
    async fn read(&self) -> Result<Box<CronJobRecord>, Problem> {
        let answered = self.client.read_cron_job(&self.cron_job).await;
        let record = of_read(answered.answer)?;
        let is_it = |record: &CronJobRecord| record.identity.uid == self.cron_job.uid && !record.is_deleting;
        let gone = || Problem::Lasting("the CronJob was deleted meanwhile".to_owned());
        record.filter(|record| is_it(record)).ok_or_else(gone)
    }

    async fn create(&self, record: &CronJobRecord, start: &Start, may_be_ours: &mut bool) -> Result<Started, Problem> {
        if self.is_reached(record, start.slot) {
            let job = self.look_up(&start.job_name).await?;
            return Ok(job.map_or(Started::Reached, |job| self.existing(&job, *may_be_ours)));
        }
        let answered = self.client.backfill_job(&order(record, start)).await;
        match outcome_of(answered.answer)? {
            CreateOutcome::Created { uid, .. } => Ok(Started::Created(uid)),
            CreateOutcome::AlreadyExists { message } => {
                // If it is gone, it was deleted in between, perhaps by a history limit after its end.
                let job = self.look_up(&start.job_name).await?;
                let job = job.ok_or(Problem::Passing(message))?;
                Ok(self.existing(&job, *may_be_ours))
            }
            CreateOutcome::Unanswered { message, .. } => {
                *may_be_ours = true;
                Err(Problem::Passing(message))
            }
            refused @ (CreateOutcome::NamespaceTerminating
            | CreateOutcome::Invalid { .. }
            | CreateOutcome::NotPermitted { .. }
            | CreateOutcome::Failed { .. }
            | CreateOutcome::Withdrawn
            | CreateOutcome::Abandoned) => Err(refusal(refused)),
        }
    }

    /// Whether the cursor has come to the slot since the plan was made. Earlier slots of the plan do not move it so far.
    fn is_reached(&self, record: &CronJobRecord, slot: Timestamp) -> bool {
        let cursor = record.status.last_schedule_time;
        cursor.is_some_and(|cursor| cursor >= slot) && self.cursor.is_none_or(|before| before < slot)
    }

    fn existing(&self, job: &JobRecord, may_be_ours: bool) -> Started {
        if !self.is_owner(job) {
            return Started::Foreign;
        }
        if may_be_ours {
            return Started::Created(job.uid.clone());
        }
        Started::Exists(FoundJob {
            uid: job.uid.clone(),
            finish: job.finish,
        })
    }

    async fn look_up(&self, name: &str) -> Result<Option<Box<JobRecord>>, Problem> {
        let look_up = JobLookUp {
            cron_job: Arc::clone(&self.cron_job),
            namespace: self.cron_job.namespace.clone(),
            name: name.into(),
            listed_uid: None,
        };
        of_read(self.client.look_up_job(&look_up).await.answer)
    }

    fn is_owner(&self, job: &JobRecord) -> bool {
        job.controller.as_ref() == Some(&self.cron_job.uid)
    }
}

/// The Job that the controller would have created for the slot.
fn order(record: &CronJobRecord, start: &Start) -> JobCreate {
    let zone = record.schedule.zone.as_ref().and_then(|zone| zone.as_ref().ok());
    JobCreate {
        run_token: None,
        cron_job: Arc::clone(&record.identity),
        name: start.job_name.clone(),
        slot: start.slot,
        start: start.slot,
        scheduled_timestamp: naming::scheduled_timestamp(start.slot, zone),
        template: Arc::clone(&record.template),
        wanted_by: Timestamp::MAX,
        expires_at: None,
        store_by: None,
        n_attempts_before: 0,
        is_on_time: false,
        late_from: None,
    }
}

/// The reason of a create without a Job.
fn refusal(outcome: CreateOutcome) -> Problem {
    match outcome {
        CreateOutcome::NamespaceTerminating => Problem::Lasting("the namespace is being deleted".to_owned()),
        CreateOutcome::Invalid { message } => Problem::Lasting(message),
        CreateOutcome::NotPermitted { message } => {
            Problem::Lasting(format!("{message}; the account needs create on jobs in the namespace"))
        }
        CreateOutcome::Failed { message, .. }
        | CreateOutcome::Unanswered { message, .. }
        | CreateOutcome::AlreadyExists { message } => Problem::Passing(message),
        CreateOutcome::Created { .. } | CreateOutcome::Withdrawn | CreateOutcome::Abandoned => {
            Problem::Lasting("the template of the CronJob cannot be read".to_owned())
        }
    }
}

/// The outcome of a create. Without an answer, the Job may exist.
fn outcome_of(answer: Answer<CreateOutcome>) -> Result<CreateOutcome, Problem> {
    match answer {
        Answer::Outcome(outcome) => Ok(outcome),
        Answer::Throttled { message, .. } => Err(Problem::Passing(message)),
        Answer::Unavailable {
            message,
            is_unreachable,
            ..
        } => Ok(CreateOutcome::Unanswered {
            message,
            is_unreachable,
        }),
    }
}

/// What was read; `None` if it does not exist.
fn of_read<T>(answer: Answer<ReadOutcome<T>>) -> Result<Option<Box<T>>, Problem> {
    match answer {
        Answer::Outcome(ReadOutcome::Found(object)) => Ok(Some(object)),
        Answer::Outcome(ReadOutcome::Gone) => Ok(None),
        Answer::Outcome(ReadOutcome::NotPermitted { message }) => Err(Problem::Lasting(message)),
        Answer::Outcome(ReadOutcome::Failed { message, .. })
        | Answer::Throttled { message, .. }
        | Answer::Unavailable { message, .. } => Err(Problem::Passing(message)),
        Answer::Outcome(ReadOutcome::Abandoned) => Err(Problem::Passing("no answer".to_owned())),
    }
}
