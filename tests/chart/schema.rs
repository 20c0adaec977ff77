//! `values.schema.json` has exactly the existing values, and refuses others.

use std::fs;

use clap::Parser as _;
use cronwheel::cli::args::Cli;
use serde_json::{Value, json};

use super::{chart, render, render_as, values::has_no_default};

/// The only open object: a parent chart shares other values in it.
const OPEN: &str = "global";

/// The schema. In place of the names of all alerts, which have the same properties, it allows any.
pub(super) fn schema() -> Value {
    let mut schema: Value =
        serde_json::from_str(&fs::read_to_string(chart().join("values.schema.json")).unwrap()).unwrap();
    let alert = schema["$defs"]["alert"].clone();
    let path = "/properties/metrics/properties/prometheusRule/properties/alerts";
    *schema.pointer_mut(path).unwrap() = json!({"type": "object", "additionalProperties": alert});
    schema
}

pub(super) fn values() -> Value {
    serde_saphyr::from_str(&fs::read_to_string(chart().join("values.yaml")).unwrap()).unwrap()
}

/// Calls `visit` with path, schema and value of every object with known properties.
fn walk(path: &str, schema: &Value, value: &Value, visit: &mut dyn FnMut(&str, &Value, &Value)) {
    let Some(properties) = schema["properties"].as_object() else {
        return;
    };
    visit(path, schema, value);
    for (name, property) in properties {
        let path = format!("{path}.{name}");
        walk(path.trim_start_matches('.'), property, &value[name], visit);
    }
}

#[test]
fn schema_properties_match_the_default_values() {
    let mut n_objects = 0;
    walk("", &schema(), &values(), &mut |path, schema, value| {
        n_objects += 1;
        let is_closed = schema["additionalProperties"] == false;
        assert_eq!(is_closed, path != OPEN, "{path}");
        for name in schema["properties"].as_object().unwrap().keys() {
            let path = format!("{path}.{name}");
            let path = path.trim_start_matches('.');
            let has_default = value.get(name).is_some();
            assert!(has_default || has_no_default(path), "{path} has no default");
        }
    });
    assert!(n_objects > 15, "{n_objects}");
}

#[test]
fn unknown_value_is_refused_at_every_level() {
    let mut paths = Vec::new();
    walk("", &schema(), &values(), &mut |path, _, _| paths.push(path.to_owned()));
    for path in paths.into_iter().filter(|path| path != OPEN) {
        let parents = path.split('.').rev().filter(|name| !name.is_empty());
        let typo = parents.fold(json!({"replicasCount": 1}), |inner, name| json!({ name: inner }));
        let error = render(&typo).unwrap_err();
        assert!(error.contains("'replicasCount' not allowed"), "{path}: {error}");
    }
}

#[test]
fn invalid_values_are_refused() {
    for values in [
        json!({"controller": {"installation": "Team_A"}}),
        json!({"controller": {"maxInflight": 321}}),
        json!({"controller": {"namespaces": ["a", "a"]}}),
        json!({"controller": {"listenAddress": "localhost"}}),
        json!({"image": {"digest": "latest"}}),
        json!({"replicaCount": "3"}),
        json!({"flowSchema": {"matchingPrecedence": 100}}),
        json!({"builtInController": {"fallback": "none"}}),
        json!({"managedNamespaces": {"selector": ""}}),
        json!({"managedNamespaces": {"selector": "team=a,"}}),
        json!({"managedNamespaces": {"selector": "team in a"}}),
        json!({"managedNamespaces": {"selector": "team=a)"}}),
        json!({"managedNamespaces": {"selector": {"matchLabels": {"team": "a"}}}}),
        json!({"managedNamespaces": {"exclude": ["Kube-System"]}}),
        json!({"global": {"imageRegistry": 5}}),
        json!({"dnsPolicy": "Cluster"}),
        json!({"extraEnv": {"HTTPS_PROXY": "http://proxy:3128"}}),
        json!({"extraObjects": [5]}),
    ] {
        let error = render(&values).unwrap_err();
        assert!(
            error.contains("values don't meet the specifications"),
            "{values}: {error}"
        );
    }
}

#[test]
fn schema_accepts_only_durations_that_the_program_accepts() {
    for (value, flag, accepted, refused) in [
        (
            "statusFlushInterval",
            "--status-flush-interval",
            ["0s", "500ms", "1s500ms", "60s", "1m"],
            ["61s", "2m", "1h", "10000s"],
        ),
        (
            "maxClockSkew",
            "--max-clock-skew",
            ["1s", "1500ms", "90s", "1m30s", "1h"],
            ["0s", "500ms", "61m", "2h"],
        ),
    ] {
        let is_parsed = |text: &str| Cli::try_parse_from(["cronwheel", "run", flag, text]).is_ok();
        let is_rendered = |text: &str| render(&json!({"controller": {value: text}})).is_ok();
        for text in accepted {
            assert!(is_parsed(text) && is_rendered(text), "{value}: {text}");
        }
        for text in refused {
            assert!(!is_parsed(text) && !is_rendered(text), "{value}: {text}");
        }
    }
}

#[test]
fn chart_works_as_a_subchart() {
    let parent = super::tempfile("");
    fs::remove_file(&parent).unwrap();
    fs::create_dir_all(parent.join("charts")).unwrap();
    let text = "apiVersion: v2\nname: parent\nversion: 1.0.0\ndependencies:\n\
                - {name: cronwheel, version: 0.1.0, condition: cronwheel.enabled}\n";
    fs::write(parent.join("Chart.yaml"), text).unwrap();
    std::os::unix::fs::symlink(chart(), parent.join("charts/cronwheel")).unwrap();
    let with = |is_enabled: bool| {
        let values = json!({"global": {"registry": "example"}, "cronwheel": {"enabled": is_enabled}});
        render_as("platform", &parent, &values, &[])
    };
    let (on, off) = (with(true), with(false));
    fs::remove_dir_all(&parent).unwrap();
    assert!(on.unwrap().contains("name: platform-cronwheel\n"));
    assert!(!off.unwrap().contains("kind:"));
}

#[test]
fn termination_grace_period_exceeds_the_shutdown_time() {
    use cronwheel::controller::shutdown::{EVENT_GRACE, HANDOVER_GRACE, IN_FLIGHT_GRACE, STATUS_GRACE};
    let graces = HANDOVER_GRACE + IN_FLIGHT_GRACE + STATUS_GRACE + EVENT_GRACE;
    let least = schema()["properties"]["terminationGracePeriodSeconds"]["minimum"].as_u64();
    assert!(least.unwrap() > graces.as_secs(), "{graces:?}");
}
