//! The transport under one client: HTTP/2 where the server speaks it, HTTP/1.1 where it does not.
//!
//! The HTTP/2 client is told to speak nothing else: only so do requests that come together while there is no
//! connection wait for one handshake, where otherwise each would make its own. A server behind TLS that
//! does not agree to HTTP/2 is found out before anything is sent, and HTTP/1.1 is used from then on.

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
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_timeout::TimeoutConnector;
use hyper_util::{
    client::legacy::{
        self,
        connect::{Connection, HttpConnector, capture_connection},
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::{
    Config,
    client::{Body, ConfigExt},
};
use tower::{BoxError, Service, util::MapErr};

use super::{
    CONNECT_TIMEOUT, ConnectError, ConnectionTimes, MAX_IN_FLIGHT_PER_CONNECTION, WATCH_SILENCE_MAX,
    api_connection::ApiConnection,
    proxy::refuse_proxy,
    sockets::{Sockets, TrackedStream, TrackingConnector},
};

/// What all transports of one configuration share: certificates are read once.
pub(super) struct TransportParts {
    connector: HttpsConnector<TrackingConnector>,
    is_plain: bool,
    speaks_http1_only: Arc<AtomicBool>,
    times: ConnectionTimes,
    sockets: Sockets,
}

impl TransportParts {
    pub(super) fn new(config: &Config, times: ConnectionTimes) -> Result<TransportParts, ConnectError> {
        refuse_proxy(config)?;
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        // Headers and body of a request are two writes; with Nagle's algorithm the second waits for the acknowledgement of the first.
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(times.connect_timeout));
        tcp.set_tcp_user_timeout(Some(times.unacknowledged_max));
        let sockets = Sockets::default();
        let tls = config.rustls_client_config().map_err(ConnectError::Tls)?;
        let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        if let Some(name) = &config.tls_server_name {
            let server_name = name
                .clone()
                .try_into()
                .map_err(|_| ConnectError::ServerName { name: name.clone() })?;
            builder = builder.with_server_name_resolver(FixedServerNameResolver::new(server_name));
        }
        Ok(TransportParts {
            connector: builder.enable_all_versions().wrap_connector(TrackingConnector {
                tcp,
                sockets: sockets.clone(),
            }),
            sockets,
            is_plain: config.cluster_url.scheme() == Some(&Scheme::HTTP),
            speaks_http1_only: Arc::new(AtomicBool::new(false)),
            times,
        })
    }

    /// The sockets of all transports.
    pub(super) fn sockets(&self) -> Sockets {
        self.sockets.clone()
    }

    pub(super) fn transport(&self) -> Transport {
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
            // CronJobs may be due once a day, and are to find the connection open.
            .pool_idle_timeout(None)
            .http2_keep_alive_interval(self.times.keep_alive_interval)
            .http2_keep_alive_timeout(self.times.keep_alive_timeout)
            .http2_keep_alive_while_idle(true);
        let http2_connector = Http2Connector {
            inner: self.connector.clone(),
            connect_timeout: self.times.connect_timeout,
            speaks_http1_only: Arc::clone(&self.speaks_http1_only),
        };
        Transport {
            http1: http1.build(self.connector.clone()),
            http2: http2.build(http2_connector),
            is_plain: self.is_plain,
            speaks_http1_only: Arc::clone(&self.speaks_http1_only),
        }
    }
}

/// HTTP/1.1 for lists and watches, which may be silent for [`WATCH_SILENCE_MAX`].
pub(super) fn watch_transport(config: &Config) -> Result<WatchTransport, ConnectError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    let tls = config
        .rustls_https_connector_with_connector(tcp)
        .map_err(ConnectError::Tls)?;
    let mut connector = TimeoutConnector::new(tls);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_read_timeout(Some(WATCH_SILENCE_MAX));
    // The time that a connection was idle before the request does not count.
    connector.set_reset_reader_on_write(true);
    let client = legacy::Client::builder(TokioExecutor::new()).build(connector);
    Ok(MapErr::new(client, BoxError::from))
}

/// See [`watch_transport`].
pub(super) type WatchTransport =
    MapErr<legacy::Client<TimeoutConnector<HttpsConnector<HttpConnector>>, Body>, fn(legacy::Error) -> BoxError>;

/// Sends requests over HTTP/2 or HTTP/1.1.
#[derive(Clone)]
pub(super) struct Transport {
    http1: legacy::Client<HttpsConnector<TrackingConnector>, Body>,
    http2: legacy::Client<Http2Connector, Body>,
    /// There is no negotiation without TLS, and servers that expect HTTP/2 there are rare.
    is_plain: bool,
    speaks_http1_only: Arc<AtomicBool>,
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
        let captured = capture_connection(&mut request);
        let answer = if self.is_plain || self.speaks_http1_only.load(Ordering::Relaxed) {
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
                // The next request opens another connection; this one closes with its last answer.
                connected.poison();
            }
            Ok(response)
        })
    }
}

/// Connects, and turns down what is not HTTP/2 or takes too long.
#[derive(Clone)]
struct Http2Connector {
    inner: HttpsConnector<TrackingConnector>,
    connect_timeout: Duration,
    speaks_http1_only: Arc<AtomicBool>,
}

/// Why there is no HTTP/2 connection; the request fails before it is sent.
#[derive(Debug, thiserror::Error)]
enum Http2Error {
    /// The next requests go over HTTP/1.1.
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
        let connect_timeout = self.connect_timeout;
        let speaks_http1_only = Arc::clone(&self.speaks_http1_only);
        Box::pin(async move {
            // TLS included: a server that is stopped still has its connections accepted.
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
