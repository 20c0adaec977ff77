//! Counts and times the requests of the clients for lists, watches and Leases, where each of them is sent. The requests
//! of the other clients are recorded by [`send_recorded`](super::recorded_send::send_recorded).

use http::{Method, Request};
use kube::{Client, client::Body};

use super::clock::Clock;
use crate::{
    shard::BootInstant,
    telemetry::metrics::{ApiCall, ApiMetrics},
};

/// Wraps a client. Requires a tokio runtime.
pub(super) fn recorded_client(client: Client, clock: Clock, metrics: ApiMetrics) -> Client {
    let default_namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let record = call(&request).map(|call| RequestRecord {
            call,
            sent: clock.boot(),
            code: None,
            clock: clock.clone(),
            metrics: metrics.clone(),
        });
        let client = client.clone();
        async move {
            let mut record = record;
            let answer = client.send(request).await;
            if let (Some(record), Ok(answer)) = (&mut record, &answer) {
                record.code = Some(answer.status().as_u16());
            }
            answer
        }
    });
    Client::new(service, default_namespace)
}

/// A request in flight. Recorded when it is dropped, since a request without an answer in time is dropped.
struct RequestRecord {
    call: ApiCall,
    sent: BootInstant,
    /// The status of the answer, once there is one.
    code: Option<u16>,
    clock: Clock,
    metrics: ApiMetrics,
}

impl Drop for RequestRecord {
    fn drop(&mut self) {
        let duration = self.clock.boot().since(self.sent);
        self.metrics.record(self.call, self.code, duration);
    }
}

/// Returns the kind of a request, by the same rules as an API server: `None` for a kind that no task sends.
fn call(request: &Request<Body>) -> Option<ApiCall> {
    let path: Vec<&str> = request.uri().path().split('/').collect();
    let (["", "api", _, rest @ ..] | ["", "apis", _, _, rest @ ..]) = path.as_slice() else {
        return None;
    };
    let (resource, is_one_object) = match rest {
        [resource] | ["namespaces", _, resource] => (*resource, false),
        ["namespaces", _, resource, _] => (*resource, true),
        _ => return None,
    };
    let mut parameters = request.uri().query().unwrap_or_default().split('&');
    let verb = match *request.method() {
        Method::GET if is_one_object => "get",
        Method::GET if parameters.any(|parameter| parameter == "watch=true") => "watch",
        Method::GET => "list",
        Method::POST => "create",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => return None,
    };
    ApiCall::of([verb, resource])
}

#[cfg(test)]
mod tests;
