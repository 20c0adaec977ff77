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
