//! One version of one object: its JSON, and the few fields that are needed without parsing it.

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{Key, text::Text};
use crate::Resource;

/// A uid. A text that is not a UUID never equals a uid that the server assigned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Uid(pub(crate) u128);

impl Uid {
    pub(crate) fn parse(text: &str) -> Option<Uid> {
        if text.len() != 36 {
            return None;
        }
        let mut uid = 0;
        for (at, byte) in text.bytes().enumerate() {
            if matches!(at, 8 | 13 | 18 | 23) {
                if byte != b'-' {
                    return None;
                }
            } else {
                uid = uid << 4 | u128::from(char::from(byte).to_digit(16)?);
            }
        }
        Some(Uid(uid))
    }

    pub(crate) fn text(self) -> String {
        let digits = format!("{:032x}", self.0);
        [
            &digits[..8],
            &digits[8..12],
            &digits[12..16],
            &digits[16..20],
            &digits[20..],
        ]
        .join("-")
    }
}

/// An owner reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: Uid,
    /// `blockOwnerDeletion`.
    pub(crate) is_blocking: bool,
    /// Whether the kind of the owner is served. The existence of other owners is unknown.
    pub(crate) is_served: bool,
}

/// A version of an object.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) key: Key,
    pub(crate) version: u64,
    pub(crate) uid: Uid,
    /// `key=value`, one per line. Labels contain neither character.
    labels: Box<str>,
    pub(crate) owners: Box<[Owner]>,
    /// Whether the object is marked for deletion.
    pub(crate) is_deleting: bool,
    pub(crate) has_finalizers: bool,
    text: Text,
}

impl Stored {
    /// Writes the version into the object and serializes it, with this text as its spec if given.
    pub(super) fn new(key: Key, version: u64, object: &mut Value, spec: Option<&[u8]>) -> Stored {
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let metadata = &object["metadata"];
        let owners = metadata["ownerReferences"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        Stored {
            uid: metadata["uid"].as_str().and_then(Uid::parse).unwrap_or(Uid(0)),
            labels: label_lines(&metadata["labels"]),
            owners: owners.iter().map(owner).collect(),
            is_deleting: !metadata["deletionTimestamp"].is_null(),
            has_finalizers: metadata["finalizers"].as_array().is_some_and(|list| !list.is_empty()),
            text: Text::new(object.as_object().unwrap_or(&Map::new()), spec),
            key,
            version,
        }
    }

    /// Returns the same object under another version, with this status if given.
    pub(super) fn changed(&self, version: u64, status: Option<&Value>) -> Stored {
        let Some(text) = self.text.changed(version, status) else {
            // The object has no status yet.
            let mut object = self.value();
            if let Some(status) = status {
                object["status"] = status.clone();
            }
            return Stored::new(self.key.clone(), version, &mut object, None);
        };
        Stored {
            key: self.key.clone(),
            version,
            uid: self.uid,
            labels: self.labels.clone(),
            owners: self.owners.clone(),
            is_deleting: self.is_deleting,
            has_finalizers: self.has_finalizers,
            text,
        }
    }

    /// The JSON of the object.
    pub(crate) fn json(&self) -> Bytes {
        self.text.json.clone()
    }

    /// The JSON of the spec. Empty if there is none.
    pub(crate) fn spec(&self) -> Bytes {
        self.text.spec()
    }

    /// The JSON of the status. Empty if there is none.
    pub(crate) fn status(&self) -> &[u8] {
        self.text.status()
    }

    /// Parses the object.
    pub(crate) fn value(&self) -> Value {
        self.text.value()
    }

    /// Parses the object with null in place of its spec, if it has one.
    pub(crate) fn value_without_spec(&self) -> Value {
        self.text.value_without_spec()
    }

    /// The value of a label.
    pub(crate) fn label(&self, key: &str) -> Option<&str> {
        let mut labels = self.labels.lines().filter_map(|line| line.split_once('='));
        labels.find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

fn label_lines(labels: &Value) -> Box<str> {
    let mut lines = String::new();
    for (key, value) in labels.as_object().into_iter().flatten() {
        lines.push_str(key);
        lines.push('=');
        lines.push_str(value.as_str().unwrap_or_default());
        lines.push('\n');
    }
    lines.into_boxed_str()
}

fn owner(reference: &Value) -> Owner {
    let is_match =
        |resource: &Resource| reference["kind"] == resource.kind() && reference["apiVersion"] == resource.api_version();
    Owner {
        // No object has the uid 0, so a reference that is not a UUID has no owner.
        uid: reference["uid"].as_str().and_then(Uid::parse).unwrap_or(Uid(0)),
        is_blocking: reference["blockOwnerDeletion"] == true,
        is_served: Resource::ALL.iter().any(is_match),
    }
}
