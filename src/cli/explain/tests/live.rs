//! Tests of the requests to a cluster and of the use of the responses.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use kube::{Client, client::Body};

use super::*;

const BASE: &str = "/apis/batch/v1/namespaces";

const NAMESPACE: &str = "/api/v1/namespaces/default";

const EVENTS: &str = "/api/v1/namespaces/default/events?limit=500&fieldSelector=involvedObject.kind%3DCronJob%2CinvolvedObject.name%3Dhello";

/// A cluster with these objects, by path, and the list of requested paths.
fn cluster(objects: Vec<(String, Value)>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let requested_paths = Arc::new(Mutex::new(Vec::new()));
    let requests = requested_paths.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path_and_query().unwrap().to_string();
        let found = objects.iter().find(|(at, _)| *at == path);
        let (code, body) = match found {
            Some((_, object)) => (200, object.clone()),
            None => (
                404,
                json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": "not found",
                    "reason": "NotFound", "code": 404}),
            ),
        };
        requests.lock().unwrap().push(path);
        let answer = Response::builder()
            .status(code)
            .body(Full::new(Bytes::from(body.to_string())));
        std::future::ready(Ok::<_, Infallible>(answer.unwrap()))
    });
    (Client::new(service, "default"), requested_paths)
}

async fn run_json_live(client: &Client) -> Result<Value, String> {
    run_json_at(client, || "2026-05-05T10:00:05Z".parse().unwrap()).await
}

async fn run_json_at(client: &Client, now: impl FnOnce() -> Timestamp) -> Result<Value, String> {
    use clap::Parser as _;
    let line = ["cronwheel", "explain", "hello", "-n", "default", "-o", "json"];
    let Command::Explain(args) = Cli::try_parse_from(line).unwrap().command else {
        return Err("another command".to_owned());
    };
    let mut output = Vec::new();
    run_live(&args, client, ("default", "hello"), now, &mut output, &mut Vec::new())
        .await
        .map_err(|error| error.to_string())?;
    Ok(serde_json::from_slice(&output).unwrap())
}

#[tokio::test]
async fn b_5_4_active_entries_are_looked_up_in_their_namespace() {
    let entry_in = |namespace: &str, name: &str| {
        with(
            entry(29_632_910),
            json!({"namespace": namespace, "name": name, "uid": name}),
        )
    };
    let cron_job = cron_job(json!({
        "spec": {"concurrencyPolicy": "Forbid"},
        "status": {"active": [
            entry_in("default", "gone-here"), entry_in("other", "there"), entry_in("other", "gone"), entry_in("..", "x"),
        ]},
    }));
    let there = json!({"metadata": {"name": "there", "namespace": "other", "uid": "there"}});
    let (client, requested_paths) = cluster(vec![
        (format!("{BASE}/default/cronjobs/hello"), cron_job),
        (
            format!("{BASE}/default/jobs?limit=500"),
            json!({"kind": "JobList", "apiVersion": "batch/v1", "metadata": {}, "items": []}),
        ),
        (format!("{BASE}/other/jobs/there"), job(29_632_910, there)),
    ]);
    let answer = run_json_live(&client).await.unwrap();
    assert_eq!(
        *requested_paths.lock().unwrap(),
        [
            format!("{BASE}/default/cronjobs/hello"),
            format!("{BASE}/default/jobs?limit=500"),
            EVENTS.to_owned(),
            NAMESPACE.to_owned(),
            format!("{BASE}/other/jobs/gone"),
            format!("{BASE}/other/jobs/there"),
        ]
    );
    let events = answer["events"].to_string();
    assert!(events.contains("Active job went missing: gone\""), "{answer:#}");
    assert!(!events.contains("went missing: there"), "{answer:#}");
    // A Job in another namespace does not delay the run, although its controller reference names this CronJob.
    assert!(events.contains("did not create or forgot: other/there"), "{answer:#}");
    assert_eq!(answer["reason"], "Created", "{answer:#}");
}

#[tokio::test]
async fn a_cron_job_of_the_cluster_is_not_judged_as_a_new_one() {
    let spec = json!({"spec": {"schedule": "TZ=UTC */10 * * * *", "concurrencyPolicy": "Newer", "newer": 1}});
    let (client, _) = cluster(vec![
        (format!("{BASE}/default/cronjobs/hello"), cron_job(spec)),
        (
            format!("{BASE}/default/jobs?limit=500"),
            json!({"kind": "JobList", "items": []}),
        ),
    ]);
    let answer = run_json_live(&client).await.unwrap();
    assert_eq!(answer["problems"], json!([]), "{answer:#}");
    assert_eq!(answer["reason"], "Created", "{answer:#}");
}

#[tokio::test]
async fn a_cluster_is_explained_at_the_time_of_its_last_answer() {
    let (client, requested_paths) = cluster(vec![
        (format!("{BASE}/default/cronjobs/hello"), cron_job(json!({}))),
        (
            format!("{BASE}/default/jobs?limit=500"),
            json!({"kind": "JobList", "items": []}),
        ),
    ]);
    let now = || {
        assert_eq!(requested_paths.lock().unwrap().len(), 4);
        "2026-05-05T10:10:00Z".parse().unwrap()
    };
    let answer = run_json_at(&client, now).await.unwrap();
    assert_eq!(answer["slot"], "2026-05-05T10:10:00Z");
}

#[tokio::test]
async fn the_namespace_freezes_its_cron_jobs_and_has_defaults() {
    let annotated =
        |annotations: Value| json!({"kind": "Namespace", "metadata": {"name": "default", "annotations": annotations}});
    let answer = async |annotations: Value| {
        let (client, _) = cluster(vec![
            (format!("{BASE}/default/cronjobs/hello"), cron_job(json!({}))),
            (
                format!("{BASE}/default/jobs?limit=500"),
                json!({"kind": "JobList", "items": []}),
            ),
            (NAMESPACE.to_owned(), annotated(annotations)),
        ]);
        run_json_live(&client).await.unwrap()
    };
    let frozen = answer(json!({"cronwheel.dev/freeze-until": "2026-05-05T12:00:00Z"})).await;
    assert_eq!(frozen["reason"], "Frozen", "{frozen:#}");
    let spread = answer(json!({"cronwheel.dev/spread": "9m"})).await;
    assert_eq!(spread["decision"], "wait", "{spread:#}");
    let over = answer(json!({"cronwheel.dev/freeze-until": "2026-05-05T09:00:00Z"})).await;
    assert_eq!(over["reason"], "Created", "{over:#}");
}

/// The answer for `hello` with these changes and Events, in JSON and as text.
async fn run_with_events(changes: Value, events: &[Value]) -> (Value, String) {
    let objects = vec![
        (format!("{BASE}/default/cronjobs/hello"), cron_job(changes)),
        (
            format!("{BASE}/default/jobs?limit=500"),
            json!({"kind": "JobList", "items": []}),
        ),
        (EVENTS.to_owned(), json!({"kind": "EventList", "items": events})),
    ];
    let (client, _) = cluster(objects);
    let answer = run_json_at(&client, || "2026-05-05T12:00:05Z".parse().unwrap())
        .await
        .unwrap();
    let Command::Explain(args) = <Cli as clap::Parser>::try_parse_from(["cronwheel", "explain", "hello"])
        .unwrap()
        .command
    else {
        unreachable!()
    };
    let mut output = Vec::new();
    let now = || "2026-05-05T12:00:05Z".parse().unwrap();
    run_live(&args, &client, ("default", "hello"), now, &mut output, &mut Vec::new())
        .await
        .unwrap();
    (answer, String::from_utf8(output).unwrap())
}

/// The text of the command for `hello` in a cluster with these objects.
async fn run_text_live(cron_job: &Value, jobs: &[Value], events: &[Value]) -> String {
    use clap::Parser as _;
    let (client, _) = cluster(vec![
        (format!("{BASE}/default/cronjobs/hello"), cron_job.clone()),
        (
            format!("{BASE}/default/jobs?limit=500"),
            json!({"kind": "JobList", "items": jobs}),
        ),
        (EVENTS.to_owned(), json!({"kind": "EventList", "items": events})),
    ]);
    let line = ["cronwheel", "explain", "hello", "-n", "default"];
    let Command::Explain(args) = Cli::try_parse_from(line).unwrap().command else {
        unreachable!()
    };
    let mut output = Vec::new();
    let now = || "2026-05-05T10:00:05Z".parse().unwrap();
    run_live(&args, &client, ("default", "hello"), now, &mut output, &mut Vec::new())
        .await
        .unwrap();
    String::from_utf8(output).unwrap()
}

#[tokio::test]
async fn text_of_objects_equals_the_text_of_the_command() {
    let forbid = || json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": [entry(29_632_910)]}});
    let late = || json!({"spec": {"schedule": "0 9 * * *"}, "status": {"lastScheduleTime": "2026-05-04T09:00:00Z"}});
    let running = job(29_632_910, json!({}));
    let finished = job(29_632_900, ended("Complete", Some("09:50:07")));
    let refused = recorded("FailedCreate", "Error creating job: quota", "2026-05-05T10:00:02Z");
    let of_another = with(refused.clone(), json!({"involvedObject": {"uid": "another"}}));
    let cases: [(&str, Value, Vec<Value>, Vec<Value>); 9] = [
        ("decision     fire", json!({}), vec![finished.clone()], vec![]),
        (
            "reason       Forbidden",
            forbid(),
            vec![running.clone(), finished.clone()],
            vec![],
        ),
        (
            "reason       Suspended",
            json!({"spec": {"suspend": true}}),
            vec![],
            vec![],
        ),
        (
            "reason       UnparseableSchedule",
            json!({"spec": {"schedule": "@never"}}),
            vec![],
            vec![],
        ),
        (
            "reason       Undecodable",
            json!({"spec": {"suspend": "no"}}),
            vec![],
            vec![],
        ),
        ("reason       NotStarted", late(), vec![], vec![]),
        (
            "recorded     Warning  FailedCreate",
            json!({}),
            vec![],
            vec![of_another, refused],
        ),
        (
            "deletes      Job hello-29632900",
            json!({"spec": {"successfulJobsHistoryLimit": 0}}),
            vec![finished],
            vec![],
        ),
        (
            "schedule     */10 * * * * in Asia/Kolkata",
            json!({"spec": {"timeZone": "Asia/Kolkata"}}),
            vec![running],
            vec![],
        ),
    ];
    for (line, changes, jobs, events) in cases {
        let cron_job = cron_job(changes);
        let expected = run_text_live(&cron_job, &jobs, &events).await;
        assert!(expected.contains(line), "{expected}");
        let now = "2026-05-05T10:00:05Z".parse().unwrap();
        let text = explain::text_of(&cron_job, &jobs, Some(&events), &Zone::utc(), now).unwrap();
        assert_eq!(text, expected);
    }
}

#[tokio::test]
async fn the_page_reads_the_jobs_of_the_cron_job_alone() {
    let path = |name: &str| format!("{BASE}/default/jobs/{name}");
    let elsewhere = json!({"status": {"active": [{"namespace": "other", "name": "secret"}]}});
    let (client, requested_paths) = cluster(vec![
        (format!("{BASE}/default/cronjobs/hello"), cron_job(json!({}))),
        (format!("{BASE}/default/cronjobs/odd"), cron_job(elsewhere)),
        (path("hello-29632910"), job(29_632_910, json!({}))),
    ]);
    let explain = async |name: &str, job_names: &[Box<str>]| {
        let now = || "2026-05-05T10:00:05Z".parse().unwrap();
        let text = text_of_live(&client, ("default", name), job_names, &Zone::utc(), now).await;
        text.map_err(|error| error.to_string())
    };
    let text = explain("hello", &["hello-29632910".into(), "hello-gone".into()])
        .await
        .unwrap();
    assert!(text.contains("hello-29632910"), "{text}");
    let expected = [
        format!("{BASE}/default/cronjobs/hello"),
        NAMESPACE.to_owned(),
        path("hello-29632910"),
        path("hello-gone"),
    ];
    assert_eq!(*requested_paths.lock().unwrap(), expected);
    let many: Vec<Box<str>> = (0..41).map(|number| format!("hello-{number}").into()).collect();
    let refused = explain("hello", &many).await.unwrap_err();
    assert!(refused.contains("more than 40 Jobs"), "{refused}");
    assert_eq!(requested_paths.lock().unwrap().len(), 4);
    let refused = explain("odd", &[]).await.unwrap_err();
    assert!(
        refused.contains("another namespace") && refused.contains("cronwheel explain -n default odd"),
        "{refused}"
    );
}

fn recorded(reason: &str, message: &str, last: &str) -> Value {
    json!({
        "type": "Warning", "reason": reason, "message": message, "count": 5, "lastTimestamp": last,
        "involvedObject": {"uid": "aaaaaaaa-0000-0000-0000-000000000001"},
    })
}

#[tokio::test]
async fn a_slot_that_the_controller_has_not_started_is_not_predicted_to_start() {
    let daily = json!({"spec": {"schedule": "0 10 * * *"}, "metadata": {"managedFields": [
        {"manager": "kubectl", "time": "2026-05-05T11:00:00Z", "fieldsV1": {"f:spec": {"f:schedule": {}}}},
        {"manager": "cronwheel", "time": "2026-05-05T11:30:00Z", "fieldsV1": {"f:status": {}}},
    ]}});
    let (answer, text) = run_with_events(daily.clone(), &[]).await;
    assert_eq!(answer["decision"], "unknown");
    assert_eq!(answer["reason"], "NotStarted");
    assert_eq!((&answer["job"], &answer["status"]), (&Value::Null, &Value::Null));
    let (_, text) = text.split_once("\n\ndecision").unwrap();
    assert_eq!(
        text,
        "     unknown: due 2h ago and not started: see the Events below, slot Tue 2026-05-05 10:00 UTC, 2h ago\n\
         reason       NotStarted: the slot of a CronJob in a cluster is due for more than a minute and has no Job: the Events \
         may say why (the CronJob was changed at Tue 2026-05-05 11:00 UTC, and no slot starts that is earlier than a change of \
         the schedule)\n\
         \n\
         does         nothing\n\
         next check   when the controller evaluates the CronJob again\n\
         recorded     no Events\n"
    );
    let unchanged = with(daily, json!({"metadata": {"managedFields": null}}));
    let (answer, text) =
        run_with_events(unchanged, &[recorded("MissSchedule", "Missed", "2026-05-04T10:00:00Z")]).await;
    let message = answer["message"].as_str().unwrap();
    assert!(
        message.ends_with("(the controller may wait, or may have seen a change of the schedule after the slot)"),
        "{message}"
    );
    assert!(
        text.ends_with("recorded     Warning  MissSchedule, 5 times, last 1d 2h ago: Missed\n"),
        "{text}"
    );
    // A slot of the last minute may still start.
    let (answer, _) = run_with_events(json!({}), &[]).await;
    assert_eq!(answer["reason"], "Created");
}

#[tokio::test]
async fn an_option_that_cannot_be_used_is_told_once() {
    let cron_job = cron_job(json!({"metadata": {"annotations": {"cronwheel.dev/spread": "soon"}}}));
    let text = run_text_live(&cron_job, &[], &[]).await;
    let (_, note) = text.trim_end().rsplit_once("\nnote         ").unwrap();
    assert!(
        note.starts_with("annotation cronwheel.dev/spread is \"soon\": "),
        "{text}"
    );
    let events = [
        recorded("InvalidOption", note, "2026-05-05T09:00:03Z"),
        recorded("MissSchedule", "Missed", "2026-05-05T09:00:03Z"),
    ];
    let text = run_text_live(&cron_job, &[], &events).await;
    assert_eq!(text.matches("cronwheel.dev/spread").count(), 1, "{text}");
    assert!(text.contains("\nrecorded     Warning  MissSchedule"), "{text}");
}

/// The CronJob `hello`, daily at 10:00, with an option, changed at 11:00 by a client that set these fields.
fn resumed(option: &str, fields: &Value) -> Value {
    cron_job(json!({
        "spec": {"schedule": "0 10 * * *"},
        "metadata": {
            "annotations": {option: "skip"},
            "managedFields": [
                {"manager": "kubectl", "operation": "Update", "time": "2026-05-01T00:00:00Z",
                    "fieldsV1": {"f:spec": {"f:schedule": {}}}},
                {"manager": "kubectl-patch", "operation": "Update", "time": "2026-05-05T11:00:00Z", "fieldsV1": fields},
            ],
        },
        "status": {"lastScheduleTime": "2026-05-04T10:00:00Z"},
    }))
}

#[tokio::test]
async fn a_slot_that_a_suspension_held_back_is_not_predicted_to_start() {
    let alone = json!({"f:spec": {"f:suspend": {}}});
    let with_others = json!({"f:spec": {"f:suspend": {}, "f:schedule": {}}});
    let resumed_at = "it was resumed at Tue 2026-05-05 11:00 UTC";
    let not_seen = "; a controller that was not running then applies missed-runs)";
    let perhaps = "(the CronJob was changed at Tue 2026-05-05 11:00 UTC, which may have ended a suspension)";
    for (option, fields, now, expected, message) in [
        (
            "cronwheel.dev/on-resume",
            &alone,
            "11:00:30",
            ("skip", "Resumed"),
            not_seen,
        ),
        (
            "cronwheel.dev/on-resume",
            &alone,
            "11:01:30",
            ("skip", "Resumed"),
            resumed_at,
        ),
        (
            "cronwheel.dev/missed-runs",
            &alone,
            "11:00:30",
            ("skip", "Resumed"),
            resumed_at,
        ),
        (
            "cronwheel.dev/on-resume",
            &with_others,
            "11:00:30",
            ("unknown", "PerhapsResumed"),
            perhaps,
        ),
        (
            "cronwheel.dev/on-resume",
            &with_others,
            "11:30:00",
            ("unknown", "PerhapsResumed"),
            perhaps,
        ),
        (
            "cronwheel.dev/spread",
            &alone,
            "11:30:00",
            ("unknown", "NotStarted"),
            "no Event is there",
        ),
    ] {
        let now = format!("2026-05-05T{now}Z").parse().unwrap();
        let objects = vec![
            (format!("{BASE}/default/cronjobs/hello"), resumed(option, fields)),
            (
                format!("{BASE}/default/jobs?limit=500"),
                json!({"kind": "JobList", "items": []}),
            ),
        ];
        let answer = run_json_at(&cluster(objects).0, || now).await.unwrap();
        let found = (answer["decision"].as_str().unwrap(), answer["reason"].as_str().unwrap());
        assert_eq!(found, expected, "{option} at {now}: {answer:#}");
        assert_eq!(answer["job"], Value::Null, "{option} at {now}");
        let text = answer["message"].as_str().unwrap();
        assert!(text.contains(message), "{option} at {now}: {text}");
    }
}

#[tokio::test]
async fn a_create_that_the_api_server_refused_is_reported_from_its_event() {
    let refused = recorded(
        "FailedCreate",
        "Error creating job: Job \"hello\" is invalid",
        "2026-05-05T12:00:03Z",
    );
    let (answer, text) = run_with_events(json!({}), std::slice::from_ref(&refused)).await;
    assert_eq!(answer["reason"], "CreateFailed");
    let message = answer["message"].as_str().unwrap();
    assert!(
        message.ends_with("(2s ago: Error creating job: Job \"hello\" is invalid)"),
        "{message}"
    );
    assert_eq!(answer["recordedEvents"][0]["count"], 5);
    assert!(
        text.contains("recorded     Warning  FailedCreate, 5 times, last 2s ago: Error creating job"),
        "{text}"
    );
    // An Event of an earlier slot says nothing about this one.
    let earlier = with(refused, json!({"lastTimestamp": "2026-05-05T11:50:01Z"}));
    let (answer, _) = run_with_events(json!({}), &[earlier]).await;
    assert_eq!(answer["reason"], "Created");
}
