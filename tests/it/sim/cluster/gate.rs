//! Checks that the controller waits after a response with `Retry-After`.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
};

use apisim::{ApiBody, ApiService, ConnectionLost, WallClock};
use http::{Request, Response, StatusCode, header};
use jiff::{SignedDuration, Timestamp};
use kube::client::Body;
use tower::Service;

pub(super) type Violations = Arc<Mutex<Vec<String>>>;

/// The maximum interval between responses to requests that are in flight at the same time.
const TOGETHER: SignedDuration = SignedDuration::from_millis(100);

/// Kinds of requests that share a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Jobs,
    Statuses,
    Events,
    /// Occasional requests for the time of the server.
    Others,
}

/// For each lane, the start and the end of its wait.
type Waits = [Option<(Timestamp, Timestamp)>; 3];

#[derive(Clone)]
pub(super) struct Gate {
    service: ApiService,
    clock: WallClock,
    waits: Arc<Mutex<Waits>>,
    violations: Violations,
}

impl Gate {
    pub(super) fn new(service: ApiService, clock: WallClock, violations: Violations) -> Gate {
        Gate {
            service,
            clock,
            waits: Arc::default(),
            violations,
        }
    }

    fn check_request(&self, lane: Lane) {
        let now = self.clock.now();
        let waits = self.waits.lock().unwrap();
        if let Some(Some((since, until))) = waits.get(lane as usize)
            && (*since < now && now < *until)
        {
            let violation = format!("{lane:?}: throttled at {since} until {until}, request sent at {now}");
            self.violations.lock().unwrap().push(violation);
        }
    }

    fn record_response(&self, lane: Lane, response: &Response<ApiBody>) {
        if response.status() != StatusCode::TOO_MANY_REQUESTS {
            return;
        }
        let seconds = response.headers()[header::RETRY_AFTER].to_str().unwrap();
        let retry_after = SignedDuration::from_secs(seconds.parse().unwrap());
        let now = self.clock.now();
        if let Some(wait) = self.waits.lock().unwrap().get_mut(lane as usize)
            && wait.is_none_or(|(_, until)| until <= now)
        {
            *wait = Some((now, now + retry_after - TOGETHER));
        }
    }
}

fn lane(request: &Request<Body>) -> Lane {
    let path = request.uri().path();
    if path.ends_with("/status") {
        Lane::Statuses
    } else if path.contains("/events") {
        Lane::Events
    } else if path.contains("/jobs") {
        Lane::Jobs
    } else {
        Lane::Others
    }
}

impl Service<Request<Body>> for Gate {
    type Response = Response<ApiBody>;
    type Error = ConnectionLost;
    type Future = Pin<Box<dyn Future<Output = Result<Response<ApiBody>, ConnectionLost>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectionLost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (gate, lane) = (self.clone(), lane(&request));
        let response = self.service.call(request);
        Box::pin(async move {
            gate.check_request(lane);
            let response = response.await?;
            gate.record_response(lane, &response);
            Ok(response)
        })
    }
}
