//! The API on a loopback port, over HTTP/1.1 and HTTP/2 with prior knowledge, for `kubectl` and other clients that need
//! a socket.
//!
//! It works only in real time: under a paused clock, sockets time out at once.

use std::{future::Future, io, net::SocketAddr, pin::pin, time::Duration};

use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};
use tower::ServiceExt as _;

use crate::service::{ApiBody, ApiService, ConnectionLost};

/// The maximum number of connections. Further ones wait in the listener's queue.
const CONNECTIONS_MAX: usize = 1024;

/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The maximum duration of a shutdown.
const CLOSE_DURATION_MAX: Duration = Duration::from_secs(10);

/// An error that prevents the server from starting.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The address is not a loopback address. Other machines could reach it, and the server has no authentication.
    #[error("{address} is not on loopback, and the API has no authentication")]
    NotLoopback {
        /// The requested address.
        address: SocketAddr,
    },
    /// The port is not available.
    #[error("cannot listen on {address}")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// A server that listens, and serves once it runs.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    service: ApiService,
}

impl Server {
    /// Listens on a loopback address. Port 0 picks a free port.
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

    /// The address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` completes. Then it accepts no more connections, ends watches and finishes running
    /// responses, for at most ten seconds.
    pub async fn run(self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut connections = JoinSet::new();
        let (close, closing) = watch::channel(false);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                    match accepted {
                        Ok((stream, _)) => {
                            connections.spawn(serve(stream, self.service.clone(), closing.clone()));
                        }
                        // The likely cause is too many open files. An immediate retry would fail too.
                        Err(_) => sleep(ACCEPT_PAUSE).await,
                    }
                }
            }
        }
        drop(self.listener);
        close.send_replace(true);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        // After the timeout, the remaining connections are dropped.
        let _slow = timeout(CLOSE_DURATION_MAX, all_ended).await;
    }
}

async fn serve(stream: TcpStream, service: ApiService, closing: watch::Receiver<bool>) {
    // With Nagle's algorithm, small responses would be delayed.
    let _unsupported = stream.set_nodelay(true);
    let builder = auto::Builder::new(TokioExecutor::new());
    let closing_bodies = closing.clone();
    let service = service_fn(move |request| {
        let (service, closing) = (service.clone(), closing_bodies.clone());
        async move {
            let response = service.oneshot(request).await?;
            Ok::<_, ConnectionLost>(response.map(|body: ApiBody| body.until(closed(closing))))
        }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        biased;
        // A client that disconnects is not an error.
        _broken = connection.as_mut() => return,
        () = closed(closing) => connection.as_mut().graceful_shutdown(),
    }
    let _broken = connection.await;
}

/// Completes when the server closes or is dropped.
#[expect(clippy::disallowed_methods, reason = "over sockets no order is kept anyway")]
async fn closed(mut closing: watch::Receiver<bool>) {
    let _gone = closing.wait_for(|is_closing| *is_closing).await;
}
