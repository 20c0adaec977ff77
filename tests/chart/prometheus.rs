//! A real Prometheus that holds given samples.

use std::{
    fs,
    io::{BufRead, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
};

use serde_json::Value;

use super::vector::{Labels, Vector};

/// It is killed on drop.
pub(super) struct Prometheus {
    process: Child,
    address: String,
    folder: PathBuf,
    /// Kept open, because it still writes to it.
    _log: BufReader<ChildStderr>,
}

/// Why an expression has no answer.
#[derive(Debug)]
pub(super) enum Refusal {
    /// Prometheus does not understand it.
    Invalid(String),
    /// The samples do not allow it, as when two series match one.
    Failed,
}

impl Prometheus {
    /// Stores samples, which are in the format of `OpenMetrics`, and starts Prometheus on them.
    pub(super) fn start(samples: &str) -> Prometheus {
        let file = super::tempfile(samples);
        let folder = file.with_extension("prometheus");
        fs::create_dir_all(&folder).unwrap();
        store(&file, &folder.join("data"));
        fs::remove_file(file).unwrap();
        fs::write(folder.join("prometheus.yaml"), "{}").unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let mut process = Command::new(testbed::find_or_build_prometheus().unwrap())
            .arg("--config.file=prometheus.yaml")
            .arg("--storage.tsdb.path=data")
            // The samples are older than what it would keep.
            .arg("--storage.tsdb.retention.time=100y")
            .arg(format!("--web.listen-address={address}"))
            .current_dir(&folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut log = BufReader::new(process.stderr.take().unwrap());
        wait_until_ready(&mut log);
        Prometheus {
            process,
            address,
            folder,
            _log: log,
        }
    }

    /// The value of an expression at an instant, which is in seconds.
    pub(super) fn value(&self, expression: &str, at: i64) -> Result<Vector, Refusal> {
        let query: String = form_urlencoded::byte_serialize(expression.as_bytes()).collect();
        let (code, body) = self.get(&format!("/api/v1/query?time={at}&query={query}")).unwrap();
        match code {
            200 => Ok(vector(&serde_json::from_str::<Value>(&body).unwrap()["data"])),
            400 => Err(Refusal::Invalid(body)),
            _ => Err(Refusal::Failed),
        }
    }

    fn get(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn wait_until_ready(log: &mut impl BufRead) {
    let is_ready = |line: &String| line.contains("Server is ready to receive web requests");
    let mut lines = log.lines().map(Result::unwrap);
    assert!(lines.any(|line| is_ready(&line)), "Prometheus ends before it is ready");
}

fn store(samples: &Path, folder: &Path) {
    let output = Command::new(testbed::find_or_build_promtool().unwrap())
        .args(["tsdb", "create-blocks-from", "openmetrics", "--quiet"])
        .args([samples, folder])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A vector or a scalar of Prometheus.
fn vector(data: &Value) -> Vector {
    let number = |sample: &Value| sample[1].as_str().unwrap().parse::<f64>().unwrap();
    if data["resultType"] == "scalar" {
        return Vector::from([(Labels::new(), number(&data["result"]))]);
    }
    let series = data["result"].as_array().unwrap().iter();
    let labels = |series: &Value| serde_json::from_value::<Labels>(series["metric"].clone()).unwrap();
    series
        .map(|series| (labels(series), number(&series["value"])))
        .collect()
}
