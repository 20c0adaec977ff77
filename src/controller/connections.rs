//! Connections of a run to the API server.

pub use super::in_flight::REQUESTS_IN_FLIGHT_MAX;
use super::in_flight::{STATUSES_IN_FLIGHT_MAX, places_for_slow};
use crate::kube_api::{
    ApiClient, ApiServer, WriteConnections,
    http::{ConnectError, MAX_IN_FLIGHT_PER_CONNECTION},
    lease_client, watch_client,
};

/// Number of connections for writes. They have a place for each request that may be in flight.
pub const N_WRITE_CONNECTIONS: usize = 5;

/// The requests that may be in flight on the connections for writes: about Jobs, of statuses, and one probe for
/// each connection.
const WRITES_IN_FLIGHT_MAX: usize =
    (REQUESTS_IN_FLIGHT_MAX + STATUSES_IN_FLIGHT_MAX + places_for_slow(STATUSES_IN_FLIGHT_MAX)) as usize
        + N_WRITE_CONNECTIONS;

const _: () = assert!(
    WRITES_IN_FLIGHT_MAX <= N_WRITE_CONNECTIONS * MAX_IN_FLIGHT_PER_CONNECTION,
    "requests would wait for a place on a connection"
);

/// The connections to the API server, separate by purpose so that none delays the requests of another.
#[derive(Clone)]
pub struct Connections {
    /// Client for Jobs, statuses and probes.
    pub writes: ApiClient,
    /// Client for Events.
    pub events: ApiClient,
    /// Client for lists and watches.
    pub watches: kube::Client,
    /// Client for Leases.
    pub leases: kube::Client,
    /// The API server behind all of them; the credential task reads its credential files again.
    pub api_server: Option<ApiServer>,
}

impl Connections {
    /// Prepares the connections. The first request on a connection opens it.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the configuration does not allow connections.
    pub async fn open(config: &kube::Config) -> Result<Connections, ConnectError> {
        let server = ApiServer::open(config).await?;
        Ok(Connections {
            writes: ApiClient::new(WriteConnections::connect(&server, N_WRITE_CONNECTIONS)?),
            events: ApiClient::new(WriteConnections::connect(&server, 1)?),
            watches: watch_client(&server)?,
            leases: lease_client(&server)?,
            api_server: Some(server),
        })
    }
}
