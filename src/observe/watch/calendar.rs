//! ConfigMaps to calendars. A selector of the API server has judged their labels.

use serde::{Deserialize as _, Deserializer};

use super::{
    fields::Decoded,
    slim::{Content, Head, Slim},
};
use crate::{
    kube_api::objects::decode::{
        config_map::{RawConfigMap, calendar},
        field::Field,
    },
    observe::facts::CalendarFacts,
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
            let fields = [
                &mut metadata.namespace,
                &mut metadata.name,
                &mut metadata.uid,
                &mut metadata.resource_version,
            ];
            head = Head::new(members, fields);
            let (namespace, name, uid) = head.identity()?;
            Ok(Some(CalendarContent(CalendarFacts {
                uid,
                namespace,
                name,
                calendar: calendar(
                    members.take_or_default(config_map.data, "data"),
                    members.take_or_default(config_map.binary_data, "binaryData"),
                ),
            })))
        });
        Ok(Slim::new(&head, decoded))
    }
}
