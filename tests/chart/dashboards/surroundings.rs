//! What surrounds the panels of every dashboard: variables, links, and annotations.

use serde_json::{Value, json};

use super::model::selected;
use crate::alerts;

/// The address that `cronwheel ui` prints by default. The chart replaces it by `metrics.dashboards.pageUrl`.
pub(super) const PAGE: &str = "http://127.0.0.1:8090";

/// Events that all panels show on their time axis.
pub(super) struct Annotation {
    pub(super) name: &'static str,
    color: &'static str,
    /// What one event says.
    text: &'static str,
    expression: &'static str,
    /// Whether the value is the instant of the event, in milliseconds.
    is_instant: bool,
}

/// The causes that an on-call person asks for first.
static ANNOTATIONS: [Annotation; 3] = [
    Annotation {
        name: "Restarts",
        color: "orange",
        text: "{{instance}} started",
        expression: "process_start_time_seconds{@} * 1000 and on (job, instance) cronwheel_build_info{@}",
        is_instant: true,
    },
    Annotation {
        name: "Shards move",
        color: "blue",
        text: "shards changed their leader",
        expression: "sum(changes(cronwheel_leader{@}[2m]))",
        is_instant: false,
    },
    Annotation {
        name: "Pages",
        color: "red",
        text: "{{alertname}} fires",
        expression: "sum by (alertname) (ALERTS{#, alertname=~\"Cronwheel.+\", severity=\"critical\", alertstate=\"firing\"})",
        is_instant: false,
    },
];

impl Annotation {
    /// The expression in the dashboards.
    pub(super) fn expression(&self) -> String {
        selected(self.expression)
    }
}

/// The annotations of every dashboard.
pub(super) fn annotations() -> &'static [Annotation] {
    &ANNOTATIONS
}

pub(super) fn annotations_json() -> Vec<Value> {
    let json = |annotation: &Annotation| {
        json!({
            "name": annotation.name, "enable": true, "hide": false, "iconColor": annotation.color,
            "datasource": {"type": "prometheus", "uid": "$datasource"},
            "expr": annotation.expression(), "step": "60s", "useValueForTime": annotation.is_instant,
            "titleFormat": annotation.name, "textFormat": annotation.text, "tagKeys": "",
        })
    };
    ANNOTATIONS.iter().map(json).collect()
}

/// The runbooks, the page, and the other dashboards with the same selection.
pub(super) fn links() -> Value {
    let link = |title: &str, url: &str, icon: &str, tooltip: &str| {
        json!({
            "type": "link", "title": title, "url": url, "icon": icon, "tooltip": tooltip, "tags": [],
            "targetBlank": true, "asDropdown": false, "includeVars": false, "keepTime": false,
        })
    };
    json!([
        link("Runbooks", &alerts::runbooks(), "doc", "What to do for each alert"),
        link("Page of the CronJobs", PAGE, "external link", "The page of cronwheel ui: every run and its reason"),
        {
            "type": "dashboards", "title": "cronwheel", "tags": ["cronwheel"], "url": "", "icon": "external link",
            "tooltip": "", "targetBlank": false, "asDropdown": true, "includeVars": true, "keepTime": true,
        },
    ])
}

/// The variables for the data source, and for the labels that select an installation and its replicas.
pub(super) fn variables() -> Value {
    let label = |name: &str, label: &str, selected: &str| {
        let query = format!("label_values(cronwheel_build_info{{{selected}}}, {name})");
        json!({
            "name": name, "label": label, "type": "query", "query": query, "definition": query, "refresh": 2, "sort": 1,
            "datasource": {"type": "prometheus", "uid": "$datasource"},
            "multi": true, "includeAll": true, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
        })
    };
    json!([
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        label("cluster", "Cluster", ""),
        label("job", "Job", r#"cluster=~"$cluster""#),
        label("instance", "Instance", r#"cluster=~"$cluster", job=~"$job""#),
    ])
}
