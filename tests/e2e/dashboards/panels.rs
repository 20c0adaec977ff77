//! The panels of the dashboards, and their data.

use std::fs;

use serde_json::{Value, json};

use super::prometheus::Prometheus;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/cronwheel/files/dashboards");

/// An environment variable with the path of a file for the data of the panels, set by `make dashboard-pictures`.
const RESULTS: &str = "CRONWHEEL_DASHBOARD_RESULTS";
/// Seconds between two points of a graph, as Grafana would choose for a graph of this width.
const STEP: u64 = 5;

/// The query of a panel or of an annotation.
pub(super) struct Query {
    /// The file of the dashboard, without its extension.
    dashboard: String,
    /// The names of dashboard and panel.
    pub(super) name: String,
    place: Place,
    /// Whether the panel shows only the values of now.
    is_instant: bool,
    /// Whether it has no data while all is well.
    pub(super) is_empty_while_well: bool,
    expression: String,
}

/// Where the data of a query is shown.
enum Place {
    /// The panel of this id.
    Panel(u64),
    /// The annotation of this name.
    Annotation(String),
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
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        for panel in dashboard["panels"].as_array().unwrap() {
            found.extend(queries_of_panel(&name, panel));
        }
        for annotation in dashboard["annotations"]["list"].as_array().unwrap() {
            let title = annotation["name"].as_str().unwrap();
            let expression = annotation["expr"].as_str().unwrap();
            found.push(Query {
                dashboard: name.clone(),
                name: format!("{name} / {title}"),
                place: Place::Annotation(title.to_owned()),
                is_instant: false,
                is_empty_while_well: expression.contains("ALERTS"),
                expression: expression.to_owned(),
            });
        }
    }
    found
}

/// While all is well, no alert fires, and not every column of a table has a value.
fn queries_of_panel(dashboard: &str, panel: &Value) -> Vec<Query> {
    let queries = panel["targets"].as_array().into_iter().flatten();
    let query = |target: &Value| {
        let expression = target["expr"].as_str().unwrap();
        let is_further = panel["type"] == "table" && target["refId"] != "A";
        Query {
            dashboard: dashboard.to_owned(),
            name: format!("{dashboard} / {}", panel["title"]),
            place: Place::Panel(panel["id"].as_u64().unwrap()),
            is_instant: target["instant"] == true,
            is_empty_while_well: expression.contains("ALERTS") || is_further,
            expression: expression.to_owned(),
        }
    };
    queries.map(query).collect()
}

/// Writes the data of every panel between two instants, if [`RESULTS`] is set.
pub(super) fn write_results(prometheus: &Prometheus, from: u64, to: u64) {
    let Some(file) = std::env::var_os(RESULTS) else { return };
    let range = format!("{}s", to - from);
    let results: Vec<Value> = queries()
        .iter()
        .map(|query| {
            let expression = query.expression("1m", &range);
            let series = if query.is_instant {
                prometheus.query("query", &expression, &format!("&time={to}"))
            } else {
                let times = format!("&start={from}&end={to}&step={STEP}");
                prometheus.query("query_range", &expression, &times)
            };
            let (kind, place) = match &query.place {
                Place::Panel(id) => ("panel", json!(id)),
                Place::Annotation(name) => ("annotation", json!(name)),
            };
            json!({"dashboard": query.dashboard, kind: place, "series": series})
        })
        .collect();
    let text = json!({"from": from, "to": to, "results": results}).to_string();
    fs::write(file, text).unwrap();
}
