//! Converts HTTP requests to calls, and results to responses: a tower service, in process, without a socket.
//!
//! An error of the service is a broken connection: the client does not learn the result of its request.

mod access;
mod admission;
mod body;
mod documents;
mod form;
mod list;
mod query;
mod reply;
mod route;
mod watch;
mod write;

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, header, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use jiff::Timestamp;
use tokio::time::{sleep, timeout};
use tower::{BoxError, Service};

pub use self::body::{ApiBody, ConnectionLost};
use self::{
    form::Form,
    query::Query,
    reply::Reply,
    route::{Call, Route},
};
use crate::{api::Api, clock::instant, failure::Failure, faults::RequestAttributes, verb::Verb};

/// The maximum size of a request body, as in the API server.
const BODY_MAX_BYTES: usize = 3 << 20;

/// The maximum time of a request other than a watch, as in the API server.
const REQUEST_TIME_MAX: Duration = Duration::from_mins(1);

/// The maximum time of a write, as in the API server.
const WRITE_TIME_MAX: Duration = Duration::from_secs(34);

/// A client of the API. Cheap to clone.
#[derive(Clone)]
pub struct ApiService {
    api: Api,
    client: Option<Arc<str>>,
    front_end: usize,
}

/// A request whose request line and headers are parsed.
struct ParsedRequest {
    form: Form,
    call: Call,
    query: Query,
    headers: HeaderMap,
    client: Arc<str>,
    front_end: usize,
    /// A fault: lists return a state of this age.
    stale_by: Option<Duration>,
    /// When the mutating admission of a create ended.
    created: Option<Timestamp>,
}

impl ParsedRequest {
    fn attributes(&self) -> RequestAttributes<'_> {
        let (namespace, name) = match &self.call.route {
            Route::Object { namespace, name, .. } => (namespace.as_deref(), name.as_str()),
            Route::Collection { namespace, .. } => (namespace.as_deref(), ""),
            Route::Document(_) | Route::AccessReviews | Route::Pods => (None, ""),
        };
        RequestAttributes {
            client: &self.client,
            front_end: self.front_end,
            verb: self.call.verb,
            resource: self.call.route.resource(),
            namespace,
            name,
        }
    }

    /// The time limit of the request. `None` for a watch.
    fn time_max(&self) -> Result<Option<Duration>, Failure> {
        if self.call.verb == Verb::Watch {
            return Ok(None);
        }
        let limit = if self.call.verb.is_write() {
            WRITE_TIME_MAX
        } else {
            REQUEST_TIME_MAX
        };
        Ok(Some(self.query.timeout()?.map_or(limit, |timeout| timeout.min(limit))))
    }
}

impl ApiService {
    pub(crate) fn new(api: Api, client: &str) -> ApiService {
        ApiService {
            api,
            client: Some(client.into()),
            front_end: 0,
        }
    }

    /// Returns the same client at another front end.
    #[must_use]
    pub fn at_front_end(mut self, front_end: usize) -> ApiService {
        self.front_end = front_end;
        self
    }

    /// Identifies clients by their `User-Agent`, up to the first `/`.
    #[must_use]
    pub fn named_by_user_agent(mut self) -> ApiService {
        self.client = None;
        self
    }

    async fn handle<B>(self, request: Request<B>) -> Result<Response<ApiBody>, ConnectionLost>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let (parts, body) = request.into_parts();
        let (form, reply) = match self.parse(parts) {
            Ok(request) => (request.form, self.respond(request, body).await?),
            Err(failure) => (Form::Whole, Reply::Failure(failure)),
        };
        let now = self.api.shared.wall(self.front_end);
        Ok(reply.into_response(now, form))
    }

    fn parse(&self, parts: Parts) -> Result<ParsedRequest, Failure> {
        let query = Query::parse(parts.uri.query().unwrap_or_default());
        let route = Route::parse(parts.uri.path())?;
        let call = Call::new(route, &parts.method, query.is_watch)?;
        // Documents have their own media types.
        let form = if call.verb == Verb::Document {
            Form::Whole
        } else {
            Form::parse(&parts.headers, &query.include_object)?
        };
        Ok(ParsedRequest {
            form,
            client: self.client(&parts.headers),
            call,
            query,
            headers: parts.headers,
            front_end: self.front_end,
            stale_by: None,
            created: None,
        })
    }

    fn client(&self, headers: &HeaderMap) -> Arc<str> {
        if let Some(client) = &self.client {
            return Arc::clone(client);
        }
        let agent = headers
            .get(header::USER_AGENT)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        agent.split('/').next().unwrap_or_default().into()
    }

    async fn respond<B>(&self, request: ParsedRequest, body: B) -> Result<Reply, ConnectionLost>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        let body = match read(body).await? {
            Ok(body) => body,
            Err(failure) => return Ok(Reply::Failure(failure)),
        };
        let time_max = match request.time_max() {
            Ok(time_max) => time_max,
            Err(failure) => return Ok(Reply::Failure(failure)),
        };
        let processed = self.process(request, &body);
        match time_max {
            None => processed.await,
            Some(time_max) => {
                let in_time = timeout(time_max, processed).await;
                in_time.unwrap_or_else(|_| Ok(Reply::Failure(Failure::timed_out())))
            }
        }
    }

    async fn process(&self, mut request: ParsedRequest, body: &[u8]) -> Result<Reply, ConnectionLost> {
        let shared = &self.api.shared;
        let verdict = shared.faults.verdict(&request.attributes(), instant());
        if !verdict.delay.is_zero() {
            sleep(verdict.delay).await;
        }
        if verdict.is_dropped_before {
            return Err(ConnectionLost);
        }
        if let Some(failure) = verdict.refusal {
            return Ok(Reply::Failure(failure));
        }
        request.stale_by = verdict.stale_by;
        if request.call.verb == Verb::Create {
            match self.admit(&request, body, &verdict.admission).await {
                Ok(created) => request.created = Some(created),
                Err(failure) => return Ok(Reply::Failure(failure)),
            }
        }
        let in_flight = match shared.queue.serve(request.call.verb.is_write()).await {
            Ok(in_flight) => in_flight,
            Err(failure) => return Ok(Reply::Failure(failure)),
        };
        let result = self.execute(&request, body).await;
        drop(in_flight);
        if verdict.is_dropped_after {
            return Err(ConnectionLost);
        }
        Ok(result.unwrap_or_else(Reply::Failure))
    }

    async fn execute(&self, request: &ParsedRequest, body: &[u8]) -> Result<Reply, Failure> {
        match request.call.verb {
            Verb::Document if request.call.route == Route::AccessReviews => self.review(request, body),
            Verb::Document if request.call.route == Route::Pods => Ok(Reply::NoPods(self.api.version())),
            Verb::Document => documents::reply(request),
            Verb::Get => self.get(request),
            Verb::List => self.list(request).await,
            Verb::Watch => self.watch(request).await,
            Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection => {
                self.write(request, body)
            }
        }
    }
}

/// Reads the whole body. The inner failure is returned to the client.
async fn read<B>(body: B) -> Result<Result<Bytes, Failure>, ConnectionLost>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    if body.is_end_stream() {
        return Ok(Ok(Bytes::new()));
    }
    match Limited::new(body, BODY_MAX_BYTES).collect().await {
        Ok(body) => Ok(Ok(body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(Err(Failure::too_large(BODY_MAX_BYTES))),
        Err(_) => Err(ConnectionLost),
    }
}

impl<B> Service<Request<B>> for ApiService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<ApiBody>;
    type Error = ConnectionLost;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, ConnectionLost>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().handle(request))
    }
}
