//! `not-on`: calendars among the objects.

use super::*;

/// The CronJob with a calendar.
fn on_calendar() -> Value {
    cron_job(json!({"metadata": {"annotations": {"cronwheel.dev/not-on": "holidays"}}}))
}

fn calendar(dates: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "holidays", "namespace": "default", "labels": {"cronwheel.dev/calendar": "true"}},
        "data": {"dates": dates},
    })
}

#[test]
fn a_slot_on_a_date_of_the_calendar_is_excluded() {
    let answer = run_json(&[on_calendar(), calendar("2026-05-05..2026-05-06 Audit")], &[]);
    assert_eq!(
        (&answer["decision"], &answer["reason"]),
        (&json!("skip"), &json!("Excluded"))
    );
    let message = answer["message"].as_str().unwrap();
    assert!(
        message.contains("Tue 2026-05-05 to Wed 2026-05-06 (Audit) is in the ConfigMap holidays"),
        "{message}"
    );
    assert_eq!(answer["slot"], "2026-05-05T10:00:00Z");
    check(
        &[on_calendar(), calendar("2026-05-06")],
        &[],
        json!({"decision": "fire", "reason": "Created", "events": [event("Normal", "SuccessfulCreate", "Created job hello-29632920")]}),
    );
}

#[test]
fn a_calendar_that_is_no_text_is_an_invalid_option() {
    let mut calendar = calendar("2026-05-05");
    calendar["binaryData"] = json!({"latin-1.txt": "5A=="});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [on_calendar(), calendar]});
    let mut checked = Vec::new();
    run_into(&list.to_string(), &["--check"], &mut checked).unwrap_err();
    let checked = String::from_utf8(checked).unwrap();
    let expected = "the ConfigMap cannot be used: key \"latin-1.txt\" is no UTF-8 text; save it as UTF-8";
    assert!(checked.contains(expected), "{checked}");
}

#[test]
fn a_config_map_that_a_cron_job_names_is_not_left_out() {
    let mut unlabelled = calendar("2026-05-05");
    unlabelled["metadata"]["labels"] = json!({});
    let mut unused = unlabelled.clone();
    unused["metadata"]["name"] = json!("settings");
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [unlabelled, on_calendar(), unused]});
    let printed = run_on(&list.to_string(), &[]).unwrap();
    let all = printed.output + &printed.notes;
    assert!(all.contains("it lacks the label cronwheel.dev/calendar=true"), "{all}");
    assert!(all.contains("v1 ConfigMap left out (1): "), "{all}");
}

#[test]
fn a_calendar_that_is_in_no_file_is_noted() {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [on_calendar()]});
    let printed = run_on(&list.to_string(), &[]).unwrap();
    let all = printed.output + &printed.notes;
    assert!(
        all.contains("the ConfigMap holidays of the annotation cronwheel.dev/not-on was not read"),
        "{all}"
    );
    check(&[on_calendar()], &[], json!({"decision": "fire"}));
}

#[test]
fn a_calendar_with_an_invalid_line_is_an_invalid_option() {
    let objects = [on_calendar(), calendar("2026-05-32")];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let mut checked = Vec::new();
    run_into(&list.to_string(), &["--check"], &mut checked).unwrap_err();
    let checked = String::from_utf8(checked).unwrap();
    let expected = "CronJob default/hello: InvalidOption: annotation cronwheel.dev/not-on is \"holidays\": the ConfigMap \
                    cannot be used: key \"dates\", line 1: \"2026-05-32\" does not begin with a date";
    assert!(checked.contains(expected), "{checked}");
    check(&objects, &[], json!({"decision": "fire"}));
}
