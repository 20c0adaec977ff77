//! A client for the cases: requests with JSON bodies, watches as lists of events, waits with a time limit.

use std::{fmt, time::Duration};

use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::timeout;

/// A `ConfigMap` that a controller of the cluster creates in every new namespace.
const ROOT_CERTIFICATES: &str = "kube-root-ca.crt";

/// The maximum wait for an expected change. It is long, because the machine may be busy.
const WAIT_MAX: Duration = Duration::from_mins(2);

/// A client of the server, and the namespace of one case.
#[derive(Clone)]
pub(super) struct Server {
    client: kube::Client,
    pub(super) namespace: String,
}

/// A response. `json` is null if the body is not JSON.
pub(super) struct Response {
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) json: Value,
}

impl fmt::Debug for Response {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.code, self.json)
    }
}

impl Response {
    /// Asserts the code. Returns the body.
    #[track_caller]
    pub(super) fn expect(self, code: u16) -> Value {
        assert_eq!(self.code, code, "{self:?}");
        self.json
    }

    /// Asserts a failure with this code and reason. Returns the message.
    #[track_caller]
    pub(super) fn refused(self, code: u16, reason: &str) -> String {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.json["kind"], "Status", "{self:?}");
        assert_eq!(self.json["status"], "Failure", "{self:?}");
        assert_eq!(self.json["reason"], reason, "{self:?}");
        assert_eq!(self.json["code"], code, "{self:?}");
        text(&self.json["message"])
    }
}

/// Returns the text of a JSON string.
#[track_caller]
pub(super) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("not a string: {value}"))
        .to_owned()
}

pub(super) fn version(object: &Value) -> String {
    text(&object["metadata"]["resourceVersion"])
}

pub(super) fn uid(object: &Value) -> String {
    text(&object["metadata"]["uid"])
}

impl Server {
    /// Creates a namespace for the case.
    pub(super) async fn new(client: kube::Client, case: &str) -> Server {
        let mut namespace = case.replace('_', "-");
        namespace.truncate(60);
        let namespace = namespace.trim_end_matches('-').to_owned();
        let server = Server { client, namespace };
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": server.namespace}});
        server.post("/api/v1/namespaces", &object).await.expect(201);
        server
    }

    pub(super) fn path(&self, plural: &str) -> String {
        let group = match plural {
            "cronjobs" | "jobs" => "/apis/batch/v1",
            "leases" => "/apis/coordination.k8s.io/v1",
            _ => "/api/v1",
        };
        format!("{group}/namespaces/{}/{plural}", self.namespace)
    }

    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        accept: &str,
        body: Vec<u8>,
    ) -> Response {
        let mut request = Request::builder().method(method).uri(path).header("Accept", accept);
        if !content_type.is_empty() {
            request = request.header("Content-Type", content_type);
        }
        let request = request.body(Body::from(body)).unwrap();
        let response = self.client.send(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        Response {
            code: parts.status.as_u16(),
            headers: parts.headers,
            json: serde_json::from_slice(&bytes).unwrap_or_default(),
        }
    }

    async fn send_json(&self, method: Method, path: &str, content_type: &str, body: &Value) -> Response {
        let body = if body.is_null() {
            Vec::new()
        } else {
            serde_json::to_vec(body).unwrap()
        };
        self.send(method, path, content_type, "application/json", body).await
    }

    pub(super) async fn get(&self, path: &str) -> Response {
        self.send_json(Method::GET, path, "", &Value::Null).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Response {
        self.send_json(Method::POST, path, "application/json", body).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Response {
        self.send_json(Method::PUT, path, "application/json", body).await
    }

    pub(super) async fn delete(&self, path: &str, body: &Value) -> Response {
        self.send_json(Method::DELETE, path, "application/json", body).await
    }

    pub(super) async fn merge_patch(&self, path: &str, body: &Value) -> Response {
        self.send_json(Method::PATCH, path, "application/merge-patch+json", body)
            .await
    }

    /// Creates a suspended CronJob.
    pub(super) async fn create_cron_job(&self, name: &str) -> Value {
        self.post(&self.path("cronjobs"), &cron_job(name)).await.expect(201)
    }

    pub(super) async fn create_job(&self, name: &str, metadata: Value) -> Value {
        let mut object = job(name);
        for (key, value) in metadata.as_object().into_iter().flatten() {
            object["metadata"][key] = value.clone();
        }
        self.post(&self.path("jobs"), &object).await.expect(201)
    }

    pub(super) async fn create_config_map(&self, name: &str, labels: Value) -> Value {
        let object = json!({"metadata": {"name": name, "labels": labels}});
        self.post(&self.path("configmaps"), &object).await.expect(201)
    }

    /// Returns the first events of a watch, each with its type and object.
    pub(super) async fn watch(&self, path_and_query: &str, n_events: usize) -> Vec<(String, Value)> {
        self.watch_as("application/json", path_and_query, n_events).await
    }

    /// Returns the first events of a watch in the format that `accept` requests.
    pub(super) async fn watch_as(&self, accept: &str, path_and_query: &str, n_events: usize) -> Vec<(String, Value)> {
        let events = timeout(WAIT_MAX, self.lines_as(accept, path_and_query, n_events)).await;
        let events = events.unwrap_or_else(|_| panic!("{path_and_query}: fewer than {n_events} events"));
        assert_eq!(events.len(), n_events, "{path_and_query}: the watch ended: {events:?}");
        events
    }

    /// Returns at most this many events of a watch. Returns fewer if the watch ends first.
    pub(super) async fn watch_lines(&self, path_and_query: &str, n_events: usize) -> Vec<(String, Value)> {
        self.lines_as("application/json", path_and_query, n_events).await
    }

    async fn lines_as(&self, accept: &str, path_and_query: &str, n_events: usize) -> Vec<(String, Value)> {
        let request = Request::get(path_and_query).header("Accept", accept);
        let request = request.body(Body::empty()).unwrap();
        let response = self.client.send(request).await.unwrap();
        assert_eq!(response.status(), 200, "{path_and_query}");
        let mut body = response.into_body();
        let (mut events, mut buffer) = (Vec::new(), Vec::new());
        while events.len() < n_events
            && let Some(frame) = body.frame().await
        {
            buffer.extend_from_slice(&frame.unwrap().into_data().unwrap_or_default());
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                let mut event: Value = serde_json::from_slice(&line).unwrap();
                if event["object"]["metadata"]["name"] != ROOT_CERTIFICATES {
                    events.push((text(&event["type"]), event["object"].take()));
                }
            }
        }
        events.truncate(n_events);
        events
    }

    /// Waits until a GET of the path has this code. Returns the body.
    pub(super) async fn wait_for_code(&self, path: &str, code: u16) -> Value {
        let poll = async {
            loop {
                let response = self.get(path).await;
                if response.code == code {
                    return response.json;
                }
                tokio::task::yield_now().await;
            }
        };
        timeout(WAIT_MAX, poll)
            .await
            .unwrap_or_else(|_| panic!("{path} is not {code}"))
    }
}

pub(super) fn cron_job(name: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name},
        "spec": {"schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": {"spec": {"template": pod_template()}}},
    })
}

/// A suspended Job. The annotation also stops simulations that ignore `suspend` from ending it.
pub(super) fn job(name: &str) -> Value {
    let mut template = pod_template();
    template["metadata"]["annotations"]["outcome"] = "hang".into();
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"suspend": true, "template": template},
    })
}

fn pod_template() -> Value {
    json!({"spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}})
}

/// Returns metadata with a CronJob as the owner.
pub(super) fn owned_by(cron_job: &Value) -> Value {
    json!({"ownerReferences": [{
        "apiVersion": "batch/v1", "kind": "CronJob", "name": cron_job["metadata"]["name"],
        "uid": cron_job["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]})
}
