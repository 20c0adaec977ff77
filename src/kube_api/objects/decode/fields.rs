//! Decodes JSON in one pass, so that a value of an unexpected type invalidates only its own field.

use std::{borrow::Cow, fmt, marker::PhantomData};

use jiff::Timestamp;
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// An invalid field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldError {
    /// Path in the object, e.g. `spec.suspend`.
    pub(super) field: &'static str,
    /// The problem.
    pub(super) problem: Box<str>,
}

/// Maximum size of a problem in bytes: it goes into Events and logs.
const PROBLEM_MAX_BYTES: usize = 256;

impl FieldError {
    pub(super) fn new(field: &'static str, problem: &str) -> FieldError {
        // The text may quote a value of the object of any size.
        let end = problem.floor_char_boundary(PROBLEM_MAX_BYTES);
        FieldError {
            field,
            problem: problem[..end].into(),
        }
    }
}

/// A value that is present, absent or null, or of an unexpected type. Only invalid JSON fails to deserialize.
#[derive(Clone, Debug, Default)]
pub(super) enum Field<T> {
    #[default]
    Absent,
    Read(T),
    /// The actual type, e.g. `a string`.
    Wrong(&'static str),
}

impl<T> Field<T> {
    /// Returns the value; `None` if it is absent or null.
    pub(super) fn optional<'de>(self, field: &'static str) -> Result<Option<T>, FieldError>
    where
        T: Value<'de>,
    {
        match self {
            Field::Absent => Ok(None),
            Field::Read(value) => Ok(Some(value)),
            Field::Wrong(found) => {
                let problem = format!("expected {}, found {found}", T::EXPECTED);
                Err(FieldError::new(field, &problem))
            }
        }
    }

    /// Returns the value; `None` if it is absent or invalid.
    pub(super) fn if_read(self) -> Option<T> {
        match self {
            Field::Read(value) => Some(value),
            Field::Absent | Field::Wrong(_) => None,
        }
    }

    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Field::Absent)
    }
}

impl<'a> Field<Cow<'a, str>> {
    /// Returns a string that must be present and not empty.
    pub(super) fn required(self, field: &'static str) -> Result<Cow<'a, str>, FieldError> {
        let text = self.optional(field)?.filter(|text| !text.is_empty());
        text.ok_or_else(|| FieldError::new(field, "missing"))
    }

    /// Returns an RFC 3339 time, if it is present.
    pub(super) fn time(self, field: &'static str) -> Result<Option<Timestamp>, FieldError> {
        let Some(text) = self.optional(field)? else {
            return Ok(None);
        };
        match text.parse() {
            Ok(time) => Ok(Some(time)),
            Err(_) => Err(FieldError::new(field, &format!("{text:?} is no RFC 3339 time"))),
        }
    }
}

/// A type that a field can have. Other input is skipped.
pub(super) trait Value<'de>: Sized {
    /// The type as text, e.g. `a string`.
    const EXPECTED: &'static str;

    fn from_bool(_value: bool) -> Option<Self> {
        None
    }

    fn from_integer(_value: i64) -> Option<Self> {
        None
    }

    fn from_text(_value: Cow<'de, str>) -> Option<Self> {
        None
    }

    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl Value<'_> for bool {
    const EXPECTED: &'static str = "a boolean";

    fn from_bool(value: bool) -> Option<bool> {
        Some(value)
    }
}

impl Value<'_> for i64 {
    const EXPECTED: &'static str = "an integer";

    fn from_integer(value: i64) -> Option<i64> {
        Some(value)
    }
}

impl<'de> Value<'de> for Cow<'de, str> {
    const EXPECTED: &'static str = "a string";

    fn from_text(value: Cow<'de, str>) -> Option<Cow<'de, str>> {
        Some(value)
    }
}

impl<'de, T: Value<'de>> Value<'de> for Vec<Field<T>> {
    const EXPECTED: &'static str = "a list";

    fn from_list<A: SeqAccess<'de>>(mut list: A) -> Result<Option<Self>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Some(values))
    }
}

/// An object of which some members are decoded. All others are skipped.
pub(super) trait Members<'de>: Default {
    /// Takes the value of the next member if it is one of them, and returns whether it is.
    fn take<A: MapAccess<'de>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error>;
}

impl<'de, T: Members<'de>> Value<'de> for T {
    const EXPECTED: &'static str = "an object";

    fn from_members<A: MapAccess<'de>>(mut members: A) -> Result<Option<Self>, A::Error> {
        let mut object = T::default();
        while let Some(Name(name)) = members.next_key()? {
            if !object.take(&name, &mut members)? {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(Some(object))
    }
}

/// An object whose decoded members are fields, each with its JSON name and its type.
macro_rules! object {
    ($(#[$attribute:meta])* $visibility:vis struct $name:ident<$lifetime:lifetime> {
        $($member:pat => $field_visibility:vis $field:ident: $form:ty,)*
    }) => {
        $(#[$attribute])*
        #[derive(Default)]
        $visibility struct $name<$lifetime> {
            $($field_visibility $field: $form,)*
        }

        impl<$lifetime> Members<$lifetime> for $name<$lifetime> {
            fn take<A: MapAccess<$lifetime>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
                match name {
                    $($member => self.$field = members.next_value()?,)*
                    _ => return Ok(false),
                }
                Ok(true)
            }
        }
    };
}

pub(super) use object;

/// The name of a member.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de, T: Value<'de>> Deserialize<'de> for Field<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FieldVisitor(PhantomData))
    }
}

struct FieldVisitor<T>(PhantomData<T>);

impl<'de, T: Value<'de>> Visitor<'de> for FieldVisitor<T> {
    type Value = Field<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Field::Absent)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(T::from_bool(value).map_or(Field::Wrong("a boolean"), Field::Read))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(T::from_integer(value).map_or(Field::Wrong("a number"), Field::Read))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        let value = i64::try_from(value).ok().and_then(T::from_integer);
        Ok(value.map_or(Field::Wrong("a number"), Field::Read))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Field::Wrong("a number"))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Self::Value, E> {
        Ok(T::from_text(Cow::Borrowed(value)).map_or(Field::Wrong("a string"), Field::Read))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        let value = T::from_text(Cow::Owned(value.to_owned()));
        Ok(value.map_or(Field::Wrong("a string"), Field::Read))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
        Ok(T::from_list(list)?.map_or(Field::Wrong("a list"), Field::Read))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        Ok(T::from_members(members)?.map_or(Field::Wrong("an object"), Field::Read))
    }
}
