//! Objects as the watches receive them: the version for the watcher, and what was decoded from the few members that the
//! view reads.
//!
//! A typed Job of 4 KB would take 27 KB, and one member of a wrong type would fail the list of all Jobs. Here only invalid
//! JSON fails.

use std::borrow::Cow;

use k8s_openapi::{NamespaceResourceScope, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::Resource;
use serde::{Deserialize, Deserializer};

use super::fields::{Decoded, Members, Problem};
use crate::{
    kube_api::objects::decode::{field::Field, parse::Text},
    shard::Uid,
};

/// A received object.
#[derive(Clone, Debug)]
pub(in crate::observe) struct Slim<C> {
    /// Only the name, the namespace and the resource version.
    metadata: ObjectMeta,
    /// `metadata.uid`, if it is a text.
    pub(super) uid: Option<Uid>,
    /// The other members, decoded.
    pub(super) content: Decoded<C>,
}

/// The content of a kind of objects.
pub(in crate::observe) trait Content: Clone + std::fmt::Debug + Send + 'static {
    /// The kind in the spelling of Kubernetes.
    const KIND: &'static str;
    /// The plural in paths.
    const PLURAL: &'static str;
    /// The group of the API; empty for the core.
    const GROUP: &'static str = "batch";
    /// Whether the view cannot do without it.
    const IS_NEEDED: bool = true;

    /// Receives an object with any members.
    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Slim<Self>, D::Error>;
}

impl<C> Slim<C> {
    /// Puts an object together.
    pub(super) fn new(head: &Head<'_>, content: Decoded<C>) -> Slim<C> {
        let text = |text: &Option<Cow<'_, str>>| text.as_deref().map(str::to_owned);
        Slim {
            metadata: ObjectMeta {
                namespace: text(&head.namespace),
                name: text(&head.name),
                resource_version: text(&head.resource_version),
                ..ObjectMeta::default()
            },
            uid: head.uid.as_deref().map(Uid::new),
            content,
        }
    }

    /// `namespace/name`, as far as they are known.
    pub(super) fn title(&self) -> String {
        let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
        format!("{}/{}", text(&self.metadata.namespace), text(&self.metadata.name))
    }
}

/// What identifies an object, and its version.
#[derive(Default)]
pub(super) struct Head<'a> {
    pub(super) namespace: Option<Cow<'a, str>>,
    pub(super) name: Option<Cow<'a, str>>,
    pub(super) uid: Option<Cow<'a, str>>,
    pub(super) resource_version: Option<Cow<'a, str>>,
}

impl<'a> Head<'a> {
    /// Takes the members of the metadata: namespace, name, uid and resource version.
    pub(super) fn new(members: &mut Members, fields: [&mut Field<Text<'a>>; 4]) -> Head<'a> {
        let mut text = |field: &mut Field<Text<'a>>, path| members.text(std::mem::take(field), path);
        let [namespace, name, uid, resource_version] = fields;
        Head {
            namespace: text(namespace, "metadata.namespace"),
            name: text(name, "metadata.name"),
            uid: text(uid, "metadata.uid"),
            resource_version: text(resource_version, "metadata.resourceVersion"),
        }
    }

    /// Returns namespace, name and uid, without which there is nothing to show.
    pub(super) fn identity(&self) -> Result<(Box<str>, Box<str>, Uid), Problem> {
        let required = |text: &Option<Cow<'_, str>>, field: &'static str| {
            let text = text.as_deref().filter(|text| !text.is_empty());
            text.map(Box::from).ok_or_else(|| Problem::missing(field))
        };
        let namespace = required(&self.namespace, "metadata.namespace")?;
        let name = required(&self.name, "metadata.name")?;
        let uid = required(&self.uid, "metadata.uid")?;
        Ok((namespace, name, Uid::new(&uid)))
    }
}

impl<'de, C: Content> Deserialize<'de> for Slim<C> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Slim<C>, D::Error> {
        C::receive(deserializer)
    }
}

impl<C: Content> Resource for Slim<C> {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        C::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        C::GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        C::PLURAL.into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
