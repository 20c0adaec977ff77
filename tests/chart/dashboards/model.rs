//! Dashboards of Grafana as data, and their JSON.

use serde_json::{Value, json};

/// The placeholder in expressions for the selectors with the variables of a dashboard.
const SELECTED: &str = "@";
const SELECTOR: &str = r#"cluster=~"$cluster", job=~"$job", instance=~"$instance""#;
/// The width of a dashboard in columns.
const COLUMNS: usize = 24;

/// How a panel draws its queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One large number.
    Stat,
    /// Lines over time.
    Lines,
    /// The buckets of a histogram over time.
    Heatmap,
}

/// One panel.
#[derive(Debug)]
pub(super) struct Panel {
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) kind: Kind,
    /// A Grafana unit.
    pub(super) unit: &'static str,
    /// Whether values may be negative.
    is_signed: bool,
    /// Expressions with `@` for the selected labels, and the legends of their lines.
    queries: Vec<(String, &'static str)>,
}

/// A panel with lines.
pub(super) fn lines(title: &'static str, unit: &'static str, description: &'static str) -> Panel {
    Panel {
        title,
        description,
        kind: Kind::Lines,
        unit,
        is_signed: false,
        queries: Vec::new(),
    }
}

/// A panel with one number.
pub(super) fn stat(title: &'static str, unit: &'static str, description: &'static str) -> Panel {
    Panel {
        kind: Kind::Stat,
        ..lines(title, unit, description)
    }
}

/// A panel with the buckets of a histogram.
pub(super) fn heatmap(title: &'static str, unit: &'static str, description: &'static str) -> Panel {
    Panel {
        kind: Kind::Heatmap,
        ..lines(title, unit, description)
    }
}

impl Panel {
    /// Adds a query.
    pub(super) fn query(mut self, legend: &'static str, expression: impl Into<String>) -> Panel {
        self.queries.push((expression.into(), legend));
        self
    }

    /// Values may be negative.
    pub(super) fn signed(mut self) -> Panel {
        self.is_signed = true;
        self
    }

    /// Adds the median and the 99th percentile of a histogram, grouped by labels unless `by` is empty.
    pub(super) fn quantiles(self, histogram: &str, by: &'static str) -> Panel {
        let (labels, legends) = match by {
            "" => ("le".to_owned(), ["p50", "p99"]),
            "side" => ("le, side".to_owned(), ["{{side}} p50", "{{side}} p99"]),
            other => (
                format!("le, {other}"),
                ["{{verb}} {{resource}} p50", "{{verb}} {{resource}} p99"],
            ),
        };
        let of = |quantile: &str| {
            format!(
                "histogram_quantile({quantile}, sum by ({labels}) (rate({histogram}_bucket{{@}}[$__rate_interval])))"
            )
        };
        self.query(legends[0], of("0.5")).query(legends[1], of("0.99"))
    }

    /// The expressions in the dashboard.
    pub(super) fn expressions(&self) -> impl Iterator<Item = String> {
        self.queries
            .iter()
            .map(|(expression, _)| expression.replace(SELECTED, SELECTOR))
    }

    fn json(&self, id: usize, [x, y, width, height]: [usize; 4]) -> Value {
        let is_heatmap = self.kind == Kind::Heatmap;
        let legends = self.queries.iter().map(|(_, legend)| *legend);
        let targets = self.expressions().zip(legends).zip('A'..='Z');
        let targets: Vec<Value> = targets
            .map(|((expression, legend), name)| {
                json!({
                    "datasource": {"type": "prometheus", "uid": "$datasource"},
                    "expr": expression, "legendFormat": legend, "refId": name.to_string(),
                    "format": if is_heatmap { "heatmap" } else { "time_series" },
                })
            })
            .collect();
        let mut panel = json!({
            "id": id, "title": self.title, "description": self.description,
            "datasource": {"type": "prometheus", "uid": "$datasource"},
            "gridPos": {"x": x, "y": y, "w": width, "h": height},
            "fieldConfig": {"defaults": {"unit": self.unit}, "overrides": []},
            "targets": targets,
        });
        if !self.is_signed {
            panel["fieldConfig"]["defaults"]["min"] = 0.into();
        }
        let (kind, options) = match self.kind {
            Kind::Stat => (
                "stat",
                json!({"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "none"}),
            ),
            Kind::Lines => (
                "timeseries",
                json!({"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}}),
            ),
            Kind::Heatmap => ("heatmap", json!({"calculate": false, "yAxis": {"unit": self.unit}})),
        };
        panel["type"] = kind.into();
        panel["options"] = options;
        panel
    }
}

/// A row of a dashboard with its panels.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) title: &'static str,
    pub(super) panels: Vec<Panel>,
}

/// A row.
pub(super) fn row<const N: usize>(title: &'static str, panels: [Panel; N]) -> Row {
    Row {
        title,
        panels: panels.into(),
    }
}

/// One dashboard.
#[derive(Debug)]
pub(super) struct Dashboard {
    /// The name of the file, without the extension. With the prefix `cronwheel-`, it is the uid.
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) rows: Vec<Row>,
}

impl Dashboard {
    pub(super) fn panels(&self) -> impl Iterator<Item = &Panel> {
        self.rows.iter().flat_map(|row| &row.panels)
    }

    /// The text of its file.
    pub(super) fn text(&self) -> String {
        let dashboard = json!({
            "uid": format!("cronwheel-{}", self.name.replace('_', "-")),
            "title": self.title, "description": self.description, "tags": ["cronwheel"],
            "schemaVersion": 39, "version": 1, "editable": true, "graphTooltip": 1,
            "time": {"from": "now-3h", "to": "now"}, "refresh": "30s", "timezone": "",
            "templating": {"list": variables()}, "annotations": {"list": []}, "links": [],
            "panels": self.placed(),
        });
        serde_json::to_string_pretty(&dashboard).unwrap() + "\n"
    }

    /// The panels with their positions. In a row, stat panels share the first line, and two or three graphs share each
    /// other
    fn placed(&self) -> Vec<Value> {
        let (mut placed, mut y) = (Vec::new(), 0);
        for row in &self.rows {
            let id = placed.len() + 1;
            placed.push(json!({
                "id": id, "type": "row", "title": row.title, "collapsed": false, "panels": [],
                "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
            }));
            y += 1;
            let (stats, drawings): (Vec<_>, Vec<_>) = row.panels.iter().partition(|panel| panel.kind == Kind::Stat);
            for (panels, per_line, height) in [(stats, 6, 4), (drawings, 3, 8)] {
                for line in panels.chunks(per_line) {
                    let width = COLUMNS / line.len();
                    for (position, panel) in line.iter().enumerate() {
                        let id = placed.len() + 1;
                        placed.push(panel.json(id, [position * width, y, width, height]));
                    }
                    y += height;
                }
            }
        }
        placed
    }
}

/// The variables for the data source, and for the labels that select an installation and its replicas.
fn variables() -> Value {
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
