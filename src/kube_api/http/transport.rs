//! The transport of one client: HTTP/2 if the server supports it, otherwise HTTP/1.1.
//!
//! The HTTP/2 client never falls back to HTTP/1.1. Concurrent requests without a connection therefore wait for one
//! handshake. With a fallback, each would open a connection. A server behind TLS that does not negotiate HTTP/2 is
//! detected before anything is sent, and HTTP/1.1 is used from then on.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response, Uri, uri::Scheme};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{
        self,
        connect::{Connection, HttpConnector, capture_connection},
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::client::Body;
use tower::{BoxError, Service};

use super::{
    CONNECT_TIMEOUT, ConnectionTimes, MAX_IN_FLIGHT_PER_CONNECTION, WATCH_SILENCE_MAX,
    api_connection::ApiConnection,
    api_server::ApiServer,
    proxy::ProxyConnector,
    sockets::{Sockets, TrackedStream, TrackingConnector},
    tls_files::Tls,
};

/// The shared parts of all transports of one purpose.
#[derive(Clone)]
pub(super) struct TransportParts {
    server: ApiServer,
    tcp: TrackingConnector,
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
            tcp: TrackingConnector { tcp, sockets },
            speaks_http1_only: Arc::new(AtomicBool::new(is_plain)),
            times,
        }
    }

    /// Returns the sockets of all transports.
    pub(super) fn sockets(&self) -> Sockets {
        self.tcp.sockets.clone()
    }

    pub(super) fn transport(&self) -> Transport {
        let tls = self.server.tls();
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
        let http2_connector = Http2Connector {
            inner: connector.clone(),
            parts: self.clone(),
        };
        Transport {
            http1: http1.build(connector),
            http2: http2.build(http2_connector),
            parts: self.clone(),
            tls,
        }
    }
}

/// HTTP/1.1 for lists and watches, which may be silent for [`WATCH_SILENCE_MAX`].
#[derive(Clone)]
pub(super) struct WatchTransport {
    client: legacy::Client<TimeoutConnector<HttpsConnector<ProxyConnector<HttpConnector>>>, Body>,
    /// The TLS configuration of the client's connections.
    tls: Arc<Tls>,
    server: ApiServer,
}

impl WatchTransport {
    pub(super) fn new(server: &ApiServer) -> WatchTransport {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        let tls = server.tls();
        let mut connector = TimeoutConnector::new(server.connector(&tls.http1_only, tcp));
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_read_timeout(Some(WATCH_SILENCE_MAX));
        // Idle time before a request does not count.
        connector.set_reset_reader_on_write(true);
        WatchTransport {
            client: legacy::Client::builder(TokioExecutor::new()).build(connector),
            tls,
            server: server.clone(),
        }
    }
}

impl Service<Request<Body>> for WatchTransport {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if !Arc::ptr_eq(&self.tls, &self.server.tls()) {
            *self = WatchTransport::new(&self.server);
        }
        let answer = self.client.request(request);
        Box::pin(async move { Ok(answer.await?) })
    }
}

/// Sends requests over HTTP/2 or HTTP/1.1.
#[derive(Clone)]
pub(super) struct Transport {
    http1: legacy::Client<HttpsConnector<ProxyConnector<TrackingConnector>>, Body>,
    http2: legacy::Client<Http2Connector, Body>,
    /// The TLS configuration of both clients' connections.
    tls: Arc<Tls>,
    parts: TransportParts,
}

type BoxFuture<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl Service<Request<Body>> for Transport {
    type Response = Response<Incoming>;
    type Error = BoxError;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if !Arc::ptr_eq(&self.tls, &self.parts.server.tls()) {
            // Requests in flight are still answered over the old connections, which then close.
            *self = self.parts.transport();
        }
        let captured = capture_connection(&mut request);
        let answer = if self.parts.speaks_http1_only.load(Ordering::Relaxed) {
            self.http1.request(request)
        } else {
            self.http2.request(request)
        };
        Box::pin(async move {
            let response = answer.await?;
            let connection = response.extensions().get::<ApiConnection>();
            if connection.is_some_and(ApiConnection::is_retired)
                && let Some(connected) = captured.connection_metadata().as_ref()
            {
                // The next request opens another connection; this one closes after its last answer.
                connected.poison();
            }
            Ok(response)
        })
    }
}

/// Connects, and refuses connections that are not HTTP/2 or take too long.
#[derive(Clone)]
struct Http2Connector {
    inner: HttpsConnector<ProxyConnector<TrackingConnector>>,
    parts: TransportParts,
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

impl Service<Uri> for Http2Connector {
    type Response = MaybeHttpsStream<TrackedStream>;
    type Error = BoxError;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.inner.call(uri);
        let connect_timeout = self.parts.times.connect_timeout;
        let speaks_http1_only = Arc::clone(&self.parts.speaks_http1_only);
        Box::pin(async move {
            // Including TLS: a stopped server's kernel still accepts connections.
            let stream = tokio::time::timeout(connect_timeout, connecting).await;
            let stream = stream.map_err(|_| Http2Error::Timeout(connect_timeout))??;
            if stream.connected().is_negotiated_h2() {
                return Ok(stream);
            }
            speaks_http1_only.store(true, Ordering::Relaxed);
            Err(Http2Error::Http1Only.into())
        })
    }
}
