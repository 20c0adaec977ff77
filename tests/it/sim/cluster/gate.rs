//! Observes the controller's requests: after a `Retry-After`, it must wait.

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

pub(super) type Offences = Arc<Mutex<Vec<String>>>;

/// The maximum interval between responses to requests that were in flight together.
const TOGETHER: SignedDuration = SignedDuration::from_millis(100);

/// Kinds of requests that share a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lane {
    Jobs,
    Statuses,
    Events,
    /// Occasional requests for the time.
    Others,
}

/// For each lane, when it was told to wait, and until when.
type Waits = [Option<(Timestamp, Timestamp)>; 3];

#[derive(Clone)]
pub(super) struct Gate {
    service: ApiService,
    clock: WallClock,
    waits: Arc<Mutex<Waits>>,
    offences: Offences,
}

impl Gate {
    pub(super) fn new(service: ApiService, clock: WallClock, offences: Offences) -> Gate {
        Gate {
            service,
            clock,
            waits: Arc::default(),
            offences,
        }
    }

    fn sent(&self, lane: Lane) {
        let now = self.clock.now();
        let waits = self.waits.lock().unwrap();
        if let Some(Some((told, until))) = waits.get(lane as usize)
            && (*told < now && now < *until)
        {
            let offence = format!("{lane:?}: told at {told} to wait until {until}, asked again at {now}");
            self.offences.lock().unwrap().push(offence);
        }
    }

    fn answered(&self, lane: Lane, answer: &Response<ApiBody>) {
        if answer.status() != StatusCode::TOO_MANY_REQUESTS {
            return;
        }
        let seconds = answer.headers()[header::RETRY_AFTER].to_str().unwrap();
        let asked = SignedDuration::from_secs(seconds.parse().unwrap());
        let now = self.clock.now();
        if let Some(wait) = self.waits.lock().unwrap().get_mut(lane as usize)
            && wait.is_none_or(|(_, until)| until <= now)
        {
            *wait = Some((now, now + asked - TOGETHER));
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
        let answer = self.service.call(request);
        Box::pin(async move {
            gate.sent(lane);
            let answer = answer.await?;
            gate.answered(lane, &answer);
            Ok(answer)
        })
    }
}
