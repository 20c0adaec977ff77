//! The transport of one client: HTTP/2 if the server supports it, otherwise HTTP/1.1.
//!
//! The HTTP/2 client never falls back to HTTP/1.1. Concurrent requests without a connection therefore wait for one
//! handshake. With a fallback, each would open a connection. A server behind TLS that does not negotiate HTTP/2 is
//! detected before anything is sent, and HTTP/1.1 is used from then on.
//!
//! A transport whose TLS configuration was replaced makes new clients. Requests in flight are still answered over the
//! old connections, which then close.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use http::{HeaderValue, Request, Uri, header, uri::Scheme};
use hyper_rustls::MaybeHttpsStream;
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{
        self,
        connect::{Connection, HttpConnector, capture_connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use kube::client::Body;
use tokio::net::TcpStream;
use tower::{BoxError, ServiceExt, service_fn};

use super::{
    ApiService, CONNECT_TIMEOUT, ConnectionTimes, Connector, MAX_IN_FLIGHT_PER_CONNECTION, USER_AGENT,
    WATCH_SILENCE_MAX,
    api_connection::ApiConnection,
    api_server::ApiServer,
    sockets::{Sockets, TrackedStream, tracking},
    tls_files::Tls,
};

/// The shared parts of all transports of one purpose.
#[derive(Clone)]
pub(super) struct TransportParts {
    server: ApiServer,
    tcp: Connector<TrackedStream>,
    /// The sockets of all transports.
    pub(super) sockets: Sockets,
    /// Whether the server has no TLS, or negotiated HTTP/1.1.
    speaks_http1_only: Arc<AtomicBool>,
    times: ConnectionTimes,
}

impl TransportParts {
    pub(super) fn new(server: &ApiServer, times: ConnectionTimes) -> TransportParts {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // Headers and body of a request are two writes. With Nagle's algorithm the second waits for the acknowledgement
        // of the first.
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(times.connect_timeout));
        tcp.set_tcp_user_timeout(Some(times.unacknowledged_max));
        let sockets = Sockets::default();
        // Without TLS there is no negotiation, and servers that expect HTTP/2 there are rare.
        let is_plain = server.config().cluster_url.scheme() == Some(&Scheme::HTTP);
        TransportParts {
            server: server.clone(),
            tcp: tracking(tcp, sockets.clone()),
            sockets,
            speaks_http1_only: Arc::new(AtomicBool::new(is_plain)),
            times,
        }
    }

    /// Sends requests over HTTP/2 or HTTP/1.1.
    pub(super) fn transport(&self) -> ApiService {
        let speaks_http1_only = Arc::clone(&self.speaks_http1_only);
        let parts = self.clone();
        let clients = with_current_tls(&self.server, move |_, tls| parts.clients(tls));
        ApiService::new(service_fn(move |mut request: Request<Body>| {
            let clients = clients();
            let captured = capture_connection(&mut request);
            let answer = if speaks_http1_only.load(Ordering::Relaxed) {
                clients.http1.request(request)
            } else {
                clients.http2.request(request)
            };
            async move {
                let response = answer.await?;
                let connection = response.extensions().get::<ApiConnection>();
                if connection.is_some_and(ApiConnection::is_retired)
                    && let Some(connected) = captured.connection_metadata().as_ref()
                {
                    // The next request opens another connection; this one closes after its last answer.
                    connected.poison();
                }
                Ok(response)
            }
        }))
    }

    /// Creates clients whose connections have this TLS configuration.
    fn clients(&self, tls: &Tls) -> Clients {
        let connector = self.server.connector(&tls.any_version, self.tcp.clone());
        let mut http1 = legacy::Client::builder(TokioExecutor::new());
        http1
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(MAX_IN_FLIGHT_PER_CONNECTION);
        let mut http2 = legacy::Client::builder(TokioExecutor::new());
        http2
            .http2_only(true)
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            // CronJobs may be due once a day, and must find the connection open.
            .pool_idle_timeout(None)
            .http2_keep_alive_interval(self.times.keep_alive_interval)
            .http2_keep_alive_timeout(self.times.keep_alive_timeout)
            .http2_keep_alive_while_idle(true);
        Clients {
            http1: http1.build(connector.clone()),
            http2: http2.build(self.http2_only(connector)),
        }
    }

    /// Returns a connector that refuses connections that are not HTTP/2 or take too long.
    fn http2_only(&self, connector: Connector<TlsStream>) -> Connector<TlsStream> {
        let connect_timeout = self.times.connect_timeout;
        let speaks_http1_only = Arc::clone(&self.speaks_http1_only);
        Connector::new(service_fn(move |uri: Uri| {
            let connecting = connector.clone().oneshot(uri);
            let speaks_http1_only = Arc::clone(&speaks_http1_only);
            async move {
                // Including TLS: a stopped server's kernel still accepts connections.
                let stream = tokio::time::timeout(connect_timeout, connecting).await;
                let stream = stream.map_err(|_| Http2Error::Timeout(connect_timeout))??;
                if stream.connected().is_negotiated_h2() {
                    return Ok(stream);
                }
                speaks_http1_only.store(true, Ordering::Relaxed);
                Err(BoxError::from(Http2Error::Http1Only))
            }
        }))
    }
}

/// A stream with TLS, or without it for a server that has none.
type TlsStream = MaybeHttpsStream<TrackedStream>;

/// The clients of a transport.
struct Clients {
    http1: legacy::Client<Connector<TlsStream>, Body>,
    http2: legacy::Client<Connector<TlsStream>, Body>,
}

/// The reasons why there is no HTTP/2 connection. The request fails before it is sent.
#[derive(Debug, thiserror::Error)]
enum Http2Error {
    /// The next requests use HTTP/1.1.
    #[error("the server speaks HTTP/1.1 only")]
    Http1Only,
    #[error("no connection within {} seconds", .0.as_secs())]
    Timeout(Duration),
}

/// The returned function gives the clients for the server's current TLS configuration, and makes new ones after it was
/// replaced. Clones of the function share the clients: the layer of `kube` for tokens that expire sends
/// every request through a clone of the transport.
fn with_current_tls<C, F: Fn(&ApiServer, &Tls) -> C + Clone>(
    server: &ApiServer,
    create: F,
) -> impl Fn() -> Arc<C> + Clone + use<C, F> {
    let server = server.clone();
    let tls = server.tls();
    // Held to compare and to create clients, never across an await.
    let shared = Arc::new(Mutex::new((Arc::new(create(&server, &tls)), tls)));
    move || {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (clients, used) = &mut *shared;
        let current = server.tls();
        if !Arc::ptr_eq(used, &current) {
            *clients = Arc::new(create(&server, &current));
            *used = current;
        }
        Arc::clone(clients)
    }
}

/// Sends lists and watches over HTTP/1.1. They may be silent for [`WATCH_SILENCE_MAX`].
pub(super) fn watch_transport(server: &ApiServer) -> ApiService {
    let client = with_current_tls(server, http1_client);
    ApiService::new(service_fn(move |mut request: Request<Body>| {
        let name = HeaderValue::from_static(USER_AGENT);
        request.headers_mut().insert(header::USER_AGENT, name);
        let answer = client().request(request);
        async move { Ok(answer.await?) }
    }))
}

/// A connector whose connections end after a long silence.
type SilenceLimitedConnector = TimeoutConnector<Connector<MaybeHttpsStream<TokioIo<TcpStream>>>>;

fn http1_client(server: &ApiServer, tls: &Tls) -> legacy::Client<SilenceLimitedConnector, Body> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    // Lost packets show as an error, also while nothing is sent, and on an idle connection before it is used again.
    let times = ConnectionTimes::WRITES;
    tcp.set_keepalive(Some(times.keep_alive_interval));
    tcp.set_keepalive_interval(Some(times.keep_alive_interval));
    tcp.set_tcp_user_timeout(Some(times.unacknowledged_max));
    let tcp = Connector::new(tcp.map_err(BoxError::from));
    let mut connector = TimeoutConnector::new(server.connector(&tls.http1_only, tcp));
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_read_timeout(Some(WATCH_SILENCE_MAX));
    // Idle time before a request does not count.
    connector.set_reset_reader_on_write(true);
    legacy::Client::builder(TokioExecutor::new()).build(connector)
}
