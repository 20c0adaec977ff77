//! A process's connection to the API server. It blocks while the process is frozen, loses everything while it is cut,
//! and records what the server did. A request that was sent is served even if its sender is gone.

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
use cronwheel::{
    controller::clock::SimulatedWall,
    kube_api::{http::ApiConnection, ordered_watch::OrderedSender},
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use kube::client::Body;
use tower::Service;

use super::books::{Books, Write, WriteKind};

/// A connection without traffic is closed after this time.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// The number of creates until the process is frozen. Zero means never.
pub(super) type FreezeAtCreate = Arc<AtomicU64>;

#[derive(Clone)]
pub(super) struct Line {
    pub(super) api: Api,
    pub(super) clock: WallClock,
    pub(super) service: ApiService,
    /// The API server for lists of Jobs, if different.
    pub(super) job_lists: Option<ApiService>,
    pub(super) process: u64,
    pub(super) machine: SimulatedWall,
    pub(super) is_cut: OrderedSender<bool>,
    pub(super) freeze_at_create: FreezeAtCreate,
    /// Whether the next request for a Lease makes its task fail.
    pub(super) is_lease_task_doomed: Arc<AtomicBool>,
    /// The delay of responses to Lease writes.
    pub(super) lease_answer_delay_millis: Arc<AtomicU64>,
    pub(super) books: Arc<Mutex<Books>>,
    /// The connection, if the process distinguishes connections.
    pub(super) connection: Option<Arc<Mutex<Balanced>>>,
}

/// A connection through a load balancer, which connects every new one to the next API server.
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

    /// Returns the connection and its API server. Opens another one if it is retired.
    fn open(&mut self) -> (ApiConnection, usize) {
        if self.connection.is_retired() {
            *self = Balanced::new((self.front_end + 1) % self.n_front_ends, self.n_front_ends);
        }
        (self.connection.clone(), self.front_end)
    }
}

/// A request for a page of Jobs.
#[derive(Clone, Copy, Debug)]
struct JobList {
    /// Whether it is of the Jobs without the label of a shard.
    is_unlabelled: bool,
    /// The version that it must not be older than, if it may be from a cache.
    least_version: Option<u64>,
}

/// The properties of a request that are recorded.
#[derive(Clone, Debug)]
struct Asked {
    write: Option<WriteKind>,
    is_lease_write: bool,
    is_watch: bool,
    job_list: Option<JobList>,
    /// The name of its CronJob or Job.
    name: String,
}

impl Asked {
    fn of(request: &Request<Body>) -> Asked {
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
        let is_job_list = is_get && path.ends_with("/jobs") && !query.contains("watch=");
        Asked {
            write,
            is_lease_write: path.contains("/leases") && !is_get,
            is_watch: query.contains("watch="),
            job_list: is_job_list.then(|| JobList {
                is_unlabelled: query.contains("labelSelector=%21"),
                least_version: least_version(query),
            }),
            name,
        }
    }
}

/// Returns the name of the CronJob from the name of a Job.
fn cron_job_of(job: &str) -> &str {
    job.rsplit_once('-').map_or("", |(cron_job, _)| cron_job)
}

/// Returns the version that a list must not be older than, if the request names one.
fn least_version(query: &str) -> Option<u64> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, version) = pairs.find(|(name, _)| *name == "resourceVersion")?;
    version.parse().ok()
}

/// A create whose sender waits for the response.
struct OnTheWay {
    books: Arc<Mutex<Books>>,
    cron_job: String,
}

impl Drop for OnTheWay {
    fn drop(&mut self) {
        // After a failed test, the lock is poisoned and nobody reads the record.
        if let Ok(mut books) = self.books.lock() {
            books.count_create(&self.cron_job, false);
        }
    }
}

impl Line {
    async fn carry(self, request: Request<Body>) -> Result<Response<ApiBody>, ConnectionLost> {
        let mut asked = Asked::of(&request);
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| ConnectionLost)?.to_bytes();
        if asked.write == Some(WriteKind::Create) {
            let job: serde_json::Value = serde_json::from_slice(&body).unwrap();
            asked.name = job["metadata"]["name"].as_str().map(ToOwned::to_owned).unwrap();
        }
        let request = Request::from_parts(parts, Body::from(body));
        self.note_requested(&asked);
        let _on_the_way = self.count(&asked);
        if asked.write == Some(WriteKind::Create) && self.freeze_at_create.load(Ordering::Relaxed) > 0 {
            let n_left = self.freeze_at_create.fetch_sub(1, Ordering::Relaxed) - 1;
            if n_left == 0 {
                self.machine.freeze();
            }
        }
        let asked_for_lease = asked.is_lease_write;
        let is_doomed = asked_for_lease && self.is_lease_task_doomed.swap(false, Ordering::Relaxed);
        assert!(!is_doomed, "on purpose");
        self.machine.run(async {}).await;
        self.cross().await?;
        let answer = tokio::spawn(self.clone().serve(request, asked)).await;
        let answer = answer.unwrap_or_else(|error| panic!("the API server: {error}"))?;
        let delay = self.lease_answer_delay_millis.load(Ordering::Relaxed);
        if asked_for_lease && delay > 0 {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        self.cross().await?;
        Ok(answer)
    }

    /// Blocks while the connection is cut, until the sender considers the connection dead.
    async fn cross(&self) -> Result<(), ConnectionLost> {
        let mut is_cut = self.is_cut.subscribe();
        let healed = is_cut.wait_for(|is_cut| !is_cut);
        match tokio::time::timeout(KEEP_ALIVE, healed).await {
            Ok(_) => Ok(()),
            Err(_) => Err(ConnectionLost),
        }
    }

    async fn serve(mut self, request: Request<Body>, asked: Asked) -> Result<Response<ApiBody>, ConnectionLost> {
        let balanced = self.connection.as_ref().map(|balanced| balanced.lock().unwrap().open());
        if let Some((_, front_end)) = &balanced {
            self.service = self.service.clone().at_front_end(*front_end);
        }
        let elsewhere = self.job_lists.as_mut().filter(|_| asked.job_list.is_some());
        let answer = elsewhere.unwrap_or(&mut self.service).call(request);
        if asked.is_watch {
            return answer.await;
        }
        let mut answer = answer.await?;
        if let Some((connection, _)) = balanced {
            answer.extensions_mut().insert(connection);
        }
        self.note(&asked, answer.status());
        Ok(answer)
    }

    /// Counts a create as in flight until the returned value is dropped.
    fn count(&self, asked: &Asked) -> Option<impl Drop + use<>> {
        if asked.write != Some(WriteKind::Create) {
            return None;
        }
        let (books, cron_job) = (Arc::clone(&self.books), cron_job_of(&asked.name).to_owned());
        books.lock().unwrap().count_create(&cron_job, true);
        Some(OnTheWay { books, cron_job })
    }

    /// Records the time at which the process decided to send.
    fn note_requested(&self, asked: &Asked) {
        let cron_job = match asked.write {
            Some(WriteKind::Status) => asked.name.as_str(),
            Some(WriteKind::Create | WriteKind::Delete) => cron_job_of(&asked.name),
            None => return,
        };
        let asked = (self.clock.now(), self.process, cron_job.to_owned());
        self.books.lock().unwrap().asked.push(asked);
    }

    /// There is no await after the write, so the current version is that of the write.
    fn note(&self, asked: &Asked, status: StatusCode) {
        let mut books = self.books.lock().unwrap();
        books.n_lease_writes += u64::from(asked.is_lease_write);
        if let Some(list) = asked.job_list {
            books.n_unlabelled_pages += u64::from(list.is_unlabelled);
            books.cached_job_lists.extend(list.least_version);
        }
        let Some(kind) = asked.write else { return };
        if kind == WriteKind::Create && status == StatusCode::CONFLICT {
            books.n_exists += 1;
        }
        if kind == WriteKind::Create && status == StatusCode::FORBIDDEN {
            books.n_denied += 1;
        }
        if !status.is_success() {
            return;
        }
        let cron_job = match kind {
            WriteKind::Status => asked.name.as_str(),
            WriteKind::Create | WriteKind::Delete => cron_job_of(&asked.name),
        };
        books.writes.push(Write {
            version: self.api.version(),
            at: self.clock.now(),
            process: self.process,
            kind,
            cron_job: cron_job.to_owned(),
            object: asked.name.clone(),
        });
    }
}

impl Service<Request<Body>> for Line {
    type Response = Response<ApiBody>;
    type Error = ConnectionLost;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, ConnectionLost>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().carry(request))
    }
}
