//! The decoded part of `metadata` of any object.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::de::MapAccess;

use super::fields::{Field, FieldError, Members, object};
use crate::shard::{ResourceVersion, Uid};

object! {
    /// The members of `metadata` that every kind needs, before validation.
    #[derive(Clone)]
    pub(super) struct Head<'a> {
        "namespace" => pub(super) namespace: Field<Cow<'a, str>>,
        "name" => pub(super) name: Field<Cow<'a, str>>,
        "uid" => uid: Field<Cow<'a, str>>,
        "resourceVersion" => resource_version: Field<Cow<'a, str>>,
        "creationTimestamp" => created: Field<Cow<'a, str>>,
        "deletionTimestamp" => deleting_since: Field<Cow<'a, str>>,
    }
}

impl Head<'_> {
    pub(super) fn uid(&self) -> Result<Uid, FieldError> {
        Ok(Uid::new(&self.uid.clone().required("metadata.uid")?))
    }

    pub(super) fn namespace(&self) -> Result<Box<str>, FieldError> {
        Ok(self.namespace.clone().required("metadata.namespace")?.into())
    }

    pub(super) fn name(&self) -> Result<Box<str>, FieldError> {
        Ok(self.name.clone().required("metadata.name")?.into())
    }

    pub(super) fn resource_version(&self) -> Result<ResourceVersion, FieldError> {
        const FIELD: &str = "metadata.resourceVersion";
        let text = self.resource_version.clone().required(FIELD)?;
        match text.parse() {
            Ok(number) => Ok(ResourceVersion(number)),
            Err(_) => Err(FieldError::new(FIELD, &format!("{text:?} is no number"))),
        }
    }

    pub(super) fn created(&self) -> Result<Timestamp, FieldError> {
        const FIELD: &str = "metadata.creationTimestamp";
        let created = self.created.clone().time(FIELD)?;
        created.ok_or_else(|| FieldError::new(FIELD, "missing"))
    }

    pub(super) fn is_deleting(&self) -> bool {
        !self.deleting_since.is_absent()
    }
}
