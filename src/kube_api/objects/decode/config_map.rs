//! Calendars: ConfigMaps with dates. A selector of the API server has judged their labels.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Deserializer, de::IgnoredAny};

use super::{Content, Received, field::Field, metadata::Head, namespace::texts, parse::Text};
use crate::{schedule::options::Calendar, shard::ReadCalendar};

/// A namespace, and a name in it.
type Key = (Box<str>, Box<str>);

/// The decoded part of a ConfigMap.
#[derive(Clone, Debug)]
pub struct CalendarContent {
    /// Its namespace and its name, if they can be decoded.
    key: Option<Key>,
    calendar: ReadCalendar,
}

impl Content for CalendarContent {
    const KIND: &'static str = "ConfigMap";
    const PLURAL: &'static str = "configmaps";

    fn receive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Received<CalendarContent>, D::Error> {
        let raw: RawConfigMap<'de> = Field::deserialize(deserializer)?.ok().unwrap_or_default();
        let head = raw.metadata.ok().unwrap_or_default();
        let calendar = calendar(
            raw.data.ok().unwrap_or_default(),
            raw.binary_data.ok().unwrap_or_default(),
        );
        let key = head.namespace().ok().zip(head.name().ok());
        Ok(Received::new(&head, CalendarContent { key, calendar }))
    }
}

impl Received<CalendarContent> {
    /// Returns the namespace, the name and the dates; `None` without a name.
    pub fn into_parts(self) -> Option<(Key, ReadCalendar)> {
        Some((self.content.key?, self.content.calendar))
    }
}

/// The members of a ConfigMap that a calendar has.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct RawConfigMap<'a> {
    /// `metadata`.
    #[serde(borrow)]
    pub(crate) metadata: Field<Head<'a>>,
    /// `data`.
    #[serde(borrow)]
    pub(crate) data: Field<BTreeMap<String, Field<Text<'a>>>>,
    /// `binaryData`, without its values.
    #[serde(rename = "binaryData")]
    pub(crate) binary_data: Field<BinaryData>,
}

/// The keys of `binaryData`.
pub(crate) type BinaryData = BTreeMap<String, Field<IgnoredAny>>;

/// Reads the dates of a ConfigMap. Values of `data` that are no text have none.
pub(crate) fn calendar(data: BTreeMap<String, Field<Text<'_>>>, binary: BinaryData) -> ReadCalendar {
    let texts = texts(data);
    let texts = texts.iter().map(|(key, text)| (key.as_str(), &**text));
    let calendar = Calendar::read_config_map(texts, binary.keys().map(String::as_str));
    calendar.map(Arc::new).map_err(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(text: &str) -> Option<(Key, ReadCalendar)> {
        serde_json::from_str::<Received<CalendarContent>>(text)
            .unwrap()
            .into_parts()
    }

    #[test]
    fn the_dates_of_all_keys_are_received() {
        let text = r#"{"metadata": {"namespace": "shop", "name": "holidays", "labels": 3},
            "data": {"2026": "2026-12-25 Christmas\n", "2027": "2027-01-01", "other": 7}}"#;
        let ((namespace, name), calendar) = received(text).unwrap();
        assert_eq!((&*namespace, &*name), ("shop", "holidays"));
        let dates: Vec<String> = calendar
            .unwrap()
            .stretches()
            .iter()
            .map(|days| days.first_date().to_string())
            .collect();
        assert_eq!(dates, ["2026-12-25", "2027-01-01"]);
    }

    #[test]
    fn a_calendar_with_a_key_that_is_no_text_is_received_with_its_problem() {
        let text = r#"{"metadata": {"namespace": "shop", "name": "holidays"},
            "data": {"2026": "2026-12-25"}, "binaryData": {"dates.txt": "5A==", "other": 7}}"#;
        let (_, calendar) = received(text).unwrap();
        assert_eq!(
            &*calendar.unwrap_err(),
            "key \"dates.txt\" is no UTF-8 text; save it as UTF-8"
        );
    }

    #[test]
    fn a_calendar_that_cannot_be_used_is_received_with_its_problem() {
        let text = r#"{"metadata": {"namespace": "shop", "name": "holidays"}, "data": {"days": "25.12.2026"}}"#;
        let (_, calendar) = received(text).unwrap();
        assert!(calendar.unwrap_err().contains("\"25.12.2026\""));
        for text in ["{}", r#"{"metadata": {"name": "holidays"}}"#, r#"{"metadata": []}"#] {
            assert!(received(text).is_none(), "{text}");
        }
    }
}
