//! The ways of a run to the API server.

use crate::kube_api::{ApiServer, WriteConnections, http::ConnectError, lease_client, watch_client};

/// Connections for our writes. One carries a hundred requests at a time, and a burst needs more.
pub const N_WRITE_CONNECTIONS: usize = 4;

/// The ways to the API server, apart from each other so that none takes the place of another's requests.
#[derive(Clone)]
pub struct Connections {
    /// For Jobs, statuses and probes.
    pub writes: WriteConnections,
    /// For Events.
    pub events: WriteConnections,
    /// For lists and watches.
    pub watches: kube::Client,
    /// For Leases.
    pub leases: kube::Client,
    /// The server of all of them, whose files of credentials are to be read again.
    pub api_server: Option<ApiServer>,
}

impl Connections {
    /// Prepares them; each is opened by its first request.
    pub async fn open(config: &kube::Config) -> Result<Connections, ConnectError> {
        let server = ApiServer::open(config).await?;
        Ok(Connections {
            writes: WriteConnections::connect(&server, N_WRITE_CONNECTIONS)?,
            events: WriteConnections::connect(&server, 1)?,
            watches: watch_client(&server)?,
            leases: lease_client(&server)?,
            api_server: Some(server),
        })
    }
}
