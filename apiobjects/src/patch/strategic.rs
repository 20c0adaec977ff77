//! Strategic merge patches: like merge patches, but lists with a merge key and lists that are sets are merged.
//!
//! Directives: `$patch: replace|delete|merge` in an object, `$retainKeys`, `$setElementOrder/<list>` and
//! `$deleteFromPrimitiveList/<list>`.

use serde_json::{Map, Value};

use super::{PatchError, format_as_go};
use crate::{
    Resource,
    schema::{Field, Kind, Merge, Schema, Struct},
};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const ELEMENT_ORDER: &str = "$setElementOrder/";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";

/// Applies a patch to an object.
pub fn strategic_merge(resource: Resource, old: &Value, patch: &Value) -> Result<Value, PatchError> {
    let shape = Some(Schema::get().of(resource));
    let (old, patch) = (members_of(old), members_of(patch));
    Ok(Value::Object(merge_objects(shape, old, patch)?))
}

fn members_of(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

/// Merges an object, using its type if it is known.
fn merge_objects(
    shape: Option<&'static Struct>,
    mut old: Map<String, Value>,
    mut patch: Map<String, Value>,
) -> Result<Map<String, Value>, PatchError> {
    match patch.remove(DIRECTIVE) {
        None => {}
        Some(directive) if directive == "replace" => return Ok(without_directives(patch)),
        Some(directive) if directive == "delete" => return Ok(Map::new()),
        Some(directive) => {
            patch.insert(DIRECTIVE.to_owned(), directive.clone());
            let patch = format_as_go(&Value::Object(patch));
            let message = format!("unknown patch type: {} in map: {patch}", format_as_go(&directive));
            return Err(PatchError::Directive(message));
        }
    }
    if let Some(kept) = patch.remove(RETAIN_KEYS) {
        retain(&mut old, &patch, &kept)?;
    }
    let orders = take_prefixed(&mut patch, ELEMENT_ORDER);
    let deletions = take_prefixed(&mut patch, DELETE_FROM);
    for (name, values) in deletions {
        if let (Some(Value::Array(elements)), Value::Array(deleted)) = (old.get_mut(&name), values) {
            elements.retain(|element| !deleted.contains(element));
        }
    }
    let before: Vec<_> = orders
        .iter()
        .map(|(name, _)| old.get(name).cloned().unwrap_or_default())
        .collect();
    for (name, change) in patch {
        let field = shape.and_then(|shape| shape.field(&name));
        merge_member(field, &mut old, name, change, &orders)?;
    }
    for ((name, order), before) in orders.iter().zip(before) {
        let field = shape.and_then(|shape| shape.field(name));
        if let (Some(Value::Array(elements)), Some(field)) = (old.get_mut(name), field) {
            *elements = ordered(std::mem::take(elements), &before, order, key_of(field));
        }
    }
    Ok(old)
}

fn merge_member(
    field: Option<&'static Field>,
    old: &mut Map<String, Value>,
    name: String,
    change: Value,
    orders: &[(String, Value)],
) -> Result<(), PatchError> {
    let merged = match (old.remove(&name), change) {
        (_, Value::Null) => return Ok(()),
        (Some(Value::Object(before)), Value::Object(change)) => {
            let shape = field.and_then(|field| field.kind.as_struct());
            Value::Object(merge_objects(shape, before, change)?)
        }
        (Some(Value::Array(before)), Value::Array(change)) => {
            let order = orders.iter().find(|(list, _)| *list == name).map(|(_, order)| order);
            merge_lists(field, before, change, order)?
        }
        (_, change) => without_nulls(without_directives_in(change)),
    };
    old.insert(name, merged);
    Ok(())
}

fn merge_lists(
    field: Option<&'static Field>,
    before: Vec<Value>,
    change: Vec<Value>,
    order: Option<&Value>,
) -> Result<Value, PatchError> {
    let Some(field) = field else {
        return Ok(Value::Array(change));
    };
    match field.merge {
        Merge::Replace => Ok(without_directives_in(Value::Array(change))),
        Merge::Set => {
            let before = Value::Array(before);
            let mut merged = before.as_array().cloned().unwrap_or_default();
            for value in &change {
                if !merged.contains(value) {
                    merged.push(value.clone());
                }
            }
            Ok(Value::Array(ordered(merged, &before, &Value::Array(change), None)))
        }
        Merge::ByKey(key) => {
            check_order(&change, order, key)?;
            let named = change.iter().filter(|element| element.get(DIRECTIVE).is_none());
            let named = named.cloned().collect::<Value>();
            let merged = merge_by_key(
                field.kind.element().and_then(Kind::as_struct),
                before.clone(),
                change,
                key,
            )?;
            Ok(Value::Array(ordered(merged, &Value::Array(before), &named, Some(key))))
        }
    }
}

fn merge_by_key(
    shape: Option<&'static Struct>,
    mut merged: Vec<Value>,
    change: Vec<Value>,
    key: &str,
) -> Result<Vec<Value>, PatchError> {
    let is_replaced = change.iter().any(|element| element[DIRECTIVE] == "replace");
    if is_replaced {
        let kept = change.into_iter().filter(|element| element.get(DIRECTIVE).is_none());
        return Ok(kept.map(without_directives_in).collect());
    }
    for element in change {
        let Value::Object(mut element) = element else {
            let message = "list element types are not identical".to_owned();
            return Err(PatchError::Directive(message));
        };
        let directive = element.remove(DIRECTIVE);
        if directive.as_ref().is_some_and(|directive| directive == "merge") {
            return Err(PatchError::Directive(
                "merging lists cannot yet be specified in the patch".to_owned(),
            ));
        }
        let Some(value) = element.get(key).cloned() else {
            let element = format_as_go(&Value::Object(element));
            let message = format!("map: {element} does not contain declared merge key: {key}");
            return Err(PatchError::Directive(message));
        };
        let found = merged.iter().position(|before| before[key] == value);
        match (directive, found) {
            (Some(_), found) => {
                if found.is_some() {
                    merged.retain(|before| before[key] != value);
                }
            }
            (None, Some(at)) => {
                let before = members_of(&merged[at]);
                merged[at] = Value::Object(merge_objects(shape, before, element)?);
            }
            (None, None) => merged.push(without_nulls(Value::Object(without_directives(element)))),
        }
    }
    Ok(merged)
}

/// Removes members that are not in the list of keys.
fn retain(old: &mut Map<String, Value>, patch: &Map<String, Value>, kept: &Value) -> Result<(), PatchError> {
    let kept = kept.as_array().map_or(&[][..], Vec::as_slice);
    let is_kept = |name: &String| kept.iter().any(|key| key == name);
    if !patch.keys().filter(|name| !name.starts_with('$')).all(is_kept) {
        return Err(PatchError::Malformed("invalid patch format of retainKeys".to_owned()));
    }
    old.retain(|name, _| is_kept(name));
    Ok(())
}

/// Checks that the elements of a patched list are in the order that the patch sets.
fn check_order(change: &[Value], order: Option<&Value>, key: &str) -> Result<(), PatchError> {
    let Some(order) = order.and_then(Value::as_array) else {
        return Ok(());
    };
    let mut wanted = order.iter();
    let in_order = change
        .iter()
        .filter(|element| element.get(DIRECTIVE).is_none())
        .all(|element| wanted.any(|wanted| wanted[key] == element[key]));
    if in_order {
        return Ok(());
    }
    let (change, order) = (
        format_as_go(&Value::from(change)),
        format_as_go(&Value::from(order.as_slice())),
    );
    Err(PatchError::Directive(format!(
        "The order in patch list:\n{change}\n doesn't match $setElementOrder list:\n{order}\n"
    )))
}

/// Sorts the elements into the order of the patch. An element that the patch does not name stays before the elements
/// that it preceded.
fn ordered(elements: Vec<Value>, before: &Value, order: &Value, key: Option<&str>) -> Vec<Value> {
    let is_same = |a: &Value, b: &Value| match key {
        Some(key) => a[key] == b[key],
        None => a == b,
    };
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let (before, order) = (list(before), list(order));
    let place = |list: &[Value], element: &Value| list.iter().position(|other| is_same(other, element));
    let (mut named, others): (Vec<_>, Vec<_>) = elements
        .into_iter()
        .partition(|element| place(&order, element).is_some());
    named.sort_by_key(|element| place(&order, element));
    let mut others = others.into_iter().peekable();
    // New elements have no earlier position to compare.
    let is_before =
        |a: &Value, b: &Value| matches!((place(&before, a), place(&before, b)), (Some(a), Some(b)) if a < b);
    let mut merged = Vec::new();
    for element in named {
        while let Some(other) = others.next_if(|other| is_before(other, &element)) {
            merged.push(other);
        }
        merged.push(element);
    }
    merged.extend(others);
    merged
}

fn take_prefixed(patch: &mut Map<String, Value>, prefix: &str) -> Vec<(String, Value)> {
    let names: Vec<_> = patch.keys().filter(|name| name.starts_with(prefix)).cloned().collect();
    let taken = names.into_iter().filter_map(|name| {
        let value = patch.remove(&name)?;
        Some((name[prefix.len()..].to_owned(), value))
    });
    taken.collect()
}

fn key_of(field: &Field) -> Option<&'static str> {
    match field.merge {
        Merge::ByKey(key) => Some(key),
        Merge::Replace | Merge::Set => None,
    }
}

fn without_directives(members: Map<String, Value>) -> Map<String, Value> {
    let kept = members.into_iter().filter(|(name, _)| !name.starts_with('$'));
    kept.map(|(name, value)| (name, without_directives_in(value))).collect()
}

fn without_directives_in(value: Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(without_directives(members)),
        Value::Array(elements) => {
            let kept = elements.into_iter().filter(|element| element.get(DIRECTIVE).is_none());
            Value::Array(kept.map(without_directives_in).collect())
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

fn without_nulls(value: Value) -> Value {
    let Value::Object(members) = value else { return value };
    let kept = members.into_iter().filter(|(_, value)| !value.is_null());
    Value::Object(kept.map(|(name, value)| (name, without_nulls(value))).collect())
}
