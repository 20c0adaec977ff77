//! Sets of fields in the format of `metadata.managedFields` (`FieldsV1`), and operations on them.
//!
//! A set is a tree of JSON objects: `f:<name>` is a member, `k:{..}` an element of a list by its key, `v:<value>` an
//! element of a set, and `.` the item itself.

use serde_json::{Map, Value, json};

use crate::schema::{Field, Kind, Merge, Schema, Struct};

/// Fields that every object has and no manager owns.
const UNOWNED: [(&str, &[&str]); 3] = [
    ("apiVersion", &[]),
    ("kind", &[]),
    ("metadata", &["name", "namespace", "uid"]),
];

/// Returns the set of fields in an object of this type.
pub(super) fn fields_of(shape: &'static Struct, object: &Value) -> Value {
    let mut fields = struct_fields(shape, object);
    for (member, inner) in UNOWNED {
        let name = format!("f:{member}");
        let Some(found) = fields.get_mut(&name).and_then(Value::as_object_mut) else {
            continue;
        };
        for inner in inner {
            found.remove(&format!("f:{inner}"));
        }
        if found.is_empty() {
            fields.remove(&name);
        }
    }
    Value::Object(fields)
}

fn struct_fields(shape: &'static Struct, object: &Value) -> Map<String, Value> {
    let members = object.as_object().into_iter().flatten();
    let fields = members.filter_map(|(name, value)| {
        let field = shape.field(name)?;
        (!value.is_null()).then(|| (format!("f:{name}"), field_tree(field, value)))
    });
    fields.collect()
}

fn field_tree(field: &'static Field, value: &Value) -> Value {
    match (&field.kind, field.merge, value) {
        (Kind::List(element), Merge::ByKey(key), Value::Array(elements)) => {
            let entries = elements.iter().map(|value| {
                let mut tree = kind_tree(element, value);
                if let Some(tree) = tree.as_object_mut() {
                    tree.insert(".".to_owned(), json!({}));
                }
                (format!("k:{}", json!({key: value[key]})), tree)
            });
            Value::Object(entries.collect())
        }
        (Kind::List(_), Merge::Set, Value::Array(elements)) => {
            Value::Object(elements.iter().map(|value| (format!("v:{value}"), json!({}))).collect())
        }
        (kind, _, value) => kind_tree(kind, value),
    }
}

fn kind_tree(kind: &'static Kind, value: &Value) -> Value {
    match (kind, value) {
        (Kind::Struct(id), value) => Value::Object(struct_fields(Schema::get().at(*id), value)),
        (Kind::Map(_), Value::Object(members)) => {
            Value::Object(members.keys().map(|name| (format!("f:{name}"), json!({}))).collect())
        }
        _ => json!({}),
    }
}

/// Removes from a value the fields that are in `before`, but neither in `after` nor in one of `others`.
pub(super) fn take_out(value: &mut Value, before: &Value, after: &Value, others: &[&Value]) {
    for (name, inner) in before.as_object().into_iter().flatten() {
        if name == "." {
            continue;
        }
        let others: Vec<_> = others.iter().filter_map(|other| other.get(name)).collect();
        if after.get(name).is_none() && others.is_empty() {
            remove(value, name);
        } else if let Some(found) = find(value, name) {
            take_out(found, inner, &after[name.as_str()], &others);
        }
    }
}

/// Removes fields from `theirs`, which another manager owns: those that are also in `ours` and whose values change.
/// Returns their paths.
pub(super) fn take_changed(theirs: &mut Value, ours: &Value, old: &Value, new: &Value) -> Vec<String> {
    let mut taken = Vec::new();
    take_changed_below("", theirs, ours, (old, new), &mut taken);
    taken
}

fn take_changed_below(
    path: &str,
    theirs: &mut Value,
    ours: &Value,
    (old, new): (&Value, &Value),
    taken: &mut Vec<String>,
) {
    let (Some(theirs), Some(ours)) = (theirs.as_object_mut(), ours.as_object()) else {
        return;
    };
    let is_leaf = |inner: &Value| inner.as_object().is_none_or(Map::is_empty);
    // Fields without inner fields are reported first.
    theirs.retain(|name, inner| {
        let is_kept = !is_leaf(inner) || name == "." || !ours.contains_key(name) || get(old, name) == get(new, name);
        if !is_kept {
            taken.push(format!("{path}{}", path_segment(name)));
        }
        is_kept
    });
    theirs.retain(|name, inner| {
        let Some(our_inner) = ours.get(name).filter(|_| !is_leaf(inner)) else {
            return true;
        };
        let path = format!("{path}{}", path_segment(name));
        take_changed_below(&path, inner, our_inner, (get(old, name), get(new, name)), taken);
        !is_leaf(inner)
    });
}

/// Returns the value that a name in a set refers to, or null if it is missing.
fn get<'a>(value: &'a Value, name: &str) -> &'a Value {
    match value {
        Value::Object(members) => members.get(name.trim_start_matches("f:")),
        Value::Array(elements) => elements.iter().find(|element| is_named(element, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
    .unwrap_or(&Value::Null)
}

/// Formats a name in a set as part of a path: `.spec`, `[name="a"]`, `[="a"]`.
fn path_segment(name: &str) -> String {
    match name.split_once(':') {
        Some(("k", keys)) => {
            let keys = serde_json::from_str::<Map<String, Value>>(keys).unwrap_or_default();
            let keys: Vec<_> = keys.iter().map(|(key, value)| format!("{key}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        Some(("v", value)) => format!("[={value}]"),
        Some((_, field)) => format!(".{field}"),
        None => name.to_owned(),
    }
}

fn remove(value: &mut Value, name: &str) {
    match value {
        Value::Object(members) => {
            members.remove(name.trim_start_matches("f:"));
        }
        Value::Array(elements) => elements.retain(|element| !is_named(element, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn find<'a>(value: &'a mut Value, name: &str) -> Option<&'a mut Value> {
    match value {
        Value::Object(members) => members.get_mut(name.trim_start_matches("f:")),
        Value::Array(elements) => elements.iter_mut().find(|element| is_named(element, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Returns whether a name in a set refers to this element of a list.
fn is_named(element: &Value, name: &str) -> bool {
    let Some((kind, text)) = name.split_once(':') else {
        return false;
    };
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return false;
    };
    match kind {
        "v" => *element == value,
        "k" => value
            .as_object()
            .is_some_and(|keys| keys.iter().all(|(key, value)| element[key] == *value)),
        _ => false,
    }
}
