//! Connections of a run to the API server.

use crate::kube_api::{ApiClient, ApiServer, WriteConnections, http::ConnectError, lease_client, watch_client};

/// Number of connections for writes. One connection carries a hundred requests at a time, and a burst needs more.
pub const N_WRITE_CONNECTIONS: usize = 4;

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
