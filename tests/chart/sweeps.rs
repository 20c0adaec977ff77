//! Every value of the chart with a text with any letters in its place.

use serde_json::{Value, json};

use super::{everything, objects, render_all, schema::schema, with_page};

/// A property of the schema, apart from those inside of the entries of `alerts`.
struct Property {
    path: Vec<String>,
    schema: Value,
}

impl Property {
    fn name(&self) -> String {
        self.path.join(".")
    }

    fn set(&self, values: &mut Value, to: Value) {
        let slot = self.path.iter().fold(values, |inner, name| &mut inner[name]);
        *slot = to;
    }
}

/// All properties, each after its parents. `enabled` belongs to the parent chart.
fn properties() -> Vec<Property> {
    fn walk(path: &[String], schema: &Value, found: &mut Vec<Property>) {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = [path, std::slice::from_ref(name)].concat();
            if path == ["enabled"] {
                continue;
            }
            found.push(Property {
                path: path.clone(),
                schema: schema.clone(),
            });
            walk(&path, schema, found);
        }
    }
    let mut found = Vec::new();
    walk(&[], &schema(), &mut found);
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
