//! Protobuf bodies, which `kubectl create job` and every typed Go client send.
//!
//! Only request bodies are supported: responses are JSON, which all of these clients accept. The table of types holds
//! the field numbers. Unknown fields are skipped, as protobuf requires.

mod wire;

use serde_json::{Map, Value, json};

use self::wire::{Message, Payload};
use super::schema::{Field, Kind, Schema, Struct};
use crate::{Resource, times};

/// The `Content-Type` of such a body.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The prefix of every body.
const MAGIC: &[u8] = b"k8s\0";
/// The field numbers of the envelope and of its type.
const TYPE: u32 = 1;
const RAW: u32 = 2;
const API_VERSION: u32 = 1;
const KIND: u32 = 2;

/// An error from decoding a body. The response is 400 `BadRequest` with this text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The prefix is missing.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoPrefix,
    /// The body is truncated, or a field has the wrong type.
    #[error("proto: illegal wire format")]
    Malformed,
}

/// Parses the members of an object of this kind. The result is not decoded yet: it may contain empty fields that were
/// never set.
pub fn parse(resource: Resource, body: &[u8]) -> Result<Map<String, Value>, ProtobufError> {
    parse_as(Schema::get().of(resource), body)
}

/// Parses the members of the options of a delete.
pub fn parse_delete_options(body: &[u8]) -> Result<Map<String, Value>, ProtobufError> {
    let shape = Schema::get().named("DeleteOptions").expect("the type is in the table");
    parse_as(shape, body)
}

fn parse_as(shape: &'static Struct, body: &[u8]) -> Result<Map<String, Value>, ProtobufError> {
    let envelope = body.strip_prefix(MAGIC).ok_or(ProtobufError::NoPrefix)?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Message::new(envelope) {
        match field? {
            (TYPE, payload) => {
                for field in Message::new(payload.bytes()?) {
                    match field? {
                        (API_VERSION, payload) => api_version = payload.text()?,
                        (KIND, payload) => kind = payload.text()?,
                        _ => {}
                    }
                }
            }
            (RAW, payload) => raw = payload.bytes()?,
            _ => {}
        }
    }
    let mut members = Map::new();
    read_struct(shape, raw, &mut members)?;
    for (name, text) in [("apiVersion", api_version), ("kind", kind)] {
        if !text.is_empty() {
            members.insert(name.to_owned(), text.into());
        }
    }
    Ok(members)
}

fn read_struct(shape: &'static Struct, bytes: &[u8], members: &mut Map<String, Value>) -> Result<(), ProtobufError> {
    for field in Message::new(bytes) {
        let (number, payload) = field?;
        if let Some(id) = shape.embedded(number) {
            read_struct(Schema::get().at(id), payload.bytes()?, members)?;
        } else if let Some(field) = shape.numbered(number) {
            read_field(field, payload, members)?;
        }
    }
    Ok(())
}

fn read_field(
    field: &'static Field,
    payload: Payload<'_>,
    members: &mut Map<String, Value>,
) -> Result<(), ProtobufError> {
    if let Kind::List(element) = &field.kind {
        let list = members.entry(field.name).or_insert_with(|| json!([]));
        if let Value::Array(elements) = list {
            read_element(element, payload, elements)?;
        }
    } else if let Kind::Map(element) = &field.kind {
        let (key, value) = read_entry(element, payload.bytes()?)?;
        let map = members.entry(field.name).or_insert_with(|| json!({}));
        map[key] = value;
    } else {
        let value = read_value(&field.kind, payload)?;
        members.insert(field.name.to_owned(), value);
    }
    Ok(())
}

/// Appends the content of one field of a list: one element, or packed numbers.
fn read_element(element: &'static Kind, payload: Payload<'_>, elements: &mut Vec<Value>) -> Result<(), ProtobufError> {
    match (element, payload) {
        (Kind::Int32 | Kind::Int64 | Kind::Bool, Payload::Bytes(bytes)) => {
            let mut rest = bytes;
            while !rest.is_empty() {
                let number = wire::take_varint(&mut rest)?;
                elements.push(read_value(element, Payload::Varint(number))?);
            }
        }
        (element, payload) => elements.push(read_value(element, payload)?),
    }
    Ok(())
}

fn read_entry(element: &'static Kind, bytes: &[u8]) -> Result<(String, Value), ProtobufError> {
    let (mut key, mut value) = (String::new(), None);
    for field in Message::new(bytes) {
        match field? {
            (1, payload) => key = payload.text()?,
            (2, payload) => value = Some(read_value(element, payload)?),
            _ => {}
        }
    }
    // Empty values are not encoded.
    Ok((key, value.unwrap_or_else(|| json!(""))))
}

fn read_value(kind: &'static Kind, payload: Payload<'_>) -> Result<Value, ProtobufError> {
    Ok(match kind {
        Kind::String(_) => payload.text()?.into(),
        Kind::Bool => (payload.number()? != 0).into(),
        Kind::Int32 | Kind::Int64 => payload.number()?.into(),
        Kind::Bytes => wire::base64(payload.bytes()?).into(),
        Kind::Quantity => wire::text_at(1, payload.bytes()?)?.into(),
        Kind::IntOrString => int_or_string(payload.bytes()?)?,
        Kind::Time => wire::time(payload.bytes()?, times::seconds)?,
        Kind::MicroTime => wire::time(payload.bytes()?, times::microseconds)?,
        Kind::Any => {
            let raw = wire::text_at(1, payload.bytes()?)?;
            serde_json::from_str(&raw).map_err(|_| ProtobufError::Malformed)?
        }
        Kind::Struct(id) => {
            let mut members = Map::new();
            read_struct(Schema::get().at(*id), payload.bytes()?, &mut members)?;
            Value::Object(members)
        }
        // Lists and maps do not contain lists or maps.
        Kind::List(_) | Kind::Map(_) => return Err(ProtobufError::Malformed),
    })
}

/// A number or a string.
fn int_or_string(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Message::new(bytes) {
        match field? {
            (1, payload) => is_text = payload.number()? == 1,
            (2, payload) => number = payload.number()?,
            (3, payload) => text = payload.text()?,
            _ => {}
        }
    }
    Ok(if is_text { text.into() } else { number.into() })
}

#[cfg(test)]
mod tests;
