//! TLS connections to a server in the test process with a self-signed certificate.

use std::{
    future::IntoFuture,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use axum::serve::Listener;
use cronwheel::kube_api::{Answer, Answered, ApiClient, ApiServer, EventOutcome, WriteConnections};
use futures::future::join_all;
use http::Version;
use kube::Config;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer},
    server::TlsStream,
};

/// Generates a key and a self-signed certificate for this name.
pub(super) fn certificate(name: &str) -> CertifiedKey<rcgen::KeyPair> {
    generate_simple_self_signed(vec![name.to_owned()]).unwrap()
}

/// The connections and requests that the server received.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    /// The negotiated protocol of each connection, in order.
    pub(super) protocols: Vec<String>,
    /// The HTTP version of each request.
    pub(super) versions: Vec<Version>,
}

/// Accepts TLS connections. Ignores connections whose client aborts the handshake.
struct TlsListener {
    tcp: TcpListener,
    tls: TlsAcceptor,
    received: Arc<Mutex<Traffic>>,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            let Ok(stream) = self.tls.accept(stream).await else {
                continue;
            };
            let protocol = stream.get_ref().1.alpn_protocol().unwrap_or_default();
            let protocol = String::from_utf8(protocol.to_vec()).unwrap();
            self.received.lock().unwrap().protocols.push(protocol);
            return (stream, address);
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

/// An HTTPS server.
pub(super) struct Server {
    listener: TlsListener,
    pub(super) config: Config,
}

impl Server {
    /// Creates a server with this certificate that negotiates these protocols.
    pub(super) async fn new(certificate: &CertifiedKey<rcgen::KeyPair>, protocols: &[&str]) -> Server {
        let key = PrivatePkcs8KeyDer::from(certificate.signing_key.serialize_der());
        let mut tls = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.cert.der().clone()], key.into())
            .unwrap();
        tls.alpn_protocols = protocols.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        let listener = TlsListener {
            tcp: TcpListener::bind("127.0.0.1:0").await.unwrap(),
            tls: Arc::new(tls).into(),
            received: Arc::default(),
        };
        let address = listener.local_addr().unwrap();
        let mut config = Config::new(format!("https://{address}").parse().unwrap());
        config.root_cert = Some(vec![certificate.cert.der().to_vec()]);
        Server { listener, config }
    }

    /// Serves while `calls` runs. Returns its result, and the connections and requests that the server received.
    pub(super) async fn during<T>(self, calls: impl Future<Output = T>) -> (T, Traffic) {
        let received = Arc::clone(&self.listener.received);
        let app = axum::Router::new().fallback({
            let received = Arc::clone(&received);
            move |version: Version| async move {
                received.lock().unwrap().versions.push(version);
                "{}"
            }
        });
        let answers = tokio::select! {
            biased;
            answers = calls => answers,
            served = axum::serve(self.listener, app).into_future() => panic!("{served:?}"),
        };
        let received = received.lock().unwrap().clone();
        (answers, received)
    }
}

pub(super) async fn api(config: &Config, n_connections: usize) -> ApiClient {
    let server = ApiServer::open(config).await.unwrap();
    ApiClient::new(WriteConnections::connect(&server, n_connections).unwrap())
}

pub(super) async fn post(api: &ApiClient) -> Answered<EventOutcome> {
    api.post_event("shop", b"{}".to_vec()).await
}

/// Asserts that a request got no response. Returns the error message.
pub(super) fn unavailable(answered: Answered<EventOutcome>) -> String {
    let Answer::Unavailable { message, .. } = answered.answer else {
        panic!("{answered:?}");
    };
    assert_eq!(answered.code, None, "{message}");
    message
}

#[tokio::test]
async fn requests_share_negotiated_http2_connections() {
    let server = Server::new(&certificate("127.0.0.1"), &["h2", "http/1.1"]).await;
    let api = api(&server.config, 2).await;
    let (answers, received) = server.during(join_all((0..50).map(|_| post(&api)))).await;
    for answered in answers {
        assert_eq!(answered.answer, Answer::Outcome(EventOutcome::Stored));
    }
    assert_eq!(received.protocols, ["h2", "h2"]);
    assert_eq!(received.versions, [Version::HTTP_2; 50]);
}

#[tokio::test]
async fn server_without_http2_is_detected_and_used_over_http1() {
    let server = Server::new(&certificate("127.0.0.1"), &["http/1.1"]).await;
    let api = api(&server.config, 1).await;
    let calls = async { (post(&api).await, post(&api).await) };
    let ((first, second), received) = server.during(calls).await;
    let message = unavailable(first);
    assert!(message.contains("the server speaks HTTP/1.1 only"), "{message}");
    assert_eq!(second.answer, Answer::Outcome(EventOutcome::Stored));
    assert_eq!(received.versions, [Version::HTTP_11]);
}

#[tokio::test]
async fn untrusted_certificate_error_names_the_reason() {
    let mut untrusted = Server::new(&certificate("127.0.0.1"), &["h2"]).await;
    untrusted.config.root_cert = Some(vec![certificate("127.0.0.1").cert.der().to_vec()]);
    let of_another_name = Server::new(&certificate("elsewhere"), &["h2"]).await;
    for (server, reason) in [
        (untrusted, "not trusted, since the configured CA did not sign it; "),
        (of_another_name, "for another name than its address has; "),
    ] {
        let api = api(&server.config, 1).await;
        let (answered, received) = server.during(post(&api)).await;
        let message = unavailable(answered);
        assert!(
            message.starts_with("the certificate of the API server is ") && message.contains(reason),
            "{message}"
        );
        assert!(received.versions.is_empty(), "{received:?}");
    }
}

#[tokio::test]
async fn certificate_is_verified_against_tls_server_name() {
    let mut server = Server::new(&certificate("elsewhere"), &["h2"]).await;
    server.config.tls_server_name = Some("elsewhere".to_owned());
    let api = api(&server.config, 1).await;
    let (answered, _) = server.during(post(&api)).await;
    assert_eq!(answered.answer, Answer::Outcome(EventOutcome::Stored));
}
