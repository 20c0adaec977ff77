//! The Grafana dashboards in `deploy/helm/cronwheel/files/dashboards`, which are generated from the definitions here.

mod api_cost;
mod columns;
mod details;
mod expected;
mod fixture;
mod fleet;
mod load_test;
mod model;
mod queries;
mod shards;
mod surroundings;

use std::collections::BTreeSet;

use cronwheel::telemetry::metrics::table;
use serde_json::{Value, json};

use self::model::{Dashboard, Kind};
use super::{alerts, chart, check_or_write, objects_of};

fn all() -> [Dashboard; 4] {
    [
        fleet::dashboard(),
        shards::dashboard(),
        api_cost::dashboard(),
        load_test::dashboard(),
    ]
}

#[test]
fn dashboard_files_are_up_to_date() {
    let folder = chart().join("files/dashboards");
    for dashboard in all() {
        check_or_write(&folder.join(format!("{}.json", dashboard.name)), &dashboard.text());
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), all().len());
}

/// The windows of the queries of a panel. A month is the period of the objective; five minutes are now.
fn windows_of(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Stat => &["$__range", "5m", "30d"],
        Kind::Table => &["$__range", "5m"],
        Kind::Lines | Kind::Heatmap => &["$__rate_interval"],
    }
}

#[test]
fn every_panel_has_a_description_a_unit_and_queries_of_selected_replicas() {
    for dashboard in all() {
        for panel in dashboard.panels() {
            let name = format!("{} / {}", dashboard.title, panel.title);
            assert!(panel.description.ends_with('.'), "{name}");
            assert!(!panel.unit.is_empty(), "{name}");
            assert!(panel.expressions().count() > 0, "{name}");
            for expression in panel.expressions() {
                assert_selected(&name, &expression);
                let windows = expression.split('[').skip(1);
                for window in windows.filter_map(|rest| rest.split(']').next()) {
                    assert!(windows_of(panel.kind).contains(&window), "{name}: {expression}");
                }
            }
        }
    }
    for annotation in surroundings::annotations() {
        assert_selected(annotation.name, &annotation.expression());
    }
}

/// Asserts that an expression selects only what the variables select. Alerts may have no instance, and the state of an
/// alert is joined with its selected labels.
fn assert_selected(name: &str, expression: &str) {
    for (before, selector) in expression.split('{').zip(expression.split('{').skip(1)) {
        let labels = if before.ends_with(" ALERTS") {
            r#"alertstate="firing"}"#
        } else if before.contains("ALERTS") {
            r#"cluster=~"$cluster", alertname=~"Cronwheel.+""#
        } else {
            r#"cluster=~"$cluster", job=~"$job", instance=~"$instance""#
        };
        assert!(selector.starts_with(labels), "{name}: {expression}");
    }
}

#[test]
fn every_number_has_colors_and_every_list_of_names_is_a_table_with_since() {
    for dashboard in all() {
        for panel in dashboard.panels() {
            let name = format!("{} / {}", dashboard.title, panel.title);
            let values: Vec<Option<f64>> = panel.steps.iter().map(|(value, _)| *value).collect();
            match panel.kind {
                Kind::Stat => assert!(panel.steps.len() >= 2, "{name}"),
                Kind::Table => {
                    let is_since = |column: &columns::Column| column.unit == columns::INSTANT;
                    assert!(panel.columns.iter().any(is_since), "{name}");
                    assert_eq!(panel.columns.len(), panel.queries.len(), "{name}");
                }
                Kind::Lines | Kind::Heatmap => {}
            }
            assert!(
                values.is_sorted() && values.first().is_none_or(Option::is_none),
                "{name}"
            );
            for (_, legend) in &panel.queries {
                let is_unbounded = ["cluster", "namespace", "cronjob", "pod"]
                    .iter()
                    .any(|label| legend.contains(label) && legend.contains("{{"));
                assert!(!is_unbounded, "{name}: {legend}");
            }
        }
    }
}

#[test]
fn dashboards_link_to_runbooks_to_the_page_and_to_each_other() {
    for dashboard in all() {
        let read: Value = serde_json::from_str(&dashboard.text()).unwrap();
        let urls: Vec<&Value> = read["links"]
            .as_array()
            .unwrap()
            .iter()
            .map(|link| &link["url"])
            .collect();
        assert_eq!(
            urls,
            [&json!(alerts::runbooks()), &json!(surroundings::PAGE), &json!("")]
        );
        assert_eq!(read["links"][2]["tags"], read["tags"]);
        for annotation in read["annotations"]["list"].as_array().unwrap() {
            assert_eq!(annotation["enable"], true);
        }
        for panel in dashboard.panels() {
            if let Some(alert) = panel.runbook {
                assert!(alerts::is_alert(alert), "{}: {alert}", panel.title);
            }
        }
    }
}

#[test]
fn dashboards_show_every_metric_and_no_other() {
    let mut displayed = BTreeSet::new();
    for dashboard in all() {
        for expression in dashboard
            .panels()
            .flat_map(|panel| panel.expressions().collect::<Vec<_>>())
        {
            let metrics = alerts::metrics_in(&expression);
            let is_of_alerts = expression.contains("ALERTS_FOR_STATE{");
            assert_eq!(metrics.is_empty(), is_of_alerts, "{expression}");
            for metric in metrics {
                let name = alerts::registered_name(&metric);
                displayed.insert(name.unwrap_or_else(|| panic!("{metric} in {expression}")));
            }
        }
    }
    let registered: BTreeSet<&str> = table::ALL.iter().map(|spec| spec.name).collect();
    assert_eq!(displayed, registered);
}

#[test]
fn panels_do_not_overlap_and_have_unique_ids() {
    for dashboard in all() {
        let read: Value = serde_json::from_str(&dashboard.text()).unwrap();
        let panels = read["panels"].as_array().unwrap();
        let mut cells = BTreeSet::new();
        let mut ids = BTreeSet::new();
        for panel in panels {
            let of = |name: &str| panel["gridPos"][name].as_u64().unwrap();
            assert!(of("x") + of("w") <= 24);
            for (x, y) in (of("x")..of("x") + of("w")).flat_map(|x| (of("y")..of("y") + of("h")).map(move |y| (x, y))) {
                assert!(cells.insert((x, y)), "{} covers another", panel["title"]);
            }
            assert!(ids.insert(panel["id"].as_u64().unwrap()));
        }
    }
}

#[test]
fn chart_has_a_config_map_for_each_dashboard() {
    let objects = objects_of(
        &json!({"metrics": {"dashboards": {"enabled": true, "loadTest": true, "annotations": {"folder": "Jobs"}}}}),
    );
    let maps: Vec<&Value> = objects.iter().filter(|object| object["kind"] == "ConfigMap").collect();
    assert_eq!(maps.len(), all().len());
    for dashboard in all() {
        let file = format!("{}.json", dashboard.name);
        let map = maps.iter().find(|map| map["data"].get(&file).is_some()).unwrap();
        assert_eq!(map["data"][&file], dashboard.text());
        assert_eq!(map["metadata"]["labels"]["grafana_dashboard"], "1");
        assert_eq!(map["metadata"]["annotations"]["folder"], "Jobs");
    }
    assert!(
        objects_of(&json!({}))
            .iter()
            .all(|object| object["kind"] != "ConfigMap")
    );
}
