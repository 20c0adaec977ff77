//! A Prometheus on loopback, for tests of metrics, dashboards and alerts.

use std::{
    fs, io,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};

use crate::{
    binaries::{BinariesError, find_or_build_prometheus},
    readiness::{POLL_INTERVAL, READY_WAIT_MAX, http_get},
};

/// Why Prometheus does not run.
#[derive(Debug, thiserror::Error)]
pub enum PrometheusError {
    /// Prometheus is neither found nor built.
    #[error(transparent)]
    Binaries(#[from] BinariesError),
    /// Its files cannot be written, or its process cannot be started.
    #[error("prometheus cannot be started in {folder}")]
    Start {
        /// Its folder.
        folder: String,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Prometheus does not respond.
    #[error("prometheus is not ready after {} s", READY_WAIT_MAX.as_secs())]
    Late,
}

/// A running Prometheus. It is killed on drop.
#[derive(Debug)]
pub struct Prometheus {
    process: Child,
    client: PrometheusClient,
}

/// Sends requests to a Prometheus.
#[derive(Clone, Debug)]
pub struct PrometheusClient {
    address: String,
}

impl Prometheus {
    /// Starts Prometheus with a configuration and further arguments, and waits until it is ready. Its data and its
    /// configuration are in the folder.
    ///
    /// # Errors
    ///
    /// [`PrometheusError`] if it cannot be found, built or started, or does not become ready.
    pub fn start(folder: &Path, configuration: &str, arguments: &[&str]) -> Result<Prometheus, PrometheusError> {
        let program = find_or_build_prometheus()?;
        let spawned = || {
            fs::create_dir_all(folder)?;
            fs::write(folder.join("prometheus.yaml"), configuration)?;
            // The port is free again once the listener is dropped.
            let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
            let process = Command::new(program)
                .args([
                    "--config.file=prometheus.yaml",
                    "--storage.tsdb.path=data",
                    "--log.level=error",
                ])
                .arg(format!("--web.listen-address={address}"))
                .args(arguments)
                .current_dir(folder)
                .stdout(Stdio::null())
                .spawn()?;
            Ok(Prometheus {
                process,
                client: PrometheusClient { address },
            })
        };
        let prometheus = spawned().map_err(|source| PrometheusError::Start {
            folder: folder.display().to_string(),
            source,
        })?;
        let begin = Instant::now();
        while prometheus.client.get("/-/ready").is_none_or(|(code, _)| code != 200) {
            if begin.elapsed() > READY_WAIT_MAX {
                return Err(PrometheusError::Late);
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(prometheus)
    }

    /// The client for requests. Its clones can outlive the process.
    pub fn client(&self) -> &PrometheusClient {
        &self.client
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl PrometheusClient {
    /// The address of Prometheus.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the status code and the body of a response. `None` without a response.
    pub fn get(&self, path: &str) -> Option<(u16, String)> {
        http_get(&self.address, path)
    }

    /// Returns the status code and the body of the response to a query. `kind` is `query` or `query_range`, and
    /// `parameters` are further parameters of the path, such as `&time=0`.
    pub fn query(&self, kind: &str, expression: &str, parameters: &str) -> Option<(u16, String)> {
        let query: String = form_urlencoded::byte_serialize(expression.as_bytes()).collect();
        self.get(&format!("/api/v1/{kind}?query={query}{parameters}"))
    }
}
