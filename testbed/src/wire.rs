//! A loopback proxy whose connections a test can interrupt.
//!
//! A test can cut connections, so that both ends notice, or hold them, so that neither does. While held, data that was
//! not forwarded stays with its sender. It is lost if the sender resets the connection meanwhile, as in a network
//! partition. A test can also delay data, which then arrives whatever its sender does meanwhile.

use std::{io, pin::pin, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{
        TcpListener, TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Notify, watch},
    task::JoinHandle,
    time::sleep,
};

/// Size of a chunk to forward.
const CHUNK_BYTES: usize = 16 * 1024;

/// Maximum amount of delayed data per connection and direction. Beyond it, the sender blocks.
const DELAYED_BYTES_MAX: usize = 4 << 20;

/// After the sender has gone, the receiver of its data learns of the end only after this time.
const LINGER: Duration = Duration::from_secs(2);

/// How data is forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Carries,
    Holds,
    Delays,
}

/// A loopback proxy. Dropping it refuses new connections.
#[derive(Debug)]
pub struct Wire {
    address: String,
    switches: Switches,
    mode: watch::Sender<Mode>,
    acceptor: JoinHandle<()>,
}

/// The switches of a proxy. Clones share them.
#[derive(Clone, Debug, Default)]
struct Switches {
    cut: Arc<Notify>,
    silenced: Arc<Notify>,
}

impl Wire {
    /// Creates a proxy to a server, given as host and port.
    pub async fn to(server: &str) -> io::Result<Wire> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let switches = Switches::default();
        let (mode, modes) = watch::channel(Mode::Carries);
        let acceptor = tokio::spawn(accept(listener, server.to_owned(), switches.clone(), modes));
        Ok(Wire {
            address,
            switches,
            mode,
            acceptor,
        })
    }

    /// Host and port of the proxy.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Closes all current connections. New ones are forwarded.
    pub fn cut(&self) {
        self.switches.cut.notify_waiters();
    }

    /// Stops forwarding on the current connections without closing them, as when a peer vanishes.
    pub fn silence(&self) {
        self.switches.silenced.notify_waiters();
    }

    /// Stops forwarding in both directions until released. Connections are accepted and stay open.
    pub fn hold(&self) {
        self.mode.send_replace(Mode::Holds);
    }

    /// Buffers the data on current connections in both directions, and forwards it when released, even if they have
    /// ended by then.
    pub fn delay(&self) {
        self.mode.send_replace(Mode::Delays);
    }

    /// Resumes forwarding.
    pub fn release(&self) {
        self.mode.send_replace(Mode::Carries);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn accept(listener: TcpListener, server: String, switches: Switches, modes: watch::Receiver<Mode>) {
    while let Ok((near, _)) = listener.accept().await {
        let (server, switches, modes) = (server.clone(), switches.clone(), modes.clone());
        tokio::spawn(async move {
            let mut carried = pin!(carry(near, &server, modes));
            tokio::select! {
                () = switches.cut.notified() => return,
                () = switches.silenced.notified() => {}
                // However the copy ends, both sides notice.
                _ = &mut carried => return,
            }
            switches.cut.notified().await;
        });
    }
}

async fn carry(near: TcpStream, server: &str, mut modes: watch::Receiver<Mode>) -> io::Result<()> {
    until_released(&mut modes).await?;
    let far = TcpStream::connect(server).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    // Each direction runs to its own end: a client that is gone takes no responses, but the data that it sent still
    // arrives.
    let (there, back) = tokio::join!(
        OneWay::new(near_in, far_out, modes.clone()).carry(),
        OneWay::new(far_in, near_out, modes).carry()
    );
    there.and(back)
}

struct OneWay {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    modes: watch::Receiver<Mode>,
    chunk: Vec<u8>,
    /// The data that is delayed.
    delayed: Vec<u8>,
}

impl OneWay {
    fn new(from: OwnedReadHalf, to: OwnedWriteHalf, modes: watch::Receiver<Mode>) -> OneWay {
        OneWay {
            from,
            to,
            modes,
            chunk: vec![0; CHUNK_BYTES],
            delayed: Vec::new(),
        }
    }

    async fn carry(mut self) -> io::Result<()> {
        loop {
            let mode = *self.modes.borrow_and_update();
            if mode == Mode::Delays {
                if self.take_for_later().await? {
                    continue;
                }
                until_released(&mut self.modes).await?;
                self.to.write_all(&self.delayed).await?;
                sleep(LINGER).await;
                return self.to.shutdown().await;
            }
            until_released(&mut self.modes).await?;
            self.to.write_all(&std::mem::take(&mut self.delayed)).await?;
            // The kernel would still deliver data from before the sender's reset.
            if let Some(error) = self.from.as_ref().take_error()? {
                return Err(error);
            }
            let n_bytes = tokio::select! {
                biased;
                // While held, nothing is read from the sender.
                _ = self.modes.wait_for(|mode| *mode != Mode::Carries) => continue,
                n_bytes = self.from.read(&mut self.chunk) => n_bytes?,
            };
            if n_bytes == 0 {
                return self.to.shutdown().await;
            }
            self.to.write_all(&self.chunk[..n_bytes]).await?;
        }
    }

    /// Buffers incoming data until the mode changes. Returns false if the sender is gone.
    async fn take_for_later(&mut self) -> io::Result<bool> {
        loop {
            let has_room = self.delayed.len() < DELAYED_BYTES_MAX;
            tokio::select! {
                biased;
                changed = self.modes.changed() => return changed.map(|()| true).map_err(|_| gone()),
                n_bytes = self.from.read(&mut self.chunk), if has_room => match n_bytes {
                    Ok(0) | Err(_) => return Ok(false),
                    Ok(n_bytes) => self.delayed.extend_from_slice(&self.chunk[..n_bytes]),
                },
            }
        }
    }
}

/// Waits until released. Fails if the proxy is gone.
async fn until_released(modes: &mut watch::Receiver<Mode>) -> io::Result<()> {
    let released = modes.wait_for(|mode| *mode == Mode::Carries).await;
    released.map(drop).map_err(|_| gone())
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the wire is gone")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    /// Returns both ends of a connection through a proxy.
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
    async fn held_bytes_arrive_after_the_release_in_both_directions() {
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
    async fn held_bytes_of_a_reset_connection_never_arrive() {
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
    async fn delayed_bytes_arrive_even_if_their_sender_is_gone() {
        let (wire, mut near, mut far) = connected().await;
        wire.delay();
        near.write_u8(2).await.unwrap();
        far.write_u8(3).await.unwrap();
        let came = timeout(Duration::from_millis(100), far.read_u8()).await;
        assert!(came.is_err(), "{came:?}");
        near.set_zero_linger().unwrap();
        drop(near);
        let came = timeout(Duration::from_millis(100), far.read_u8()).await;
        assert!(came.is_err(), "{came:?}");
        wire.release();
        assert_eq!(read(&mut far).await, 2);
    }

    #[tokio::test]
    async fn connection_continues_after_delayed_bytes() {
        let (wire, mut near, mut far) = connected().await;
        wire.delay();
        near.write_u8(2).await.unwrap();
        far.write_u8(3).await.unwrap();
        let came = timeout(Duration::from_millis(100), near.read_u8()).await;
        assert!(came.is_err(), "{came:?}");
        wire.release();
        near.write_u8(4).await.unwrap();
        assert_eq!(
            (read(&mut far).await, read(&mut far).await, read(&mut near).await),
            (2, 4, 3)
        );
    }

    #[tokio::test]
    async fn only_existing_connections_are_silenced() {
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
    async fn cut_closes_both_ends() {
        let (wire, mut near, mut far) = connected().await;
        wire.cut();
        for end in [&mut near, &mut far] {
            let came = timeout(SOON, end.read_u8()).await.expect("an end");
            assert!(came.is_err(), "{came:?}");
        }
    }
}
