//! What identifies an object of any kind.

use serde::Deserialize;

use super::{
    field::Field,
    parse::{FieldError, Text},
};
use crate::shard::{ResourceVersion, Uid};

/// The members of `metadata` that identify an object. An invalid one does not hide the others.
#[derive(Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(super) struct Head<'a> {
    #[serde(borrow)]
    pub(super) namespace: Field<Text<'a>>,
    pub(super) name: Field<Text<'a>>,
    pub(super) uid: Field<Text<'a>>,
    pub(super) resource_version: Field<Text<'a>>,
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
