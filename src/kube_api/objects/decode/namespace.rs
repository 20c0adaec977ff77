//! Namespaces: their names and options. A selector of the API server has judged their labels.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::{Content, Received, field::Field, metadata::Head, parse::Text};
use crate::schedule::options::NamespaceOptions;

/// The decoded part of a namespace.
#[derive(Clone, Debug)]
pub struct NamespaceContent {
    /// Its name, if it can be decoded.
    name: Option<Box<str>>,
    options: Option<Box<NamespaceOptions>>,
}

impl Content for NamespaceContent {
    const KIND: &'static str = "Namespace";
    const PLURAL: &'static str = "namespaces";

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Received<NamespaceContent>, D::Error> {
        let raw: RawNamespace<'de> = Field::deserialize(deserializer)?.ok().unwrap_or_default();
        let metadata = raw.metadata.ok().unwrap_or_default();
        let head = Head {
            name: metadata.name,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            ..Head::default()
        };
        let content = NamespaceContent {
            name: head.name().ok(),
            options: options(metadata.annotations.ok().unwrap_or_default()),
        };
        Ok(Received::new(&head, content))
    }
}

/// Reads the options of a namespace from its annotations. Values that are no text are none.
pub(crate) fn options(annotations: BTreeMap<String, Field<Text<'_>>>) -> Option<Box<NamespaceOptions>> {
    let annotations = texts(annotations);
    NamespaceOptions::read(|name| annotations.get(name).map(|text| &**text)).map(Box::new)
}

/// The values that are texts.
pub(super) fn texts(values: BTreeMap<String, Field<Text<'_>>>) -> BTreeMap<String, Text<'_>> {
    let texts = values.into_iter().filter_map(|(name, value)| Some((name, value.ok()?)));
    texts.collect()
}

/// The annotations that are texts. An API server has no others, but a file may.
pub(super) fn texts_in(annotations: &str) -> BTreeMap<String, String> {
    let annotations = texts(serde_json::from_str(annotations).unwrap_or_default()).into_iter();
    annotations
        .map(|(name, Text(value))| (name, value.into_owned()))
        .collect()
}

impl Received<NamespaceContent> {
    /// Returns the name and the options without a copy; `None` without a name.
    pub fn into_parts(self) -> Option<(Box<str>, Option<Box<NamespaceOptions>>)> {
        Some((self.content.name?, self.content.options))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawNamespace<'a> {
    #[serde(borrow)]
    metadata: Field<RawMetadata<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawMetadata<'a> {
    #[serde(borrow)]
    name: Field<Text<'a>>,
    uid: Field<Text<'a>>,
    resource_version: Field<Text<'a>>,
    annotations: Field<BTreeMap<String, Field<Text<'a>>>>,
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
                r#"{"metadata": {"name": "shop", "resourceVersion": "x", "annotations": {"a": 7}}}"#,
                Some("shop"),
                None,
            ),
            (
                r#"{"metadata": {"name": 7, "resourceVersion": "7", "annotations": []}}"#,
                None,
                Some(7),
            ),
            ("{}", None, None),
        ] {
            let received: Received<NamespaceContent> = serde_json::from_str(text).unwrap();
            assert_eq!(received.resource_version(), version.map(ResourceVersion), "{text}");
            let parts = received.into_parts();
            assert_eq!(parts.as_ref().map(|(name, _)| &**name), name, "{text}");
            assert_eq!(parts.and_then(|(_, options)| options), None, "{text}");
        }
    }

    #[test]
    fn the_options_of_a_namespace_are_received() {
        let text = r#"{"metadata": {"name": "shop", "annotations": {"a": null,
            "cronwheel.dev/freeze-until": "2026-12-27T06:00:00Z", "cronwheel.dev/freeze-reason": "year end"}}}"#;
        let received: Received<NamespaceContent> = serde_json::from_str(text).unwrap();
        let (_, options) = received.into_parts().unwrap();
        let freeze = options.unwrap().freeze.unwrap();
        assert_eq!(
            (freeze.until.to_string(), &*freeze.reason),
            ("2026-12-27T06:00:00Z".to_owned(), "year end")
        );
    }
}
