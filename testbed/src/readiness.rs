//! Waits until a process is ready. Detects processes that have exited.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use crate::{component::Component, instance::Instance};

/// Poll interval.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum wait for one process. It is usually ready in seconds, but a loaded machine may need much longer.
pub(crate) const READY_WAIT_MAX: Duration = Duration::from_mins(1);

/// Timeout of one request to a process on loopback. A query of Prometheus can take seconds on a loaded machine.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a process is not ready.
#[derive(Debug, thiserror::Error)]
pub enum ReadinessError {
    /// The process exited.
    #[error("{component} ended while it was waited for; its log ends with:\n{log_tail}")]
    Ended {
        /// The process.
        component: Component,
        /// The end of its log.
        log_tail: String,
    },
    /// The process runs but is not ready.
    #[error("{component} is not ready after {} s; its log ends with:\n{log_tail}", READY_WAIT_MAX.as_secs())]
    Late {
        /// The process.
        component: Component,
        /// The end of its log.
        log_tail: String,
    },
}

/// Waits until `is_ready` returns true.
pub(crate) fn wait_until(
    instance: &Instance,
    component: Component,
    mut is_ready: impl FnMut() -> bool,
) -> Result<(), ReadinessError> {
    let begin = Instant::now();
    loop {
        if is_ready() {
            return Ok(());
        }
        if !instance.is_running(component) {
            return Err(ReadinessError::Ended {
                component,
                log_tail: instance.log_tail(component),
            });
        }
        if begin.elapsed() > READY_WAIT_MAX {
            return Err(ReadinessError::Late {
                component,
                log_tail: instance.log_tail(component),
            });
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Returns whether etcd reports that it is healthy. The etcd of a test bed serves plain HTTP.
pub(crate) fn is_etcd_healthy(port: u16) -> bool {
    let response = http_get(&format!("127.0.0.1:{port}"), "/health");
    response.is_some_and(|(_, body)| body.contains(r#""health":"true""#))
}

/// Returns the status code and the body of the response to a plain HTTP request. `None` without a response.
pub fn http_get(address: &str, path: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(EXCHANGE_TIMEOUT)).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut response = String::new();
    stream.read_to_string(&mut response).ok()?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Returns whether a Kubernetes server responds with 200. The TCP connection detects a closed port without starting
/// kubectl.
pub(crate) fn responds(instance: &Instance, port: u16, path: &str) -> bool {
    let server = format!("--server=https://127.0.0.1:{port}");
    TcpStream::connect(("127.0.0.1", port)).is_ok()
        && instance
            .kubectl()
            .run(&["get", &server, "--request-timeout=2s", "--raw", path])
            .is_ok()
}
