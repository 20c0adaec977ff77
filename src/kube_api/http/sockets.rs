//! The sockets of the connections, so that they can be reset: the kernel may still hold a request that must not arrive,
//! and would deliver it when a network recovers.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::legacy::connect::{Connected, Connection, HttpConnector},
    rt::TokioIo,
};
use rustix::{
    fd::OwnedFd,
    io::fcntl_dupfd_cloexec,
    net::{Shutdown, shutdown, sockopt::set_socket_linger},
};
use tokio::net::TcpStream;
use tower::{BoxError, ServiceExt, service_fn};

use super::{Connector, api_connection::ApiConnection};

/// The open sockets. Clones share the set.
#[derive(Clone, Debug, Default)]
pub(super) struct Sockets(Arc<Mutex<SocketList>>);

#[derive(Debug, Default)]
struct SocketList {
    open: Vec<Weak<OwnedFd>>,
    n_resets: u64,
}

impl Sockets {
    /// Resets all sockets: unsent data is discarded, and readers reach the end. Connections that are being opened fail.
    pub(super) fn reset(&self) {
        let open = {
            let mut list = self.list();
            list.n_resets += 1;
            std::mem::take(&mut list.open)
        };
        let sockets: Vec<Arc<OwnedFd>> = open.into_iter().filter_map(|socket| socket.upgrade()).collect();
        for socket in sockets {
            // A socket that was closed meanwhile needs no reset.
            let _ = set_socket_linger(&*socket, Some(Duration::ZERO));
            let _ = shutdown(&*socket, Shutdown::Read);
        }
    }

    /// Tracks a socket for as long as its stream lives. Fails if the sockets were reset since there were `n_resets`.
    fn track(&self, stream: &TcpStream, n_resets: u64) -> io::Result<Arc<OwnedFd>> {
        let socket = Arc::new(fcntl_dupfd_cloexec(stream, 0)?);
        let mut list = self.list();
        if list.n_resets != n_resets {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        list.open.retain(|socket| socket.strong_count() > 0);
        list.open.push(Arc::downgrade(&socket));
        Ok(socket)
    }

    /// The list is consistent after every statement, so a panic elsewhere does not corrupt it.
    fn list(&self) -> MutexGuard<'_, SocketList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns a connector that tracks every socket.
pub(super) fn tracking(tcp: HttpConnector, sockets: Sockets) -> Connector<TrackedStream> {
    Connector::new(service_fn(move |uri: Uri| {
        let (connecting, sockets) = (tcp.clone().oneshot(uri), sockets.clone());
        let n_resets = sockets.list().n_resets;
        async move {
            let stream = connecting.await?;
            let socket = sockets.track(stream.inner(), n_resets)?;
            Ok::<_, BoxError>(TrackedStream {
                stream,
                identity: ApiConnection::new(),
                _socket: socket,
            })
        }
    }))
}

/// A stream with a tracked socket. The second handle is dropped with it, which closes the socket.
pub(super) struct TrackedStream {
    stream: TokioIo<TcpStream>,
    identity: ApiConnection,
    _socket: Arc<OwnedFd>,
}

impl Connection for TrackedStream {
    fn connected(&self) -> Connected {
        // Every response over this connection carries its identity.
        self.stream.inner().connected().extra(self.identity.clone())
    }
}

impl Read for TrackedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for TrackedStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }
}

#[cfg(test)]
mod tests {
    use hyper_util::rt::TokioIo;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use tower::Service as _;

    use super::*;

    /// A stream through the connector, and the other end of it.
    async fn pair(sockets: &Sockets) -> (TrackedStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let connector = tracking(HttpConnector::new(), sockets.clone());
        let (stream, accepted) = tokio::join!(connector.oneshot(uri), listener.accept());
        (stream.unwrap(), accepted.unwrap().0)
    }

    #[tokio::test]
    async fn unsent_data_does_not_arrive_after_a_reset() {
        let sockets = Sockets::default();
        let (stream, mut other) = pair(&sockets).await;
        let mut stream = TokioIo::new(stream);
        // More data than the buffers of both kernels hold without a reader.
        let bytes = vec![7; 64 << 20];
        let written = stream.write_all(&bytes);
        assert!(tokio::time::timeout(Duration::from_millis(200), written).await.is_err());
        sockets.reset();
        assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "a reader reaches the end");
        drop(stream);
        let mut arrived = Vec::new();
        let error = other.read_to_end(&mut arrived).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
        assert!(arrived.len() < bytes.len());
    }

    #[tokio::test]
    async fn a_connection_that_was_being_opened_during_a_reset_is_not_used() {
        let sockets = Sockets::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let mut connector = tracking(HttpConnector::new(), sockets.clone());
        let connecting = connector.ready().await.unwrap().call(uri.clone());
        sockets.reset();
        assert!(connecting.await.is_err());
        assert!(connector.oneshot(uri).await.is_ok(), "a later connection is used");
    }

    #[tokio::test]
    async fn dropping_a_stream_closes_its_socket() {
        let sockets = Sockets::default();
        let (stream, mut other) = pair(&sockets).await;
        drop(stream);
        assert_eq!(other.read(&mut [0]).await.unwrap(), 0);
        let (_stream, _other) = pair(&sockets).await;
        assert_eq!(sockets.list().open.len(), 1);
    }
}
