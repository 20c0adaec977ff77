//! Dashboards of Grafana as data, and their JSON.

use serde_json::{Value, json};

use super::{
    columns::{Column, Label},
    surroundings,
};
use crate::alerts;

/// The placeholders in expressions for the selectors with the variables of a dashboard: of cronwheel's own series, and of
/// alerts, which have no instance.
const SELECTORS: [(char, &str); 2] = [
    ('@', r#"cluster=~"$cluster", job=~"$job", instance=~"$instance""#),
    ('#', r#"cluster=~"$cluster""#),
];
/// The width of a dashboard in columns.
const COLUMNS: usize = 24;

/// How a panel draws its queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One large number on the colour of its threshold.
    Stat,
    /// Lines over time.
    Lines,
    /// The buckets of a histogram over time.
    Heatmap,
    /// The series of now, one in each line.
    Table,
}

/// A colour from a value on. The first step of a panel has no value.
pub(super) type Step = (Option<f64>, &'static str);

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
    /// The number of decimals; as Grafana chooses if `None`.
    decimals: Option<u8>,
    /// The width in columns; its share of the line if 0.
    width: usize,
    /// The colours; none if empty.
    pub(super) steps: Vec<Step>,
    /// The alert whose section in the runbooks the panel links to.
    pub(super) runbook: Option<&'static str>,
    /// Expressions with placeholders for the selected labels, and the legends of their lines.
    pub(super) queries: Vec<(String, &'static str)>,
    /// The labels that a table shows.
    pub(super) labels: Vec<Label>,
    /// The values that a table shows, one for each query.
    pub(super) columns: Vec<Column>,
}

/// A panel with lines.
pub(super) fn lines(title: &'static str, unit: &'static str, description: &'static str) -> Panel {
    Panel {
        title,
        description,
        kind: Kind::Lines,
        unit,
        is_signed: false,
        decimals: None,
        width: 0,
        steps: Vec::new(),
        runbook: None,
        queries: Vec::new(),
        labels: Vec::new(),
        columns: Vec::new(),
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

/// A panel with a table.
pub(super) fn table(title: &'static str, description: &'static str) -> Panel {
    Panel {
        kind: Kind::Table,
        ..lines(title, "short", description)
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

    /// Sets the number of decimals: none for counters, which are extrapolated to fractions.
    pub(super) fn decimals(mut self, decimals: u8) -> Panel {
        self.decimals = Some(decimals);
        self
    }

    /// Sets the width in columns.
    pub(super) fn width(mut self, width: usize) -> Panel {
        self.width = width;
        self
    }

    /// Sets the colour below the first step, and the colours from these values on.
    pub(super) fn colors<const N: usize>(mut self, below: &'static str, steps: [(f64, &'static str); N]) -> Panel {
        self.steps = vec![(None, below)];
        self.steps
            .extend(steps.into_iter().map(|(value, color)| (Some(value), color)));
        self
    }

    /// Links to the section of an alert in the runbooks.
    pub(super) fn runbook(mut self, alert: &'static str) -> Panel {
        self.runbook = Some(alert);
        self
    }

    /// The same, and shows the value at which the alert fires in red.
    pub(super) fn alert(self, alert: &'static str) -> Panel {
        let mut panel = self.runbook(alert);
        if panel.steps.is_empty() {
            panel.steps.push((None, "green"));
        }
        panel.steps.push((Some(alerts::limit_of(alert)), "red"));
        panel
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
        self.queries.iter().map(|(expression, _)| selected(expression))
    }

    /// Whether its queries ask only for the values of now.
    fn is_instant(&self) -> bool {
        matches!(self.kind, Kind::Stat | Kind::Table)
    }

    fn targets(&self) -> Vec<Value> {
        let format = match self.kind {
            Kind::Stat | Kind::Lines => "time_series",
            Kind::Heatmap => "heatmap",
            Kind::Table => "table",
        };
        let legends = self.queries.iter().map(|(_, legend)| *legend);
        let targets = self.expressions().zip(legends).zip('A'..='Z');
        targets
            .map(|((expression, legend), name)| {
                json!({
                    "datasource": {"type": "prometheus", "uid": "$datasource"},
                    "expr": expression, "legendFormat": legend, "refId": name.to_string(), "format": format,
                    "instant": self.is_instant(), "range": !self.is_instant(),
                })
            })
            .collect()
    }

    fn json(&self, id: usize, [x, y, width, height]: [usize; 4]) -> Value {
        let mut defaults = json!({"unit": self.unit});
        if !self.is_signed {
            defaults["min"] = 0.into();
        }
        if let Some(decimals) = self.decimals {
            defaults["decimals"] = decimals.into();
        }
        if !self.steps.is_empty() {
            defaults["thresholds"] = thresholds(&self.steps);
        }
        let mut panel = json!({
            "id": id, "title": self.title, "description": self.description,
            "datasource": {"type": "prometheus", "uid": "$datasource"},
            "gridPos": {"x": x, "y": y, "w": width, "h": height},
            "targets": self.targets(),
        });
        let (kind, options) = match self.kind {
            Kind::Stat => {
                defaults["color"] = json!({"mode": "thresholds"});
                (
                    "stat",
                    json!({
                        "reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "background", "graphMode": "none",
                    }),
                )
            }
            Kind::Lines => {
                if !self.steps.is_empty() {
                    defaults["custom"] = json!({"thresholdsStyle": {"mode": "dashed"}});
                }
                (
                    "timeseries",
                    json!({"legend": self.legend(), "tooltip": {"mode": "multi", "sort": "desc"}}),
                )
            }
            Kind::Heatmap => ("heatmap", json!({"calculate": false, "yAxis": {"unit": self.unit}})),
            Kind::Table => {
                panel["transformations"] = self.transformations();
                ("table", self.table_options())
            }
        };
        panel["type"] = kind.into();
        panel["options"] = options;
        panel["fieldConfig"] = json!({"defaults": defaults, "overrides": self.overrides()});
        if let Some(alert) = self.runbook {
            panel["links"] = json!([{
                "title": format!("Runbook of {alert}"), "targetBlank": true,
                "url": format!("{}#{}", alerts::runbooks(), alert.to_lowercase()),
            }]);
        }
        panel
    }

    /// Lines of single replicas are many in a large fleet: their legend is a table, the largest first.
    fn legend(&self) -> Value {
        if self.queries.iter().any(|(_, legend)| legend.contains("{{instance}}")) {
            json!({
                "showLegend": true, "displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"],
                "sortBy": "Max", "sortDesc": true,
            })
        } else {
            json!({"showLegend": true, "displayMode": "list", "placement": "bottom", "calcs": []})
        }
    }
}

/// An expression with the selectors in place of the placeholders.
pub(super) fn selected(expression: &str) -> String {
    SELECTORS
        .iter()
        .fold(expression.to_owned(), |text, (placeholder, selector)| {
            text.replace(*placeholder, selector)
        })
}

/// The colours of a panel or of a column.
pub(super) fn thresholds(steps: &[Step]) -> Value {
    let steps: Vec<Value> = steps
        .iter()
        .map(|(value, color)| json!({"value": value, "color": color}))
        .collect();
    json!({"mode": "absolute", "steps": steps})
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
            "time": {"from": "now-3h", "to": "now"}, "refresh": "1m", "timezone": "",
            "templating": {"list": surroundings::variables()},
            "annotations": {"list": surroundings::annotations_json()},
            "links": surroundings::links(),
            "panels": self.placed(),
        });
        serde_json::to_string_pretty(&dashboard).unwrap() + "\n"
    }

    /// The panels with their positions. In a row, stat panels share the first line, then two to four graphs or tables
    /// share each line.
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
            let drawings_per_line = if drawings.len() == 4 { 4 } else { 3 };
            for (panels, per_line, height) in [(stats, 8, 3), (drawings, drawings_per_line, 8)] {
                for line in panels.chunks(per_line) {
                    let mut x = 0;
                    for panel in line {
                        let width = if panel.width > 0 {
                            panel.width
                        } else {
                            COLUMNS / line.len()
                        };
                        let id = placed.len() + 1;
                        placed.push(panel.json(id, [x, y, width, height]));
                        x += width;
                    }
                    y += height;
                }
            }
        }
        placed
    }
}
