//! The Prometheus that scrapes the replicas, and its answers.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

pub(super) const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/cronwheel/files/alerts.yaml");

/// It is killed on drop.
pub(super) struct Prometheus {
    process: Child,
    address: String,
}

impl Prometheus {
    /// Starts it with our rules. It scrapes these addresses every second.
    pub(super) fn start(folder: &Path, address: &str, replicas: &[String]) -> Prometheus {
        let config = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "5s"},
            "rule_files": [ALERTS],
            "scrape_configs": [{
                "job_name": "cronwheel",
                "static_configs": [{"targets": replicas, "labels": {"namespace": "kube-system"}}],
            }],
        });
        let file = folder.join("prometheus.yaml");
        fs::write(&file, config.to_string()).unwrap();
        let process = Command::new(testbed::find_or_build_prometheus().unwrap())
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .current_dir(folder)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Prometheus {
            process,
            address: address.to_owned(),
        }
    }

    /// The values that a query returns, without NaN.
    pub(super) fn values(&self, expression: &str) -> Vec<f64> {
        let series = self.answer("query", expression, "");
        let value = |series: &Value| series["value"][1].as_str().unwrap().parse::<f64>().unwrap();
        series
            .as_array()
            .unwrap()
            .iter()
            .map(value)
            .filter(|value| value.is_finite())
            .collect()
    }

    /// The result of a query, with more parameters.
    pub(super) fn answer(&self, path: &str, expression: &str, more: &str) -> Value {
        let query: String = form_urlencoded::byte_serialize(expression.as_bytes()).collect();
        let body = get(&self.address, &format!("/api/v1/{path}?query={query}{more}"));
        let body = body.unwrap_or_else(|| panic!("Prometheus refuses {expression}"));
        let mut answer: Value = serde_json::from_str(&body).unwrap();
        answer["data"]["result"].take()
    }

    /// The rules of all groups, with their states.
    pub(super) fn rules(&self) -> Vec<Value> {
        let answer: Value = serde_json::from_str(&get(&self.address, "/api/v1/rules").unwrap()).unwrap();
        let groups = answer["data"]["groups"].as_array().unwrap();
        groups
            .iter()
            .flat_map(|group| group["rules"].as_array().unwrap().clone())
            .collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The body of a 200 response. `None` otherwise.
pub(super) fn get(address: &str, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    head.split(' ')
        .nth(1)
        .is_some_and(|code| code == "200")
        .then(|| body.to_owned())
}
