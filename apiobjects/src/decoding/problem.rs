//! The problems of a body by field, for readers who correct a file.

use serde_json::{Map, Value};

use crate::schema::Kind;

/// A field that the decoder does not accept.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldProblem {
    /// The path of the field, such as `spec.jobTemplate.spec.template.spec.containers[0].name`.
    pub field: String,
    /// The problem.
    pub kind: ProblemKind,
}

/// The problem of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum ProblemKind {
    /// The object has no such field.
    Unknown {
        /// The fields that it has.
        known: Vec<&'static str>,
    },
    /// JSON of another type.
    Type {
        /// The type of the field.
        expected: ValueType,
        /// The value. Lists and objects are empty.
        found: Value,
    },
    /// The right type, but it cannot be parsed.
    Value {
        /// The type of the field.
        expected: ValueType,
        /// The value.
        found: Value,
        /// The error of Go's parser.
        reason: String,
    },
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// A string.
    Text,
    /// True or false.
    Boolean,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A whole number of 32 bits, or a string.
    IntegerOrText,
    /// An amount, such as `500m`.
    Quantity,
    /// An instant in RFC 3339.
    Time,
    /// A string in base64.
    Base64,
    /// A list.
    List,
    /// An object with fields or entries.
    Object,
}

impl ValueType {
    pub(super) fn of(kind: &Kind) -> ValueType {
        match kind {
            Kind::String(_) | Kind::Any => ValueType::Text,
            Kind::Bool => ValueType::Boolean,
            Kind::Int32 => ValueType::Int32,
            Kind::Int64 => ValueType::Int64,
            Kind::Bytes => ValueType::Base64,
            Kind::Quantity => ValueType::Quantity,
            Kind::IntOrString => ValueType::IntegerOrText,
            Kind::Time | Kind::MicroTime => ValueType::Time,
            Kind::List(_) => ValueType::List,
            Kind::Map(_) | Kind::Struct(_) => ValueType::Object,
        }
    }
}

/// The value without the contents of a list or an object.
pub(super) fn outline(value: &Value) -> Value {
    match value {
        Value::Array(_) => Value::Array(Vec::new()),
        Value::Object(_) => Value::Object(Map::new()),
        scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => scalar.clone(),
    }
}
