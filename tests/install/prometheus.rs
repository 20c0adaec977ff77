//! A Prometheus that scrapes the Pods on the nodes every second.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{
        Arc, Mutex,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use testbed::{Instance, PrometheusClient};

use crate::node::Processes;

/// The port on which the Pods listen, and an address on which no process listens.
const PORT: u16 = 8080;
const NO_ADDRESS: &str = "127.0.0.1:9";
/// The interval between polls of the Pods.
const DISCOVERY_INTERVAL: Duration = Duration::from_millis(300);

/// One series of a result: its labels and its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) value: f64,
}

/// The series that a query returns. `None` if Prometheus does not respond.
pub(crate) fn samples(client: &PrometheusClient, expression: &str) -> Option<Vec<Sample>> {
    let (code, body) = client.query("query", expression, "")?;
    let response: Value = serde_json::from_str(&body).ok().filter(|_| code == 200)?;
    let series = response["data"]["result"].as_array()?;
    series.iter().map(sample).collect()
}

fn sample(series: &Value) -> Option<Sample> {
    let labels = series["metric"].as_object()?.iter();
    let labels = labels.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    Some(Sample {
        labels: labels.collect(),
        value: series["value"][1].as_str()?.parse().ok()?,
    })
}

/// A Prometheus process and the discovery of its targets. Dropping it ends both.
#[derive(Debug)]
pub(crate) struct Prometheus {
    server: testbed::Prometheus,
    lost: Arc<Mutex<Option<String>>>,
    stop: Option<mpsc::Sender<()>>,
    discovery: Option<thread::JoinHandle<()>>,
}

impl Prometheus {
    /// Starts Prometheus and waits until it responds. Its targets are the running containers on the nodes.
    pub(crate) fn start(instance: &Instance, processes: Processes) -> Prometheus {
        let folder = instance.folder().join("prometheus");
        fs::create_dir_all(&folder).unwrap();
        let targets = folder.join("targets.json");
        write_targets(&targets, &json!([]));
        let configuration = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{
                "job_name": "cronwheel",
                "file_sd_configs": [{"files": [targets], "refresh_interval": "1s"}],
            }],
        });
        let server = testbed::Prometheus::start(&folder, &configuration.to_string(), &[]).unwrap();
        instance.attach("prometheus", server.id()).unwrap();
        let lost = Arc::<Mutex<Option<String>>>::default();
        let (stop, stopped) = mpsc::channel();
        let shared = Arc::clone(&lost);
        let discovery = thread::spawn(move || discover(&targets, &processes, &shared, &stopped));
        Prometheus {
            server,
            lost,
            stop: Some(stop),
            discovery: Some(discovery),
        }
    }

    pub(crate) fn client(&self) -> &PrometheusClient {
        self.server.client()
    }

    /// Makes every scrape of this Pod fail. With `None`, no scrape fails.
    pub(crate) fn lose(&self, pod: Option<&str>) {
        *self.lost.lock().unwrap() = pod.map(str::to_owned);
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(discovery) = self.discovery.take() {
            let _ = discovery.join();
        }
    }
}

/// Writes the targets whenever they change, with the labels that a `PodMonitor` gives them.
fn discover(file: &Path, processes: &Processes, lost: &Mutex<Option<String>>, stopped: &mpsc::Receiver<()>) {
    let mut written = json!([]);
    while stopped.recv_timeout(DISCOVERY_INTERVAL) == Err(RecvTimeoutError::Timeout) {
        let lost = lost.lock().unwrap().clone();
        let processes = processes.lock().unwrap().clone();
        let targets = processes.iter().map(|(pod, process)| {
            let address = if lost.as_ref() == Some(pod) {
                NO_ADDRESS.to_owned()
            } else {
                format!("{}:{PORT}", process.address)
            };
            json!({"targets": [address], "labels": {"namespace": process.namespace, "pod": pod}})
        });
        let targets: Value = targets.collect();
        if targets != written {
            write_targets(file, &targets);
            written = targets;
        }
    }
}

/// Replaces the file atomically, so that Prometheus never reads a part of it.
fn write_targets(file: &Path, targets: &Value) {
    let new = file.with_extension("new");
    fs::write(&new, targets.to_string()).unwrap();
    fs::rename(&new, file).unwrap();
}
