//! The ways of a run to the API server.

use super::args::N_WRITE_CONNECTIONS;
use crate::cluster::{
    WriteConnections,
    connection::{ConnectError, lease_client},
    watch_client,
};

/// The ways to the API server, apart from each other so that none takes the place of another's requests.
pub struct Connections {
    /// For Jobs, statuses and probes.
    pub writes: WriteConnections,
    /// For Events.
    pub events: WriteConnections,
    /// For lists and watches.
    pub watches: kube::Client,
    /// For Leases.
    pub leases: kube::Client,
}

impl Connections {
    /// Prepares them; each is opened by its first request.
    pub fn open(config: &kube::Config) -> Result<Connections, ConnectError> {
        Ok(Connections {
            writes: WriteConnections::connect(config, N_WRITE_CONNECTIONS)?,
            events: WriteConnections::connect(config, 1)?,
            watches: watch_client(config)?,
            leases: lease_client(config)?,
        })
    }
}
