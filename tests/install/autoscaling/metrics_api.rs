//! An aggregated API server for `metrics.k8s.io` and `external.metrics.k8s.io`. Like metrics-server and
//! prometheus-adapter, it takes values from Prometheus, and accepts only clients with the front proxy's certificate.

use std::{
    fs, io,
    net::SocketAddr,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    thread,
};

use axum::{Router, response::IntoResponse, serve::Listener};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{StatusCode, Uri, header::CONTENT_TYPE};
use jiff::Timestamp;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};
use testbed::PrometheusClient;
use tokio::{
    net::{TcpListener, TcpStream},
    select,
    sync::oneshot,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig,
        crypto::ring,
        pki_types::{CertificateDer, PrivatePkcs8KeyDer, pem::PemObject as _},
        server::WebPkiClientVerifier,
    },
    server::TlsStream,
};

use crate::{
    cluster::{Cluster, wait_for},
    prometheus::{Sample, samples},
};

/// The namespace and the name of the Service.
const SERVICE: &str = "metrics";
const RESOURCE_GROUP: &str = "metrics.k8s.io";
const EXTERNAL_GROUP: &str = "external.metrics.k8s.io";
/// The window over which processor time is averaged, as the response declares it.
const WINDOW: &str = "10s";

/// What responses contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum ResponseMode {
    /// The values of Prometheus.
    Real,
    /// Lists without items.
    Empty,
    /// No responses: the server accepts no connection.
    None,
}

/// The source of the responses.
#[derive(Debug)]
struct Backend {
    prometheus: PrometheusClient,
    /// The query of the External metric, for a namespace in place of `kube-system`.
    external_query: String,
    mode: AtomicU8,
}

/// The server. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct MetricsApi {
    backend: Arc<Backend>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl MetricsApi {
    /// Starts the server and registers both groups. Returns when the cluster reports them available.
    pub(crate) fn start(cluster: &Cluster, prometheus: PrometheusClient, external_query: String) -> MetricsApi {
        let backend = Arc::new(Backend {
            prometheus,
            external_query,
            mode: AtomicU8::new(ResponseMode::Real as u8),
        });
        let name = format!("{SERVICE}.{SERVICE}.svc");
        let certificate = generate_simple_self_signed(vec![name]).unwrap();
        let tls = tls(&certificate, &cluster.testbed.folder().join("pki/fp-ca.crt"));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&backend);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(serve(listener, tls, shared, stopped));
        });
        register(cluster, port, &certificate.cert.pem());
        MetricsApi {
            backend,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// Changes what responses contain from now on.
    pub(crate) fn set_mode(&self, mode: ResponseMode) {
        self.backend.mode.store(mode as u8, Ordering::Relaxed);
    }
}

impl Drop for MetricsApi {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn register(cluster: &Cluster, port: u16, certificate: &str) {
    let metadata = json!({"name": SERVICE, "namespace": SERVICE});
    let service = |group: &str| {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": format!("v1beta1.{group}")},
            "spec": {
                "group": group,
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"name": SERVICE, "namespace": SERVICE, "port": port},
                "caBundle": BASE64_STANDARD.encode(certificate),
            },
        })
    };
    // The API server resolves an ExternalName by itself, without the network of a cluster.
    let spec = json!({"type": "ExternalName", "externalName": "localhost"});
    cluster.create(&[
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SERVICE}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}),
        service(RESOURCE_GROUP),
        service(EXTERNAL_GROUP),
    ]);
    for group in [RESOURCE_GROUP, EXTERNAL_GROUP] {
        wait_for(group, || {
            let service = cluster.get(&["apiservice", &format!("v1beta1.{group}")]);
            let conditions = service["status"]["conditions"].as_array()?;
            conditions
                .iter()
                .any(|condition| condition["type"] == "Available" && condition["status"] == "True")
                .then_some(())
        });
    }
}

/// Clients must have a certificate signed by this CA.
fn tls(certificate: &CertifiedKey<rcgen::KeyPair>, clients: &Path) -> TlsAcceptor {
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(&fs::read(clients).unwrap()).unwrap();
    roots.add(authority).unwrap();
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let key = PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![certificate.cert.der().clone()], key.into());
    Arc::new(config.unwrap()).into()
}

async fn serve(
    listener: std::net::TcpListener,
    tls: TlsAcceptor,
    backend: Arc<Backend>,
    mut stopped: oneshot::Receiver<()>,
) {
    let listener = TlsListener {
        tcp: TcpListener::from_std(listener).unwrap(),
        tls,
        backend: Arc::clone(&backend),
    };
    let application = Router::new().fallback(move |uri: Uri| {
        let backend = Arc::clone(&backend);
        async move {
            let response = tokio::task::spawn_blocking(move || backend.respond(uri.path()));
            match response.await.unwrap() {
                Ok(body) => ([(CONTENT_TYPE, "application/json")], body.to_string()).into_response(),
                Err(code) => code.into_response(),
            }
        }
    });
    select! {
        _ = &mut stopped => {}
        served = axum::serve(listener, application) => served.unwrap(),
    }
}

struct TlsListener {
    tcp: TcpListener,
    tls: TlsAcceptor,
    backend: Arc<Backend>,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            if self.backend.is_unavailable() {
                continue;
            }
            if let Ok(stream) = self.tls.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

impl Backend {
    fn is_unavailable(&self) -> bool {
        self.mode.load(Ordering::Relaxed) == ResponseMode::None as u8
    }

    /// The body of the response to a request for this path.
    fn respond(&self, path: &str) -> Result<Value, StatusCode> {
        // Connections accepted earlier are still open.
        if self.is_unavailable() {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        let is_empty = self.mode.load(Ordering::Relaxed) == ResponseMode::Empty as u8;
        let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
        let (group, items) = match parts[..] {
            ["apis", group @ (RESOURCE_GROUP | EXTERNAL_GROUP), "v1beta1"] => return Ok(resources(group)),
            ["apis", RESOURCE_GROUP, "v1beta1", "namespaces", namespace, "pods"] => {
                (RESOURCE_GROUP, self.processor_time(namespace)?)
            }
            ["apis", EXTERNAL_GROUP, "v1beta1", "namespaces", namespace, metric] => {
                (EXTERNAL_GROUP, self.external(namespace, metric)?)
            }
            _ => return Err(StatusCode::NOT_FOUND),
        };
        let kind = if group == RESOURCE_GROUP {
            "PodMetricsList"
        } else {
            "ExternalMetricValueList"
        };
        let items = if is_empty { Vec::new() } else { items };
        Ok(json!({"kind": kind, "apiVersion": format!("{group}/v1beta1"), "metadata": {}, "items": items}))
    }

    /// The processor time of each Pod whose last scrapes succeeded.
    fn processor_time(&self, namespace: &str) -> Result<Vec<Value>, StatusCode> {
        let expression = format!(
            r#"rate(process_cpu_seconds_total{{namespace="{namespace}"}}[{WINDOW}])
               and on (pod) up{{namespace="{namespace}"}} == 1"#
        );
        let of_pod = |sample: Sample| {
            let nanocores = format!("{:.0}n", sample.value * 1e9);
            json!({
                "metadata": {"name": sample.labels.get("pod"), "namespace": namespace},
                "timestamp": Timestamp::now().to_string(),
                "window": WINDOW,
                "containers": [{"name": "cronwheel", "usage": {"cpu": nanocores}}],
            })
        };
        Ok(self.query(&expression)?.into_iter().map(of_pod).collect())
    }

    fn external(&self, namespace: &str, metric: &str) -> Result<Vec<Value>, StatusCode> {
        if metric != "cronwheel_cron_jobs_led" {
            return Err(StatusCode::NOT_FOUND);
        }
        let expression = self.external_query.replace("kube-system", namespace);
        let of_metric = |sample: Sample| {
            json!({
                "metricName": metric,
                "metricLabels": {},
                "timestamp": Timestamp::now().to_string(),
                "value": format!("{}", sample.value),
            })
        };
        Ok(self.query(&expression)?.into_iter().map(of_metric).collect())
    }

    fn query(&self, expression: &str) -> Result<Vec<Sample>, StatusCode> {
        samples(&self.prometheus, expression).ok_or(StatusCode::BAD_GATEWAY)
    }
}

/// The resources of a group, as the availability check reads them.
fn resources(group: &str) -> Value {
    json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": format!("{group}/v1beta1"),
        "resources": [],
    })
}
