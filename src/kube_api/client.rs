//! The requests of the controller. `encode` prepares bodies, and `classify` turns answers into outcomes.
//!
//! The client does not retry, since retries depend on the deadline and the leadership.

use std::{sync::Arc, time::Duration};

use http::Method;

use crate::{
    coordination::WriteLimits,
    kube_api::{
        exchange::{self, ExchangeError, Request},
        http::{ConnectionPermit, ServerDate, WriteConnections},
        objects::{
            classify::{self, Answer, EventOutcome, OrderOutcome, RawAnswer, Refusal, error_text},
            decode::Decoder,
            encode,
        },
        paths::{BATCH, CORE, namespaced},
    },
    shard::{
        CreateOutcome, CronJobIdentity, CronJobRecord, DeleteOutcome, JobCreate, JobDelete, JobLookUp, LookUpOutcome,
        ReadOutcome, StatusOutcome, StatusWrite,
    },
};

/// Timeout of a request. An API server gives an admission webhook up to 30 seconds.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(35);

/// Maximum size of an answer. A request with a larger answer counts as unanswered.
const BODY_MAX_BYTES: usize = 4 << 20;

/// Maximum size of a CronJob that is read for its template: etcd stores 1.5 MiB, and an API server writes each `<`, `>`
/// and `&` as six bytes.
const CRON_JOB_MAX_BYTES: usize = 10 << 20;

/// An answer with its side information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered<T> {
    /// The classified answer.
    pub answer: Answer<T>,
    /// The HTTP status, if there was an answer.
    pub code: Option<u16>,
    /// The `Date` header and the connection of the answer.
    pub server_date: Option<ServerDate>,
    /// The server's message, if it refused the request by authorization or authentication.
    pub not_permitted: Option<String>,
    /// The connection over which the fence policy refused a create: its API server may have a wrong clock.
    pub fenced_over: Option<usize>,
}

impl<T> Answered<T> {
    /// The outcome of a request that is not sent, or whose answer is not awaited.
    pub fn without_answer(outcome: T) -> Answered<T> {
        Answered::unanswered(Answer::Outcome(outcome))
    }

    fn unanswered(answer: Answer<T>) -> Answered<T> {
        Answered {
            answer,
            code: None,
            server_date: None,
            not_permitted: None,
            fenced_over: None,
        }
    }

    /// Returns the same answer with another outcome.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Answered<U> {
        let answer = match self.answer {
            Answer::Outcome(outcome) => Answer::Outcome(change(outcome)),
            Answer::Throttled { retry_after, message } => Answer::Throttled { retry_after, message },
            Answer::Unavailable {
                retry_after,
                message,
                is_unreachable,
            } => Answer::Unavailable {
                retry_after,
                message,
                is_unreachable,
            },
        };
        Answered {
            answer,
            code: self.code,
            server_date: self.server_date,
            not_permitted: self.not_permitted,
            fenced_over: self.fenced_over,
        }
    }
}

/// The client for writes. Cheap to clone.
#[derive(Clone)]
pub struct ApiClient {
    connections: WriteConnections,
    /// The limits of writes that a shard decided; `None` for other requests.
    limits: Option<WriteLimits>,
    /// A connection to use only if no other has a place.
    avoided: Option<usize>,
    /// The place of the next request; `None` if the request waits for one itself.
    place: Option<Arc<ConnectionPermit>>,
    /// Decodes the CronJobs that are read.
    decoder: Decoder,
    /// The installation of this replica, which limited creates name.
    installation: Arc<str>,
}

impl ApiClient {
    /// Creates a client over these connections.
    pub fn new(connections: WriteConnections) -> ApiClient {
        ApiClient {
            connections,
            limits: None,
            avoided: None,
            place: None,
            decoder: Decoder::default(),
            installation: Arc::default(),
        }
    }

    /// Returns a client of this installation.
    #[must_use]
    pub fn of_installation(self, installation: &str) -> ApiClient {
        ApiClient {
            installation: installation.into(),
            ..self
        }
    }

    /// Returns a client that decodes CronJobs like the watches.
    #[must_use]
    pub fn with_decoder(self, decoder: Decoder) -> ApiClient {
        ApiClient { decoder, ..self }
    }

    /// Returns a client whose requests have a limited lifetime: the server gets a timeout, and the answer is not awaited
    /// longer.
    #[must_use]
    pub fn with_limits(&self, limits: &WriteLimits) -> ApiClient {
        ApiClient {
            limits: Some(*limits),
            ..self.clone()
        }
    }

    /// Returns a client that avoids a connection if another one has a place.
    #[must_use]
    pub fn avoiding(&self, connection: usize) -> ApiClient {
        ApiClient {
            avoided: Some(connection),
            ..self.clone()
        }
    }

    /// Waits for a place on a connection, and returns a client for one request that is sent there without waiting. `None`
    /// if there is no place within the timeout of a request.
    pub async fn with_place(&self) -> Option<ApiClient> {
        let place = self.next_place().await.ok()?;
        Some(ApiClient {
            place: Some(place),
            ..self.clone()
        })
    }

    /// Resets every connection with all requests in flight. The kernel discards all unsent data.
    pub fn reset_connections(&self) {
        self.connections.reset();
    }

    /// Creates a Job (B-12).
    pub async fn create_job(&self, order: &JobCreate) -> Answered<CreateOutcome> {
        let stamp = self.limits.map(|limits| (limits.stamp, &*self.installation));
        self.post_job(order, encode::job_body(order, stamp)).await
    }

    /// Creates the Job of a slot that nobody started, for a user.
    pub async fn backfill_job(&self, order: &JobCreate) -> Answered<CreateOutcome> {
        self.post_job(order, encode::backfilled_job_body(order)).await
    }

    /// There is no body if the template is not in memory.
    async fn post_job(&self, order: &JobCreate, body: Option<Vec<u8>>) -> Answered<CreateOutcome> {
        let Some(body) = body else {
            return Answered::without_answer(CreateOutcome::Abandoned);
        };
        let path = namespaced(BATCH, &order.cron_job.namespace, &["jobs"]);
        let request = Request::new(Method::POST, path).json(body);
        self.execute(request, classify::create).await
    }

    /// Deletes a Job (B-4.4).
    pub async fn delete_job(&self, delete: &JobDelete) -> Answered<DeleteOutcome> {
        let path = namespaced(BATCH, &delete.namespace, &["jobs", &delete.name]);
        let request = Request::new(Method::DELETE, path).json(encode::delete_body(delete));
        self.execute(request, classify::delete).await
    }

    /// Looks a Job up by name (B-5.4, B-12.3).
    pub async fn look_up_job(&self, look_up: &JobLookUp) -> Answered<LookUpOutcome> {
        let path = namespaced(BATCH, &look_up.namespace, &["jobs", &look_up.name]);
        self.execute(Request::new(Method::GET, path), classify::look_up).await
    }

    /// Writes a CronJob's status (B-13).
    pub async fn write_status(&self, write: &StatusWrite) -> Answered<StatusOutcome> {
        let Some(body) = encode::status_body(write) else {
            return Answered::without_answer(StatusOutcome::Abandoned);
        };
        let CronJobIdentity { namespace, name, .. } = &*write.cron_job;
        let path = namespaced(BATCH, namespace, &["cronjobs", name, "status"]);
        let request = Request::new(Method::PUT, path).json(body);
        self.execute(request, classify::status_write).await
    }

    /// Reads a CronJob whose template or metadata is not in memory.
    pub async fn read_cron_job(&self, cron_job: &CronJobIdentity) -> Answered<ReadOutcome<CronJobRecord>> {
        let path = namespaced(BATCH, &cron_job.namespace, &["cronjobs", &cron_job.name]);
        let sent = self.send(Request::new(Method::GET, path), CRON_JOB_MAX_BYTES).await;
        answered(sent, |answer| classify::read_cron_job(answer, &self.decoder))
    }

    /// Creates an Event (B-14).
    pub async fn post_event(&self, namespace: &str, body: Vec<u8>) -> Answered<EventOutcome> {
        let path = namespaced(CORE, namespace, &["events"]);
        let request = Request::new(Method::POST, path).json(body);
        self.execute(request, classify::event).await
    }

    /// Patches an Event (B-14.1).
    pub async fn patch_event(&self, namespace: &str, name: &str, body: Vec<u8>) -> Answered<EventOutcome> {
        let path = namespaced(CORE, namespace, &["events", name]);
        let request = Request::new(Method::PATCH, path).merge_patch(body);
        self.execute(request, classify::event).await
    }

    /// Requests the server's version for the `Date` of the answer. Any answer is a success.
    pub async fn probe(&self) -> Answered<()> {
        let request = Request::new(Method::GET, "/version".to_owned());
        self.execute(request, |_| Answer::Outcome(())).await
    }

    pub(super) async fn execute<T: OrderOutcome>(
        &self,
        request: Request,
        classify: fn(&RawAnswer) -> Answer<T>,
    ) -> Answered<T> {
        answered(self.send(request, BODY_MAX_BYTES).await, classify)
    }

    /// Sends a request over the connection of this client's place, or over the next connection with a place. Returns the
    /// number of the connection too.
    async fn send(&self, request: Request, body_max_bytes: usize) -> Result<(RawAnswer, usize), ExchangeError> {
        let place = match &self.place {
            Some(place) => Arc::clone(place),
            None => self.next_place().await?,
        };
        let life = self.limits.map(|limits| limits.life.min(REQUEST_TIMEOUT));
        let request = match life {
            Some(life) => request.with_server_timeout(life),
            None => request,
        };
        let timeout = life.unwrap_or(REQUEST_TIMEOUT);
        let received = exchange::send(place.client(), request, body_max_bytes, timeout).await?;
        Ok((received, place.connection()))
    }

    /// Waits for a place on the least busy connection, on the avoided one only if no other has a place.
    async fn next_place(&self) -> Result<Arc<ConnectionPermit>, ExchangeError> {
        let place = self.connections.acquire_avoiding(self.avoided);
        let place = tokio::time::timeout(REQUEST_TIMEOUT, place).await;
        place.map(Arc::new).map_err(|_| ExchangeError::Timeout(REQUEST_TIMEOUT))
    }
}

fn answered<T: OrderOutcome>(
    sent: Result<(RawAnswer, usize), ExchangeError>,
    classify: impl FnOnce(&RawAnswer) -> Answer<T>,
) -> Answered<T> {
    match sent {
        Ok((answer, connection)) => {
            let refusal = (!answer.status.is_success()).then(|| Refusal::read(&answer));
            let is_fenced = refusal.as_ref().is_some_and(Refusal::is_fenced);
            Answered {
                answer: classify(&answer),
                code: Some(answer.status.as_u16()),
                fenced_over: is_fenced.then_some(connection),
                not_permitted: refusal.filter(Refusal::is_not_permitted).map(|refusal| refusal.message),
                server_date: answer.server_date,
            }
        }
        Err(error) => {
            let message = error_text(&error);
            Answered::unanswered(match error {
                // It cannot be sent, which is no evidence about other requests.
                ExchangeError::Request(_) => Answer::Outcome(T::failed(message, None)),
                // The request may have been applied. The connection works, otherwise its keep-alive would have ended
                // it: only this request has no answer.
                ExchangeError::Timeout(_) | ExchangeError::TooLong(_) => Answer::Outcome(T::unanswered(message, None)),
                // The request may have been applied.
                ExchangeError::Transport(_) | ExchangeError::Body(_) => Answer::Unavailable {
                    retry_after: None,
                    message,
                    is_unreachable: true,
                },
            })
        }
    }
}
