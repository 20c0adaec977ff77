//! The API on a loopback port, over HTTP/1.1 and HTTP/2 with prior knowledge, for `kubectl` and whatever else has sockets.
//!
//! Only where time is real: under a paused clock sockets time out at once.

use std::{future::Future, io, net::SocketAddr, pin::pin};

use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::service::ApiService;

/// Connections at a time; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 1024;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// Somebody could reach it from elsewhere, and it asks nobody who they are.
    #[error("{address} is not on loopback, and the API knows no authentication")]
    NotLoopback {
        /// As asked for.
        address: SocketAddr,
    },
    /// The port cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// As asked for.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Listens, and serves when run.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    service: ApiService,
}

impl Server {
    /// Listens on a loopback address; port 0 is any that is free.
    pub async fn bind(address: SocketAddr, service: ApiService) -> Result<Server, ServerError> {
        if !address.ip().is_loopback() {
            return Err(ServerError::NotLoopback { address });
        }
        let failed = |source| ServerError::Listen { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server {
            listener,
            address,
            service,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is done, and then breaks what is under way: watches would not end by themselves.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => return,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                    // One connection that could not be had is the client's affair.
                    if let Ok((stream, _)) = accepted {
                        connections.spawn(serve(stream, self.service.clone()));
                    }
                }
            }
        }
    }
}

async fn serve(stream: TcpStream, service: ApiService) {
    // Small answers must not wait for each other.
    let _unsupported = stream.set_nodelay(true);
    let builder = auto::Builder::new(TokioExecutor::new());
    // A client that breaks off is no error of ours.
    let _broken = builder
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .await;
}
