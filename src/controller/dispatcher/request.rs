//! Requests of the dispatcher, and the conversion of each answer into an answer for the shard.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};

use super::{backlog::QueueKind, withdrawable::RequestKey};
use crate::{
    controller::{
        clock::Clock,
        lane::{LaneRequest, SentOrRead},
    },
    kube_api::{Answered, ApiClient, objects::classify::OrderOutcome},
    shard::{
        CreateOutcome, CronJobRecord, DeleteOutcome, JobCreate, JobDelete, JobLookUp, JobTemplate, LookUpOutcome,
        ManagedNamespaces, OrderAnswer, ReadOutcome, ShardTerm, TermedAnswer,
    },
    telemetry::metrics::ApiCall,
};

/// A request about one Job.
#[derive(Clone, Debug)]
pub enum Request {
    /// Creates the Job.
    Create(JobCreate),
    /// Deletes the Job.
    Delete(JobDelete),
    /// Looks the Job up.
    LookUp(JobLookUp),
}

/// A create whose slot is further in the past is overdue. A failover after a crash of a leader takes less time, so
/// slots that became due during it count as due now.
const OVERDUE_AFTER: SignedDuration = SignedDuration::from_secs(15);

/// The longest time that an API server takes for a write, which no `?timeout=` extends.
const STORE_TIME_MAX: Duration = Duration::from_secs(34);

impl Request {
    /// Returns the create, if the request is one.
    fn create(&self) -> Option<&JobCreate> {
        match self {
            Request::Create(create) => Some(create),
            Request::Delete(_) | Request::LookUp(_) => None,
        }
    }

    /// Returns the create if it has its template, so that it can be sent.
    fn with_template(&self) -> Option<&JobCreate> {
        self.create().filter(|create| create.template.body.as_str().is_some())
    }

    /// Returns the create if its CronJob must be read before it can be sent.
    pub(super) fn without_template(&self) -> Option<&JobCreate> {
        self.create().filter(|create| create.template.body.as_str().is_none())
    }

    pub(super) fn namespace(&self) -> &str {
        match self {
            Request::Create(create) => &create.cron_job.namespace,
            Request::Delete(delete) => &delete.namespace,
            Request::LookUp(look_up) => &look_up.namespace,
        }
    }

    /// The deadline that orders requests within a queue. Requests without a deadline are ordered by arrival.
    pub(super) fn deadline(&self, arrived: Timestamp) -> Timestamp {
        self.create().map_or(arrived, |create| create.wanted_by)
    }

    /// The instant from which the request is not sent (B-9.7 and its difference); `MAX` if there is none. Overdue
    /// creates are ordered by it, so that few of them expire.
    pub(super) fn expires_at(&self) -> Timestamp {
        let expires_at = self.create().and_then(|create| create.expires_at);
        expires_at.unwrap_or(Timestamp::MAX)
    }

    /// Whether it is too late to send the request.
    pub(super) fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at()
    }

    /// The time within which the API server may store the Job, even if another replica leads the shard by then.
    pub(super) fn store_within(&self, now: Timestamp) -> Duration {
        let store_by = self.with_template().and_then(|create| create.store_by);
        let left = store_by.and_then(|store_by| Duration::try_from(store_by.duration_since(now)).ok());
        left.unwrap_or_default().min(STORE_TIME_MAX)
    }

    /// Whether the request is for a future slot. It was decided before the clock was set back.
    pub(super) fn is_early(&self, now: Timestamp) -> bool {
        self.create().is_some_and(|create| create.slot > now)
    }

    /// Whether the request creates the Job of a run that is asked for, which has no slot.
    pub(super) fn is_of_run(&self) -> bool {
        self.create().is_some_and(|create| create.run_token.is_some())
    }

    /// The answer to a request that was withdrawn, or expired in the queue.
    pub(super) fn withdrawn(&self) -> OrderAnswer {
        match self {
            Request::Create(create) => created(create, CreateOutcome::Withdrawn),
            Request::Delete(delete) => deleted(delete, DeleteOutcome::Withdrawn),
            Request::LookUp(_) => self.abandoned(),
        }
    }

    /// The answer to a create that was sent and not answered; `None` for requests that can be repeated.
    pub(super) fn unanswered(&self, message: String, is_unreachable: bool) -> Option<OrderAnswer> {
        let create = self.with_template()?;
        let answer = CreateOutcome::Unanswered {
            message,
            is_unreachable,
        };
        Some(created(create, answer))
    }

    /// The answer to a request that is not sent, or not sent again. Never the answer to a create that the API server may
    /// have processed.
    pub(super) fn abandoned(&self) -> OrderAnswer {
        match self {
            Request::Create(create) => created(create, CreateOutcome::Abandoned),
            Request::Delete(delete) => deleted(delete, DeleteOutcome::Abandoned),
            Request::LookUp(look_up) => looked_up(look_up, LookUpOutcome::Abandoned),
        }
    }

    /// The answer to a request that failed.
    pub(super) fn failed(&self, message: String) -> OrderAnswer {
        match self {
            Request::Create(create) => created(create, OrderOutcome::failed(message, None)),
            Request::Delete(delete) => deleted(delete, OrderOutcome::failed(message, None)),
            Request::LookUp(look_up) => looked_up(look_up, OrderOutcome::failed(message, None)),
        }
    }
}

/// A request in the queue.
#[derive(Debug)]
pub struct Queued {
    pub(super) request: Request,
    /// The shard and term in which the request was ordered and may be sent.
    pub(super) shard_term: ShardTerm,
    /// Whether the template was read for this request.
    pub(super) has_read_template: bool,
    /// Number of retries.
    pub(super) n_retries: u32,
    /// The instant at which the request first entered the backlog.
    pub(super) arrived: Timestamp,
    /// The instant at which the request was last sent.
    pub(super) sent: Timestamp,
}

impl Queued {
    /// Creates a request that has not been sent, ordered in this term.
    pub fn new(request: Request, shard_term: ShardTerm) -> Queued {
        Queued {
            request,
            shard_term,
            has_read_template: false,
            n_retries: 0,
            arrived: Timestamp::UNIX_EPOCH,
            sent: Timestamp::UNIX_EPOCH,
        }
    }

    /// Names the term of the request in its answer.
    pub(super) fn answered(&self, answer: OrderAnswer) -> TermedAnswer {
        let shard_term = self.shard_term;
        TermedAnswer { shard_term, answer }
    }

    /// Returns the queue in which the request waits.
    pub(super) fn queue_kind(&self, now: Timestamp) -> QueueKind {
        match &self.request {
            Request::LookUp(_) => QueueKind::LookUps,
            Request::Delete(delete) if !delete.is_for_replace => QueueKind::Background,
            Request::Create(_) if self.has_read_template => QueueKind::Completed,
            Request::Create(_) if self.is_reading() => QueueKind::Reading,
            Request::Create(create) if !create.is_on_time && now.duration_since(create.start) > OVERDUE_AFTER => {
                QueueKind::Overdue
            }
            Request::Create(_) | Request::Delete(_) => QueueKind::Creates,
        }
    }

    /// Identifies a request that the shard may withdraw, since a slot waits for it.
    pub(super) fn key(&self) -> Option<RequestKey> {
        let uid = match &self.request {
            Request::Create(create) => &create.cron_job.uid,
            Request::Delete(delete) if delete.is_for_replace => &delete.uid,
            Request::Delete(_) | Request::LookUp(_) => return None,
        };
        Some((self.shard_term, uid.clone()))
    }

    /// Sets the template that was read for this request. The retries of the read do not count for the create.
    pub(super) fn set_template(&mut self, template: Arc<JobTemplate>) {
        if let Request::Create(create) = &mut self.request {
            create.template = template;
        }
        self.has_read_template = true;
        self.n_retries = 0;
    }

    /// Whether the request is a create that may take any place in flight. Few of the others are in flight at a time.
    pub(super) fn may_be_in_burst(&self) -> bool {
        self.request.create().is_some() && !self.is_reading()
    }

    /// Returns how late the create was sent, unless its tenant has delayed it.
    pub(super) fn lateness(&self) -> Option<SignedDuration> {
        let late_from = self.request.create()?.late_from?;
        Some(self.sent.duration_since(late_from))
    }
}

impl LaneRequest for Queued {
    type Reply = SentOrRead<OrderAnswer, Arc<JobTemplate>>;

    fn shard_term(&self) -> Option<ShardTerm> {
        Some(self.shard_term)
    }

    fn namespace(&self) -> &str {
        self.request.namespace()
    }

    /// A look-up writes nothing, and may tell whether the last create of a released namespace was stored.
    fn is_permitted_in(&self, namespaces: &ManagedNamespaces, _now: Timestamp) -> bool {
        matches!(self.request, Request::LookUp(_)) || namespaces.contains(self.namespace())
    }

    fn is_reading(&self) -> bool {
        self.has_read_template || self.request.without_template().is_some()
    }

    fn may_be_sent(&self, clock: &Clock) -> bool {
        let now = clock.now();
        clock.is_fine() && !self.request.is_early(now) && !self.request.is_expired(now)
    }

    fn store_within(&self, now: Timestamp) -> Duration {
        self.request.store_within(now)
    }

    fn call(&self) -> ApiCall {
        match &self.request {
            Request::Create(_) if self.request.without_template().is_some() => ApiCall::ReadCronJob,
            Request::Create(_) => ApiCall::CreateJob,
            Request::Delete(_) => ApiCall::DeleteJob,
            Request::LookUp(_) => ApiCall::LookUpJob,
        }
    }

    async fn send(&self, api: &ApiClient) -> Answered<Self::Reply> {
        if let Some(create) = self.request.without_template() {
            let read = api.read_cron_job(&create.cron_job).await;
            return read.map(|outcome| template_of(create, outcome));
        }
        let answered = match &self.request {
            Request::Create(create) => api.create_job(create).await.map(|answer| created(create, answer)),
            Request::Delete(delete) => api.delete_job(delete).await.map(|answer| deleted(delete, answer)),
            Request::LookUp(look_up) => api.look_up_job(look_up).await.map(|answer| looked_up(look_up, answer)),
        };
        answered.map(SentOrRead::Sent)
    }
}

fn created(create: &JobCreate, answer: CreateOutcome) -> OrderAnswer {
    OrderAnswer::Create {
        cron_job: create.cron_job.uid.clone(),
        slot: create.slot,
        answer,
    }
}

fn deleted(delete: &JobDelete, answer: DeleteOutcome) -> OrderAnswer {
    let delete = delete.clone();
    OrderAnswer::Delete { delete, answer }
}

fn looked_up(look_up: &JobLookUp, answer: LookUpOutcome) -> OrderAnswer {
    OrderAnswer::LookUp {
        look_up: look_up.clone(),
        answer,
    }
}

/// Returns the template of a create, or the answer to the create if it cannot be sent.
fn template_of(create: &JobCreate, outcome: ReadOutcome<CronJobRecord>) -> SentOrRead<OrderAnswer, Arc<JobTemplate>> {
    // The create is valid only for the CronJob and the template that it was decided on.
    let is_same = |record: &CronJobRecord| {
        create.cron_job.uid == record.identity.uid && create.template.body.is_same(&record.template.body)
    };
    let answer = match outcome {
        ReadOutcome::Found(record) if is_same(&record) => return SentOrRead::Read(record.template),
        // The slot is decided again once a watch has delivered the change.
        ReadOutcome::Found(_) | ReadOutcome::Gone | ReadOutcome::Abandoned => CreateOutcome::Abandoned,
        ReadOutcome::NotPermitted { message } => CreateOutcome::NotPermitted { message },
        ReadOutcome::Failed { message, retry_after } => OrderOutcome::failed(message, retry_after),
    };
    SentOrRead::Sent(created(create, answer))
}
