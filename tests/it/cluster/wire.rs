//! A way to the API server that a case can cut: each connection is carried over loopback until then.

use std::sync::Arc;

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::Notify,
    task::JoinHandle,
};

/// Dropping it closes the way for new connections.
pub(super) struct Wire {
    address: String,
    cut: Arc<Notify>,
    silenced: Arc<Notify>,
    acceptor: JoinHandle<()>,
}

impl Wire {
    /// To a server, by its host and port.
    pub(super) async fn to(server: &str) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let cut = Arc::new(Notify::new());
        let silenced = Arc::new(Notify::new());
        let switches = (Arc::clone(&cut), Arc::clone(&silenced));
        let acceptor = tokio::spawn(accept(listener, server.to_owned(), switches));
        Wire {
            address,
            cut,
            silenced,
            acceptor,
        }
    }

    /// Host and port of this end.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Ends all connections that there are; whoever calls again gets through.
    pub(super) fn cut(&self) {
        self.cut.notify_waiters();
    }
}

impl Wire {
    /// Carries nothing any more on the connections that there are, and does not end them, as when a peer vanishes.
    pub(super) fn silence(&self) {
        self.silenced.notify_waiters();
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

type Switches = (Arc<Notify>, Arc<Notify>);

async fn accept(listener: TcpListener, server: String, switches: Switches) {
    loop {
        let (near, _) = listener.accept().await.expect("a connection");
        tokio::spawn(carry(near, server.clone(), switches.clone()));
    }
}

async fn carry(mut near: TcpStream, server: String, (cut, silenced): Switches) {
    let Ok(mut far) = TcpStream::connect(server).await else {
        return;
    };
    tokio::select! {
        () = cut.notified() => return,
        () = silenced.notified() => {}
        // However it ends, both sides notice.
        _ = copy_bidirectional(&mut near, &mut far) => return,
    }
    cut.notified().await;
}
