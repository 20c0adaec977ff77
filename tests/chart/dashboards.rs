//! The Grafana dashboards in `deploy/helm/cronwheel/files/dashboards`, which are generated from the definitions here.

mod api_cost;
mod expected;
mod fixture;
mod fleet;
mod load_test;
mod model;
mod queries;
mod shards;

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

#[test]
fn every_panel_has_a_description_a_unit_and_queries_of_selected_replicas() {
    for dashboard in all() {
        for panel in dashboard.panels() {
            let name = format!("{} / {}", dashboard.title, panel.title);
            assert!(panel.description.ends_with('.'), "{name}");
            assert!(!panel.unit.is_empty(), "{name}");
            assert!(panel.expressions().count() > 0, "{name}");
            for expression in panel.expressions() {
                for selector in expression.split('{').skip(1) {
                    let labels = r#"cluster=~"$cluster", job=~"$job", instance=~"$instance""#;
                    assert!(selector.starts_with(labels), "{name}: {expression}");
                }
                let windows = expression.split('[').skip(1);
                for window in windows.filter_map(|rest| rest.split(']').next()) {
                    let expected = if panel.kind == Kind::Stat {
                        "$__range"
                    } else {
                        "$__rate_interval"
                    };
                    assert_eq!(window, expected, "{name}: {expression}");
                }
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
            assert!(!metrics.is_empty(), "{expression}");
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
