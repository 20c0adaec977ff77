//! The panels of the dashboards, and their data.

use std::fs;

use serde_json::{Value, json};

use super::prometheus::Prometheus;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/cronwheel/files/dashboards");

/// An environment variable with the path of a file for the data of the panels, set by `make dashboard-pictures`.
const RESULTS: &str = "CRONWHEEL_DASHBOARD_RESULTS";
/// Seconds between two points of a graph, as Grafana would choose for a graph of this width.
const STEP: u64 = 5;

/// The query of a panel.
pub(super) struct Query {
    /// The file of the dashboard, without its extension.
    dashboard: String,
    /// The names of dashboard and panel.
    pub(super) name: String,
    panel: u64,
    is_stat: bool,
    expression: String,
}

impl Query {
    /// The expression with these windows in place of Grafana's variables.
    pub(super) fn expression(&self, rate_interval: &str, range: &str) -> String {
        [
            ("$__rate_interval", rate_interval),
            ("$__range", range),
            ("$cluster", ".*"),
            ("$job", ".*"),
            ("$instance", ".*"),
        ]
        .into_iter()
        .fold(self.expression.clone(), |text, (variable, value)| {
            text.replace(variable, value)
        })
    }
}

pub(super) fn queries() -> Vec<Query> {
    let mut found = Vec::new();
    for entry in fs::read_dir(FOLDER).unwrap() {
        let path = entry.unwrap().path();
        let dashboard: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        for panel in dashboard["panels"].as_array().unwrap() {
            let queries = panel["targets"].as_array().into_iter().flatten();
            found.extend(queries.map(|target| Query {
                dashboard: path.file_stem().unwrap().to_string_lossy().into_owned(),
                name: format!("{} / {}", dashboard["title"], panel["title"]),
                panel: panel["id"].as_u64().unwrap(),
                is_stat: panel["type"] == "stat",
                expression: target["expr"].as_str().unwrap().to_owned(),
            }));
        }
    }
    found
}

/// Writes the data of every panel between two instants, if [`RESULTS`] is set.
pub(super) fn write_results(prometheus: &Prometheus, from: u64, to: u64) {
    let Some(file) = std::env::var_os(RESULTS) else { return };
    let range = format!("{}s", to - from);
    let results: Vec<Value> = queries()
        .iter()
        .map(|query| {
            let expression = query.expression("1m", &range);
            let series = if query.is_stat {
                prometheus.query("query", &expression, &format!("&time={to}"))
            } else {
                let times = format!("&start={from}&end={to}&step={STEP}");
                prometheus.query("query_range", &expression, &times)
            };
            json!({"dashboard": query.dashboard, "panel": query.panel, "series": series})
        })
        .collect();
    let text = json!({"from": from, "to": to, "results": results}).to_string();
    fs::write(file, text).unwrap();
}
