//! The traversal of an object along its type.

use serde_json::{Map, Value};

use super::{
    problem::{FieldProblem, ProblemKind, ValueType, outline},
    scalars,
};
use crate::schema::{Field, Kind, Schema, Struct};

/// One step of the path from the root to the current place.
enum Step {
    Field(&'static str),
    Index(usize),
    /// An entry of a map.
    Key(String),
}

/// The state of the traversal and its findings.
pub(super) struct Walk {
    steps: Vec<Step>,
    /// The innermost type.
    shape: &'static Struct,
    /// All problems, in the order of the fields.
    problems: Vec<FieldProblem>,
    /// The first wrong type, as Go's decoder words it.
    wrong: Option<String>,
}

impl Walk {
    pub(super) fn new(shape: &'static Struct) -> Walk {
        Walk {
            steps: Vec::new(),
            shape,
            problems: Vec::new(),
            wrong: None,
        }
    }

    /// Returns the paths of unknown fields, or the first wrong type.
    pub(super) fn finish(self) -> Result<Vec<String>, String> {
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(self.problems.into_iter().map(|problem| problem.field).collect()),
        }
    }

    /// Returns all problems.
    pub(super) fn into_problems(self) -> Vec<FieldProblem> {
        self.problems
    }

    /// Checks an object with named fields.
    pub(super) fn object(&mut self, shape: &'static Struct, value: &mut Value) {
        if value.is_null() {
            *value = Value::Object(Map::new());
        }
        let Value::Object(members) = value else {
            let found = outline(value);
            return self.mismatch(
                scalars::kind_of(value),
                &format!("v1.{}", shape.name),
                ValueType::Object,
                found,
            );
        };
        let outer = std::mem::replace(&mut self.shape, shape);
        members.retain(|name, member| self.member(shape, name, member));
        for field in shape.required() {
            if !members.contains_key(field.name)
                && let Some(empty) = self.empty(&field.kind)
            {
                members.insert(field.name.to_owned(), empty);
            }
        }
        self.shape = outer;
    }

    /// Checks a member. Returns whether to keep it.
    fn member(&mut self, shape: &'static Struct, name: &str, value: &mut Value) -> bool {
        let Some(field) = shape.field(name) else {
            let known = shape.fields().iter().map(|field| field.name).collect();
            let field = self.path(Some(name));
            self.problems.push(FieldProblem {
                field,
                kind: ProblemKind::Unknown { known },
            });
            return false;
        };
        if value.is_null() {
            return false;
        }
        self.steps.push(Step::Field(field.name));
        self.value(&field.kind, value);
        self.steps.pop();
        is_written(field, value)
    }

    fn value(&mut self, kind: &'static Kind, value: &mut Value) {
        match (kind, &mut *value) {
            (Kind::Struct(id), _) => self.object(Schema::get().at(*id), value),
            (Kind::List(element), Value::Array(elements)) => {
                for (at, value) in elements.iter_mut().enumerate() {
                    self.steps.push(Step::Index(at));
                    self.value(element, value);
                    self.steps.pop();
                }
            }
            (Kind::Map(element), Value::Object(members)) => {
                for (key, value) in members.iter_mut() {
                    self.steps.push(Step::Key(key.clone()));
                    self.value(element, value);
                    self.steps.pop();
                }
            }
            (Kind::List(_) | Kind::Map(_), other) => {
                let found = outline(other);
                self.mismatch(scalars::kind_of(other), &go_name(kind), ValueType::of(kind), found);
            }
            (scalar, value) => match scalars::check(scalar, value) {
                Ok(()) => {}
                Err(scalars::Wrong::Type(found)) => {
                    self.mismatch(&found, &go_name(scalar), ValueType::of(scalar), outline(value));
                }
                Err(scalars::Wrong::Value(reason)) => {
                    let expected = ValueType::of(scalar);
                    self.problems.push(FieldProblem {
                        field: self.path(None),
                        kind: ProblemKind::Value {
                            expected,
                            found: outline(value),
                            reason: reason.clone(),
                        },
                    });
                    self.wrong.get_or_insert(reason);
                }
            },
        }
    }

    /// Returns the value that Go's encoder writes for a field that was never set. `None` if it omits the field.
    fn empty(&mut self, kind: &'static Kind) -> Option<Value> {
        match kind {
            Kind::Struct(id) => {
                let mut value = Value::Null;
                self.object(Schema::get().at(*id), &mut value);
                Some(value)
            }
            Kind::String(_) => Some(Value::from("")),
            Kind::Bool => Some(Value::from(false)),
            Kind::Int32 | Kind::Int64 | Kind::IntOrString => Some(Value::from(0)),
            Kind::Quantity => Some(Value::from("0")),
            Kind::Time | Kind::MicroTime => Some(Value::Null),
            // Go's encoder would write null, which readers treat as absent.
            Kind::Bytes | Kind::Any | Kind::List(_) | Kind::Map(_) => None,
        }
    }

    fn mismatch(&mut self, found: &str, expected: &str, expected_type: ValueType, value: Value) {
        self.problems.push(FieldProblem {
            field: self.path(None),
            kind: ProblemKind::Type {
                expected: expected_type,
                found: value,
            },
        });
        if self.wrong.is_some() {
            return;
        }
        let mut place = self.shape.name.to_owned();
        for step in &self.steps {
            if let Step::Field(name) = step {
                place.push('.');
                place.push_str(name);
            }
        }
        self.wrong = Some(format!(
            "json: cannot unmarshal {found} into Go struct field {place} of type {expected}"
        ));
    }

    /// The path of the current place, or of a member of the current object.
    fn path(&self, member: Option<&str>) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => path.extend([".", name]),
                Step::Index(at) => path.extend(["[", &at.to_string(), "]"]),
                Step::Key(key) => path.extend(["[", key, "]"]),
            }
        }
        let Some(member) = member else { return path };
        if !path.is_empty() {
            path.push('.');
        }
        path + member
    }
}

/// Returns whether Go's encoder writes this value of the field.
fn is_written(field: &Field, value: &Value) -> bool {
    if field.is_required || field.is_optional {
        return true;
    }
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::Number(number) => number.as_i64() != Some(0),
        Value::String(text) => !text.is_empty(),
        Value::Array(elements) => !elements.is_empty(),
        Value::Object(members) => !members.is_empty() || matches!(field.kind, Kind::Struct(_)),
    }
}

/// The name of a type in Go.
fn go_name(kind: &Kind) -> String {
    match kind {
        Kind::String(Some(name)) if name.contains('.') => (*name).to_owned(),
        Kind::String(Some(name)) => format!("v1.{name}"),
        Kind::Bool => "bool".to_owned(),
        Kind::Int32 | Kind::IntOrString => "int32".to_owned(),
        Kind::Int64 => "int64".to_owned(),
        Kind::Bytes => "[]uint8".to_owned(),
        Kind::Quantity => "resource.Quantity".to_owned(),
        Kind::String(None) | Kind::Time | Kind::MicroTime | Kind::Any => "string".to_owned(),
        Kind::List(element) => format!("[]{}", go_name(element)),
        Kind::Map(element) => format!("map[string]{}", go_name(element)),
        Kind::Struct(id) => format!("v1.{}", Schema::get().at(*id).name),
    }
}
