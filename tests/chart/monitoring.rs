//! The objects for Prometheus and Grafana, apart from the rules.

use serde_json::{Value, json};

use super::{named, objects_of, render, the};

#[test]
fn service_monitor_selects_the_service_of_the_metrics() {
    let objects = objects_of(&json!({"metrics": {"serviceMonitor": {"enabled": true}}, "ui": {"enabled": true}}));
    let spec = &the(&objects, "ServiceMonitor")["spec"];
    let labels = |name: &str| named(&objects, "Service", name)["metadata"]["labels"].clone();
    let selects = |labels: &Value| {
        let selector = spec["selector"]["matchLabels"].as_object().unwrap();
        selector.iter().all(|(label, value)| labels[label] == *value)
    };
    assert!(selects(&labels("cronwheel")) && !selects(&labels("cronwheel-ui")));
    let port = &named(&objects, "Service", "cronwheel")["spec"]["ports"][0]["name"];
    assert_eq!(spec["endpoints"][0]["port"], *port);
    assert_eq!(spec["endpoints"][0]["path"], "/metrics");
}

#[test]
fn replicas_are_scraped_once() {
    for (metrics, reason) in [
        (
            json!({"serviceMonitor": {"enabled": true}, "podMonitor": {"enabled": true}}),
            "twice",
        ),
        (
            json!({"serviceMonitor": {"enabled": true}, "service": {"enabled": false}}),
            "metrics.service.enabled",
        ),
    ] {
        let error = render(&json!({ "metrics": metrics })).unwrap_err();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn monitors_relabel_targets_and_samples() {
    let relabelings = json!([{"targetLabel": "cluster", "replacement": "east"}]);
    let metric_relabelings = json!([{"action": "drop", "sourceLabels": ["__name__"], "regex": "process_.*"}]);
    for (name, kind, endpoints) in [
        ("podMonitor", "PodMonitor", "podMetricsEndpoints"),
        ("serviceMonitor", "ServiceMonitor", "endpoints"),
    ] {
        let values = json!({"enabled": true, "relabelings": relabelings, "metricRelabelings": metric_relabelings});
        let objects = objects_of(&json!({"metrics": {name: values}}));
        let endpoint = &the(&objects, kind)["spec"][endpoints][0];
        assert_eq!(endpoint["relabelings"], relabelings);
        assert_eq!(endpoint["metricRelabelings"], metric_relabelings);
    }
}

#[test]
fn dashboards_have_a_namespace_and_a_folder() {
    let dashboards = |more: Value| {
        let mut values = json!({"metrics": {"dashboards": more}});
        values["metrics"]["dashboards"]["enabled"] = json!(true);
        let mut objects = objects_of(&values);
        objects.retain(|object| object["kind"] == "ConfigMap");
        objects
    };
    for map in dashboards(json!({"namespace": "monitoring", "folder": "Jobs", "annotations": {"a": "b"}})) {
        assert_eq!(map["metadata"]["namespace"], "monitoring");
        assert_eq!(
            map["metadata"]["annotations"],
            json!({"grafana_folder": "Jobs", "a": "b"})
        );
    }
    let own = json!({"folder": "Jobs", "folderAnnotation": "k8s-sidecar-target-directory"});
    for map in dashboards(own) {
        let expected = json!({"k8s-sidecar-target-directory": "Jobs"});
        assert_eq!(map["metadata"]["annotations"], expected);
    }
    let by_default = dashboards(json!({}));
    assert!(
        by_default
            .iter()
            .all(|map| map["metadata"]["namespace"] == "kube-system")
    );
    assert!(
        by_default
            .iter()
            .all(|map| map["metadata"].get("annotations").is_none())
    );
}

#[test]
fn dashboard_of_load_tests_is_not_installed_by_default() {
    let names = |load_test: bool| {
        let values = json!({"metrics": {"dashboards": {"enabled": true, "loadTest": load_test}}});
        let mut objects = objects_of(&values);
        objects.retain(|object| object["kind"] == "ConfigMap");
        objects
            .iter()
            .filter_map(|map| map["metadata"]["name"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    let name = "cronwheel-dashboard-load-test".to_owned();
    assert!(!names(false).contains(&name) && names(true).contains(&name));
    assert_eq!(names(true).len(), names(false).len() + 1);
}

/// The texts of the dashboards with these values of `metrics`.
fn texts_of_dashboards(metrics: &Value) -> Vec<String> {
    let mut values = json!({"metrics": metrics});
    values["metrics"]["dashboards"]["enabled"] = json!(true);
    let objects = objects_of(&values);
    let maps = objects.iter().filter(|object| object["kind"] == "ConfigMap");
    maps.flat_map(|map| map["data"].as_object().unwrap().values())
        .map(|text| text.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn dashboards_have_the_links_and_the_objective_of_the_values() {
    let by_default = texts_of_dashboards(&json!({})).concat();
    let own = texts_of_dashboards(&json!({
        "dashboards": {"pageUrl": "https://cron.example/${cluster}/"},
        "prometheusRule": {"runbookUrl": "https://wiki.example/runbooks", "latenessSeconds": 0.5},
    }));
    let own = own.concat();
    for (former, new) in [
        ("http://127.0.0.1:8090", "https://cron.example/${cluster}"),
        (crate::alerts::runbooks().as_str(), "https://wiki.example/runbooks"),
        ("le=~\\\"5(", "le=~\\\"0.5("),
        ("within 5 s of", "within 0.5 s of"),
        ("\"value\": 5.0", "\"value\": 0.5\n"),
    ] {
        let n_links = by_default.matches(former).count();
        assert!(n_links > 0 && !own.contains(former), "{former}");
        assert_eq!(
            own.matches(new).count(),
            n_links + by_default.matches(new).count(),
            "{new}"
        );
    }
    assert_eq!(by_default.matches("\"value\": 5.0").count(), 1);
    for text in texts_of_dashboards(&json!({"prometheusRule": {"latenessSeconds": 10}})) {
        serde_json::from_str::<Value>(&text).unwrap();
    }
}
