//! The rules that the chart renders from its values.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use super::{SELECTOR, alerts, chart, home, in_file, rules, yaml};
use crate::{helm, objects, objects_of, render, root, tempfile, the};

/// The rules with these values, as a release in the namespace `team`.
pub(super) fn rendered(prometheus_rule: &Value) -> Vec<Value> {
    rules(&groups(prometheus_rule))
}

/// The same in their groups.
pub(super) fn groups(prometheus_rule: &Value) -> Value {
    let mut values = json!({"metrics": {"prometheusRule": {"enabled": true}}});
    for (name, value) in prometheus_rule.as_object().unwrap() {
        values["metrics"]["prometheusRule"][name] = value.clone();
    }
    let (file, chart) = (tempfile(&values.to_string()), chart());
    let arguments = [
        "template",
        "cronwheel",
        chart.to_str().unwrap(),
        "--namespace=team",
        "--values",
    ];
    let text = helm(&[&arguments[..], &[file.to_str().unwrap()]].concat()).unwrap();
    fs::remove_file(file).unwrap();
    the(&objects(&text), "PrometheusRule")["spec"].clone()
}

/// The alert of this name.
fn named<'r>(rules: &'r [Value], name: &str) -> Option<&'r Value> {
    rules.iter().find(|rule| rule["alert"] == name)
}

#[test]
fn chart_values_are_rendered_into_the_rules() {
    let rendered = rendered(&json!({
        "latenessSeconds": 0.5, "runbookUrl": "https://wiki.example/runbooks", "grafanaUrl": "https://grafana.example/",
        "alertLabels": {"team": "platform"},
    }));
    let former = in_file();
    assert_eq!(rendered.len(), former.len());
    for (rendered, former) in rendered.iter().zip(&former) {
        assert!(!rendered.to_string().contains("kube-system"), "{rendered}");
        let expected = former["expr"].as_str().unwrap();
        let expected = expected
            .replace(SELECTOR, "namespace=\"team\"")
            .replace("=~\"5(", "=~\"0.5(");
        assert_eq!(rendered["expr"].as_str().unwrap().trim(), expected.trim());
        if let Some(name) = former["alert"].as_str() {
            let expected = json!({"severity": former["labels"]["severity"], "team": "platform"});
            assert_eq!(rendered["labels"], expected);
            let (rendered, former) = (&rendered["annotations"], &former["annotations"]);
            let url = format!("https://wiki.example/runbooks#{}", name.to_lowercase());
            assert_eq!(rendered["runbook_url"], url);
            let path = former["dashboard_url"].as_str().unwrap();
            assert_eq!(rendered["dashboard_url"], format!("https://grafana.example{path}"));
            for text in ["summary", "description"] {
                assert_eq!(rendered[text], former[text]);
            }
        }
    }
    let in_seconds =
        |bound: u32| render(&json!({"metrics": {"prometheusRule": {"enabled": true, "latenessSeconds": bound}}}));
    assert!(in_seconds(3).is_err());
}

#[test]
fn rules_can_select_one_release_of_a_namespace() {
    let rendered = rendered(&json!({"job": "(.*/)?cronwheel"}));
    for (rendered, former) in rendered.iter().zip(&in_file()) {
        let expected = former["expr"].as_str().unwrap();
        let expected = expected.replace(SELECTOR, r#"namespace="team", job=~"(.*/)?cronwheel""#);
        assert_eq!(rendered["expr"].as_str().unwrap().trim(), expected.trim());
    }
    let invalid = json!({"metrics": {"prometheusRule": {"enabled": true, "job": "(cronwheel"}}});
    let error = render(&invalid).unwrap_err();
    assert!(
        error.contains("$values.job") && error.contains("missing closing )"),
        "{error}"
    );
}

#[test]
fn links_of_the_default_values_are_those_of_the_file() {
    let objects = objects_of(&json!({"metrics": {"prometheusRule": {"enabled": true}}}));
    let by_default = rules(&the(&objects, "PrometheusRule")["spec"]);
    for (rendered, former) in alerts(&by_default).zip(alerts(&in_file())) {
        assert_eq!(rendered["annotations"], former["annotations"]);
    }
}

/// Addresses that YAML or JSON would read as something else, if they were not quoted, are either refused or rendered.
#[test]
fn addresses_with_any_letters_are_in_every_link_or_are_refused() {
    let with = |address: &str| {
        json!({"metrics": {
            "prometheusRule": {"enabled": true, "runbookUrl": address, "grafanaUrl": address},
            "dashboards": {"enabled": true, "pageUrl": address},
        }})
    };
    for address in ["https://a.example/it's", "https://a.example/{b}&c=[d]?%20,*!|>@`"] {
        let objects = objects_of(&with(address));
        let rules = rules(&the(&objects, "PrometheusRule")["spec"]);
        assert_eq!(rules.len(), in_file().len(), "{address}");
        for alert in alerts(&rules) {
            for link in ["runbook_url", "dashboard_url"] {
                let link = alert["annotations"][link].as_str().unwrap();
                assert!(link.starts_with(address), "{link}");
            }
        }
        let boards = objects.iter().filter(|object| object["kind"] == "ConfigMap");
        let mut n_boards = 0;
        for text in boards.flat_map(|map| map["data"].as_object().unwrap().values()) {
            let board: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
            assert!(board.to_string().contains(address), "{address}");
            n_boards += 1;
        }
        assert!(n_boards > 2, "{n_boards}");
    }
    for address in [
        "https://a.example/b: c",
        "https://a.example/b #c",
        "https://a.example/\"b",
        "https://a.example/b\\c",
        "a: b",
    ] {
        let error = render(&with(address)).unwrap_err();
        for name in ["runbookUrl", "grafanaUrl", "pageUrl"] {
            assert!(error.contains(name), "{address}: {error}");
        }
    }
}

#[test]
fn labels_and_annotations_of_the_values_win() {
    let rendered = rendered(&json!({
        "alertLabels": {"severity": "page", "team": "platform"}, "alertAnnotations": {"summary": "Ours.", "channel": "#cron"},
        "alerts": {
            "CronwheelFences": {
                "severity": "info", "for": "1h", "labels": {"team": "shop"}, "annotations": {"summary": "Mine.", "a": "b"},
            },
            "CronwheelAbsent": {"labels": {"severity": "sms"}},
        },
    }));
    let fences = named(&rendered, "CronwheelFences").unwrap();
    assert_eq!(fences["labels"], json!({"severity": "info", "team": "shop"}));
    assert_eq!(fences["for"], "1h");
    let annotations = &fences["annotations"];
    let of = |name: &str| annotations[name].as_str().unwrap();
    assert_eq!([of("summary"), of("channel"), of("a")], ["Mine.", "#cron", "b"]);
    let absent = named(&rendered, "CronwheelAbsent").unwrap();
    assert_eq!(absent["labels"], json!({"severity": "sms", "team": "platform"}));
    assert_eq!(absent["for"], "5m");
    let other = named(&rendered, "CronwheelThrottled").unwrap();
    assert_eq!(other["labels"]["severity"], "page");
    assert_eq!(other["annotations"]["summary"], "Ours.");
}

#[test]
fn alert_can_be_disabled() {
    let rendered = rendered(&json!({"alerts": {
        "CronwheelCronJobInTrouble": {"enabled": false}, "CronwheelFences": {"enabled": true},
    }}));
    assert_eq!(named(&rendered, "CronwheelCronJobInTrouble"), None);
    assert!(named(&rendered, "CronwheelFences").is_some());
    assert_eq!(rendered.len(), in_file().len() - 1);
}

#[test]
fn group_without_alerts_is_left_out() {
    let disabled = json!({"enabled": false});
    let alerts: serde_json::Map<String, Value> = alerts(&in_file())
        .map(|alert| (alert["alert"].as_str().unwrap().to_owned(), disabled.clone()))
        .collect();
    let spec = groups(&json!({ "alerts": alerts }));
    let left: Vec<&Value> = spec["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| &group["name"])
        .collect();
    assert_eq!(left, ["cronwheel-runs"]);
}

#[test]
fn schema_has_the_names_of_all_alerts() {
    let schema: Value = serde_json::from_str(&fs::read_to_string(chart().join("values.schema.json")).unwrap()).unwrap();
    let path = "/properties/metrics/properties/prometheusRule/properties/alerts/properties";
    let in_schema = schema.pointer(path).unwrap().as_object().unwrap();
    assert!(
        in_schema
            .values()
            .all(|alert| *alert == json!({"$ref": "#/$defs/alert"}))
    );
    let in_schema: BTreeSet<&str> = in_schema.keys().map(String::as_str).collect();
    let rules = in_file();
    let names: BTreeSet<&str> = alerts(&rules).map(|alert| alert["alert"].as_str().unwrap()).collect();
    assert_eq!(in_schema, names);
    for (wrong, path, reason) in [
        (
            json!({"CronwheelFence": {"enabled": false}}),
            "",
            "'CronwheelFence' not allowed",
        ),
        (
            json!({"CronwheelFences": {"enable": false}}),
            "/CronwheelFences",
            "'enable' not allowed",
        ),
        (
            json!({"CronwheelFences": {"for": "5 minutes"}}),
            "/CronwheelFences/for",
            "does not match pattern",
        ),
    ] {
        let error = render(&json!({"metrics": {"prometheusRule": {"alerts": wrong}}})).unwrap_err();
        let at = format!("at '/metrics/prometheusRule/alerts{path}': ");
        assert!(error.contains(&at) && error.contains(reason), "{wrong}: {error}");
    }
}

#[test]
fn allowed_lateness_values_are_bounds_of_the_histogram() {
    let schema: Value = serde_json::from_str(&fs::read_to_string(chart().join("values.schema.json")).unwrap()).unwrap();
    let path = "/properties/metrics/properties/prometheusRule/properties/latenessSeconds/enum";
    let text = cronwheel::telemetry::metrics::Metrics::register()
        .render(jiff::Timestamp::UNIX_EPOCH)
        .unwrap();
    for bound in schema.pointer(path).unwrap().as_array().unwrap() {
        let series = format!("cronwheel_lateness_seconds_bucket{{le=\"{bound}\"}}");
        assert!(text.contains(&series), "{series}");
    }
}

#[test]
fn links_of_the_chart_name_files_of_the_project() {
    let home = home();
    let chart = yaml(&chart().join("Chart.yaml"));
    let text = chart.to_string();
    let mut n_links = 0;
    for rest in text.split(&format!("{home}/")).skip(1) {
        let end = rest.find(['"', '\\', '#']).unwrap();
        assert!(root().join(&rest[..end]).is_file(), "{}", &rest[..end]);
        n_links += 1;
    }
    assert!(n_links >= 4, "{n_links} links");
}
