//! Connections to the API server: several over HTTP/2 for writes, and separate clients for watches and Leases.
//!
//! One HTTP/2 connection carries 100 requests at a time, and a burst is larger, so several clients are filled evenly.
//! Invariant: no connection ever has more than [`MAX_IN_FLIGHT_PER_CONNECTION`] requests in flight.

mod api_connection;
mod api_server;
mod credential_file;
mod proxy;
mod sockets;
mod tls_files;
mod token_file;
mod transport;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{Request, Response, Uri};
use hyper::body::Incoming;
use kube::{
    Client,
    client::{Body, ConfigExt},
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::{
    BoxError, Layer,
    util::{BoxCloneService, BoxCloneSyncService, MapFutureLayer, option_layer},
};

pub use self::{
    api_connection::{ApiConnection, ServerDate},
    api_server::ApiServer,
    credential_file::{CredentialFileError, Refreshed},
    proxy::exempt_from_proxy,
};
use self::{
    sockets::Sockets,
    transport::{TransportParts, watch_transport},
};

/// Maximum number of requests in flight on one connection. The API server allows 100 streams by default. Ten are left
/// for streams that are answered and not yet closed.
pub const MAX_IN_FLIGHT_PER_CONNECTION: usize = 90;

/// The user agent. The API server uses its first part as field manager.
pub const USER_AGENT: &str = concat!("cronwheel/", env!("CARGO_PKG_VERSION"));

/// The reasons why there are no connections. The cause is always the configuration: the network is not used before
/// the first request.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The scheme of the proxy is not supported.
    #[error(
        "{scheme}://{host}: only http:// proxies are supported; change HTTPS_PROXY or proxy-url in the kubeconfig, or add \
         the API server's host to NO_PROXY"
    )]
    Proxy {
        /// The scheme of the proxy.
        scheme: String,
        /// The host of the proxy.
        host: String,
    },
    /// Certificates or keys cannot be used.
    #[error("the TLS configuration cannot be used")]
    Tls(#[source] kube::Error),
    /// `tls-server-name` is not a server name.
    #[error("{name:?} cannot be the server name of a TLS connection")]
    ServerName {
        /// The configured name.
        name: String,
    },
    /// Tokens, passwords or plugins cannot be used.
    #[error("the credentials cannot be used")]
    Credentials(#[source] kube::Error),
    /// A credential file or the CA cannot be used.
    #[error(transparent)]
    CredentialFile(#[from] CredentialFileError),
}

/// Creates the client for watches. It has `kube`'s layers except for spans and retries, which would hide a failing
/// server for minutes. Every silence has a timeout. Nagle's algorithm is off: a request that opens a connection would
/// wait 40 ms for the acknowledgement of the handshake. The client speaks HTTP/1.1, so everything read from a
/// connection belongs to one request.
pub fn watch_client(server: &ApiServer) -> Result<Client, ConnectError> {
    let service = with_layers(server, watch_transport(server))?;
    // Around all layers, since credentials may have to be fetched first.
    let service = MapFutureLayer::new(answered_in_time).layer(service);
    Ok(Client::new(service, &server.config().default_namespace))
}

/// Returns the beginning of an answer, or an error after the timeout.
async fn answered_in_time<R>(answer: impl Future<Output = Result<R, BoxError>>) -> Result<R, BoxError> {
    tokio::time::timeout(WATCH_ANSWER_TIMEOUT, answer)
        .await
        .unwrap_or_else(|_| Err(NoAnswer.into()))
}

/// The API server accepted the request of a watch and sent no answer.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} seconds", WATCH_ANSWER_TIMEOUT.as_secs())]
struct NoAnswer;

/// Creates the client for Leases: a separate HTTP/2 connection on which a vanished peer is detected well before a
/// fence. Requires a tokio runtime.
pub fn lease_client(server: &ApiServer) -> Result<Client, ConnectError> {
    write_client(server, &TransportParts::new(server, ConnectionTimes::LEASES))
}

/// The connections for writes. Cheap to clone.
#[derive(Clone)]
pub struct WriteConnections {
    shared: Arc<Shared>,
}

struct Shared {
    clients: Box<[Client]>,
    /// Requests in flight by connection. The sum is at most the number of permits that the semaphore has issued.
    n_in_flight: Mutex<Box<[usize]>>,
    room: Arc<Semaphore>,
    sockets: Sockets,
}

impl WriteConnections {
    /// Prepares `n_connections` (at least one) connections; the first request opens each. Requires a tokio runtime.
    pub fn connect(server: &ApiServer, n_connections: usize) -> Result<WriteConnections, ConnectError> {
        let parts = TransportParts::new(server, ConnectionTimes::WRITES);
        let clients: Result<Vec<Client>, ConnectError> = (0..n_connections.max(1))
            .map(|_| write_client(server, &parts))
            .collect();
        Ok(WriteConnections::new(clients?, parts.sockets))
    }

    /// Wraps existing clients, at least one.
    #[cfg(feature = "simulation")]
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

    /// Resets every connection with all requests in flight; the next request opens a new one.
    pub fn reset(&self) {
        self.shared.sockets.reset();
    }

    /// Waits for a place on the least busy connection, first come, first served; on `avoided` only if no other
    /// connection has one.
    pub async fn acquire_avoiding(&self, avoided: Option<usize>) -> ConnectionPermit {
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
        // The semaphore limits the sum to the total capacity, so the least busy connection has a place.
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

/// The permit for one request on one connection; dropping it returns the place.
pub struct ConnectionPermit {
    shared: Arc<Shared>,
    connection: usize,
    /// Dropped after `leave`, as fields are dropped after `drop`.
    _room: OwnedSemaphorePermit,
}

impl ConnectionPermit {
    /// Returns the number of the connection.
    pub fn connection(&self) -> usize {
        self.connection
    }

    /// Returns the client to send with.
    pub fn client(&self) -> &Client {
        &self.shared.clients[self.connection]
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.shared.leave(self.connection);
    }
}

/// Creates a client with its own transport, for writes and Leases.
fn write_client(server: &ApiServer, parts: &TransportParts) -> Result<Client, ConnectError> {
    let service = with_layers(server, parts.transport())?;
    Ok(Client::new(service, &server.config().default_namespace))
}

/// Sends requests to the API server.
type ApiService = BoxCloneService<Request<Body>, Response<Incoming>, BoxError>;

/// Opens connections to the API server.
type Connector<Stream> = BoxCloneSyncService<Uri, Stream, BoxError>;

/// Adds the token of a file and `kube`'s layers for the address and all other credentials to a transport, without those
/// for spans and retries.
fn with_layers(server: &ApiServer, transport: ApiService) -> Result<ApiService, ConnectError> {
    let config = server.config();
    let headers = config.extra_headers_layer().map_err(ConnectError::Credentials)?;
    let auth = config.auth_layer().map_err(ConnectError::Credentials)?;
    let transport = option_layer(server.token_layer()).layer(transport);
    let transport = option_layer(auth).layer(headers.layer(transport));
    Ok(ApiService::new(config.base_uri_layer().layer(transport)))
}

/// Maximum time to connect: within a cluster, connecting takes milliseconds or fails.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The time limits of a connection.
#[derive(Clone, Copy, Debug)]
struct ConnectionTimes {
    /// Maximum time to connect, including TLS.
    connect_timeout: Duration,
    /// Interval of keep-alive pings.
    keep_alive_interval: Duration,
    /// Maximum time until the answer to a ping.
    keep_alive_timeout: Duration,
    /// Maximum time that sent data may stay unacknowledged before the kernel gives up: less than the lifetime of a
    /// write.
    unacknowledged_max: Duration,
}

impl ConnectionTimes {
    /// A dead connection is replaced within ten seconds. Its requests in flight end as unanswered.
    const WRITES: ConnectionTimes = ConnectionTimes {
        connect_timeout: CONNECT_TIMEOUT,
        keep_alive_interval: Duration::from_secs(5),
        keep_alive_timeout: Duration::from_secs(5),
        unacknowledged_max: Duration::from_secs(6),
    };

    /// A dead connection is replaced within three seconds, so that a renewal succeeds on another one before the fence,
    /// which is at least four seconds. The kernel delivers nothing late.
    const LEASES: ConnectionTimes = ConnectionTimes {
        connect_timeout: Duration::from_secs(2),
        keep_alive_interval: Duration::from_secs(1),
        keep_alive_timeout: Duration::from_millis(1_500),
        unacknowledged_max: Duration::from_millis(2_500),
    };
}

/// Maximum time until an answer to a list or a watch begins. An API server gives up lists after 60 seconds.
const WATCH_ANSWER_TIMEOUT: Duration = Duration::from_secs(65);

/// Maximum silence of a list or a watch that has begun: a watch receives a bookmark every minute, and a vanished peer
/// sends nothing at all.
pub const WATCH_SILENCE_MAX: Duration = Duration::from_secs(80);
