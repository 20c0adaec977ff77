//! Namespaces: only their names, since a selector of the API server has judged their labels.

use serde::{Deserialize, Deserializer};

use super::{Content, Received, field::Field, metadata::Head};

/// The decoded part of a namespace: its name, if it can be decoded.
#[derive(Clone, Debug)]
pub struct NamespaceName(Option<Box<str>>);

impl Content for NamespaceName {
    const KIND: &'static str = "Namespace";
    const PLURAL: &'static str = "namespaces";

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Received<NamespaceName>, D::Error> {
        let raw: RawNamespace<'de> = Field::deserialize(deserializer)?.ok().unwrap_or_default();
        let head = raw.metadata.ok().unwrap_or_default();
        Ok(Received::new(&head, NamespaceName(head.name().ok())))
    }
}

impl Received<NamespaceName> {
    /// Returns the name without a copy.
    pub fn into_name(self) -> Option<Box<str>> {
        self.content.0
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawNamespace<'a> {
    #[serde(borrow)]
    metadata: Field<Head<'a>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shard::ResourceVersion;

    #[test]
    fn a_namespace_is_received_whatever_its_other_fields_are() {
        for (text, name, version) in [
            (
                r#"{"metadata": {"name": "shop", "uid": "1", "resourceVersion": "7", "labels": 3}, "spec": []}"#,
                Some("shop"),
                Some(7),
            ),
            (
                r#"{"metadata": {"name": "shop", "resourceVersion": "x"}}"#,
                Some("shop"),
                None,
            ),
            (r#"{"metadata": {"name": 7, "resourceVersion": "7"}}"#, None, Some(7)),
            ("{}", None, None),
        ] {
            let received: Received<NamespaceName> = serde_json::from_str(text).unwrap();
            assert_eq!(received.resource_version(), version.map(ResourceVersion), "{text}");
            assert_eq!(received.into_name().as_deref(), name, "{text}");
        }
    }
}
