//! A way to a server that a test can interrupt: each connection is carried over loopback until then.
//!
//! It is cut, so that both ends notice, or held, so that neither does: what was not carried yet stays where it is, and
//! is lost if its sender resets the connection meanwhile, as in a network that is partitioned.

use std::{io, pin::pin, sync::Arc};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, watch},
    task::JoinHandle,
};

/// What is carried at a time.
const CHUNK_BYTES: usize = 16 * 1024;

/// Dropping it closes the way for new connections.
#[derive(Debug)]
pub struct Wire {
    address: String,
    switches: Switches,
    is_held: watch::Sender<bool>,
    acceptor: JoinHandle<()>,
}

/// Clones are the same.
#[derive(Clone, Debug, Default)]
struct Switches {
    cut: Arc<Notify>,
    silenced: Arc<Notify>,
}

impl Wire {
    /// To a server, by its host and port.
    pub async fn to(server: &str) -> io::Result<Wire> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let switches = Switches::default();
        let (is_held, held) = watch::channel(false);
        let acceptor = tokio::spawn(accept(listener, server.to_owned(), switches.clone(), held));
        Ok(Wire {
            address,
            switches,
            is_held,
            acceptor,
        })
    }

    /// Host and port of this end.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Ends all connections that there are; whoever calls again gets through.
    pub fn cut(&self) {
        self.switches.cut.notify_waiters();
    }

    /// Carries nothing any more on the connections that there are, and does not end them, as when a peer vanishes.
    pub fn silence(&self) {
        self.switches.silenced.notify_waiters();
    }

    /// Carries nothing more, in either direction, until it is released; connections are accepted and stay open.
    pub fn hold(&self) {
        self.is_held.send_replace(true);
    }

    /// Carries everything again.
    pub fn release(&self) {
        self.is_held.send_replace(false);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn accept(listener: TcpListener, server: String, switches: Switches, held: watch::Receiver<bool>) {
    while let Ok((near, _)) = listener.accept().await {
        let (server, switches, held) = (server.clone(), switches.clone(), held.clone());
        tokio::spawn(async move {
            let mut carried = pin!(carry(near, &server, held));
            tokio::select! {
                () = switches.cut.notified() => return,
                () = switches.silenced.notified() => {}
                // However it ends, both sides notice.
                _ = &mut carried => return,
            }
            switches.cut.notified().await;
        });
    }
}

async fn carry(near: TcpStream, server: &str, mut held: watch::Receiver<bool>) -> io::Result<()> {
    until_released(&mut held).await?;
    let far = TcpStream::connect(server).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    tokio::try_join!(
        carry_one_way(near_in, far_out, held.clone()),
        carry_one_way(far_in, near_out, held)
    )?;
    Ok(())
}

async fn carry_one_way(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut held: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        until_released(&mut held).await?;
        // The kernel would still give what came before its sender reset the connection.
        if let Some(error) = from.as_ref().take_error()? {
            return Err(error);
        }
        let n_bytes = tokio::select! {
            biased;
            // Nothing is taken from the sender while it is held.
            _ = held.wait_for(|is_held| *is_held) => continue,
            n_bytes = from.read(&mut chunk) => n_bytes?,
        };
        if n_bytes == 0 {
            return to.shutdown().await;
        }
        to.write_all(&chunk[..n_bytes]).await?;
    }
}

/// Fails where the wire is gone.
async fn until_released(held: &mut watch::Receiver<bool>) -> io::Result<()> {
    let released = held.wait_for(|is_held| !is_held).await;
    released
        .map(drop)
        .map_err(|_| io::Error::new(io::ErrorKind::ConnectionAborted, "the wire is gone"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    /// Both ends of one connection over a wire.
    async fn connected() -> (Wire, TcpStream, TcpStream) {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Wire::to(&server.local_addr().unwrap().to_string()).await.unwrap();
        let near = TcpStream::connect(wire.address()).await.unwrap();
        let (far, _) = server.accept().await.unwrap();
        (wire, near, far)
    }

    async fn read(stream: &mut TcpStream) -> u8 {
        timeout(SOON, stream.read_u8()).await.expect("it comes").unwrap()
    }

    #[tokio::test]
    async fn what_is_sent_while_held_comes_when_released_in_both_directions() {
        let (wire, mut near, mut far) = connected().await;
        near.write_u8(1).await.unwrap();
        assert_eq!(read(&mut far).await, 1);
        wire.hold();
        near.write_u8(2).await.unwrap();
        far.write_u8(3).await.unwrap();
        let came = timeout(Duration::from_millis(100), far.read_u8()).await;
        assert!(came.is_err(), "{came:?}");
        wire.release();
        assert_eq!((read(&mut far).await, read(&mut near).await), (2, 3));
    }

    #[tokio::test]
    async fn what_its_sender_takes_back_while_held_never_comes() {
        let (wire, mut near, mut far) = connected().await;
        wire.hold();
        near.write_u8(2).await.unwrap();
        let came = timeout(Duration::from_millis(100), far.read_u8()).await;
        assert!(came.is_err(), "{came:?}");
        near.set_zero_linger().unwrap();
        drop(near);
        wire.release();
        let came = timeout(SOON, far.read_u8()).await.expect("an end");
        assert!(came.is_err(), "{came:?}");
    }

    #[tokio::test]
    async fn a_silenced_connection_stays_open_and_the_next_one_carries() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let wire = Wire::to(&server.local_addr().unwrap().to_string()).await.unwrap();
        let mut near = TcpStream::connect(wire.address()).await.unwrap();
        let (mut far, _) = server.accept().await.unwrap();
        near.write_u8(1).await.unwrap();
        assert_eq!(read(&mut far).await, 1);
        wire.silence();
        near.write_u8(2).await.unwrap();
        let came = timeout(Duration::from_millis(100), far.read_u8()).await;
        assert!(came.is_err(), "{came:?}");
        let mut next = TcpStream::connect(wire.address()).await.unwrap();
        let (mut far, _) = server.accept().await.unwrap();
        next.write_u8(3).await.unwrap();
        assert_eq!(read(&mut far).await, 3);
    }

    #[tokio::test]
    async fn a_cut_ends_both_ends() {
        let (wire, mut near, mut far) = connected().await;
        wire.cut();
        for end in [&mut near, &mut far] {
            let came = timeout(SOON, end.read_u8()).await.expect("an end");
            assert!(came.is_err(), "{came:?}");
        }
    }
}
