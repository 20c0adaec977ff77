//! `metadata` of any object, read once.

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::fields::{FieldError, Member, Members, is_null, read, required_text, text, time};
use crate::state::{ResourceVersion, Uid};

/// The members of `metadata` that an API server keeps by itself, or that we write anew. All others a
/// status write must send back (B-16.4): labels, annotations, finalizers, owner references, but also `generateName`.
const NOT_RETAINED: [&str; 10] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
    "managedFields",
];

/// `metadata`, split into its members.
pub(super) struct Metadata<'a> {
    members: Vec<Member<'a>>,
}

impl<'a> Metadata<'a> {
    /// Metadata that is absent or no object has no members.
    pub(super) fn split(raw: Option<&'a RawValue>) -> Metadata<'a> {
        let members = raw.and_then(|raw| read("metadata", raw).ok());
        Metadata {
            members: members.map_or_else(Vec::new, |Members(members)| members),
        }
    }

    pub(super) fn member(&self, name: &str) -> Option<&'a RawValue> {
        let member = self.members.iter().find(|member| member.name() == name)?;
        (!is_null(member.value)).then_some(member.value)
    }

    pub(super) fn name(&self) -> Result<Box<str>, FieldError> {
        Ok(required_text("metadata.name", self.member("name"))?.into())
    }

    pub(super) fn namespace(&self) -> Result<Box<str>, FieldError> {
        Ok(required_text("metadata.namespace", self.member("namespace"))?.into())
    }

    pub(super) fn uid(&self) -> Result<Uid, FieldError> {
        Ok(Uid::new(&required_text("metadata.uid", self.member("uid"))?))
    }

    /// The resource version as written.
    pub(super) fn resource_version_text(&self) -> Option<String> {
        let text = text("metadata.resourceVersion", self.member("resourceVersion"));
        Some(text.ok()??.into_owned())
    }

    pub(super) fn resource_version(&self) -> Result<ResourceVersion, FieldError> {
        const FIELD: &str = "metadata.resourceVersion";
        let text = required_text(FIELD, self.member("resourceVersion"))?;
        match text.parse() {
            Ok(number) => Ok(ResourceVersion(number)),
            Err(_) => Err(FieldError::new(FIELD, &format!("{text:?} is no number"))),
        }
    }

    pub(super) fn created(&self) -> Result<Timestamp, FieldError> {
        const FIELD: &str = "metadata.creationTimestamp";
        time(FIELD, self.member("creationTimestamp"))?.ok_or_else(|| FieldError::new(FIELD, "missing"))
    }

    pub(super) fn is_deleting(&self) -> bool {
        self.member("deletionTimestamp").is_some()
    }

    /// The members that a status write sends back, as they came, with a leading comma each.
    pub(super) fn retained_members(&self) -> Box<str> {
        let mut retained = String::new();
        for member in &self.members {
            if is_null(member.value) || NOT_RETAINED.contains(&&*member.name()) {
                continue;
            }
            retained.push(',');
            retained.push_str(member.raw_name);
            retained.push(':');
            retained.push_str(member.value.get());
        }
        retained.into()
    }
}
