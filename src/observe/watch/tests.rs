//! Decoding of received objects, complete, partial and hostile.

mod cron_jobs;
mod jobs;
mod namespaces;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::slim::{Content, Slim};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn received<C: Content>(object: &Value) -> Slim<C> {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// The fields with problems.
fn fields<C: Content>(slim: &Slim<C>) -> Vec<&str> {
    slim.content.problems.iter().map(|problem| &*problem.field).collect()
}

/// Sets the member at a path.
fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let (parent, member) = pointer.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[member] = value;
    object
}

/// Values of all types.
fn any_values() -> [Value; 8] {
    [
        json!(null),
        json!(true),
        json!(-5),
        json!(1.5),
        json!("<script>"),
        json!([]),
        json!([{"a": [1, {}]}, "b", null]),
        json!({"a": {"b": []}}),
    ]
}

/// All paths to members of an object.
fn pointers(object: &Value, prefix: &str) -> Vec<String> {
    let members: Vec<(String, &Value)> = match object {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.replace('/', "~1"), value))
            .collect(),
        Value::Array(elements) => elements
            .iter()
            .enumerate()
            .map(|(at, value)| (at.to_string(), value))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let mut all = Vec::new();
    for (name, value) in members {
        let pointer = format!("{prefix}/{name}");
        all.extend(pointers(value, &pointer));
        all.push(pointer);
    }
    all
}

/// Replaces every member by values of every type. No object fails to be received, and each keeps its version, from which
/// the watch continues.
fn assert_lenient<C: Content>(object: &Value) {
    for pointer in pointers(object, "") {
        for value in any_values() {
            let mut changed = object.clone();
            *changed.pointer_mut(&pointer).unwrap() = value;
            let list = json!({"items": [changed, object]}).to_string();
            let list: std::collections::BTreeMap<String, Vec<Slim<C>>> =
                serde_json::from_str(&list).unwrap_or_else(|error| panic!("{pointer}: {error}: {list}"));
            let [changed, unchanged] = &list["items"][..] else {
                panic!("{pointer}")
            };
            assert_eq!(fields(unchanged), Vec::<&str>::new());
            let version = kube::ResourceExt::resource_version(changed);
            let is_head = pointer == "/metadata" || pointer == "/metadata/resourceVersion";
            assert!(is_head || version.as_deref() == Some("7"), "{pointer}: {version:?}");
        }
    }
    for value in any_values() {
        let slim: Slim<C> = received(&value);
        assert_eq!(slim.uid, None);
    }
}
