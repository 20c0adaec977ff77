//! The objects and Events in a controller's namespace, without values that differ from run to run.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use jiff::{Timestamp, ToSpan as _};
use kube::api::ListParams;
use serde_json::Value;

use super::world::Place;

/// The annotations that name the replica that created a Job (`docs/reference/differences.md`).
const CREATOR: [&str; 3] = [
    "cronwheel.dev/created-by",
    "cronwheel.dev/created-under",
    "cronwheel.dev/create-before",
];

/// Objects and Events, without values that differ between two namespaces.
pub(super) struct Snapshot {
    /// By kind and name. Each is a map from the path of a value to the value.
    objects: BTreeMap<String, BTreeMap<String, String>>,
    /// Events without counts, because counts depend on how often a controller syncs.
    events: BTreeSet<String>,
}

impl Snapshot {
    pub(super) async fn take(place: &Place, begun: Timestamp) -> Snapshot {
        let mut raw = Vec::new();
        for kind in ["CronJob", "Job"] {
            let list = place.api(kind).list(&ListParams::default()).await.expect("a list");
            raw.extend(list.items.into_iter().map(|object| {
                let name = object.metadata.name.clone().unwrap_or_default();
                let uid = object.metadata.uid.clone().unwrap_or_default();
                (
                    format!("{kind} {name}"),
                    uid,
                    serde_json::to_value(object).expect("JSON"),
                )
            }));
        }
        let plain = Plain {
            namespace: &place.namespace,
            begun,
            uids: raw
                .iter()
                .map(|(key, uid, _)| (uid.clone(), format!("uid of {key}")))
                .collect(),
        };
        let objects = raw.iter().map(|(key, _, object)| {
            let mut values = BTreeMap::new();
            plain.flatten("", object, &mut values);
            (key.clone(), values)
        });
        let events = place.api("Event").list(&ListParams::default()).await.expect("Events");
        let events = events.items.into_iter().map(|event| plain.event(&event.data));
        Snapshot {
            objects: objects.collect(),
            events: events.collect(),
        }
    }

    /// The differences, one per line. `self` is from the built-in controller.
    pub(super) fn differences(&self, ours: &Snapshot) -> Vec<String> {
        let mut found = Vec::new();
        for key in self.objects.keys().chain(ours.objects.keys()).collect::<BTreeSet<_>>() {
            match (self.objects.get(key), ours.objects.get(key)) {
                (Some(theirs), Some(ours)) => {
                    for path in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
                        let none = "nothing".to_owned();
                        let (theirs, ours) = (theirs.get(path).unwrap_or(&none), ours.get(path).unwrap_or(&none));
                        if theirs != ours {
                            found.push(format!("{key}: {path}: {theirs} there, {ours} here"));
                        }
                    }
                }
                (Some(_), None) => found.push(format!("{key}: only there")),
                (None, _) => found.push(format!("{key}: only here")),
            }
        }
        found.extend(
            self.events
                .difference(&ours.events)
                .map(|event| format!("Event only there: {event}")),
        );
        found.extend(
            ours.events
                .difference(&self.events)
                .map(|event| format!("Event only here: {event}")),
        );
        found
    }
}

/// Shows the number of objects, because a comparison of empty snapshots proves nothing.
impl fmt::Display for Snapshot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n_jobs = self.objects.keys().filter(|key| key.starts_with("Job ")).count();
        let n_events = self.events.len();
        write!(
            formatter,
            "Jobs of the built-in: {n_jobs}, its different Events: {n_events}"
        )
    }
}

/// Removes values that differ from run to run.
struct Plain<'a> {
    namespace: &'a str,
    begun: Timestamp,
    uids: Vec<(String, String)>,
}

impl Plain<'_> {
    fn flatten(&self, path: &str, value: &Value, into: &mut BTreeMap<String, String>) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    let is_of_this_run = matches!(
                        name.as_str(),
                        "resourceVersion" | "creationTimestamp" | "managedFields" | "generation"
                    );
                    if !is_of_this_run && !CREATOR.contains(&name.as_str()) {
                        self.flatten(&format!("{path}.{name}"), member, into);
                    }
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.flatten(&format!("{path}[{index}]"), item, into);
                }
            }
            Value::String(text) => drop(into.insert(path.to_owned(), self.text(text))),
            Value::Null | Value::Bool(_) | Value::Number(_) => drop(into.insert(path.to_owned(), value.to_string())),
        }
    }

    /// Replaces uids and the namespace by symbolic names, and times of this run by a fixed text.
    fn text(&self, text: &str) -> String {
        let is_of_this_run = |time: Timestamp| (self.begun - 10.seconds()..self.begun + 10.minutes()).contains(&time);
        if text.parse().is_ok_and(is_of_this_run) {
            return "a time of this run".to_owned();
        }
        let text = self
            .uids
            .iter()
            .fold(text.to_owned(), |text, (uid, name)| text.replace(uid, name));
        text.replace(self.namespace, "the namespace")
    }

    fn event(&self, event: &Value) -> String {
        let text = |value: &Value| self.text(value.as_str().unwrap_or_default());
        let object = &event["involvedObject"];
        format!(
            "{} {} {} (on {} {} {}, {}, from {} {})",
            text(&event["type"]),
            text(&event["reason"]),
            text(&event["message"]),
            text(&object["apiVersion"]),
            text(&object["kind"]),
            text(&object["name"]),
            text(&object["uid"]),
            text(&event["source"]["component"]),
            text(&event["reportingComponent"]),
        )
    }
}

pub(super) fn snapshots_differ_only_in_relevant_fields() {
    let begun: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
    let snapshot = |namespace: &str, uid: &str, slot: &str, events: &[&str]| {
        let plain = Plain {
            namespace,
            begun,
            uids: vec![(uid.to_owned(), "uid of Job a".to_owned())],
        };
        let object = serde_json::json!({"metadata": {"namespace": namespace, "uid": uid, "resourceVersion": uid},
            "status": {"startTime": "2026-11-21T12:00:07Z", "slot": slot, "active": [{"uid": uid}]}});
        let mut values = BTreeMap::new();
        plain.flatten("", &object, &mut values);
        Snapshot {
            objects: BTreeMap::from([("Job a".to_owned(), values)]),
            events: events.iter().copied().map(str::to_owned).collect(),
        }
    };
    let theirs = snapshot("there", "1-2", "2035-05-01T12:00:00Z", &["one"]);
    let same = snapshot("here", "3-4", "2035-05-01T12:00:00Z", &["one"]);
    assert!(theirs.differences(&same).is_empty());
    let other = snapshot("here", "3-4", "2035-05-01T12:01:00Z", &["two"]);
    assert_eq!(
        theirs.differences(&other),
        [
            "Job a: .status.slot: 2035-05-01T12:00:00Z there, 2035-05-01T12:01:00Z here",
            "Event only there: one",
            "Event only here: two",
        ]
    );
}
