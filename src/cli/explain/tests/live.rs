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
        assert_eq!(requested_paths.lock().unwrap().len(), 2);
        "2026-05-05T10:10:00Z".parse().unwrap()
    };
    let answer = run_json_at(&client, now).await.unwrap();
    assert_eq!(answer["slot"], "2026-05-05T10:10:00Z");
}
