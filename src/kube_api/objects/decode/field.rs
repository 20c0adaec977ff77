//! A field whose value may have any type, for objects that are parsed in place: the text of such an object is not known,
//! so an error would fail the list or the event that contains it.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{
        Error, IgnoredAny, IntoDeserializer, MapAccess, SeqAccess, Visitor,
        value::{BorrowedStrDeserializer, MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use super::parse::{FieldError, panic_problem};
use crate::shard::panics::contain;

/// The value, `None` if it is absent or null, or the problem of a value that is no `T`. Only invalid JSON, or an object
/// with two members of one name, fails to deserialize.
///
/// Each member and element of `T` must be a `Field` too, because nothing can skip the rest of a value after an error
/// inside of it.
#[derive(Clone)]
pub(crate) struct Field<T>(Result<Option<T>, Box<str>>);

impl<T> Field<T> {
    /// Returns the value; `field` is its path.
    pub(crate) fn at(self, field: &str) -> Result<Option<T>, FieldError> {
        self.0.map_err(|problem| FieldError::new(field, &problem))
    }

    /// Returns the value; `None` if it is absent or invalid.
    pub(crate) fn ok(self) -> Option<T> {
        self.0.ok().flatten()
    }
}

impl<'de, T: Deserialize<'de>> Field<T> {
    fn read<E: Error>(value: impl IntoDeserializer<'de, E>) -> Field<T> {
        let value = T::deserialize(value.into_deserializer());
        Field(value.map(Some).map_err(|error| error.to_string().into()))
    }

    /// Reads a value without members or elements. A panic on it leaves the parser at the end of the value.
    fn read_scalar<E: Error>(value: impl IntoDeserializer<'de, E>) -> Field<T> {
        let problem = |message: Box<str>| Field(Err(panic_problem(&message).into()));
        contain(|| Field::read::<E>(value)).unwrap_or_else(problem)
    }
}

impl<T> Default for Field<T> {
    fn default() -> Field<T> {
        Field(Ok(None))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor(PhantomData))
    }
}

struct FieldVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for FieldVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Field<T>, E> {
        Ok(Field::default())
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Field<T>, E> {
        Ok(Field::read_scalar::<E>(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Field<T>, E> {
        Ok(Field::read_scalar::<E>(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Field<T>, E> {
        Ok(Field::read_scalar::<E>(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Field<T>, E> {
        Ok(Field::read_scalar::<E>(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Field<T>, E> {
        Ok(Field::read_scalar::<E>(value))
    }

    fn visit_borrowed_str<E: Error>(self, value: &'de str) -> Result<Field<T>, E> {
        Ok(Field::read_scalar::<E>(BorrowedStrDeserializer::new(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Field<T>, A::Error> {
        let field = Field::read(SeqAccessDeserializer::new(&mut list));
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(field)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Field<T>, A::Error> {
        let field = Field::read(MapAccessDeserializer::new(&mut members));
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(field)
    }
}
