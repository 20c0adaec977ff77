//! Namespaces to facts: their options, and when those of a freeze were set.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use super::{
    fields::{Decoded, ManagedFieldsList, Problem, last_freeze_change},
    slim::{Content, Head, Slim},
};
use crate::{
    kube_api::objects::decode::{field::Field, namespace::options, parse::Text},
    observe::facts::NamespaceFacts,
    shard::Uid,
};

/// A namespace.
#[derive(Clone, Debug)]
pub(in crate::observe) struct NamespaceContent(pub(in crate::observe) NamespaceFacts);

impl Content for NamespaceContent {
    const KIND: &'static str = "Namespace";
    const PLURAL: &'static str = "namespaces";
    const GROUP: &'static str = "";
    const IS_NEEDED: bool = false;

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Slim<NamespaceContent>, D::Error> {
        let namespace: RawNamespace<'de> = Field::deserialize(deserializer)?.ok().unwrap_or_default();
        let mut head = Head::default();
        let decoded = Decoded::contained(|members| {
            let mut metadata = members.take_or_default(namespace.metadata, "metadata");
            let RawMetadata {
                name,
                uid,
                resource_version,
                ..
            } = &mut metadata;
            head = Head::new(members, [&mut Field::default(), name, uid, resource_version]);
            let name = head.name.as_deref().filter(|name| !name.is_empty());
            let uid = head.uid.as_deref().filter(|uid| !uid.is_empty());
            let (Some(name), Some(uid)) = (name, uid) else {
                return Err(Problem::missing("metadata.name and metadata.uid"));
            };
            let annotations = members.take_or_default(metadata.annotations, "metadata.annotations");
            Ok(Some(NamespaceContent(NamespaceFacts {
                uid: Uid::new(uid),
                name: name.into(),
                options: options(annotations),
                freeze_changed: last_freeze_change(metadata.managed_fields),
            })))
        });
        Ok(Slim::new(&head, decoded))
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
    managed_fields: ManagedFieldsList<'a>,
}
