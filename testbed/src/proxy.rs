//! A loopback TCP proxy whose connections a test can interrupt.
//!
//! A test can cut connections, which both ends notice, or hold them, which neither end notices. While a connection is
//! held, its data stays with the sender. As in a network partition, the data is lost if the sender resets the
//! connection. A test can also delay data. Delayed data arrives even if its sender is gone.

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

/// The time from the delivery of delayed data to the shutdown of the connection, if the sender is gone.
const LINGER: Duration = Duration::from_secs(2);

/// What the proxy does with data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Forward,
    Hold,
    Delay,
}

/// A loopback proxy. Dropping it refuses new connections.
#[derive(Debug)]
pub struct Proxy {
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

impl Proxy {
    /// Creates a proxy to a server, given as host and port.
    pub async fn to(server: &str) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let switches = Switches::default();
        let (mode, modes) = watch::channel(Mode::Forward);
        let acceptor = tokio::spawn(accept(listener, server.to_owned(), switches.clone(), modes));
        Ok(Proxy {
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
        self.mode.send_replace(Mode::Hold);
    }

    /// Buffers the data on current connections in both directions, and forwards it when released, even if they have
    /// ended by then.
    pub fn delay(&self) {
        self.mode.send_replace(Mode::Delay);
    }

    /// Resumes forwarding.
    pub fn release(&self) {
        self.mode.send_replace(Mode::Forward);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.acceptor.abort();
    }
}

async fn accept(listener: TcpListener, server: String, switches: Switches, modes: watch::Receiver<Mode>) {
    while let Ok((near, _)) = listener.accept().await {
        let (server, switches, modes) = (server.clone(), switches.clone(), modes.clone());
        tokio::spawn(async move {
            let mut forwarded = pin!(forward(near, &server, modes));
            tokio::select! {
                () = switches.cut.notified() => return,
                () = switches.silenced.notified() => {}
                // The end of the copy closes both connections.
                _ = &mut forwarded => return,
            }
            switches.cut.notified().await;
        });
    }
}

async fn forward(near: TcpStream, server: &str, mut modes: watch::Receiver<Mode>) -> io::Result<()> {
    until_released(&mut modes).await?;
    let far = TcpStream::connect(server).await?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    // Each direction ends separately: a client that is gone receives no responses, but its data still arrives.
    let (sent, received) = tokio::join!(
        OneWay::new(near_in, far_out, modes.clone()).forward(),
        OneWay::new(far_in, near_out, modes).forward()
    );
    sent.and(received)
}

struct OneWay {
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    modes: watch::Receiver<Mode>,
    chunk: Vec<u8>,
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

    async fn forward(mut self) -> io::Result<()> {
        loop {
            let mode = *self.modes.borrow_and_update();
            if mode == Mode::Delay {
                if self.buffer_until_mode_changes().await? {
                    continue;
                }
                until_released(&mut self.modes).await?;
                self.to.write_all(&self.delayed).await?;
                sleep(LINGER).await;
                return self.to.shutdown().await;
            }
            until_released(&mut self.modes).await?;
            self.to.write_all(&std::mem::take(&mut self.delayed)).await?;
            // After a reset by the sender, the kernel would still deliver earlier data.
            if let Some(error) = self.from.as_ref().take_error()? {
                return Err(error);
            }
            let n_bytes = tokio::select! {
                biased;
                // While the connection is held, data stays with the sender.
                _ = self.modes.wait_for(|mode| *mode != Mode::Forward) => continue,
                n_bytes = self.from.read(&mut self.chunk) => n_bytes?,
            };
            if n_bytes == 0 {
                return self.to.shutdown().await;
            }
            self.to.write_all(&self.chunk[..n_bytes]).await?;
        }
    }

    /// Buffers incoming data until the mode changes. Returns false if the sender is gone.
    async fn buffer_until_mode_changes(&mut self) -> io::Result<bool> {
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
    let released = modes.wait_for(|mode| *mode == Mode::Forward).await;
    released.map(drop).map_err(|_| gone())
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the proxy has ended")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    /// Returns both ends of a connection through a proxy.
    async fn connected() -> (Proxy, TcpStream, TcpStream) {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::to(&server.local_addr().unwrap().to_string()).await.unwrap();
        let near = TcpStream::connect(proxy.address()).await.unwrap();
        let (far, _) = server.accept().await.unwrap();
        (proxy, near, far)
    }

    async fn read(stream: &mut TcpStream) -> u8 {
        timeout(SOON, stream.read_u8()).await.expect("it comes").unwrap()
    }

    #[tokio::test]
    async fn held_bytes_arrive_after_the_release_in_both_directions() {
        let (proxy, mut near, mut far) = connected().await;
        near.write_u8(1).await.unwrap();
        assert_eq!(read(&mut far).await, 1);
        proxy.hold();
        near.write_u8(2).await.unwrap();
        far.write_u8(3).await.unwrap();
        let result = timeout(Duration::from_millis(100), far.read_u8()).await;
        assert!(result.is_err(), "{result:?}");
        proxy.release();
        assert_eq!((read(&mut far).await, read(&mut near).await), (2, 3));
    }

    #[tokio::test]
    async fn held_bytes_of_a_reset_connection_never_arrive() {
        let (proxy, mut near, mut far) = connected().await;
        proxy.hold();
        near.write_u8(2).await.unwrap();
        let result = timeout(Duration::from_millis(100), far.read_u8()).await;
        assert!(result.is_err(), "{result:?}");
        near.set_zero_linger().unwrap();
        drop(near);
        proxy.release();
        let result = timeout(SOON, far.read_u8()).await.expect("an end");
        assert!(result.is_err(), "{result:?}");
    }

    #[tokio::test]
    async fn delayed_bytes_arrive_even_if_their_sender_is_gone() {
        let (proxy, mut near, mut far) = connected().await;
        proxy.delay();
        near.write_u8(2).await.unwrap();
        far.write_u8(3).await.unwrap();
        let result = timeout(Duration::from_millis(100), far.read_u8()).await;
        assert!(result.is_err(), "{result:?}");
        near.set_zero_linger().unwrap();
        drop(near);
        let result = timeout(Duration::from_millis(100), far.read_u8()).await;
        assert!(result.is_err(), "{result:?}");
        proxy.release();
        assert_eq!(read(&mut far).await, 2);
    }

    #[tokio::test]
    async fn connection_continues_after_delayed_bytes() {
        let (proxy, mut near, mut far) = connected().await;
        proxy.delay();
        near.write_u8(2).await.unwrap();
        far.write_u8(3).await.unwrap();
        let result = timeout(Duration::from_millis(100), near.read_u8()).await;
        assert!(result.is_err(), "{result:?}");
        proxy.release();
        near.write_u8(4).await.unwrap();
        assert_eq!(
            (read(&mut far).await, read(&mut far).await, read(&mut near).await),
            (2, 4, 3)
        );
    }

    #[tokio::test]
    async fn only_existing_connections_are_silenced() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::to(&server.local_addr().unwrap().to_string()).await.unwrap();
        let mut near = TcpStream::connect(proxy.address()).await.unwrap();
        let (mut far, _) = server.accept().await.unwrap();
        near.write_u8(1).await.unwrap();
        assert_eq!(read(&mut far).await, 1);
        proxy.silence();
        near.write_u8(2).await.unwrap();
        let result = timeout(Duration::from_millis(100), far.read_u8()).await;
        assert!(result.is_err(), "{result:?}");
        let mut next = TcpStream::connect(proxy.address()).await.unwrap();
        let (mut far, _) = server.accept().await.unwrap();
        next.write_u8(3).await.unwrap();
        assert_eq!(read(&mut far).await, 3);
    }

    #[tokio::test]
    async fn cut_closes_both_ends() {
        let (proxy, mut near, mut far) = connected().await;
        proxy.cut();
        for end in [&mut near, &mut far] {
            let result = timeout(SOON, end.read_u8()).await.expect("an end");
            assert!(result.is_err(), "{result:?}");
        }
    }
}
