//! ConfigMaps to calendars. A selector of the API server has judged their labels.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Deserializer, de::IgnoredAny};

use super::{
    fields::Decoded,
    slim::{Content, Head, Slim},
};
use crate::{
    kube_api::objects::decode::{field::Field, parse::Text},
    observe::facts::CalendarFacts,
    schedule::options::Calendar,
};

/// A calendar.
#[derive(Clone, Debug)]
pub(in crate::observe) struct CalendarContent(pub(in crate::observe) CalendarFacts);

impl Content for CalendarContent {
    const KIND: &'static str = "ConfigMap";
    const PLURAL: &'static str = "configmaps";
    const GROUP: &'static str = "";
    const IS_NEEDED: bool = false;

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Slim<CalendarContent>, D::Error> {
        let config_map: RawConfigMap<'de> = Field::deserialize(deserializer)?.ok().unwrap_or_default();
        let mut head = Head::default();
        let decoded = Decoded::contained(|members| {
            let mut metadata = members.take_or_default(config_map.metadata, "metadata");
            let RawMetadata {
                namespace,
                name,
                uid,
                resource_version,
            } = &mut metadata;
            head = Head::new(members, [namespace, name, uid, resource_version]);
            let (namespace, name, uid) = head.identity()?;
            let data = members.take_or_default(config_map.data, "data");
            let texts = data.into_iter().filter_map(|(key, text)| Some((key, text.ok()?)));
            let texts: BTreeMap<Text<'_>, Text<'_>> = texts.collect();
            let texts = texts.iter().map(|(key, text)| (&**key, &**text));
            let binary = members.take_or_default(config_map.binary_data, "binaryData");
            let calendar = Calendar::read_config_map(texts, binary.keys().map(|key| &**key));
            Ok(Some(CalendarContent(CalendarFacts {
                uid,
                namespace,
                name,
                calendar: calendar.map(Arc::new).map_err(Into::into),
            })))
        });
        Ok(Slim::new(&head, decoded))
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawConfigMap<'a> {
    #[serde(borrow)]
    metadata: Field<RawMetadata<'a>>,
    data: Field<BTreeMap<Text<'a>, Field<Text<'a>>>>,
    #[serde(rename = "binaryData")]
    binary_data: Field<BTreeMap<Text<'a>, Field<IgnoredAny>>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RawMetadata<'a> {
    #[serde(borrow)]
    namespace: Field<Text<'a>>,
    name: Field<Text<'a>>,
    uid: Field<Text<'a>>,
    resource_version: Field<Text<'a>>,
}
