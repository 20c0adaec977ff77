//! Waits until a process is ready, and detects that it never will be.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use crate::{component::Component, instance::Instance};

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum wait for one process. Seconds are usual, but a loaded machine may need much longer.
const READY_WAIT_MAX: Duration = Duration::from_mins(1);

/// Timeout of one request to a process on loopback.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(2);

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

/// Returns whether etcd reports that it is healthy. Here it serves plain HTTP.
pub(crate) fn is_etcd_healthy(port: u16) -> bool {
    let exchange = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(EXCHANGE_TIMEOUT))?;
        stream.write_all(b"GET /health HTTP/1.0\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    exchange().is_ok_and(|answer| answer.contains(r#""health":"true""#))
}

/// Returns whether a Kubernetes server answers 200. The TCP connection detects a closed port without starting kubectl.
pub(crate) fn answers(instance: &Instance, port: u16, path: &str) -> bool {
    let server = format!("--server=https://127.0.0.1:{port}");
    TcpStream::connect(("127.0.0.1", port)).is_ok()
        && instance
            .kubectl()
            .run(&["get", &server, "--request-timeout=2s", "--raw", path])
            .is_ok()
}
