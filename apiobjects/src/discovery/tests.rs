//! Contents and media types of the discovery documents.

use serde_json::{Value, json};

use super::{Reply, reply};

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[track_caller]
fn document(path: &str, accept: &str) -> (&'static str, Value) {
    match reply(path, accept) {
        Some(Reply::Document(document)) => (document.content_type, document.body),
        other => panic!("{path}: {other:?}"),
    }
}

#[test]
fn aggregated_discovery_returns_all_groups_at_once() {
    // The `Accept` header of kubectl 1.36.
    let accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                  application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
    let (content_type, body) = document("/apis", accept);
    assert_eq!(
        (content_type, &body["apiVersion"]),
        (AGGREGATED, &json!("apidiscovery.k8s.io/v2"))
    );
    let names: Vec<_> = body["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| &group["metadata"]["name"])
        .collect();
    assert_eq!(names, ["batch", "coordination.k8s.io"]);
    let expected = json!({
        "resource": "cronjobs",
        "responseKind": {"group": "", "version": "", "kind": "CronJob"},
        "scope": "Namespaced",
        "singularResource": "cronjob",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "shortNames": ["cj"],
        "categories": ["all"],
        "subresources": [{
            "subresource": "status",
            "responseKind": {"group": "", "version": "", "kind": "CronJob"},
            "verbs": ["get", "patch", "update"],
        }],
    });
    assert_eq!(body["items"][0]["versions"][0]["resources"][0], expected);
    let old = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";
    assert_eq!(document("/api", old).1["apiVersion"], "apidiscovery.k8s.io/v2beta1");
}

#[test]
fn unaggregated_discovery_returns_one_group_at_a_time() {
    for accept in ["application/json", "", "application/json, */*"] {
        assert_eq!(document("/api", accept).1["versions"], json!(["v1"]));
        let groups = document("/apis", accept).1["groups"].clone();
        assert_eq!(groups[1]["preferredVersion"]["groupVersion"], "coordination.k8s.io/v1");
    }
    assert_eq!(document("/apis/batch", "").1["kind"], "APIGroup");
    let list = document("/apis/batch/v1", "").1;
    let names: Vec<_> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["name"])
        .collect();
    assert_eq!(names, ["cronjobs", "cronjobs/status", "jobs", "jobs/status"]);
    let core = document("/api/v1/", "").1;
    let names: Vec<_> = core["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["name"])
        .collect();
    assert_eq!(
        names,
        ["configmaps", "events", "namespaces", "namespaces/status", "pods"]
    );
    assert_eq!(document("/version", "").1["minor"], "36");
}

#[test]
fn other_paths_are_not_discovery() {
    let paths = [
        "/",
        "/apis/apps",
        "/apis/apps/v1",
        "/apis/batch/v2",
        "/apis/batch/v1/cronjobs",
        "/openapi/v3/apis/x/v1",
    ];
    for path in paths {
        assert_eq!(reply(path, ""), None, "{path}");
    }
}

#[test]
fn openapi_declares_field_validation_of_patches() {
    let index = document("/openapi/v3", "application/json, */*").1;
    for (name, entry) in index["paths"].as_object().unwrap() {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        let (path, _) = url.split_once("?hash=").unwrap();
        assert_eq!(path, format!("/openapi/v3/{name}"));
        document(path, "application/json");
    }
    let batch = document("/openapi/v3/apis/batch/v1", "application/json").1;
    let patch = &batch["paths"]["/apis/batch/v1/namespaces/{namespace}/cronjobs/{name}"]["patch"];
    let kind = json!({"group": "batch", "version": "v1", "kind": "CronJob"});
    assert_eq!(patch["x-kubernetes-group-version-kind"], kind);
    let parameters = patch["parameters"].as_array().unwrap();
    assert!(
        parameters
            .iter()
            .any(|parameter| parameter["name"] == "fieldValidation" && parameter["in"] == "query")
    );
}

#[test]
fn every_openapi_reference_resolves() {
    for (path, place) in [
        ("/openapi/v3/api/v1", "/components/schemas"),
        ("/openapi/v3/apis/batch/v1", "/components/schemas"),
        ("/openapi/v3/apis/coordination.k8s.io/v1", "/components/schemas"),
        ("/openapi/v2", "/definitions"),
    ] {
        let document = document(path, "application/json").1;
        let schemas = document.pointer(place).and_then(Value::as_object).unwrap();
        let text = document.to_string();
        let references = text
            .split("\"$ref\":\"#")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap());
        let mut count = 0;
        for reference in references {
            let name = reference.strip_prefix(place).unwrap().trim_start_matches('/');
            assert!(schemas.contains_key(name), "{path}: {reference}");
            count += 1;
        }
        assert!(count > 0, "{path}");
    }
}

#[test]
fn requests_for_protobuf_only_get_no_schemas() {
    let accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    assert_eq!(reply("/openapi/v2", accept), Some(Reply::NoSchemas));
    assert_eq!(reply("/openapi/v2", "application/cbor"), Some(Reply::NotAcceptable));
    assert_eq!(reply("/openapi/v3/api/v1", accept), Some(Reply::NotAcceptable));
    document("/openapi/v2", &format!("{accept},application/json"));
}
