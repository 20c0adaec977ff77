//! RFC 6902, with the deviations of the API server's library: `replace` creates missing members, and `copy` from a
//! missing member copies null.

use serde_json::Value;

use super::PatchError;

/// The maximum number of operations in a patch, as in the API server.
const N_OPERATIONS_MAX: usize = 10_000;

/// Applies these operations to an object.
pub fn json_patch(old: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = patch.as_array().ok_or(PatchError::Rejected)?;
    if operations.len() > N_OPERATIONS_MAX {
        return Err(PatchError::Rejected);
    }
    let mut new = old.clone();
    for operation in operations {
        run(&mut new, operation).ok_or(PatchError::Rejected)?;
    }
    Ok(new)
}

/// Runs one operation. Returns `None` if it fails.
fn run(document: &mut Value, operation: &Value) -> Option<()> {
    let path = Pointer::parse(operation["path"].as_str()?)?;
    let value = || operation.get("value").cloned().unwrap_or_default();
    match operation["op"].as_str()? {
        "add" => add(document, &path, value()),
        "remove" => remove(document, &path).map(drop),
        "replace" => replace(document, &path, value()),
        "move" => {
            let from = Pointer::parse(operation["from"].as_str()?)?;
            let moved = remove(document, &from)?;
            add(document, &path, moved)
        }
        "copy" => {
            let from = Pointer::parse(operation["from"].as_str()?)?;
            let copied = from.find(document).cloned().unwrap_or_default();
            add(document, &path, copied)
        }
        "test" => {
            let found = path.find(document).unwrap_or(&Value::Null);
            (*found == value()).then_some(())
        }
        _ => None,
    }
}

fn add(document: &mut Value, path: &Pointer, value: Value) -> Option<()> {
    let Some((last, parent)) = path.0.split_last() else {
        *document = value;
        return Some(());
    };
    match find_mut(document, parent)? {
        Value::Object(members) => drop(members.insert(last.clone(), value)),
        Value::Array(elements) if last == "-" => elements.push(value),
        Value::Array(elements) => {
            let at = index(last).filter(|at| *at <= elements.len())?;
            elements.insert(at, value);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

fn remove(document: &mut Value, path: &Pointer) -> Option<Value> {
    let (last, parent) = path.0.split_last()?;
    match find_mut(document, parent)? {
        Value::Object(members) => members.remove(last),
        Value::Array(elements) => {
            let at = index(last).filter(|at| *at < elements.len())?;
            Some(elements.remove(at))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn replace(document: &mut Value, path: &Pointer, value: Value) -> Option<()> {
    let Some((last, parent)) = path.0.split_last() else {
        *document = value;
        return Some(());
    };
    match find_mut(document, parent)? {
        Value::Object(members) => drop(members.insert(last.clone(), value)),
        Value::Array(elements) => *elements.get_mut(index(last)?)? = value,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
    }
    Some(())
}

fn find_mut<'a>(document: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(document, |value, part| match value {
        Value::Object(members) => members.get_mut(part),
        Value::Array(elements) => elements.get_mut(index(part)?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// An index of a list: digits without leading zeros.
fn index(text: &str) -> Option<usize> {
    let is_plain = text == "0" || !text.starts_with(['0', '+']);
    text.parse().ok().filter(|_| is_plain)
}

/// RFC 6901: the parts of a path.
struct Pointer(Vec<String>);

impl Pointer {
    fn parse(text: &str) -> Option<Pointer> {
        if text.is_empty() {
            return Some(Pointer(Vec::new()));
        }
        let parts = text.strip_prefix('/')?.split('/');
        Some(Pointer(
            parts.map(|part| part.replace("~1", "/").replace("~0", "~")).collect(),
        ))
    }

    fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(document, |value, part| match value {
            Value::Object(members) => members.get(part),
            Value::Array(elements) => elements.get(index(part)?),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        })
    }
}
