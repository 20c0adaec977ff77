//! The connection of a process to the API server. It blocks while the process is frozen, drops all traffic while it is
//! cut, and records the requests and their results. The server handles a sent request even if its sender is gone.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use apisim::{Api, ApiBody, ApiService, ConnectionLost, WallClock};
use bytes::Bytes;
use cronwheel::{
    controller::clock::SimulatedWall,
    kube_api::{http::ApiConnection, latest_value::LatestSender},
};
use futures::{StreamExt as _, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, BodyStream, StreamBody, combinators::UnsyncBoxBody};
use kube::client::Body;
use tower::Service;

use super::records::{Records, Write, WriteKind};

/// The sender considers a connection without traffic dead after this time.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

type ResponseBody = UnsyncBoxBody<Bytes, ConnectionLost>;

/// The number of creates until the process is frozen. Zero means never.
pub(super) type FreezeAtCreate = Arc<AtomicU64>;

#[derive(Clone)]
pub(super) struct Connection {
    pub(super) api: Api,
    pub(super) clock: WallClock,
    pub(super) service: ApiService,
    pub(super) process: u64,
    pub(super) machine: SimulatedWall,
    pub(super) is_cut: LatestSender<bool>,
    /// The number of outages in which the open watches of CronJobs and Jobs were lost without an error.
    pub(super) n_lost_watches: LatestSender<u64>,
    pub(super) freeze_at_create: FreezeAtCreate,
    /// Whether the next Lease write panics. Applies once.
    pub(super) fail_lease_task: Arc<AtomicBool>,
    /// The delay of responses to Lease writes.
    pub(super) lease_response_delay_millis: Arc<AtomicU64>,
    pub(super) records: Arc<Mutex<Records>>,
    /// The connection through the load balancer, if the process distinguishes connections.
    pub(super) balanced: Option<Arc<Mutex<Balanced>>>,
}

/// A connection through a load balancer. The load balancer connects each new connection to the next API server.
pub(super) struct Balanced {
    connection: ApiConnection,
    front_end: usize,
    n_front_ends: usize,
}

impl Balanced {
    pub(super) fn new(front_end: usize, n_front_ends: usize) -> Balanced {
        Balanced {
            connection: ApiConnection::new(),
            front_end,
            n_front_ends,
        }
    }

    /// Returns the connection and its API server. Opens a new connection if the current one is retired.
    fn open(&mut self) -> (ApiConnection, usize) {
        if self.connection.is_retired() {
            *self = Balanced::new((self.front_end + 1) % self.n_front_ends, self.n_front_ends);
        }
        (self.connection.clone(), self.front_end)
    }
}

/// The recorded properties of a request.
#[derive(Clone, Debug)]
struct ParsedRequest {
    write: Option<WriteKind>,
    is_lease_write: bool,
    /// Whether it is a watch of Leases; `None` if it is no watch.
    watches_leases: Option<bool>,
    /// Whether it begins a list of Jobs.
    is_job_list: bool,
    /// The name of the CronJob or Job.
    name: String,
}

impl ParsedRequest {
    fn of(request: &Request<Body>) -> ParsedRequest {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let (is_post, is_get) = (request.method() == Method::POST, request.method() == Method::GET);
        let segments: Vec<&str> = path.split('/').collect();
        let write = match segments.as_slice() {
            [.., "jobs"] if is_post => Some(WriteKind::Create),
            [.., "jobs", _] if request.method() == Method::DELETE => Some(WriteKind::Delete),
            [.., "cronjobs", _, "status"] if !is_get => Some(WriteKind::Status),
            _ => None,
        };
        let name = match segments.as_slice() {
            [.., name, "status"] | [.., "jobs", name] => (*name).to_owned(),
            _ => String::new(),
        };
        let is_list = !query.contains("watch=") && !query.contains("continue=") && !query.ends_with("limit=1");
        ParsedRequest {
            write,
            is_lease_write: path.contains("/leases") && !is_get,
            watches_leases: query.contains("watch=").then(|| path.contains("/leases")),
            is_job_list: is_get && path.ends_with("/jobs") && is_list,
            name,
        }
    }
}

/// Returns the name of the CronJob from the name of a Job, `NAME-MINUTES` or `NAME-run-TOKEN`.
fn cron_job_of(job: &str) -> &str {
    let cron_job = job.rsplit_once('-').map_or("", |(cron_job, _)| cron_job);
    cron_job.strip_suffix("-run").unwrap_or(cron_job)
}

impl Connection {
    async fn deliver(self, request: Request<Body>) -> Result<Response<ResponseBody>, ConnectionLost> {
        let mut parsed = ParsedRequest::of(&request);
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| ConnectionLost)?.to_bytes();
        if parsed.write == Some(WriteKind::Create) {
            let job: serde_json::Value = serde_json::from_slice(&body).unwrap();
            parsed.name = job["metadata"]["name"].as_str().map(ToOwned::to_owned).unwrap();
        }
        let request = Request::from_parts(parts, Body::from(body));
        self.record_requested(&parsed);
        if parsed.write == Some(WriteKind::Create) && self.freeze_at_create.load(Ordering::Relaxed) > 0 {
            let n_left = self.freeze_at_create.fetch_sub(1, Ordering::Relaxed) - 1;
            if n_left == 0 {
                self.machine.freeze();
            }
        }
        let is_lease_write = parsed.is_lease_write;
        let must_fail = is_lease_write && self.fail_lease_task.swap(false, Ordering::Relaxed);
        assert!(!must_fail, "the test fails this task");
        self.machine.run(async {}).await;
        self.wait_while_cut().await?;
        let response = tokio::spawn(self.clone().serve(request, parsed)).await;
        let response = response.unwrap_or_else(|error| panic!("the API server: {error}"))?;
        let delay = self.lease_response_delay_millis.load(Ordering::Relaxed);
        if is_lease_write && delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        self.wait_while_cut().await?;
        Ok(response)
    }

    /// Blocks while the connection is cut, until the sender considers the connection dead.
    async fn wait_while_cut(&self) -> Result<(), ConnectionLost> {
        let mut is_cut = self.is_cut.subscribe();
        let healed = is_cut.wait_for(|is_cut| !is_cut);
        match tokio::time::timeout(KEEP_ALIVE, healed).await {
            Ok(()) => Ok(()),
            Err(_) => Err(ConnectionLost),
        }
    }

    async fn serve(
        mut self,
        request: Request<Body>,
        parsed: ParsedRequest,
    ) -> Result<Response<ResponseBody>, ConnectionLost> {
        let balanced = self.balanced.as_ref().map(|balanced| balanced.lock().unwrap().open());
        if let Some((_, front_end)) = &balanced {
            self.service = self.service.clone().at_front_end(*front_end);
        }
        let response = self.service.call(request);
        if let Some(watches_leases) = parsed.watches_leases {
            let response = response.await?;
            return Ok(if watches_leases {
                response.map(BodyExt::boxed_unsync)
            } else {
                response.map(|body| self.until_lost(body))
            });
        }
        let mut response = response.await?;
        if let Some((connection, _)) = balanced {
            response.extensions_mut().insert(connection);
        }
        self.record_result(&parsed, response.status());
        Ok(response.map(BodyExt::boxed_unsync))
    }

    /// Delivers a watch until it is lost. From then on it is silent.
    fn until_lost(&self, body: ApiBody) -> ResponseBody {
        let parts = (BodyStream::new(body), self.n_lost_watches.subscribe());
        let frames = stream::unfold(parts, |(mut frames, mut n_lost)| async move {
            tokio::select! {
                biased;
                () = n_lost.changed() => std::future::pending().await,
                frame = frames.next() => Some((frame?, (frames, n_lost))),
            }
        });
        StreamBody::new(frames).boxed_unsync()
    }

    /// Records a write that the process is about to send.
    fn record_requested(&self, parsed: &ParsedRequest) {
        let cron_job = match parsed.write {
            Some(WriteKind::Status) => parsed.name.as_str(),
            Some(WriteKind::Create | WriteKind::Delete) => cron_job_of(&parsed.name),
            None => return,
        };
        let requested = (self.clock.now(), self.process, cron_job.to_owned());
        self.records.lock().unwrap().requested_writes.push(requested);
    }

    /// Records a finished request. No await follows the write, so the current version is the version of the write.
    fn record_result(&self, parsed: &ParsedRequest, status: StatusCode) {
        let mut records = self.records.lock().unwrap();
        records.n_lease_writes += u64::from(parsed.is_lease_write);
        records.n_job_lists += u64::from(parsed.is_job_list);
        let Some(kind) = parsed.write else { return };
        if kind == WriteKind::Create && status == StatusCode::CONFLICT {
            records.n_exists += 1;
        }
        if kind == WriteKind::Create && status == StatusCode::FORBIDDEN {
            records.n_denied += 1;
        }
        if !status.is_success() {
            return;
        }
        let cron_job = match kind {
            WriteKind::Status => parsed.name.as_str(),
            WriteKind::Create | WriteKind::Delete => cron_job_of(&parsed.name),
        };
        records.writes.push(Write {
            version: self.api.version(),
            at: self.clock.now(),
            process: self.process,
            kind,
            cron_job: cron_job.to_owned(),
            object: parsed.name.clone(),
        });
    }
}

impl Service<Request<Body>> for Connection {
    type Response = Response<ResponseBody>;
    type Error = ConnectionLost;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, ConnectionLost>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().deliver(request))
    }
}
