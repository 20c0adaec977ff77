//! Every value of the chart with a null, a large number or a text with any letters in its place.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    everything, named, objects, render_all,
    schema::{schema, values},
    the, with_page,
};

/// Values with a default that is not empty, which null removes. In the objects, the field is then missing.
const REMOVABLE: [&str; 13] = [
    "autoscaling.behavior",
    "autoscaling.behavior.scaleDown",
    "autoscaling.behavior.scaleUp",
    "metrics.dashboards.labels",
    "podSecurityContext",
    "resources",
    "resources.limits",
    "resources.requests",
    "securityContext",
    "ui.networkPolicy.egress",
    "ui.resources",
    "ui.resources.limits",
    "ui.resources.requests",
];

/// A property of the schema, apart from those inside of the entries of `alerts`.
struct Property {
    path: Vec<String>,
    schema: Value,
    /// The value in `values.yaml`, if it is there.
    default: Option<Value>,
}

impl Property {
    fn name(&self) -> String {
        self.path.join(".")
    }

    /// Whether null stands for the default.
    fn is_empty(&self) -> bool {
        let empty = [json!(""), json!([]), json!({}), json!(false), json!(0)];
        self.default.as_ref().is_some_and(|default| empty.contains(default))
    }

    fn is_removable(&self) -> bool {
        REMOVABLE.contains(&self.name().as_str())
    }

    fn is_section(&self) -> bool {
        self.schema["properties"].is_object() && !self.is_empty()
    }

    fn set(&self, values: &mut Value, to: Value) {
        let slot = self.path.iter().fold(values, |inner, name| &mut inner[name]);
        *slot = to;
    }

    fn is_in(&self, values: &Value) -> bool {
        let found = self.path.iter().try_fold(values, |inner, name| inner.get(name));
        found.is_some()
    }
}

/// All properties, each after its parents. `enabled` belongs to the parent chart.
fn properties() -> Vec<Property> {
    fn walk(path: &[String], schema: &Value, default: Option<&Value>, found: &mut Vec<Property>) {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = [path, std::slice::from_ref(name)].concat();
            if path == ["enabled"] {
                continue;
            }
            let default = default.and_then(|default| default.get(name));
            found.push(Property {
                path: path.clone(),
                schema: schema.clone(),
                default: default.cloned(),
            });
            walk(&path, schema, default, found);
        }
    }
    let mut found = Vec::new();
    walk(&[], &schema(), Some(&values()), &mut found);
    assert!(found.len() > 190, "{}", found.len());
    found
}

/// Values with everything that one release can have, and with the page.
fn all_enabled() -> Value {
    let mut values = everything();
    values["ui"] = with_page()["ui"].clone();
    values["controller"] = json!({"freezeUntil": "2026-12-26T06:00:00Z"});
    values["metrics"]["dashboards"]["folder"] = json!("Jobs");
    values
}

/// Asserts that an error names each of these properties, with the path to it.
fn assert_named(error: &str, refused: &[&Property]) {
    for property in refused {
        let (name, parents) = property.path.split_last().unwrap();
        let parent = [&[String::new()][..], parents].concat().join("/");
        let lines = error.lines();
        let is_missing = |line: &str| {
            line.contains(&format!("at '{parent}': missing propert")) && line.contains(&format!("'{name}'"))
        };
        let is_null = |line: &str| line.contains(&format!("at '{parent}/{name}': got null, want"));
        assert!(
            lines.clone().any(|line| is_missing(line) || is_null(line)),
            "{}: {error}",
            property.name()
        );
    }
}

#[test]
fn null_that_cannot_be_rendered_is_refused_by_the_name_of_the_value() {
    let properties = properties();
    let refused: Vec<&Property> = properties
        .iter()
        .filter(|property| !property.is_empty() && !property.is_removable())
        .collect();
    assert!(refused.len() > 90, "{}", refused.len());
    // A section that is null hides what is in it.
    for depth in 0..5 {
        let is_of_round = |property: &&&Property| match depth {
            0 => !property.is_section(),
            _ => property.is_section() && property.path.len() == depth,
        };
        let round: Vec<&Property> = refused.iter().filter(is_of_round).copied().collect();
        let mut values = json!({});
        for property in &round {
            property.set(&mut values, Value::Null);
        }
        if !round.is_empty() {
            assert_named(&render_all(&values).unwrap_err(), &round);
        }
    }
}

#[test]
fn null_in_place_of_an_empty_default_changes_nothing() {
    let properties = properties();
    let serviced = json!({"metrics": {"serviceMonitor": {"enabled": true}}});
    for base in [json!({}), all_enabled(), serviced] {
        let mut values = base.clone();
        let mut n_nulls = 0;
        for property in properties.iter().filter(|property| property.is_empty()) {
            if !property.is_in(&base) {
                property.set(&mut values, Value::Null);
                n_nulls += 1;
            }
        }
        assert!(n_nulls > 50, "{n_nulls}");
        assert_eq!(render_all(&values).unwrap(), render_all(&base).unwrap(), "{base}");
    }
}

/// The paths of the fields with null in an object.
fn nulls(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null => found.push(path.to_owned()),
        Value::Object(map) => map
            .iter()
            .for_each(|(name, value)| nulls(&format!("{path}.{name}"), value, found)),
        Value::Array(items) => items.iter().for_each(|item| nulls(path, item, found)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn null_in_place_of_a_removable_value_leaves_its_field_out() {
    let properties = properties();
    let is_below = |name: &str, parent: &str| name.starts_with(&format!("{parent}."));
    let has_parent = |name: &str| REMOVABLE.iter().any(|other| is_below(name, other));
    let has_child = |name: &str| REMOVABLE.iter().any(|other| is_below(other, name));
    // `resources`, and then `resources.limits` and `resources.requests`.
    let rounds: [&dyn Fn(&str) -> bool; 2] = [&has_parent, &has_child];
    for is_left_out in rounds {
        let mut values = all_enabled();
        for property in properties.iter().filter(|property| property.is_removable()) {
            if !is_left_out(&property.name()) {
                property.set(&mut values, Value::Null);
            }
        }
        let objects = objects(&render_all(&values).unwrap());
        let mut found = Vec::new();
        for object in &objects {
            nulls(object["kind"].as_str().unwrap(), object, &mut found);
        }
        assert_eq!(found, Vec::<String>::new());
        for (kind, name) in [
            ("Deployment", "cronwheel"),
            ("Deployment", "cronwheel-ui"),
            ("Pod", "cronwheel-test"),
        ] {
            let object = named(&objects, kind, name);
            let pod = object.pointer("/spec/template/spec").unwrap_or(&object["spec"]);
            let container = &pod["containers"][0];
            assert_eq!(
                [&pod["securityContext"], &container["securityContext"]],
                [&Value::Null; 2],
                "{name}"
            );
            assert!(kind == "Pod" || container["resources"].is_null(), "{name}");
        }
        assert!(the(&objects, "HorizontalPodAutoscaler")["spec"]["behavior"].is_null());
        assert!(named(&objects, "NetworkPolicy", "cronwheel-ui")["spec"]["egress"].is_null());
        let label = |object: &Value| object["metadata"]["labels"]["grafana_dashboard"].clone();
        assert!(objects.iter().all(|object| label(object).is_null()));
    }
}

/// The largest number that a property may have, if it is an integer.
fn largest(schema: &Value) -> Option<u64> {
    let integer = [schema, &schema["anyOf"][0]]
        .into_iter()
        .find(|schema| schema["type"] == "integer")?;
    Some(integer["maximum"].as_u64().unwrap_or(2_147_483_647))
}

#[test]
fn large_numbers_are_rendered_with_all_digits() {
    let mut with_replica_count = json!({"ui": {"enabled": true}});
    let mut values = all_enabled();
    let mut numbers = BTreeSet::new();
    // In the order of the paths, so that the maximum number of replicas is above the least.
    for (number, property) in (0..).zip(properties()) {
        let Some(largest) = largest(&property.schema) else {
            continue;
        };
        let value = if largest > 1_000_000 { largest - number } else { largest };
        numbers.insert(value.to_string());
        for values in [&mut values, &mut with_replica_count] {
            property.set(values, json!(value));
        }
    }
    assert!(numbers.len() > 15, "{numbers:?}");
    let text = [values, with_replica_count]
        .map(|values| render_all(&values).unwrap())
        .concat();
    let is_digit = |letter: char| letter.is_ascii_digit();
    let floats: Vec<&str> = text.lines().filter(|line| line.contains("e+0")).collect();
    assert_eq!(floats, Vec::<&str>::new());
    let rendered: BTreeSet<&str> = text.split(|letter| !is_digit(letter)).collect();
    for number in &numbers {
        assert!(rendered.contains(number.as_str()), "{number}");
    }
}

/// A text that YAML and JSON read as something else unless it is quoted. It is a regular expression too.
fn text_of(name: &str) -> String {
    format!("it's: \"a\" #b \\d {name}")
}

/// A value of this schema that contains [`text_of`], if the schema lets any text into it.
fn with_text(schema: &Value, name: &str) -> Option<Value> {
    let is_any = |schema: &Value| schema["type"] == "string" && schema.get("pattern").is_none();
    if is_any(schema) {
        return Some(json!(text_of(name)));
    }
    if is_any(&schema["items"]) {
        return Some(json!([text_of(name)]));
    }
    is_any(&schema["additionalProperties"]).then(|| json!({"example.com/a": text_of(name)}))
}

#[test]
fn texts_with_any_letters_are_rendered_as_they_are() {
    let mut values = all_enabled();
    values["metrics"]["serviceMonitor"] = json!({});
    let mut names = Vec::new();
    for property in properties() {
        let name = property.name();
        // An object that the others exclude.
        if name.starts_with("metrics.serviceMonitor") {
            continue;
        }
        if let Some(value) = with_text(&property.schema, &name) {
            property.set(&mut values, value);
            names.push(name);
        }
    }
    assert!(names.len() > 20, "{names:?}");
    let texts: String = objects(&render_all(&values).unwrap())
        .iter()
        .map(Value::to_string)
        .collect();
    for name in names {
        // Quoted in the format of the object, and once more in an expression of Prometheus.
        let in_object = json!(text_of(&name)).to_string();
        let in_expression = json!(in_object).to_string();
        let is_there = [in_object, in_expression]
            .iter()
            .any(|quoted| texts.contains(quoted.trim_matches('"')));
        assert!(is_there, "{name}");
    }
}
