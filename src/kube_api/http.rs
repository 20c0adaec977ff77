//! Connections to the API server: several over HTTP/2 for our writes, and a client apart for watches.
//!
//! One HTTP/2 connection carries 100 requests at a time, and a burst is larger; each is its own client here,
//! filled evenly. Invariant: no connection ever has more than [`MAX_IN_FLIGHT_PER_CONNECTION`] requests in flight.

mod api_connection;
mod api_server;
mod credential_file;
mod headers;
mod proxy;
mod sockets;
mod tls_files;
mod token_file;
mod transport;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use kube::{Client, client::ConfigExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{
    BoxError, Layer,
    util::{Either, MapFutureLayer, option_layer},
};

pub(super) use self::headers::{retry_after, server_date};
pub use self::{
    api_connection::{ApiConnection, ConnectionId, ServerDate},
    api_server::ApiServer,
    credential_file::{CredentialFileError, Refreshed},
    proxy::exempt_from_proxy,
};
use self::{
    sockets::Sockets,
    token_file::WithToken,
    transport::{Transport, TransportParts, WatchTransport},
};

/// Requests in flight on one connection. The API server allows 100 streams by default; ten are left for the
/// moment in which it has answered but not yet counted a stream as closed.
pub const MAX_IN_FLIGHT_PER_CONNECTION: usize = 90;

/// What we call ourselves; the API server makes the manager of fields of its first part.
pub const USER_AGENT: &str = concat!("cronwheel/", env!("CARGO_PKG_VERSION"));

/// Why there can be no connections: always the configuration, the network is not touched before the first request.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The proxy is of a kind that is not supported.
    #[error(
        "{scheme}://{host}: only http:// proxies are supported; change HTTPS_PROXY or proxy-url in the kubeconfig, or add \
         the API server's host to NO_PROXY"
    )]
    Proxy {
        /// The scheme of its URL.
        scheme: String,
        /// Its host.
        host: String,
    },
    /// Certificates or keys.
    #[error("the TLS configuration cannot be used")]
    Tls(#[source] kube::Error),
    /// `tls-server-name`.
    #[error("{name:?} cannot be the server name of a TLS connection")]
    ServerName {
        /// As configured.
        name: String,
    },
    /// Tokens, passwords, plugins.
    #[error("the credentials cannot be used")]
    Credentials(#[source] kube::Error),
    /// Files of credentials or the CA.
    #[error(transparent)]
    CredentialFile(#[from] CredentialFileError),
}

/// The client for watches: as `kube` builds its own, but for its spans and its retries, which would hide a failing server
/// for minutes, with an end to every silence, and without Nagle's algorithm: a request that opens a connection would wait
/// 40 ms for the acknowledgement of the handshake, and a replica that leaves waits for a list. It speaks HTTP/1.1, so what
/// is read from a connection belongs to one request.
pub fn watch_client(server: &ApiServer) -> Result<Client, ConnectError> {
    let mut config = server.config().clone();
    config
        .headers
        .push((http::header::USER_AGENT, http::HeaderValue::from_static(USER_AGENT)));
    let transport = option_layer(server.token_layer()).layer(WatchTransport::new(server));
    let headers = config.extra_headers_layer().map_err(ConnectError::Credentials)?;
    let auth = config.auth_layer().map_err(ConnectError::Credentials)?;
    let service = config
        .base_uri_layer()
        .layer(option_layer(auth).layer(headers.layer(transport)));
    // Over all layers, as credentials may have to be fetched first.
    let service = MapFutureLayer::new(answered_in_time).layer(service);
    Ok(Client::new(service, config.default_namespace))
}

/// What begins an answer, or the error of one that does not begin.
async fn answered_in_time<R>(answer: impl Future<Output = Result<R, BoxError>>) -> Result<R, BoxError> {
    tokio::time::timeout(WATCH_ANSWER_TIMEOUT, answer)
        .await
        .unwrap_or_else(|_| Err(NoAnswer.into()))
}

/// The API server accepted a request of a watch, and then said nothing.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} seconds", WATCH_ANSWER_TIMEOUT.as_secs())]
struct NoAnswer;

/// The client for Leases: one connection of its own over HTTP/2, on which a peer that has vanished is noticed well before a
/// fence. Within a tokio runtime only.
pub fn lease_client(server: &ApiServer) -> Result<Client, ConnectError> {
    let parts = TransportParts::new(server, ConnectionTimes::LEASES);
    client(server, &parts)
}

/// The connections that our writes share. Cheap to clone.
#[derive(Clone)]
pub struct WriteConnections {
    shared: Arc<Shared>,
}

struct Shared {
    clients: Box<[Client]>,
    /// Requests in flight by connection; its sum is at most what the semaphore has given out.
    n_in_flight: Mutex<Box<[usize]>>,
    room: Arc<Semaphore>,
    sockets: Sockets,
}

impl WriteConnections {
    /// Prepares `n_connections` (at least one) connections, each opened by the first request on it. Within a tokio runtime only.
    pub fn connect(server: &ApiServer, n_connections: usize) -> Result<WriteConnections, ConnectError> {
        let parts = TransportParts::new(server, ConnectionTimes::WRITES);
        let clients: Result<Vec<Client>, ConnectError> =
            (0..n_connections.max(1)).map(|_| client(server, &parts)).collect();
        Ok(WriteConnections::new(clients?, parts.sockets()))
    }

    /// One connection that is already there.
    pub fn from_client(client: Client) -> WriteConnections {
        WriteConnections::from_clients(vec![client])
    }

    /// Connections that are already there, at least one.
    pub fn from_clients(clients: Vec<Client>) -> WriteConnections {
        WriteConnections::new(clients, Sockets::default())
    }

    fn new(clients: Vec<Client>, sockets: Sockets) -> WriteConnections {
        WriteConnections {
            shared: Arc::new(Shared {
                n_in_flight: Mutex::new(vec![0; clients.len()].into()),
                room: Arc::new(Semaphore::new(clients.len() * MAX_IN_FLIGHT_PER_CONNECTION)),
                clients: clients.into(),
                sockets,
            }),
        }
    }

    /// Cuts every connection off, whatever is under way on it; the next request opens a new one.
    pub fn reset(&self) {
        self.shared.sockets.reset();
    }

    /// How many requests can be in flight at a time.
    pub fn capacity(&self) -> usize {
        self.shared.clients.len() * MAX_IN_FLIGHT_PER_CONNECTION
    }

    /// Waits for room and takes it, on the least busy connection. First come, first served.
    pub async fn acquire(&self) -> ConnectionPermit {
        self.acquire_beside(None).await
    }

    /// The same on another connection than `avoided`, where another has room.
    pub async fn acquire_beside(&self, avoided: Option<usize>) -> ConnectionPermit {
        let room = Arc::clone(&self.shared.room).acquire_owned().await;
        let room = room.expect("the semaphore is never closed");
        let connection = self.shared.enter_least_busy(avoided);
        ConnectionPermit {
            shared: Arc::clone(&self.shared),
            connection,
            _room: room,
        }
    }
}

impl Shared {
    fn enter_least_busy(&self, avoided: Option<usize>) -> usize {
        let mut n_in_flight = self.n_in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        let least_busy = (0..n_in_flight.len()).min_by_key(|&connection| {
            let n = n_in_flight[connection];
            (n >= MAX_IN_FLIGHT_PER_CONNECTION, avoided == Some(connection), n)
        });
        let connection = least_busy.unwrap_or_default();
        n_in_flight[connection] += 1;
        // The semaphore holds the sum to the capacity of all, so the least busy has room.
        debug_assert!(
            n_in_flight[connection] <= MAX_IN_FLIGHT_PER_CONNECTION,
            "{n_in_flight:?}"
        );
        connection
    }

    fn leave(&self, connection: usize) {
        let mut n_in_flight = self.n_in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        n_in_flight[connection] -= 1;
    }
}

/// The right to one request on one connection, given back when dropped.
pub struct ConnectionPermit {
    shared: Arc<Shared>,
    connection: usize,
    /// Dropped after `leave`, as fields are after `drop`.
    _room: OwnedSemaphorePermit,
}

impl ConnectionPermit {
    /// Which connection it is.
    pub fn connection(&self) -> usize {
        self.connection
    }

    /// The client to send it with.
    pub fn client(&self) -> &Client {
        &self.shared.clients[self.connection]
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.shared.leave(self.connection);
    }
}

/// A transport that puts the token of a file on requests, where one is configured.
type Credited = Either<WithToken<Transport>, Transport>;

/// A client over a transport of its own, with `kube`'s layers for the address and all other credentials, but not its retries.
fn client(server: &ApiServer, parts: &TransportParts) -> Result<Client, ConnectError> {
    let config = server.config();
    let transport: Credited = option_layer(server.token_layer()).layer(parts.transport());
    let headers = config.extra_headers_layer().map_err(ConnectError::Credentials)?;
    let transport = headers.layer(transport);
    let base_uri = config.base_uri_layer();
    let namespace = config.default_namespace.clone();
    Ok(match config.auth_layer().map_err(ConnectError::Credentials)? {
        Some(auth) => Client::new(base_uri.layer(auth.layer(transport)), namespace),
        None => Client::new(base_uri.layer(transport), namespace),
    })
}

/// How long connecting may take: within a cluster it is milliseconds or it is broken.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// After how long a connection is given up.
#[derive(Clone, Copy, Debug)]
struct ConnectionTimes {
    /// TLS included.
    connect_timeout: Duration,
    /// How often it is asked whether it is alive.
    keep_alive_interval: Duration,
    /// How long it may take to say so.
    keep_alive_timeout: Duration,
    /// How long what was sent may stay unacknowledged before the kernel gives it up: less than the life of a write.
    unacknowledged_max: Duration,
}

impl ConnectionTimes {
    /// A dead connection is replaced within ten seconds, while what is in flight on it ends as unanswered.
    const WRITES: ConnectionTimes = ConnectionTimes {
        connect_timeout: CONNECT_TIMEOUT,
        keep_alive_interval: Duration::from_secs(5),
        keep_alive_timeout: Duration::from_secs(5),
        unacknowledged_max: Duration::from_secs(6),
    };

    /// Within three seconds, so that a renewal gets through on another before the fence, which is four at the least; and
    /// the kernel delivers nothing late.
    const LEASES: ConnectionTimes = ConnectionTimes {
        connect_timeout: Duration::from_secs(2),
        keep_alive_interval: Duration::from_secs(1),
        keep_alive_timeout: Duration::from_millis(1_500),
        unacknowledged_max: Duration::from_millis(2_500),
    };
}

/// How long an answer to a list or a watch may take to begin. An API server gives lists up after 60 seconds.
const WATCH_ANSWER_TIMEOUT: Duration = Duration::from_secs(65);

/// How long a list or a watch may be silent once it has begun: a watch is told a bookmark every minute, and
/// a peer that has vanished says nothing at all.
pub const WATCH_SILENCE_MAX: Duration = Duration::from_secs(80);
