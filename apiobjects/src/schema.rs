//! The types of all served objects, parsed once from a table: the name of each field, its type, how its list is merged,
//! and its number in protobuf.
//!
//! Decoding, strategic merges, protobuf bodies and the `OpenAPI` documents share this table, so they cannot disagree.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::LazyLock,
};

use crate::Resource;

/// The table. The comment at its top explains the notation.
const TABLE: &str = include_str!("schema/types.txt");

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| Schema::parse(TABLE));

/// All types.
pub(super) struct Schema {
    structs: Vec<Struct>,
    by_name: BTreeMap<&'static str, usize>,
}

/// An object with named fields.
pub(super) struct Struct {
    pub(super) name: &'static str,
    /// The JSON fields by name, including those of embedded messages.
    fields: Vec<Field>,
    /// Positions in `fields` of the fields that are written even when empty.
    required: Vec<usize>,
    /// Messages whose fields are inlined in JSON, by field number.
    embedded: Vec<(u32, usize)>,
}

/// One field of an object.
#[derive(Clone)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// The field number in protobuf. 0 if it has none or belongs to an embedded message.
    pub(super) number: u32,
    pub(super) kind: Kind,
    /// Whether an absent field differs from an empty one.
    pub(super) is_optional: bool,
    /// Whether the field is written even when empty.
    pub(super) is_required: bool,
    pub(super) merge: Merge,
}

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Holds the name of the Go type, unless it is `string`.
    String(Option<&'static str>),
    Bool,
    Int32,
    Int64,
    /// Bytes, in JSON as base64.
    Bytes,
    Quantity,
    IntOrString,
    /// A time with a precision of seconds.
    Time,
    /// A time with a precision of microseconds.
    MicroTime,
    /// Any JSON value.
    Any,
    List(Box<Kind>),
    Map(Box<Kind>),
    Struct(StructId),
}

/// The position of a type in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StructId(usize);

/// How a strategic merge patch treats a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// The new list replaces the old one.
    Replace,
    /// Elements with the same value of this member are merged.
    ByKey(&'static str),
    /// A set of values.
    Set,
}

impl Schema {
    /// Returns the types of all served objects.
    pub(super) fn get() -> &'static Schema {
        &SCHEMA
    }

    /// Returns the type of a kind of object.
    pub(super) fn of(&'static self, resource: Resource) -> &'static Struct {
        self.named(resource.kind()).expect("every kind is in the table")
    }

    /// Returns the type with this name.
    pub(super) fn named(&'static self, name: &str) -> Option<&'static Struct> {
        self.structs.get(*self.by_name.get(name)?)
    }

    /// Returns the type that a field refers to.
    pub(super) fn at(&'static self, id: StructId) -> &'static Struct {
        &self.structs[id.0]
    }

    fn parse(table: &'static str) -> Schema {
        let mut rows: Vec<(&str, Vec<&str>)> = Vec::new();
        for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match (line.starts_with(' '), rows.last_mut()) {
                (true, Some(row)) => row.1.extend(line.split_whitespace()),
                _ => rows.push((line, Vec::new())),
            }
        }
        let by_name: BTreeMap<_, _> = rows.iter().enumerate().map(|(at, row)| (row.0, at)).collect();
        let mut structs: Vec<_> = rows
            .iter()
            .map(|(name, entries)| Struct::parse(name, entries, &by_name))
            .collect();
        for at in 0..structs.len() {
            let inner: Vec<_> = structs[at]
                .embedded
                .iter()
                .flat_map(|(_, id)| structs[*id].fields.clone())
                .collect();
            let outer = &mut structs[at];
            outer
                .fields
                .extend(inner.into_iter().map(|field| Field { number: 0, ..field }));
            outer.fields.sort_by_key(|field| field.name);
            outer.required = (0..outer.fields.len())
                .filter(|at| outer.fields[*at].is_required)
                .collect();
        }
        Schema { structs, by_name }
    }
}

/// Returns the paths to objects below `root` that have a field of this name, the shortest first. Each type is visited
/// once, because some contain themselves.
pub(super) fn places(root: &'static Struct, name: &str) -> Vec<String> {
    let mut visited = BTreeSet::new();
    let mut queue = VecDeque::from([(root, String::new())]);
    let mut places = Vec::new();
    while let Some((shape, path)) = queue.pop_front() {
        if !visited.insert(shape.name) {
            continue;
        }
        if shape.field(name).is_some() {
            places.push(path.clone());
        }
        for field in shape.fields() {
            let list = field.kind.element().and_then(Kind::as_struct);
            let (inner, suffix) = match list {
                Some(inner) => (Some(inner), "[]"),
                None => (field.kind.as_struct(), ""),
            };
            if let Some(inner) = inner {
                let dot = if path.is_empty() { "" } else { "." };
                queue.push_back((inner, format!("{path}{dot}{}{suffix}", field.name)));
            }
        }
    }
    places
}

impl Struct {
    /// Returns the field with this name.
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by_key(&name, |field| field.name).ok()?;
        self.fields.get(at)
    }

    /// The JSON fields, by name.
    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The fields that are written even when empty.
    pub(super) fn required(&self) -> impl Iterator<Item = &Field> {
        self.required.iter().map(|at| &self.fields[*at])
    }

    /// Returns the field with this number in protobuf.
    pub(super) fn numbered(&self, number: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.number == number && number != 0)
    }

    /// Returns the message with this number whose fields are inlined in JSON.
    pub(super) fn embedded(&self, number: u32) -> Option<StructId> {
        let found = self.embedded.iter().find(|(embedded, _)| *embedded == number);
        found.map(|(_, id)| StructId(*id))
    }

    fn parse(name: &'static str, entries: &[&'static str], by_name: &BTreeMap<&'static str, usize>) -> Struct {
        let (mut fields, mut embedded) = (Vec::new(), Vec::new());
        for entry in entries {
            let (number, rest) = entry.split_at(entry.find(['=', '>']).expect("a number"));
            let number = number.parse().expect("a number");
            match rest.strip_prefix('>') {
                Some(inner) => embedded.push((number, by_name[inner])),
                None => fields.push(Field::parse(number, &rest[1..], by_name)),
            }
        }
        Struct {
            name,
            fields,
            required: Vec::new(),
            embedded,
        }
    }
}

impl Field {
    fn parse(number: u32, text: &'static str, by_name: &BTreeMap<&'static str, usize>) -> Field {
        let (name, rest) = text.split_once(':').expect("a type");
        let is_required = rest.ends_with('!');
        let rest = rest.trim_end_matches('!');
        let (kind, merge) = match rest.split_once('/') {
            None => (rest, Merge::Replace),
            Some((kind, "")) => (kind, Merge::Set),
            Some((kind, key)) => (kind, Merge::ByKey(key)),
        };
        Field {
            name,
            number,
            is_optional: kind.starts_with('*'),
            kind: Kind::parse(kind.trim_start_matches('*'), by_name),
            is_required,
            merge,
        }
    }
}

impl Kind {
    /// Returns the object type, if it is one.
    pub(super) fn as_struct(&self) -> Option<&'static Struct> {
        if let Kind::Struct(id) = self {
            Some(Schema::get().at(*id))
        } else {
            None
        }
    }

    /// Returns the element type of a list or a map.
    pub(super) fn element(&self) -> Option<&Kind> {
        if let Kind::List(element) | Kind::Map(element) = self {
            Some(element)
        } else {
            None
        }
    }

    fn parse(text: &'static str, by_name: &BTreeMap<&'static str, usize>) -> Kind {
        let within = |open: char, close: char| text.strip_prefix(open).and_then(|text| text.strip_suffix(close));
        if let Some(element) = within('[', ']') {
            return Kind::List(Box::new(Kind::parse(element, by_name)));
        }
        if let Some(value) = within('{', '}') {
            return Kind::Map(Box::new(Kind::parse(value, by_name)));
        }
        if let Some(name) = text.strip_prefix('~') {
            return Kind::String(Some(name));
        }
        match text {
            "string" => Kind::String(None),
            "bool" => Kind::Bool,
            "int32" => Kind::Int32,
            "int64" => Kind::Int64,
            "bytes" => Kind::Bytes,
            "quantity" => Kind::Quantity,
            "intorstring" => Kind::IntOrString,
            "time" => Kind::Time,
            "microtime" => Kind::MicroTime,
            "any" => Kind::Any,
            name => Kind::Struct(StructId(*by_name.get(name).unwrap_or_else(|| panic!("no type {name}")))),
        }
    }
}

#[cfg(test)]
mod tests;
