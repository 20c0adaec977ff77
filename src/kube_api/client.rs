//! The requests of the controller. `encode` prepares bodies, and `classify` turns answers into outcomes.
//!
//! The client does not retry, since retries depend on the deadline and the leadership.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;

use crate::{
    coordination::WriteLimits,
    kube_api::{
        http::{ServerDate, USER_AGENT, WriteConnections, retry_after, server_date},
        objects::{
            classify::{self, Answer, CronJobOutcome, EventOutcome, LabelOutcome, OrderOutcome, RawAnswer},
            decode::{Decoder, SlimCronJob},
            encode,
        },
        paths::{BATCH, CORE, namespaced},
    },
    shard::{
        CreateOutcome, CronJobIdentity, CronJobRecord, DeleteOutcome, JobDelete, JobLookUp, JobOrder, JobRecord,
        LookUpOutcome, StatusOutcome, StatusWrite,
    },
};

mod send_error;

use send_error::SendError;

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
    /// The outcome of a request that cannot be built.
    fn not_sent(outcome: T) -> Answered<T> {
        Answered {
            answer: Answer::Outcome(outcome),
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
            Answer::Unavailable { retry_after, message } => Answer::Unavailable { retry_after, message },
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
    /// The limits of writes; `None` without competing replicas.
    limits: Option<WriteLimits>,
    /// A connection to use only if no other has a place.
    avoided: Option<usize>,
    /// Decodes the CronJobs that are read.
    decoder: Decoder,
}

impl ApiClient {
    /// Creates a client over these connections.
    pub fn new(connections: WriteConnections) -> ApiClient {
        ApiClient {
            connections,
            limits: None,
            avoided: None,
            decoder: Decoder::default(),
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

    pub(super) fn life(&self) -> Option<Duration> {
        self.limits.map(|limits| limits.life.min(REQUEST_TIMEOUT))
    }

    /// Returns a client that avoids a connection if another one has a place.
    #[must_use]
    pub fn avoiding(&self, connection: usize) -> ApiClient {
        ApiClient {
            avoided: Some(connection),
            ..self.clone()
        }
    }

    /// Resets every connection with all requests in flight. The kernel discards all unsent data.
    pub fn reset_connections(&self) {
        self.connections.reset();
    }

    /// Creates a Job (B-12).
    pub async fn create_job(&self, order: &JobOrder) -> Answered<CreateOutcome> {
        let Some(body) = encode::job_body(order, self.limits.map(|limits| limits.stamp)) else {
            return Answered::not_sent(CreateOutcome::Abandoned);
        };
        let path = namespaced(BATCH, &order.cron_job.namespace, &["jobs"]);
        let request = request(self.life(), Method::POST, path, "application/json", body);
        self.execute(request, classify::create).await
    }

    /// Deletes a Job (B-4.4).
    pub async fn delete_job(&self, delete: &JobDelete) -> Answered<DeleteOutcome> {
        let path = namespaced(BATCH, &delete.namespace, &["jobs", &delete.name]);
        let request = request(
            self.life(),
            Method::DELETE,
            path,
            "application/json",
            encode::delete_body(delete),
        );
        self.execute(request, classify::delete).await
    }

    /// Labels a Job, if the uid still matches.
    pub async fn label_job(&self, job: &JobRecord, key: &str, value: &str) -> Answered<LabelOutcome> {
        let path = namespaced(BATCH, &job.namespace, &["jobs", &job.name]);
        let body = encode::label_patch(&job.uid, key, value);
        let request = request(self.life(), Method::PATCH, path, "application/merge-patch+json", body);
        self.execute(request, classify::label).await
    }

    /// Looks a Job up by name (B-5.4, B-12.3).
    pub async fn look_up_job(&self, look_up: &JobLookUp) -> Answered<LookUpOutcome> {
        let path = namespaced(BATCH, &look_up.namespace, &["jobs", &look_up.name]);
        let request = request(self.life(), Method::GET, path, "", Vec::new());
        self.execute(request, classify::look_up).await
    }

    /// Writes a CronJob's status (B-13).
    pub async fn write_status(&self, write: &StatusWrite) -> Answered<StatusOutcome> {
        let Some(body) = encode::status_body(write) else {
            return Answered::not_sent(StatusOutcome::Abandoned);
        };
        let CronJobIdentity { namespace, name, .. } = &*write.cron_job;
        let path = namespaced(BATCH, namespace, &["cronjobs", name, "status"]);
        let request = request(self.life(), Method::PUT, path, "application/json", body);
        self.execute(request, classify::status_write).await
    }

    /// Reads a CronJob whose template or metadata is not in memory.
    pub async fn read_cron_job(&self, cron_job: &CronJobIdentity) -> Answered<CronJobOutcome<Box<CronJobRecord>>> {
        let path = namespaced(BATCH, &cron_job.namespace, &["cronjobs", &cron_job.name]);
        let request = request(self.life(), Method::GET, path, "", Vec::new());
        let answered = answered(self.send(request, CRON_JOB_MAX_BYTES).await, classify::read_cron_job);
        answered.map(|outcome| self.decoded(outcome))
    }

    fn decoded(&self, outcome: CronJobOutcome<SlimCronJob>) -> CronJobOutcome<Box<CronJobRecord>> {
        match outcome {
            CronJobOutcome::Found(slim) => match slim.into_record(&self.decoder) {
                Ok(record) => CronJobOutcome::Found(Box::new(record)),
                Err(error) => OrderOutcome::failed(classify::error_text(&error), None),
            },
            CronJobOutcome::Gone => CronJobOutcome::Gone,
            CronJobOutcome::NotPermitted { message } => CronJobOutcome::NotPermitted { message },
            CronJobOutcome::Failed { message, retry_after } => CronJobOutcome::Failed { message, retry_after },
        }
    }

    /// Creates an Event (B-14).
    pub async fn post_event(&self, namespace: &str, body: Vec<u8>) -> Answered<EventOutcome> {
        let path = namespaced(CORE, namespace, &["events"]);
        let request = request(self.life(), Method::POST, path, "application/json", body);
        self.execute(request, classify::event).await
    }

    /// Patches an Event (B-14.1).
    pub async fn patch_event(&self, namespace: &str, name: &str, body: Vec<u8>) -> Answered<EventOutcome> {
        let path = namespaced(CORE, namespace, &["events", name]);
        let request = request(self.life(), Method::PATCH, path, "application/merge-patch+json", body);
        self.execute(request, classify::event).await
    }

    /// Requests the server's version for the `Date` of the answer. Any answer is a success.
    pub async fn probe(&self) -> Answered<()> {
        let request = request(self.life(), Method::GET, "/version".to_owned(), "", Vec::new());
        self.execute(request, |_| Answer::Outcome(())).await
    }

    pub(super) async fn execute<T: OrderOutcome>(
        &self,
        request: Result<Request<Body>, http::Error>,
        classify: fn(&RawAnswer) -> Answer<T>,
    ) -> Answered<T> {
        answered(self.send(request, BODY_MAX_BYTES).await, classify)
    }

    /// Sends a request over the least busy connection, over the avoided one only if no other has a place.
    async fn send(
        &self,
        request: Result<Request<Body>, http::Error>,
        body_max_bytes: usize,
    ) -> Result<ReceivedAnswer, SendError> {
        let request = request?;
        let life = self.life().unwrap_or(REQUEST_TIMEOUT);
        let permit = self.connections.acquire_avoiding(self.avoided).await;
        let exchange = async {
            let response = permit.client().send(request).await.map_err(SendError::Transport)?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, body_max_bytes)
                .collect()
                .await
                .map_err(SendError::of_body)?;
            Ok::<_, SendError>((parts, body.to_bytes()))
        };
        let (parts, body) = tokio::time::timeout(life, exchange)
            .await
            .map_err(|_| SendError::Timeout(life))??;
        let answer = RawAnswer {
            status: parts.status,
            retry_after: retry_after(&parts.headers),
            body,
        };
        Ok(ReceivedAnswer {
            answer,
            server_date: server_date(&parts),
            connection: permit.connection(),
        })
    }
}

/// An answer with the connection that it came over.
struct ReceivedAnswer {
    answer: RawAnswer,
    server_date: Option<ServerDate>,
    connection: usize,
}

fn answered<T: OrderOutcome>(
    sent: Result<ReceivedAnswer, SendError>,
    classify: impl FnOnce(&RawAnswer) -> Answer<T>,
) -> Answered<T> {
    match sent {
        Ok(ReceivedAnswer {
            answer,
            server_date,
            connection,
        }) => Answered {
            answer: classify(&answer),
            code: Some(answer.status.as_u16()),
            server_date,
            not_permitted: classify::not_permitted(&answer),
            fenced_over: classify::is_fenced(&answer).then_some(connection),
        },
        Err(error) => Answered {
            answer: match &error {
                SendError::Request(_) => classify::failed(&error),
                // The connection works, otherwise its keep-alive would have ended it: only this request has no answer.
                SendError::Timeout(_) | SendError::TooLong(_) => classify::stuck(&error),
                SendError::Transport(_) | SendError::Body(_) => classify::unanswered(&error),
            },
            code: None,
            server_date: None,
            not_permitted: None,
            fenced_over: None,
        },
    }
}

pub(super) fn request(
    life: Option<Duration>,
    method: Method,
    mut path: String,
    content_type: &str,
    body: impl Into<Bytes>,
) -> Result<Request<Body>, http::Error> {
    if let Some(life) = life {
        path.push_str("?timeout=");
        path.push_str(&life.as_millis().to_string());
        path.push_str("ms");
    }

    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, USER_AGENT);
    if !content_type.is_empty() {
        request = request.header(header::CONTENT_TYPE, content_type);
    }
    request.body(Body::from(body.into()))
}
