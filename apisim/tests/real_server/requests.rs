//! Requests to the real server, and responses without uids, versions and times.

use std::path::Path;

use apisim::Resource;
use kube::{
    Client,
    client::Body,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

/// A client of the real server.
pub(crate) struct Server {
    client: Client,
}

/// A response: its code and its body.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) code: u16,
    pub(crate) body: Value,
}

impl Server {
    pub(crate) async fn connect(kubeconfig: &Path) -> Server {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("a configuration")).expect("a client");
        Server { client }
    }

    /// Sends a request. `headers` are `Content-Type` and `Accept`.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: (&str, &str), body: &str) -> Response {
        let (code, bytes) = self.send_for_bytes(method, path, headers, body).await;
        let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
        Response { code, body }
    }

    /// Sends a request whose response is not JSON. Returns the code and the body.
    pub(crate) async fn send_for_bytes(
        &self,
        method: &str,
        path: &str,
        headers: (&str, &str),
        body: &str,
    ) -> (u16, Vec<u8>) {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("Content-Type", headers.0)
            .header("Accept", headers.1)
            .body(Body::from(body.as_bytes().to_vec()))
            .unwrap();
        let response = self.client.send(request).await.expect("a response");
        let code = response.status().as_u16();
        let bytes = response.into_body().collect_bytes().await.expect("a body");
        (code, bytes.to_vec())
    }
}

/// Returns the path of a kind, in the namespace `default` if the kind is namespaced.
pub(crate) fn path(resource: Resource) -> String {
    let root = match resource.group() {
        "" => "/api/v1".to_owned(),
        group => format!("/apis/{group}/v1"),
    };
    let scope = if resource.is_namespaced() {
        "/namespaces/default"
    } else {
        ""
    };
    format!("{root}{scope}/{}", resource.plural())
}

/// Removes managed fields, version and creation time, and replaces uids.
pub(crate) fn comparable(mut body: Value) -> Value {
    if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
        for member in ["managedFields", "resourceVersion", "creationTimestamp"] {
            metadata.remove(member);
        }
    }
    serde_json::from_str(&without_uids(&body.to_string())).unwrap()
}

/// Replaces every uid with `UID`.
fn without_uids(text: &str) -> String {
    let is_uid = |part: &str| {
        let groups: Vec<_> = part.split('-').map(str::len).collect();
        groups == [8, 4, 4, 4, 12] && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let mut rest = text;
    let mut replaced = String::new();
    while let Some(character) = rest.chars().next() {
        let taken = match rest.get(..36) {
            Some(part) if is_uid(part) => {
                replaced.push_str("UID");
                36
            }
            _ => {
                replaced.push(character);
                character.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    replaced
}
