//! Namespaces and calendars to facts.

use super::*;
use crate::observe::watch::{calendar::CalendarContent, namespace::NamespaceContent};

fn namespace() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {
            "name": "shop", "uid": "namespace-1", "resourceVersion": "7",
            "annotations": {
                "other": "value", "cronwheel.dev/freeze-until": "2026-12-27T06:00:00Z",
                "cronwheel.dev/freeze-reason": "year end", "cronwheel.dev/spread": "10m",
            },
            "managedFields": [
                {"manager": "kubectl", "time": "2026-03-01T00:00:00Z", "fieldsV1": {"f:metadata": {"f:labels": {}}}},
                {"manager": "cronwheel", "time": "2026-02-01T00:00:00Z", "fieldsV1": {"f:metadata": {"f:annotations": {
                    ".": {}, "f:cronwheel.dev/freeze-until": {}, "f:cronwheel.dev/freeze-reason": {},
                }}}},
            ],
        },
    })
}

fn calendar() -> Value {
    json!({
        "metadata": {"namespace": "shop", "name": "holidays", "uid": "calendar-1", "resourceVersion": "7"},
        "data": {"2026": "2026-12-25 Christmas", "2027": "2027-01-01"},
    })
}

#[test]
fn a_namespace_becomes_facts() {
    let slim: Slim<NamespaceContent> = received(&namespace());
    let NamespaceContent(facts) = slim.content.content.unwrap().expect("a namespace");
    assert_eq!(
        (&*facts.name, facts.freeze_changed),
        ("shop", Some(at("2026-02-01T00:00:00Z")))
    );
    let options = facts.options.expect("options");
    let freeze = options.freeze.as_ref().expect("a freeze");
    assert_eq!(
        (freeze.until, &*freeze.reason),
        (at("2026-12-27T06:00:00Z"), "year end")
    );
    let plain = with(namespace(), "/metadata/annotations", json!({"other": "value"}));
    let slim: Slim<NamespaceContent> = received(&plain);
    let NamespaceContent(facts) = slim.content.content.unwrap().expect("a namespace");
    assert_eq!(facts.options, None);
}

#[test]
fn a_calendar_becomes_facts() {
    let slim: Slim<CalendarContent> = received(&calendar());
    let CalendarContent(facts) = slim.content.content.unwrap().expect("a calendar");
    assert_eq!((&*facts.namespace, &*facts.name), ("shop", "holidays"));
    assert_eq!(facts.calendar.unwrap().stretches().len(), 2);
    let slim: Slim<CalendarContent> = received(&with(calendar(), "/data", json!({"days": "25.12.2026"})));
    let CalendarContent(facts) = slim.content.content.unwrap().expect("a calendar");
    assert!(facts.calendar.unwrap_err().contains("\"25.12.2026\""));
    let mut binary = calendar();
    binary["binaryData"] = json!({"latin-1.txt": "5A=="});
    let slim: Slim<CalendarContent> = received(&binary);
    let CalendarContent(facts) = slim.content.content.unwrap().expect("a calendar");
    assert!(
        facts
            .calendar
            .unwrap_err()
            .contains("key \"latin-1.txt\" is no UTF-8 text")
    );
}

#[test]
fn no_value_fails_a_list() {
    assert_lenient::<NamespaceContent>(&namespace());
    assert_lenient::<CalendarContent>(&calendar());
}
