//! An API server that is implemented by one function. The tasks send to it with the real client, so their tests cover
//! paths, bodies and the classification of answers.

use std::{error::Error, future::Future, time::Duration};

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use kube::{Client, client::Body};
use serde_json::{Value, json};

use crate::{
    controller::clock::Clock,
    kube_api::{ApiClient, Decoder, WriteConnections},
    shard::CronJobRecord,
};

/// A request as the server receives it.
#[derive(Debug)]
pub(in crate::controller) struct Received {
    pub(in crate::controller) method: Method,
    pub(in crate::controller) body: Value,
    /// The number of the connection.
    pub(in crate::controller) connection: usize,
    path: Vec<String>,
    query: String,
}

impl Received {
    /// The plural of the resource.
    pub(in crate::controller) fn resource(&self) -> &str {
        self.after("namespaces", 2)
            .unwrap_or_else(|| self.path.last().map_or("", String::as_str))
    }

    /// The namespace of the object, or an empty text.
    pub(in crate::controller) fn namespace(&self) -> &str {
        self.after("namespaces", 1).unwrap_or_default()
    }

    /// The name in the path, or in the body of a new object.
    pub(in crate::controller) fn name(&self) -> &str {
        let name = self.body["metadata"]["name"].as_str();
        self.after("namespaces", 3).or(name).unwrap_or_default()
    }

    /// The time after which the server gives up the request.
    pub(in crate::controller) fn timeout(&self) -> Option<Duration> {
        let millis = self.query.strip_prefix("timeout=")?.strip_suffix("ms")?;
        Some(Duration::from_millis(millis.parse().ok()?))
    }

    /// The path of the request.
    pub(in crate::controller) fn path(&self) -> String {
        self.path.join("/")
    }

    fn after(&self, segment: &str, distance: usize) -> Option<&str> {
        let at = self.path.iter().position(|other| other == segment)?;
        self.path.get(at + distance).map(String::as_str)
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(in crate::controller) enum Response {
    /// Success.
    Object(Value),
    /// A refusal.
    Status {
        code: u16,
        reason: &'static str,
        message: &'static str,
        retry_after_secs: Option<u64>,
    },
    /// No connection.
    Unreachable,
}

impl Response {
    /// A minimal object of this resource version.
    pub(in crate::controller) fn stored(resource_version: u64) -> Response {
        Response::Object(json!({"metadata": {
            "uid": "u",
            "resourceVersion": resource_version.to_string(),
            "creationTimestamp": "2026-11-01T12:00:00Z",
        }}))
    }

    pub(in crate::controller) fn status(code: u16, reason: &'static str, message: &'static str) -> Response {
        Response::Status {
            code,
            reason,
            message,
            retry_after_secs: None,
        }
    }

    pub(in crate::controller) fn not_found() -> Response {
        Response::status(404, "NotFound", "not found")
    }

    pub(in crate::controller) fn throttled(retry_after_secs: Option<u64>) -> Response {
        Response::Status {
            code: 429,
            reason: "TooManyRequests",
            message: "slow down",
            retry_after_secs,
        }
    }

    fn into_http(self, clock: &Clock) -> Result<http::Response<Full<Bytes>>, Box<dyn Error + Send + Sync>> {
        let date = clock.wall().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let response = http::Response::builder().header(header::DATE, date);
        let (response, body) = match self {
            Response::Object(object) => (response.status(200), object),
            Response::Status {
                code,
                reason,
                message,
                retry_after_secs,
            } => {
                let status = json!({"kind": "Status", "reason": reason, "message": message});
                let response = match retry_after_secs {
                    Some(seconds) => response.header(header::RETRY_AFTER, seconds),
                    None => response,
                };
                (response.status(code), status)
            }
            Response::Unreachable => return Err("connection refused".into()),
        };
        Ok(response.body(Full::new(body.to_string().into()))?)
    }
}

/// A client of a server that answers with `respond`. Each connection has a number. The `Date` header is the wall
/// clock's time.
pub(in crate::controller) fn client<R>(
    clock: &Clock,
    n_connections: usize,
    respond: impl Fn(Received) -> R + Clone + Send + Sync + 'static,
) -> ApiClient
where
    R: Future<Output = Response> + Send + 'static,
{
    let connection = |number| {
        let (clock, respond) = (clock.clone(), respond.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (clock, respond) = (clock.clone(), respond.clone());
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await?.to_bytes();
                let received = Received {
                    method: parts.method,
                    body: serde_json::from_slice(&body).unwrap_or_default(),
                    connection: number,
                    path: parts.uri.path().split('/').map(str::to_owned).collect(),
                    query: parts.uri.query().unwrap_or_default().to_owned(),
                };
                respond(received).await.into_http(&clock)
            }
        });
        Client::new(service, "default")
    };
    ApiClient::new(WriteConnections::from_clients(
        (0..n_connections).map(connection).collect(),
    ))
}

/// A CronJob whose uid is its name.
pub(in crate::controller) fn cron_job(namespace: &str, name: &str, resource_version: u64, image: &str) -> Value {
    json!({
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": name,
            "resourceVersion": resource_version.to_string(),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {
            "schedule": "* * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "work", "image": image}],
            }}}},
        },
    })
}

/// The record of a CronJob.
pub(in crate::controller) fn record(object: &Value) -> CronJobRecord {
    Decoder::default().cron_job(&object.to_string()).unwrap()
}
