//! Panels with tables: their labels, their values, and the parts of their JSON.

use serde_json::{Map, Value, json};

use super::model::{Panel, Step, thresholds};

/// The Grafana unit of instants, which are in milliseconds.
pub(super) const INSTANT: &str = "dateTimeAsIso";

/// A label of the series, as a column.
#[derive(Debug)]
pub(super) struct Label {
    name: &'static str,
    title: &'static str,
    /// The title and the address of the link of its cells.
    link: Option<(&'static str, String)>,
}

/// The values of one query, as a column.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) unit: &'static str,
    steps: Vec<Step>,
    /// The text and the colour of a line without a value.
    missing: Option<(&'static str, &'static str)>,
}

impl Panel {
    /// Adds a column for a label.
    pub(super) fn label(mut self, name: &'static str, title: &'static str) -> Panel {
        self.labels.push(Label {
            name,
            title,
            link: None,
        });
        self
    }

    /// Makes the cells of the last label links.
    pub(super) fn link(mut self, title: &'static str, url: String) -> Panel {
        self.labels.last_mut().unwrap().link = Some((title, url));
        self
    }

    /// Adds a query and a column for its values. The first query must have all lines of the table: Grafana names its
    /// values differently if the others return nothing.
    pub(super) fn column(mut self, title: &'static str, unit: &'static str, expression: impl Into<String>) -> Panel {
        self.columns.push(Column {
            title,
            unit,
            steps: Vec::new(),
            missing: None,
        });
        self.query(title, expression)
    }

    /// Colours the cells of the last column.
    pub(super) fn cells<const N: usize>(mut self, below: &'static str, steps: [(f64, &'static str); N]) -> Panel {
        let column = self.columns.last_mut().unwrap();
        column.steps = vec![(None, below)];
        column
            .steps
            .extend(steps.into_iter().map(|(value, color)| (Some(value), color)));
        self
    }

    /// The text and the colour of the cells of the last column without a value.
    pub(super) fn missing(mut self, text: &'static str, color: &'static str) -> Panel {
        self.columns.last_mut().unwrap().missing = Some((text, color));
        self
    }

    /// Joins the queries by their labels, names the columns and orders them: the labels, then the values.
    pub(super) fn transformations(&self) -> Value {
        let (mut names, mut places) = (Map::new(), Map::new());
        for (place, label) in self.labels.iter().enumerate() {
            names.insert(label.name.to_owned(), label.title.into());
            places.insert(label.name.to_owned(), place.into());
        }
        for ((index, column), query) in self.columns.iter().enumerate().zip('A'..='Z') {
            // Grafana omits the letter if only one query returns something, which is then the first one.
            let plain = (index == 0).then(|| "Value".to_owned());
            for name in [Some(format!("Value #{query}")), plain].into_iter().flatten() {
                names.insert(name.clone(), column.title.into());
                places.insert(name, (self.labels.len() + index).into());
            }
        }
        json!([
            {"id": "merge", "options": {}},
            {"id": "organize", "options": {
                "excludeByName": {"Time": true}, "renameByName": names, "indexByName": places,
            }},
        ])
    }

    /// Sorts by `Since`, the earliest first.
    pub(super) fn table_options(&self) -> Value {
        let order = self.columns.iter().find(|column| column.unit == INSTANT);
        let order: Vec<Value> = order
            .map(|column| json!({"displayName": column.title, "desc": false}))
            .into_iter()
            .collect();
        json!({
            "showHeader": true, "cellHeight": "sm", "sortBy": order,
            "footer": {"show": false, "reducer": ["sum"], "enablePagination": true},
        })
    }

    /// Units, colours and links of single columns; nothing for other panels.
    pub(super) fn overrides(&self) -> Vec<Value> {
        let with = |title: &str, properties: Vec<Value>| json!({"matcher": {"id": "byName", "options": title}, "properties": properties});
        let links = self.labels.iter().filter_map(|label| {
            let (title, url) = label.link.as_ref()?;
            let links = json!([{"title": title, "url": url, "targetBlank": true}]);
            Some(with(label.title, vec![json!({"id": "links", "value": links})]))
        });
        let values = self.columns.iter().map(|column| {
            let mut properties = vec![json!({"id": "unit", "value": column.unit})];
            // Counters are extrapolated to fractions.
            let decimals = match column.unit {
                "short" => Some(0),
                "percentunit" => Some(2),
                _ => None,
            };
            if let Some(decimals) = decimals {
                properties.push(json!({"id": "decimals", "value": decimals}));
            }
            if !column.steps.is_empty() {
                properties.push(json!({"id": "thresholds", "value": thresholds(&column.steps)}));
                properties.push(json!({"id": "custom.cellOptions", "value": {"type": "color-background"}}));
            }
            if let Some((text, color)) = column.missing {
                let result = json!({"text": text, "color": color});
                properties.push(json!({
                    "id": "mappings",
                    "value": [{"type": "special", "options": {"match": "null+nan", "result": result}}],
                }));
            }
            with(column.title, properties)
        });
        links.chain(values).collect()
    }
}
