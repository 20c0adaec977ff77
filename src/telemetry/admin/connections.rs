//! The connections of a server, limited in number and in time: of the endpoints, so that no client can prevent a probe's
//! response, and of the page.
//!
//! At the limit a new connection replaces the oldest one, so clients with open connections cannot lock a probe out. The
//! newest connection is served first, so busy connections cannot delay a probe, which opens a new one.

use std::{
    collections::VecDeque,
    convert::Infallible,
    future::poll_fn,
    task::{Context, Poll},
    time::Duration,
};

use axum::Router;
use futures::future::BoxFuture;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
};

/// What the clients of a server may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The limit of open connections.
    pub n_open_max: usize,
    /// The time for which a connection accepts further requests.
    pub life_max: Duration,
}

impl ConnectionLimits {
    /// For probes and scrapes. A kubelet and a few scrapers have one connection each.
    pub const ENDPOINTS: ConnectionLimits = ConnectionLimits {
        n_open_max: 64,
        life_max: Duration::from_mins(1),
    };
}

/// The time in which a client must send the head of a request: Prometheus' default time-out for a whole scrape.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum duration of a response after [`ConnectionLimits::life_max`].
const LAST_RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause after a failed accept, for example when no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// The open connections, and the router that serves them.
pub struct Connections {
    router: Router,
    limits: ConnectionLimits,
    /// Ordered by age, the newest first.
    open: VecDeque<BoxFuture<'static, ()>>,
}

impl Connections {
    /// A server without connections.
    pub fn new(router: Router, limits: ConnectionLimits) -> Connections {
        let open = VecDeque::new();
        Connections { router, limits, open }
    }

    /// Accepts and serves connections forever.
    pub async fn serve(&mut self, listener: TcpListener) -> Infallible {
        loop {
            tokio::select! {
                stream = accept(&listener) => self.open(stream),
                never = poll_fn(|context| self.poll_open(context)) => match never {},
            }
        }
    }

    /// Serves one more connection, which replaces the oldest one at the limit.
    fn open(&mut self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        if self.open.len() >= self.limits.n_open_max {
            self.open.pop_back();
        }
        let connection = serve_connection(stream, self.router.clone(), self.limits.life_max);
        self.open.push_front(Box::pin(connection));
    }

    /// Serves the open connections, and forgets those that end.
    fn poll_open(&mut self, context: &mut Context<'_>) -> Poll<Infallible> {
        self.open
            .retain_mut(|connection| connection.as_mut().poll(context).is_pending());
        Poll::Pending
    }
}

/// Returns the next connection. Pauses after each failure.
async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => tracing::warn!(%error, "cannot accept a connection to the endpoints"),
        }
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

async fn serve_connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    router: Router,
    life_max: Duration,
) {
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    let mut connection =
        std::pin::pin!(builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    if tokio::time::timeout(life_max, connection.as_mut()).await.is_err() {
        connection.as_mut().graceful_shutdown();
        // A client that does not read its response is cut off; a broken connection needs no report.
        let _ = tokio::time::timeout(LAST_RESPONSE_TIMEOUT, connection).await;
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    use super::*;

    fn connections() -> Connections {
        let big = || async { "x".repeat(1 << 20) };
        let router = Router::new().route("/", get(|| async { "ok" })).route("/big", get(big));
        Connections::new(router, ConnectionLimits::ENDPOINTS)
    }

    fn connect(connections: &mut Connections) -> DuplexStream {
        let (client, server) = duplex(1024);
        connections.open(server);
        client
    }

    /// Serves until no connection is left.
    async fn serve_all(connections: &mut Connections) {
        poll_fn(|context| {
            let _ = connections.poll_open(context);
            if connections.open.is_empty() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

    async fn answer(mut client: DuplexStream) -> String {
        let mut text = String::new();
        let _ = client.read_to_string(&mut text).await;
        text
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_an_incomplete_request_is_disconnected() {
        let mut connections = connections();
        let mut client = connect(&mut connections);
        client.write_all(b"GET / HTTP/1.1\r\nHost:").await.unwrap();
        let served = tokio::time::timeout(HEAD_TIMEOUT * 2, serve_all(&mut connections)).await;
        assert!(served.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_its_response_is_disconnected() {
        let mut connections = connections();
        let mut client = connect(&mut connections);
        client.write_all(b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let all = ConnectionLimits::ENDPOINTS.life_max + LAST_RESPONSE_TIMEOUT + Duration::from_secs(1);
        assert!(tokio::time::timeout(all, serve_all(&mut connections)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_is_answered_despite_many_idle_connections() {
        let mut connections = connections();
        let mut idle = Vec::new();
        for _ in 0..3 * ConnectionLimits::ENDPOINTS.n_open_max {
            idle.push(connect(&mut connections));
        }
        let mut probe = connect(&mut connections);
        assert_eq!(connections.open.len(), ConnectionLimits::ENDPOINTS.n_open_max);
        probe.write_all(GET).await.unwrap();
        let served = async {
            let serving = serve_all(&mut connections);
            tokio::select! {
                text = answer(probe) => text,
                () = serving => String::new(),
            }
        };
        let text = tokio::time::timeout(Duration::from_secs(1), served).await.unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK") && text.ends_with("ok"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn open_connections_are_served_while_no_further_one_can_be_accepted() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        rustix::net::shutdown(&listener, rustix::net::Shutdown::Read).unwrap();
        listener.accept().await.unwrap_err();
        let mut connections = connections();
        let mut client = connect(&mut connections);
        let asked = async {
            // The pause after the first failed accept has begun.
            tokio::time::sleep(ACCEPT_PAUSE / 4).await;
            client.write_all(GET).await.unwrap();
            answer(client).await
        };
        let served = async {
            tokio::select! {
                text = asked => text,
                never = connections.serve(listener) => match never {},
            }
        };
        let text = tokio::time::timeout(ACCEPT_PAUSE / 2, served).await.unwrap();
        assert!(text.ends_with("ok"), "{text}");
    }
}
