//! What identifies an object of any kind.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

use super::{
    field::Field,
    parse::{FieldError, Text},
};
use crate::shard::{ResourceVersion, Uid};

/// The members of `metadata` that identify an object. An invalid one does not hide the others. Of a member that occurs
/// twice the last counts, as in Go.
#[derive(Clone, Default)]
pub(crate) struct Head<'a> {
    /// `metadata.namespace`.
    pub(crate) namespace: Field<Text<'a>>,
    /// `metadata.name`.
    pub(crate) name: Field<Text<'a>>,
    /// `metadata.uid`.
    pub(crate) uid: Field<Text<'a>>,
    /// `metadata.resourceVersion`.
    pub(crate) resource_version: Field<Text<'a>>,
}

impl<'a> Head<'a> {
    /// Reads the value of the member `name`. Returns false, and leaves the value, if the member identifies nothing.
    pub(super) fn read_member<A: MapAccess<'a>>(&mut self, name: &str, members: &mut A) -> Result<bool, A::Error> {
        let member = match name {
            "namespace" => &mut self.namespace,
            "name" => &mut self.name,
            "uid" => &mut self.uid,
            "resourceVersion" => &mut self.resource_version,
            _ => return Ok(false),
        };
        *member = members.next_value()?;
        Ok(true)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Head<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Head::default())
    }
}

impl<'de> Visitor<'de> for Head<'de> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Self, A::Error> {
        while let Some(Text(name)) = members.next_key()? {
            if !self.read_member(&name, &mut members)? {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(self)
    }
}

impl Head<'_> {
    pub(super) fn namespace(&self) -> Result<Box<str>, FieldError> {
        Ok(required(&self.namespace, "metadata.namespace")?.0.into())
    }

    pub(super) fn name(&self) -> Result<Box<str>, FieldError> {
        Ok(required(&self.name, "metadata.name")?.0.into())
    }

    pub(super) fn uid(&self) -> Result<Uid, FieldError> {
        Ok(Uid::new(&required(&self.uid, "metadata.uid")?))
    }

    pub(super) fn resource_version(&self) -> Result<ResourceVersion, FieldError> {
        const FIELD: &str = "metadata.resourceVersion";
        let text = required(&self.resource_version, FIELD)?;
        match text.parse() {
            Ok(number) => Ok(ResourceVersion(number)),
            Err(_) => Err(FieldError::new(FIELD, &format!("{:?} is no number", &*text))),
        }
    }
}

/// Returns a text that must be present and not empty.
fn required<'a>(text: &Field<Text<'a>>, field: &str) -> Result<Text<'a>, FieldError> {
    let text = text.clone().at(field)?.filter(|text| !text.is_empty());
    text.ok_or_else(|| FieldError::missing(field))
}
