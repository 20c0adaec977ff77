//! The minimal client that can create Jobs: prepared bodies over HTTP/2 connections, with a fixed number in flight.
//! The difference to this client is the cost of the controller.

use std::{fs, path::Path};

use anyhow::bail;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Config,
    client::ConfigExt as _,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::Value;

/// As many as cronwheel uses for its writes.
const N_CONNECTIONS: usize = 4;

/// A Job to create.
#[derive(Clone, Debug)]
pub(crate) struct PreparedJob {
    pub(crate) namespace: String,
    pub(crate) body: Bytes,
}

/// A client that only sends prepared requests.
pub(crate) struct BareClient {
    clients: Vec<Client<HttpsConnector<HttpConnector>, Full<Bytes>>>,
    server: String,
    /// `None` if the server does not authenticate clients.
    token: Option<String>,
}

impl BareClient {
    /// Connects as the user of a JSON kubeconfig that [`Target`](crate::target::Target) has written.
    pub(crate) async fn connect(kubeconfig: &Path) -> anyhow::Result<BareClient> {
        let written: Value = serde_json::from_slice(&fs::read(kubeconfig)?)?;
        let token = written["users"][0]["user"]["token"].as_str();
        let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config.rustls_client_config()?)
            .https_or_http()
            .enable_http2()
            .wrap_connector(tcp);
        let client = || {
            Client::builder(TokioExecutor::new())
                .http2_only(true)
                .pool_idle_timeout(None)
                .build(connector.clone())
        };
        let bare = BareClient {
            clients: (0..N_CONNECTIONS).map(|_| client()).collect(),
            server: config.cluster_url.to_string().trim_end_matches('/').to_owned(),
            token: token.map(str::to_owned),
        };
        // At the instant, a controller has open connections, so this client opens its own in advance.
        for number in 0..N_CONNECTIONS {
            bare.send(number, Method::GET, "/version", Bytes::new()).await?;
        }
        Ok(bare)
    }

    /// Creates all Jobs, with `n_in_flight` requests at a time.
    pub(crate) async fn create(&self, jobs: &[PreparedJob], n_in_flight: usize) -> anyhow::Result<()> {
        stream::iter(jobs.iter().enumerate())
            .map(|(number, job)| {
                let path = format!("/apis/batch/v1/namespaces/{}/jobs", job.namespace);
                let body = job.body.clone();
                async move { self.send(number, Method::POST, &path, body).await }
            })
            .buffer_unordered(n_in_flight)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }

    /// Sends one request over one of the connections. Fails unless the response is a success.
    pub(crate) async fn send(&self, number: usize, method: Method, path: &str, body: Bytes) -> anyhow::Result<()> {
        let content_type = if method == Method::PATCH {
            "application/merge-patch+json"
        } else {
            "application/json"
        };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.server).parse::<Uri>()?);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request
            .header(header::CONTENT_TYPE, content_type)
            .header(header::ACCEPT, "application/json")
            .body(Full::new(body))?;
        let answer = self.clients[number % self.clients.len()].request(request).await?;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{path} answers {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(())
    }
}
