//! Tests of replaced credential files, against a TLS server in this process that requires client certificates.

use std::{
    fs,
    future::IntoFuture,
    io,
    net::SocketAddr,
    os::unix::fs::symlink,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use axum::serve::Listener;
use kube::config::ExecConfig;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivatePkcs8KeyDer},
    server::WebPkiClientVerifier,
};
use serde_json::json;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::*;
use crate::kube_api::{Answer, ApiClient, EventOutcome, WriteConnections, lease_client, watch_client};

/// The time limit of a wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// A certificate authority.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        Authority(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, name: &str) -> Leaf {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Leaf { certificate, key }
    }

    fn pem(&self) -> String {
        self.0.pem()
    }
}

struct Leaf {
    certificate: rcgen::Certificate,
    key: KeyPair,
}

impl Leaf {
    fn pem(&self) -> [String; 2] {
        [self.certificate.pem(), self.key.serialize_pem()]
    }
}

/// A folder as a kubelet mounts a Secret or a projected volume: all files change at once, by one link.
struct Mount {
    folder: PathBuf,
    n_written: AtomicUsize,
}

impl Mount {
    fn new(name: &str) -> Mount {
        let folder = std::env::temp_dir().join(format!("cronwheel-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        for file in ["ca.crt", "tls.crt", "tls.key"] {
            symlink(format!("..data/{file}"), folder.join(file)).unwrap();
        }
        Mount {
            folder,
            n_written: AtomicUsize::new(0),
        }
    }

    fn write(&self, ca: &str, [certificate, key]: &[String; 2]) {
        let version = format!("..{}", self.n_written.fetch_add(1, Ordering::Relaxed));
        let new = self.folder.join(&version);
        fs::create_dir(&new).unwrap();
        for (file, text) in [("ca.crt", ca), ("tls.crt", certificate), ("tls.key", key)] {
            if !text.is_empty() {
                fs::write(new.join(file), text).unwrap();
            }
        }
        let link = self.folder.join("..data_tmp");
        symlink(version, &link).unwrap();
        fs::rename(link, self.folder.join("..data")).unwrap();
    }

    fn path(&self, file: &str) -> String {
        self.folder.join(file).display().to_string()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The connections that the server accepted, and its signals.
#[derive(Default)]
struct Seen {
    /// The client certificate of each connection, in the order of acceptance.
    certificates: Mutex<Vec<CertificateDer<'static>>>,
    n_open: AtomicUsize,
    closed: Notify,
    /// A request to the path `/held` has arrived.
    held: Notify,
    released: Notify,
}

/// A server whose certificate can be replaced. The new certificate applies to new connections.
struct Server {
    address: SocketAddr,
    tls: Arc<Mutex<TlsAcceptor>>,
    seen: Arc<Seen>,
}

impl Server {
    async fn start(authority: &Authority) -> Server {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = tcp.local_addr().unwrap();
        let tls = Arc::new(Mutex::new(acceptor(authority)));
        let seen = Arc::new(Seen::default());
        let listener = TlsListener {
            tcp,
            tls: Arc::clone(&tls),
            seen: Arc::clone(&seen),
        };
        let in_handler = Arc::clone(&seen);
        let hold = async move || {
            in_handler.held.notify_one();
            in_handler.released.notified().await;
            "{}"
        };
        let app = axum::Router::new()
            .route("/held", axum::routing::get(hold))
            .fallback(|| async { "{}" });
        tokio::spawn(axum::serve(listener, app).into_future());
        Server { address, tls, seen }
    }

    fn replace_certificate(&self, authority: &Authority) {
        *self.tls.lock().unwrap() = acceptor(authority);
    }

    fn config(&self, mount: &Mount) -> Config {
        let mut config = Config::new(format!("https://{}", self.address).parse().unwrap());
        config.root_cert_file = Some(mount.path("ca.crt").into());
        config.auth_info.client_certificate = Some(mount.path("tls.crt"));
        config.auth_info.client_key = Some(mount.path("tls.key"));
        config
    }

    /// Whether the connections presented these certificates.
    fn has_seen(&self, leaves: &[&Leaf]) -> bool {
        let seen = self.seen.certificates.lock().unwrap();
        seen.iter().eq(leaves.iter().map(|leaf| leaf.certificate.der()))
    }

    async fn wait_until_open(&self, n_open: usize) {
        let counted = async {
            while self.seen.n_open.load(Ordering::Relaxed) != n_open {
                self.seen.closed.notified().await;
            }
        };
        let is_reached = tokio::time::timeout(PATIENCE, counted).await.is_ok();
        assert!(is_reached, "not {n_open} but {:?} open", self.seen.n_open);
    }
}

/// Requires client certificates of this authority, and presents a certificate of it.
fn acceptor(authority: &Authority) -> TlsAcceptor {
    let mut roots = RootCertStore::empty();
    roots.add(authority.0.der().clone()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let leaf = authority.sign("127.0.0.1");
    let key = PrivatePkcs8KeyDer::from(leaf.key.serialize_der());
    let mut tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![leaf.certificate.der().clone()], key.into())
        .unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(tls).into()
}

struct TlsListener {
    tcp: TcpListener,
    tls: Arc<Mutex<TlsAcceptor>>,
    seen: Arc<Seen>,
}

impl Listener for TlsListener {
    type Io = Counted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Counted, SocketAddr) {
        loop {
            let (stream, address) = self.tcp.accept().await.unwrap();
            let tls = self.tls.lock().unwrap().clone();
            let Ok(stream) = tls.accept(stream).await else {
                continue;
            };
            let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
            self.seen.certificates.lock().unwrap().push(certificate.into_owned());
            self.seen.n_open.fetch_add(1, Ordering::Relaxed);
            let seen = Arc::clone(&self.seen);
            return (Counted { stream, seen }, address);
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }
}

/// A connection that is counted while it is open.
struct Counted {
    stream: TlsStream<TcpStream>,
    seen: Arc<Seen>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.seen.n_open.fetch_sub(1, Ordering::Relaxed);
        self.seen.closed.notify_one();
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, to)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The clients of a run.
struct Clients {
    writes: ApiClient,
    leases: kube::Client,
    watches: kube::Client,
}

impl Clients {
    const COUNT: usize = 3;

    fn of(server: &ApiServer) -> Clients {
        Clients {
            writes: ApiClient::new(WriteConnections::connect(server, 1).unwrap()),
            leases: lease_client(server).unwrap(),
            watches: watch_client(server).unwrap(),
        }
    }

    /// Sends a request over each client in turn, and asserts that it succeeds.
    async fn send(&self) {
        let answered = self.writes.post_event("shop", b"{}".to_vec()).await;
        assert_eq!(answered.answer, Answer::Outcome(EventOutcome::Stored));
        for client in [&self.leases, &self.watches] {
            get(client, "/version").await;
        }
    }
}

async fn get(client: &kube::Client, path: &str) -> String {
    let request = http::Request::get(path).body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap()
}

#[tokio::test]
async fn the_next_request_uses_a_replaced_client_certificate() {
    let authority = Authority::new();
    let [first, second] = ["first", "second"].map(|name| authority.sign(name));
    let (mount, server) = (Mount::new("client-certificate"), Server::start(&authority).await);
    mount.write(&authority.pem(), &first.pem());
    let api_server = ApiServer::open(&server.config(&mount)).await.unwrap();
    assert!(api_server.has_files());
    let clients = Clients::of(&api_server);
    clients.send().await;
    assert_eq!(api_server.refresh_certificates().await.unwrap(), Refreshed::Same);
    clients.send().await;
    assert!(server.has_seen(&[&first; Clients::COUNT]));

    mount.write(&authority.pem(), &second.pem());
    assert_eq!(api_server.refresh_certificates().await.unwrap(), Refreshed::Changed);
    clients.send().await;
    let (before, after) = ([&first; Clients::COUNT], [&second; Clients::COUNT]);
    assert!(server.has_seen(&[before, after].concat()));
    server.wait_until_open(Clients::COUNT).await;
}

/// A plugin whose token expires, so that every request checks it.
fn plugin() -> ExecConfig {
    let status = json!({"token": "secret", "expirationTimestamp": "2999-01-01T00:00:00Z"});
    let credential = json!({"kind": "ExecCredential", "status": status});
    ExecConfig {
        command: Some("echo".to_owned()),
        args: Some(vec![credential.to_string()]),
        ..ExecConfig::default()
    }
}

#[tokio::test]
async fn a_replaced_certificate_opens_one_connection_also_beside_a_plugin() {
    let authority = Authority::new();
    let [first, second] = ["first", "second"].map(|name| authority.sign(name));
    let (mount, server) = (Mount::new("plugin"), Server::start(&authority).await);
    mount.write(&authority.pem(), &first.pem());
    let mut config = server.config(&mount);
    config.auth_info.exec = Some(plugin());
    let api_server = ApiServer::open(&config).await.unwrap();
    let clients = Clients::of(&api_server);
    clients.send().await;

    mount.write(&authority.pem(), &second.pem());
    assert_eq!(api_server.refresh_certificates().await.unwrap(), Refreshed::Changed);
    for _ in 0..3 {
        clients.send().await;
    }
    let (before, after) = ([&first; Clients::COUNT], [&second; Clients::COUNT]);
    assert!(server.has_seen(&[before, after].concat()));
    server.wait_until_open(Clients::COUNT).await;
}

#[tokio::test]
async fn a_request_in_flight_survives_a_certificate_change() {
    let authority = Authority::new();
    let [first, second] = ["first", "second"].map(|name| authority.sign(name));
    let (mount, server) = (Mount::new("on-its-way"), Server::start(&authority).await);
    mount.write(&authority.pem(), &first.pem());
    let api_server = ApiServer::open(&server.config(&mount)).await.unwrap();
    let client = lease_client(&api_server).unwrap();
    let replaced_meanwhile = async {
        server.seen.held.notified().await;
        mount.write(&authority.pem(), &second.pem());
        api_server.refresh_certificates().await.unwrap();
        get(&client, "/version").await;
        server.wait_until_open(2).await;
        server.seen.released.notify_one();
    };
    let (answer, ()) = tokio::join!(get(&client, "/held"), replaced_meanwhile);
    assert_eq!(answer, "{}");
    assert!(server.has_seen(&[&first, &second]));
    server.wait_until_open(1).await;
}

#[tokio::test]
async fn new_connections_trust_a_replaced_ca() {
    let [former, new] = [Authority::new(), Authority::new()];
    let (mount, server) = (Mount::new("ca"), Server::start(&former).await);
    let (first, second) = (former.sign("first"), new.sign("second"));
    mount.write(&former.pem(), &first.pem());
    let api_server = ApiServer::open(&server.config(&mount)).await.unwrap();
    let clients = Clients::of(&api_server);
    clients.send().await;

    server.replace_certificate(&new);
    mount.write(&new.pem(), &second.pem());
    assert_eq!(api_server.refresh_certificates().await.unwrap(), Refreshed::Changed);
    clients.send().await;
    // A server of the former CA is no longer trusted.
    server.replace_certificate(&former);
    let others = Clients::of(&api_server);
    let answered = others.writes.post_event("shop", b"{}".to_vec()).await;
    assert!(
        format!("{answered:?}").contains("the certificate of the API server is not"),
        "{answered:?}"
    );
}

#[tokio::test]
async fn unusable_credential_files_change_nothing() {
    let authority = Authority::new();
    let [first, second] = ["first", "second"].map(|name| authority.sign(name));
    let (mount, server) = (Mount::new("unusable"), Server::start(&authority).await);
    let (ca, pem) = (authority.pem(), first.pem());
    mount.write(&ca, &pem);
    let api_server = ApiServer::open(&server.config(&mount)).await.unwrap();
    let clients = Clients::of(&api_server);
    clients.send().await;

    let [certificate, key] = pem.clone();
    let other_key = second.pem()[1].clone();
    let garbage = "-----BEGIN quoted\nquoted\n".to_owned();
    for (ca, certificate, key, file) in [
        (String::new(), &certificate, &key, "ca.crt"),
        ("\n".to_owned(), &certificate, &key, "ca.crt"),
        (ca[..ca.len() / 2].to_owned(), &certificate, &key, "ca.crt"),
        (garbage.clone(), &certificate, &key, "ca.crt"),
        (ca.clone(), &String::new(), &key, "tls.crt"),
        (ca.clone(), &garbage, &key, "tls.crt"),
        (ca.clone(), &certificate, &String::new(), "tls.key"),
        (ca.clone(), &certificate, &garbage, "tls.key"),
        (ca.clone(), &certificate, &other_key, "tls.key"),
    ] {
        mount.write(&ca, &[certificate.clone(), key.clone()]);
        let error = api_server.refresh_certificates().await.unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(text.contains(&mount.path(file)), "{text}");
        assert!(!text.contains("quoted") && !text.contains("113, 117"), "{text}");
        clients.send().await;
    }
    mount.write(&ca, &pem);
    assert_eq!(api_server.refresh_certificates().await.unwrap(), Refreshed::Same);
    clients.send().await;
    assert!(server.has_seen(&[&first; Clients::COUNT]));
    mount.write(&ca, &second.pem());
    assert_eq!(api_server.refresh_certificates().await.unwrap(), Refreshed::Changed);
}

#[tokio::test]
async fn inline_credentials_are_used_and_not_reloaded() {
    let authority = Authority::new();
    let leaf = authority.sign("inline");
    let (mount, server) = (Mount::new("inline"), Server::start(&authority).await);
    let encoded = leaf
        .pem()
        .map(|pem| base64::Engine::encode(&base64::prelude::BASE64_STANDARD, pem));
    let mut config = server.config(&mount);
    config.root_cert_file = None;
    config.root_cert = Some(vec![authority.0.der().to_vec()]);
    let [certificate, key] = encoded;
    config.auth_info.client_certificate_data = Some(certificate);
    config.auth_info.client_key_data = Some(key.into());
    let api_server = ApiServer::open(&config).await.unwrap();
    assert!(!api_server.has_files());
    Clients::of(&api_server).send().await;
    assert!(server.has_seen(&[&leaf; Clients::COUNT]));
    assert_eq!(api_server.refresh_certificates().await.unwrap(), Refreshed::Same);
    assert_eq!(api_server.refresh_token().await.unwrap(), Refreshed::Same);
}
