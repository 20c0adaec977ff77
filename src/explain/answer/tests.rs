//! Tests of the text of one CronJob from its objects.

use serde_json::json;

use super::*;

/// The CronJob `hello`, which is due at 10:00 and ran last the day before.
fn cron_job() -> Value {
    json!({
        "metadata": {
            "name": "hello", "namespace": "shop", "uid": "1", "resourceVersion": "7",
            "creationTimestamp": "2026-05-01T00:00:00Z",
        },
        "spec": {"schedule": "0 10 * * *", "jobTemplate": {"spec": {"template": {"spec": {}}}}},
        "status": {"lastScheduleTime": "2026-05-04T10:00:00Z"},
    })
}

fn text_at(now: &str, events: Option<&[Value]>) -> String {
    text_of(&cron_job(), &[], events, &Zone::utc(), now.parse().unwrap()).unwrap()
}

#[test]
fn items_of_a_list_need_no_kind() {
    let text = text_at("2026-05-05T10:00:05Z", None);
    assert!(
        text.starts_with("CronJob shop/hello at 2026-05-05T10:00:05Z\n"),
        "{text}"
    );
    assert!(text.contains("creates      Job hello-29632920\n"), "{text}");
}

#[test]
fn events_that_were_not_read_are_not_called_absent() {
    let late = "2026-05-05T12:00:05Z";
    let text = text_at(late, None);
    for line in [
        "decision     unknown: due 2h ago and not started, slot Tue 2026-05-05 10:00 UTC, 2h ago\n",
        "(the controller may wait, or may have seen a change of the schedule after the slot)\n",
        "recorded     Events were not read; see them by kubectl events --for cronjob/hello -n shop\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
    let text = text_at(late, Some(&[]));
    for line in [
        "decision     unknown: due 2h ago and not started: see the Events below, slot",
        "(no Event is there: check that a controller runs)\n",
        "recorded     no Events\n",
    ] {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn other_objects_have_no_text() {
    let now = "2026-05-05T10:00:05Z".parse().unwrap();
    let text = |object: &Value| text_of(object, &[], None, &Zone::utc(), now).map_err(|error| error.to_string());
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}});
    assert_eq!(
        text(&pod),
        Err("web: no batch/v1 CronJob in it; give at least one".to_owned())
    );
    let problem = "the CronJob is not an object; give Kubernetes objects, with apiVersion, kind, metadata and spec";
    assert_eq!(text(&json!("hello")), Err(problem.to_owned()));
}

#[test]
fn the_next_runs_are_those_that_a_freeze_does_not_hold_back() {
    let answer_until = |until: &str, suspend: bool| {
        let mut cron_job = cron_job();
        cron_job["spec"]["suspend"] = suspend.into();
        let mut objects = Objects::new(Origin::Cluster);
        objects.take("the CronJob", Document::of_value(cron_job), Some("CronJob"));
        objects.take_namespace(&json!({"metadata": {
            "name": "shop", "annotations": {
                "cronwheel.dev/freeze-until": until, "cronwheel.dev/freeze-reason": "move to\n the \u{1b}[1mother region",
            },
        }}));
        let question = Question {
            input: "hello",
            name: None,
            namespace: None,
            default_zone: &Zone::utc(),
            assumed: AssumedCreate::Created,
            now: "2026-05-05T09:00:00Z".parse().unwrap(),
            is_present: true,
        };
        let answer = answer(objects, &question).unwrap();
        let document: Value = serde_json::from_str(&answer.json().unwrap()).unwrap();
        (answer.text(false).to_string(), document)
    };
    let (text, document) = answer_until("2026-05-07T06:00:00Z", false);
    let next = "next         frozen until Thu 2026-05-07 06:00 UTC: 2 runs before it do not start at their times; the latest \
                run before it starts then\n             in 2d 1h, Thu 2026-05-07 10:00 UTC\n";
    assert!(text.contains(next), "{text}");
    assert!(
        text.contains(" (until 2026-05-07T06:00:00Z: move to the [1mother region)\n"),
        "{text}"
    );
    assert_eq!(
        (&document["frozenUntil"], &document["freezeReason"]),
        (&json!("2026-05-07T06:00:00Z"), &json!("move to the [1mother region"))
    );
    assert_eq!(
        document["nextRuns"],
        json!(["2026-05-07T10:00:00Z", "2026-05-08T10:00:00Z", "2026-05-09T10:00:00Z"])
    );
    // A slot at the end of the freeze starts, and nothing else.
    let (text, document) = answer_until("2026-05-06T10:00:00Z", false);
    let next = "frozen until Wed 2026-05-06 10:00 UTC: 1 run before it does not start at its time, and not then either\n\
                \x20            in 1d 1h, Wed 2026-05-06 10:00 UTC\n";
    assert!(text.contains(next), "{text}");
    assert_eq!(document["nextRuns"][0], "2026-05-06T10:00:00Z");
    let (text, document) = answer_until("2026-05-07T06:00:00Z", true);
    assert!(text.contains("; then in 2d 1h, Thu 2026-05-07 10:00 UTC\n"), "{text}");
    assert_eq!(document["nextRuns"], json!([]));
    let (text, document) = answer_until("2026-05-05T08:00:00Z", false);
    assert!(
        text.contains("next         in 1h, Tue 2026-05-05 10:00 UTC\n"),
        "{text}"
    );
    assert_eq!(
        (
            &document["frozenUntil"],
            &document["freezeReason"],
            document["nextRuns"][0].as_str()
        ),
        (&Value::Null, &Value::Null, Some("2026-05-05T10:00:00Z"))
    );
}
