//! The API on a loopback port, over HTTP/1.1 and HTTP/2 with prior knowledge, for `kubectl` and whatever else has sockets.
//!
//! Only where time is real: under a paused clock sockets time out at once.

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

/// Connections at a time; more wait in the listener's queue.
const CONNECTIONS_MAX: usize = 1024;

/// From a connection that could not be had to the next.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How long the end may take.
const CLOSE_DURATION_MAX: Duration = Duration::from_secs(10);

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

    /// Serves until `shutdown` is done. Then nobody is let in, watches end, answers under way are given, for at most
    /// ten seconds.
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
                        // Most likely there are too many open files: asked again at once, the system says the same.
                        Err(_) => sleep(ACCEPT_PAUSE).await,
                    }
                }
            }
        }
        drop(self.listener);
        close.send_replace(true);
        let all_ended = async { while connections.join_next().await.is_some() {} };
        // Who does not read its answer by then does not get it.
        let _slow = timeout(CLOSE_DURATION_MAX, all_ended).await;
    }
}

async fn serve(stream: TcpStream, service: ApiService, closing: watch::Receiver<bool>) {
    // Small answers must not wait for each other.
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
        // A client that breaks off is no error of ours.
        _broken = connection.as_mut() => return,
        () = closed(closing) => connection.as_mut().graceful_shutdown(),
    }
    let _broken = connection.await;
}

/// Done when the server closes, or is gone.
#[expect(clippy::disallowed_methods, reason = "over sockets no order is kept anyway")]
async fn closed(mut closing: watch::Receiver<bool>) {
    let _gone = closing.wait_for(|is_closing| *is_closing).await;
}
