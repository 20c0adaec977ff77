//! Malformed bodies: each gets a response, and later requests succeed.

use apisim::{Api, ApiService, Options, WallClock};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const PATCHES: [&str; 4] = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/json-patch+json",
];

/// A Job with a value for each kind of field.
fn job() -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "a", "namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"},
            "finalizers": ["x.y/z"], "generateName": "a-", "uid": "u", "resourceVersion": "0", "generation": 1,
            "creationTimestamp": "2026-01-02T03:04:05Z", "deletionTimestamp": null,
            "managedFields": [{"manager": "m", "operation": "Apply", "fieldsV1": {"f:spec": {"f:suspend": {}}}}],
            "ownerReferences": [{"apiVersion": "v1", "kind": "Unserved", "name": "x", "uid": "u"}]},
        "spec": {"suspend": true, "parallelism": 1, "selector": {"matchLabels": {"a": "b"}},
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "T"}]}]},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"restartPolicy": "Never",
                "containers": [{"name": "c", "image": "i", "env": [{"name": "E", "value": "e"}],
                    "ports": [{"containerPort": 1}], "resources": {"limits": {"cpu": "1"}}}],
                "volumes": [{"name": "v", "emptyDir": {}}]}}},
        "status": {"conditions": [{"type": "Complete", "status": "True"}], "active": 1, "startTime": null},
    })
}

/// Appends a JSON pointer for every value inside a value, including itself.
fn places(value: &Value, place: &str, found: &mut Vec<String>) {
    found.push(place.to_owned());
    match value {
        Value::Object(members) => {
            for (name, inner) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                places(inner, &format!("{place}/{name}"), found);
            }
        }
        Value::Array(elements) => {
            for (at, inner) in elements.iter().enumerate() {
                places(inner, &format!("{place}/{at}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

async fn code(client: &ApiService, method: &str, path: &str, content_type: &str, body: &Value) -> u16 {
    let request = Request::builder().method(method).uri(path);
    let request = request.header("Content-Type", content_type);
    let body = Full::new(Bytes::from(body.to_string()));
    let response = client.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    response.into_body().collect().await.unwrap();
    code
}

#[tokio::test(start_paused = true)]
async fn any_body_gets_a_response() {
    let clock = WallClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    let client = Api::new(Options::default(), clock).client("a");
    let one = format!("{JOBS}/a");
    let whole = job();
    let mut valid = whole.clone();
    valid["spec"]["selector"].take();
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    let mut n_responses = 0;
    for place in &all {
        for other in [
            json!(null),
            json!(7),
            json!("x"),
            json!([]),
            json!({}),
            json!([null, 1]),
            json!({"": null}),
        ] {
            let mut body = whole.clone();
            *body.pointer_mut(place).unwrap() = other.clone();
            let operations = json!([{"op": "replace", "path": place, "value": other}]);
            code(&client, "POST", JOBS, "application/json", &body).await;
            let created = code(&client, "POST", JOBS, "application/json", &valid).await;
            assert!(matches!(created, 201 | 409), "{created} after {place} was {other}");
            for path in [one.clone(), format!("{one}/status")] {
                code(&client, "PUT", &path, "application/json", &body).await;
                n_responses += 1;
            }
            for form in PATCHES {
                let body = if form == PATCHES[3] { &operations } else { &body };
                for path in [
                    format!("{one}?fieldManager=m&force=true"),
                    format!("{one}/status?fieldManager=n"),
                ] {
                    code(&client, "PATCH", &path, form, body).await;
                    n_responses += 1;
                }
            }
            code(&client, "DELETE", &one, "application/json", &other).await;
            code(&client, "DELETE", &one, "application/json", &json!({})).await;
            // If the Job exists, it still has finalizers.
            let release = json!({"metadata": {"finalizers": null}});
            code(&client, "PATCH", &one, PATCHES[0], &release).await;
            assert_eq!(
                code(&client, "GET", &one, "", &Value::Null).await,
                404,
                "{place} {other}"
            );
        }
    }
    assert!(n_responses > 5_000, "{n_responses}");
    let plain = json!({"metadata": {"name": "last"}});
    let maps = "/api/v1/namespaces/default/configmaps";
    assert_eq!(code(&client, "POST", maps, "application/json", &plain).await, 201);
}
