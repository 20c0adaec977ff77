//! Every value of the chart has an effect.

use std::{collections::BTreeSet, fs, sync::LazyLock};

use serde_json::{Value, json};

use super::{chart, everything, render, render_all, schema::schema, with_page};

static DEFAULTS: LazyLock<Value> =
    LazyLock::new(|| serde_saphyr::from_str(&fs::read_to_string(chart().join("values.yaml")).unwrap()).unwrap());

/// Properties of the schema without a default, with values in which they are set. `*` is any name of a map, and `[]` an
/// item of a list.
const WITHOUT_DEFAULT: [(&str, &str); 18] = [
    (
        "dnsConfig.nameservers",
        r#"{"dnsConfig": {"nameservers": ["10.0.0.10"]}}"#,
    ),
    (
        "dnsConfig.options",
        r#"{"dnsConfig": {"options": [{"name": "ndots", "value": "1"}]}}"#,
    ),
    ("dnsConfig.searches", r#"{"dnsConfig": {"searches": ["example.com"]}}"#),
    (
        "global.imagePullSecrets[].name",
        r#"{"global": {"imagePullSecrets": [{"name": "mirror"}]}}"#,
    ),
    (
        "imagePullSecrets[].name",
        r#"{"imagePullSecrets": [{"name": "mirror"}]}"#,
    ),
    (
        "livenessProbe.initialDelaySeconds",
        r#"{"livenessProbe": {"initialDelaySeconds": 7}}"#,
    ),
    (
        "livenessProbe.successThreshold",
        r#"{"livenessProbe": {"successThreshold": 1}}"#,
    ),
    (
        "livenessProbe.terminationGracePeriodSeconds",
        r#"{"livenessProbe": {"terminationGracePeriodSeconds": 7}}"#,
    ),
    (
        "metrics.prometheusRule.alerts.*.annotations",
        r#"{"annotations": {"a": "b"}}"#,
    ),
    ("metrics.prometheusRule.alerts.*.enabled", r#"{"enabled": false}"#),
    ("metrics.prometheusRule.alerts.*.for", r#"{"for": "3h"}"#),
    ("metrics.prometheusRule.alerts.*.labels", r#"{"labels": {"a": "b"}}"#),
    ("metrics.prometheusRule.alerts.*.severity", r#"{"severity": "info"}"#),
    (
        "readinessProbe.initialDelaySeconds",
        r#"{"readinessProbe": {"initialDelaySeconds": 7}}"#,
    ),
    (
        "readinessProbe.successThreshold",
        r#"{"readinessProbe": {"successThreshold": 2}}"#,
    ),
    ("resources.claims", r#"{"resources": {"claims": [{"name": "a"}]}}"#),
    (
        "ui.resources.claims",
        r#"{"ui": {"enabled": true, "resources": {"claims": [{"name": "a"}]}}}"#,
    ),
    // The condition under which a parent chart installs this one: `chart_works_as_a_subchart`.
    ("enabled", "{}"),
];

/// Whether a property of the schema is known to have no default.
pub(super) fn has_no_default(path: &str) -> bool {
    WITHOUT_DEFAULT.iter().any(|(known, _)| *known == path)
}

/// Other values for strings with a prescribed format.
const OTHERS: [(&str, &str); 28] = [
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
    ("controller.troubleLabel", "example.com/team"),
    ("controller.logRuns", "all"),
    ("controller.freezeUntil", "2026-12-27T06:00:00Z"),
    ("controller.maxClockSkew", "1500ms"),
    ("controller.logFormat", "json"),
    ("controller.logLevel", "debug"),
    ("controller.listenAddress", "[::]"),
    ("dnsPolicy", "Default"),
    ("topologySpread.zones", "DoNotSchedule"),
    ("topologySpread.hosts", ""),
    ("metrics.podMonitor.interval", "1m"),
    ("metrics.podMonitor.scrapeTimeout", "5s"),
    ("metrics.serviceMonitor.interval", "1m"),
    ("metrics.serviceMonitor.scrapeTimeout", "5s"),
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
        (
            "metrics.prometheusRule.grafanaUrl" | "metrics.prometheusRule.runbookUrl" | "metrics.dashboards.pageUrl",
            _,
        ) => json!("https://a.example"),
        ("metrics.prometheusRule.alerts", _) => json!({"CronwheelFences": {"enabled": false}}),
        ("securityContext.capabilities.drop", _) => list_of_text("NET_RAW"),
        ("imagePullSecrets" | "global.imagePullSecrets", _) => json!([{"name": "registry"}]),
        ("dnsConfig", _) => json!({"searches": ["example.com"]}),
        ("topologySpreadConstraints", _) => json!([{"topologyKey": "rack"}]),
        ("extraObjects", _) => json!([{"kind": "Secret"}]),
        (_, Value::Array(_)) if path.contains("extra") => json!([{"name": "a"}]),
        (_, Value::Array(_)) if path.ends_with("elabelings") => json!([{"targetLabel": "cluster"}]),
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

/// Values that other values depend on, and that [`everything`] lacks or excludes.
fn others() -> Value {
    json!({"controller": {"freezeUntil": "2026-12-26T06:00:00Z"},
        "metrics": {"serviceMonitor": {"enabled": true}, "dashboards": {"enabled": true, "folder": "Jobs"}}})
}

#[test]
fn every_value_changes_what_is_rendered() {
    let bases = [json!({}), everything(), with_page(), others()];
    let before = bases.clone().map(|base| render_all(&base).unwrap());
    let (mut idle, mut errors) = (BTreeSet::new(), Vec::new());
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
            // Some values exclude each other.
            let after = render_all(&changed(base, path, other));
            errors.extend(after.as_ref().err().map(|error| format!("{name}: {error}")));
            after.is_ok_and(|after| after != *before)
        });
        if !has_effect {
            idle.insert(name);
        }
    });
    assert!(n_values > 135, "{n_values}");
    assert_eq!(idle, BTreeSet::new(), "{errors:#?}");
}

/// Calls `visit` with the path of every property of a schema that is no object with known properties.
fn for_each_property(path: &str, schema: &Value, visit: &mut dyn FnMut(&str)) {
    let of = |name: &str| schema[name].as_object().into_iter().flatten();
    for (name, property) in of("properties") {
        for_each_property(&format!("{path}.{name}"), property, visit);
    }
    let mut inner = vec![("[]", &schema["items"])];
    inner.extend(
        schema["items"]["anyOf"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|one| ("[]", one)),
    );
    inner.push((".*", &schema["additionalProperties"]));
    let mut is_leaf = schema["properties"].is_null();
    for (ending, inner) in inner.into_iter().filter(|(_, inner)| inner["properties"].is_object()) {
        is_leaf = false;
        for_each_property(&format!("{path}{ending}"), inner, visit);
    }
    if is_leaf {
        visit(path.trim_start_matches('.'));
    }
}

#[test]
fn every_property_of_the_schema_without_a_default_changes_what_is_rendered() {
    let mut with_default = BTreeSet::new();
    for_each_leaf(|path, _| {
        with_default.insert(path.join("."));
    });
    let mut without_default = BTreeSet::new();
    for_each_property("", &schema(), &mut |path| {
        let is_within = |leaf: &String| path == leaf || path.starts_with(&format!("{leaf}."));
        let is_free_form =
            !path.contains(['*', '[']) && !path.starts_with("dnsConfig") && with_default.iter().any(is_within);
        let is_above = with_default.iter().any(|leaf| leaf.starts_with(&format!("{path}.")));
        if !is_free_form && !is_above {
            without_default.insert(path.to_owned());
        }
    });
    let known: BTreeSet<String> = WITHOUT_DEFAULT.iter().map(|(path, _)| (*path).to_owned()).collect();
    assert_eq!(without_default, known);
    for (path, values) in WITHOUT_DEFAULT.iter().filter(|(path, _)| *path != "enabled") {
        let values: Value = serde_json::from_str(values).unwrap();
        let is_of_alert = path.contains(".alerts.*.");
        let with_alert = |alert: &Value| json!({"metrics": {"prometheusRule": {"enabled": true, "alerts": {"CronwheelFences": alert}}}});
        let (before, after) = match (is_of_alert, path.starts_with("ui.")) {
            (true, _) => (with_alert(&json!({})), with_alert(&values)),
            (false, is_of_page) => (json!({"ui": {"enabled": is_of_page}}), values),
        };
        assert_ne!(render(&before).unwrap(), render(&after).unwrap(), "{path}");
    }
}
