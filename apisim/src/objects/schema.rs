//! The types of all objects that are served, read once from a table: what a field is called, what it holds, how lists of it
//! are merged, and its number in protobuf messages.
//!
//! One table serves decoding, strategic merges, protobuf bodies and the `OpenAPI` document, so these cannot disagree.

use std::{collections::BTreeMap, sync::LazyLock};

use crate::Resource;

/// The table, in the notation that its head explains.
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
    /// The fields in JSON, by name; those of embedded messages among them.
    fields: Vec<Field>,
    /// Positions in `fields` of those that are written also when they are empty.
    required: Vec<usize>,
    /// Messages whose fields stand in JSON among the others, by their number.
    embedded: Vec<(u32, usize)>,
}

/// One field of an object.
#[derive(Clone)]
pub(super) struct Field {
    pub(super) name: &'static str,
    /// Its number in protobuf messages; 0 where it has none, or belongs to an embedded message.
    pub(super) number: u32,
    pub(super) kind: Kind,
    /// Whether absence is kept apart from emptiness.
    pub(super) is_optional: bool,
    /// Whether it is written also when it is empty.
    pub(super) is_required: bool,
    pub(super) merge: Merge,
}

/// What a field holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// With the name of its Go type, where that is not plainly `string`.
    String(Option<&'static str>),
    Bool,
    Int32,
    Int64,
    /// In base64.
    Bytes,
    Quantity,
    IntOrString,
    /// In whole seconds.
    Time,
    /// In microseconds.
    MicroTime,
    /// Anything.
    Any,
    List(Box<Kind>),
    Map(Box<Kind>),
    Struct(StructId),
}

/// The place of a type in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StructId(usize);

/// How a strategic merge treats a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Merge {
    /// The new one replaces the old one.
    Replace,
    /// Elements with the same value of this member are the same.
    ByKey(&'static str),
    /// A set of values.
    Set,
}

impl Schema {
    /// The types of all objects that are served.
    pub(super) fn get() -> &'static Schema {
        &SCHEMA
    }

    /// The type of a kind of object.
    pub(super) fn of(&'static self, resource: Resource) -> &'static Struct {
        self.named(resource.kind()).expect("every kind is in the table")
    }

    /// The type with this name.
    pub(super) fn named(&'static self, name: &str) -> Option<&'static Struct> {
        self.structs.get(*self.by_name.get(name)?)
    }

    /// The type that a field refers to.
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
            .map(|(name, words)| Struct::parse(name, words, &by_name))
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

impl Struct {
    /// The field with this name.
    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by_key(&name, |field| field.name).ok()?;
        self.fields.get(at)
    }

    /// The fields in JSON, by name.
    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The fields that are written also when they are empty.
    pub(super) fn required(&self) -> impl Iterator<Item = &Field> {
        self.required.iter().map(|at| &self.fields[*at])
    }

    /// The field with this number in protobuf messages.
    pub(super) fn numbered(&self, number: u32) -> Option<&Field> {
        self.fields.iter().find(|field| field.number == number && number != 0)
    }

    /// The message with this number whose fields stand in JSON among the others.
    pub(super) fn embedded(&self, number: u32) -> Option<StructId> {
        let found = self.embedded.iter().find(|(embedded, _)| *embedded == number);
        found.map(|(_, id)| StructId(*id))
    }

    fn parse(name: &'static str, words: &[&'static str], by_name: &BTreeMap<&'static str, usize>) -> Struct {
        let (mut fields, mut embedded) = (Vec::new(), Vec::new());
        for word in words {
            let (number, rest) = word.split_at(word.find(['=', '>']).expect("a number"));
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
    /// The object that it is, where it is one.
    pub(super) fn as_struct(&self) -> Option<&'static Struct> {
        if let Kind::Struct(id) = self {
            Some(Schema::get().at(*id))
        } else {
            None
        }
    }

    /// What a list or a map of this kind holds.
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
