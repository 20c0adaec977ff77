//! An HTTP probe of a container, with the period and thresholds of the Pod.

use std::{net::Ipv4Addr, time::Duration};

use k8s_openapi::{
    api::core::v1::{Container, Probe as Declared},
    apimachinery::pkg::util::intstr::IntOrString,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
    time::{Instant, timeout},
};

/// A probe and its verdict.
#[derive(Debug)]
pub(super) struct Probe {
    path: String,
    port: u16,
    period: Duration,
    limit: Duration,
    tally: Tally,
    next_at: Instant,
    /// The request in flight.
    in_flight: Option<JoinHandle<bool>>,
}

impl Probe {
    /// Reads the probe of a Pod. The verdict is `is_positive` until enough results contradict it.
    pub(super) fn new(declared: &Declared, container: &Container, is_positive: bool) -> Result<Probe, String> {
        let get = declared.http_get.as_ref().ok_or("a probe other than httpGet")?;
        let seconds = |given: Option<i32>, default: u32| {
            let given = given.and_then(|given| u32::try_from(given).ok());
            Duration::from_secs(given.unwrap_or(default).into())
        };
        let threshold =
            |given: Option<i32>, default: u32| given.and_then(|given| u32::try_from(given).ok()).unwrap_or(default);
        Ok(Probe {
            path: get.path.clone().unwrap_or_else(|| "/".to_owned()),
            port: port_of(&get.port, container)?,
            period: seconds(declared.period_seconds, 10),
            limit: seconds(declared.timeout_seconds, 1),
            tally: Tally {
                is_positive,
                n_contrary: 0,
                success_threshold: threshold(declared.success_threshold, 1),
                failure_threshold: threshold(declared.failure_threshold, 3),
            },
            next_at: Instant::now() + seconds(declared.initial_delay_seconds, 0),
            in_flight: None,
        })
    }

    /// Sends a request when one is due. Returns the verdict.
    pub(super) async fn poll(&mut self, address: Ipv4Addr) -> bool {
        if let Some(finished) = self.in_flight.take_if(|request| request.is_finished()) {
            self.tally.note(finished.await.unwrap_or(false));
        }
        let now = Instant::now();
        if now >= self.next_at && self.in_flight.is_none() {
            self.next_at = now + self.period;
            let (path, port, limit) = (self.path.clone(), self.port, self.limit);
            let request = async move { timeout(limit, succeeds(address, port, &path)).await.unwrap_or(false) };
            self.in_flight = Some(tokio::spawn(request));
        }
        self.tally.is_positive
    }
}

/// The number of a port that is given by number or name.
fn port_of(port: &IntOrString, container: &Container) -> Result<u16, String> {
    let number = match port {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let port = ports.find(|port| port.name.as_ref() == Some(name));
            port.map(|port| port.container_port)
        }
    };
    let number = number.and_then(|number| u16::try_from(number).ok());
    number.ok_or_else(|| format!("port {port:?}"))
}

/// Whether the response has a status code from 200 to 399.
async fn succeeds(address: Ipv4Addr, port: u16, path: &str) -> bool {
    let exchange = async {
        let mut stream = TcpStream::connect((address, port)).await?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}:{port}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut head = [0; "HTTP/1.1 200".len()];
        stream.read_exact(&mut head).await?;
        std::io::Result::Ok(matches!(head[9], b'2' | b'3'))
    };
    exchange.await.unwrap_or(false)
}

/// Counts results. The verdict changes after a threshold of contrary results in a row.
#[derive(Debug)]
struct Tally {
    is_positive: bool,
    /// Contrary results in a row.
    n_contrary: u32,
    success_threshold: u32,
    failure_threshold: u32,
}

impl Tally {
    fn note(&mut self, is_success: bool) {
        if is_success == self.is_positive {
            self.n_contrary = 0;
            return;
        }
        self.n_contrary += 1;
        let threshold = if is_success {
            self.success_threshold
        } else {
            self.failure_threshold
        };
        if self.n_contrary >= threshold {
            self.is_positive = is_success;
            self.n_contrary = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_verdict_changes_after_consecutive_contrary_results() {
        let mut tally = Tally {
            is_positive: false,
            n_contrary: 0,
            success_threshold: 1,
            failure_threshold: 3,
        };
        let results = [true, false, false, true, false, false, false, false, true];
        let verdicts = results.map(|result| {
            tally.note(result);
            tally.is_positive
        });
        assert_eq!(verdicts, [true, true, true, true, true, true, false, false, true]);
    }

    #[test]
    fn probe_port_is_a_number_or_a_name() {
        let container: Container =
            serde_json::from_value(serde_json::json!({"name": "a", "ports": [{"name": "http", "containerPort": 80}]}))
                .unwrap();
        assert_eq!(port_of(&IntOrString::Int(9), &container), Ok(9));
        assert_eq!(port_of(&IntOrString::String("http".to_owned()), &container), Ok(80));
        assert!(port_of(&IntOrString::String("other".to_owned()), &container).is_err());
    }
}
