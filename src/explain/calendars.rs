//! The calendars of the option `not-on` among the given objects: ConfigMaps with their label.

use std::sync::Arc;

use serde_json::Value;

use super::objects::{name_of, namespace_of};
use crate::{
    schedule::options::{CALENDAR_LABEL, Calendar, NamedCalendar, Options},
    shard::{CalendarUpdate, Calendars, ReadCalendar},
};

/// The calendars of an input. Nothing is known of those that are not in it.
#[derive(Debug)]
pub(super) struct GivenCalendars(Calendars);

impl Default for GivenCalendars {
    fn default() -> GivenCalendars {
        GivenCalendars(Calendars::partial())
    }
}

impl GivenCalendars {
    /// Adds a ConfigMap. Returns whether it is a calendar.
    pub(super) fn take(&self, config_map: &Value) -> bool {
        let label = config_map
            .pointer("/metadata/labels")
            .and_then(|labels| labels.get(CALENDAR_LABEL));
        let is_labelled = label.and_then(Value::as_str) == Some("true");
        let calendar = if is_labelled {
            read(config_map)
        } else {
            Err(format!("it lacks the label {CALENDAR_LABEL}=true").into())
        };
        self.add((namespace_of(config_map), name_of(config_map)), calendar);
        is_labelled
    }

    /// Notes that a calendar does not exist.
    pub(super) fn note_missing(&self, namespace: &str, name: &str) {
        self.add((namespace, name), Err("it does not exist".into()));
    }

    fn add(&self, (namespace, name): (&str, &str), calendar: ReadCalendar) {
        self.0.apply(CalendarUpdate::Applied {
            namespace: namespace.into(),
            name: name.into(),
            calendar,
        });
    }

    /// For CronJobs and shards to ask.
    pub(super) fn calendars(&self) -> &Calendars {
        &self.0
    }
}

fn read(config_map: &Value) -> ReadCalendar {
    let data = config_map["data"].as_object().into_iter().flatten();
    let texts = data.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    let binary_keys = config_map["binaryData"].as_object().into_iter().flatten();
    let calendar = Calendar::read_config_map(texts, binary_keys.map(|(key, _)| key.as_str()));
    calendar.map(Arc::new).map_err(Into::into)
}

/// What is to be said about a calendar that was not read.
pub(super) fn unread_note(options: &Options) -> Option<String> {
    let not_on = options.not_on.as_ref()?;
    (not_on.calendar == NamedCalendar::Unknown).then(|| {
        format!(
            "the ConfigMap {} of the annotation cronwheel.dev/not-on was not read: the answer is without its dates",
            not_on.name
        )
    })
}
