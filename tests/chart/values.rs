//! Every value of the chart has an effect.

use std::{collections::BTreeSet, fs, sync::LazyLock};

use serde_json::{Value, json};

use super::{chart, everything, render, with_page};

static DEFAULTS: LazyLock<Value> =
    LazyLock::new(|| serde_saphyr::from_str(&fs::read_to_string(chart().join("values.yaml")).unwrap()).unwrap());

/// Values that no template reads. `global` belongs to the parent chart.
const UNUSED: [&str; 1] = ["global"];

/// Other values for strings with a prescribed format.
const OTHERS: [(&str, &str); 22] = [
    (
        "image.digest",
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    ),
    ("image.pullPolicy", "Always"),
    ("managedNamespaces.selector", "team in (a, b)"),
    ("builtInController.fallback", "manual"),
    ("controller.defaultTimeZone", "Europe/Berlin"),
    ("controller.statusFlushInterval", "500ms"),
    ("controller.events", "warnings"),
    ("controller.cronJobMetrics", "none"),
    ("controller.maxClockSkew", "1500ms"),
    ("controller.logFormat", "json"),
    ("controller.logLevel", "debug"),
    ("controller.listenAddress", "[::]"),
    ("topologySpread.zones", "DoNotSchedule"),
    ("topologySpread.hosts", ""),
    ("metrics.podMonitor.interval", "1m"),
    ("metrics.podMonitor.scrapeTimeout", "5s"),
    ("podSecurityContext.seccompProfile.type", "Localhost"),
    ("resources.requests.memory", "1Gi"),
    ("ui.listenAddress", "[::]"),
    ("ui.history.size", "5Gi"),
    ("ui.resources.requests.memory", "1Gi"),
    ("ui.resources.limits.memory", "1Gi"),
];

/// A different value for each default, including empty lists, empty objects and numbers with restrictions.
fn other_of(path: &str, value: &Value) -> Value {
    let list_of_text = |text: &str| json!([text]);
    match (path, value) {
        ("controller.namespaces" | "ui.namespaces", _) => list_of_text("team-a"),
        ("ui.allowedHosts", _) => list_of_text("cronjobs.example.com"),
        ("managedNamespaces.exclude", _) => list_of_text("kube-system"),
        ("controller.extraArgs", _) => list_of_text("--pod-name=a"),
        ("priorityClass.value", _) => json!(1000),
        ("metrics.prometheusRule.latenessSeconds", _) => json!(0.5),
        ("metrics.prometheusRule.grafanaUrl", _) => json!("https://grafana.example"),
        ("metrics.prometheusRule.alerts", _) => json!({"CronwheelFences": {"enabled": false}}),
        ("securityContext.capabilities.drop", _) => list_of_text("NET_RAW"),
        ("imagePullSecrets", _) => json!([{"name": "registry"}]),
        ("tolerations" | "ui.tolerations", _) => json!([{"operator": "Exists"}]),
        ("affinity" | "ui.affinity", _) => json!({"nodeAffinity": {}}),
        ("autoscaling.metrics", _) => json!([{"type": "External"}]),
        ("networkPolicy.ingressFrom" | "ui.networkPolicy.from", _) => json!([{"podSelector": {}}]),
        ("networkPolicy.egress", _) => json!([{"ports": [{"port": 6443}]}]),
        (_, Value::Bool(is_on)) => json!(!is_on),
        (_, Value::Number(number)) => json!(number.as_i64().unwrap() + 1),
        (_, Value::String(_)) => json!(
            OTHERS
                .iter()
                .find(|(known, _)| *known == path)
                .map_or("other", |(_, other)| other)
        ),
        (_, Value::Object(map)) if map.is_empty() => json!({"example.com/a": "b"}),
        (_, Value::Array(items)) => json!(items.iter().cycle().take(items.len() * 2).collect::<Vec<_>>()),
        (_, Value::Object(_) | Value::Null) => panic!("{path} has no other value"),
    }
}

/// Calls `visit` for every value except non-empty objects.
pub(super) fn for_each_leaf(mut visit: impl FnMut(&[&str], &Value)) {
    fn walk<'v>(path: &mut Vec<&'v str>, value: &'v Value, visit: &mut dyn FnMut(&[&str], &Value)) {
        match value.as_object() {
            Some(map) if !map.is_empty() => {
                for (name, inner) in map {
                    path.push(name);
                    walk(path, inner, visit);
                    path.pop();
                }
            }
            _ => visit(path, value),
        }
    }
    walk(&mut Vec::new(), &DEFAULTS, &mut visit);
}

/// These values with one of them changed.
fn changed(base: &Value, path: &[&str], other: Value) -> Value {
    let mut values = base.clone();
    let slot = path.iter().fold(&mut values, |inner, name| &mut inner[*name]);
    *slot = other;
    values
}

#[test]
fn every_value_changes_what_is_rendered() {
    let bases = [json!({}), everything(), with_page()];
    let before = bases.clone().map(|base| render(&base).unwrap());
    let mut idle = BTreeSet::new();
    let mut n_values = 0;
    for_each_leaf(|path, value| {
        let name = path.join(".");
        let other = other_of(&name, value);
        assert_ne!(other, *value, "{name}");
        n_values += 1;
        // A value of the page has no effect without it.
        let is_of_page = path[0] == "ui";
        let has_effect = bases.iter().zip(&before).any(|(base, before)| {
            if is_of_page && base["ui"].is_null() {
                return false;
            }
            let present = path.iter().fold(base, |inner, name| &inner[*name]);
            // If the base already has the other value, the default is the change.
            let other = if *present == other {
                value.clone()
            } else {
                other.clone()
            };
            let after = render(&changed(base, path, other)).unwrap_or_else(|error| panic!("{name}: {error}"));
            after != *before
        });
        if !has_effect {
            idle.insert(name);
        }
    });
    assert!(n_values > 105, "{n_values}");
    assert_eq!(idle, UNUSED.map(str::to_owned).into());
}
