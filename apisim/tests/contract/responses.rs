//! Responses in general: the `Date` header, errors with details, tables, access reviews.

use http::Method;
use serde_json::json;

use super::server::{Server, text};

pub(super) async fn response_has_the_date_of_the_server(server: Server) {
    let response = server.get("/version").await;
    let date = response.headers["date"].to_str().unwrap().to_owned();
    assert!(date.ends_with(" GMT") && date.len() == 29, "{date}");
    assert!(response.expect(200)["gitVersion"].is_string());
}

pub(super) async fn access_review_is_answered(server: Server) {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "update", "group": "batch", "resource": "cronjobs", "subresource": "status"}},
    });
    let response = server.post(path, &review).await.expect(201);
    assert_eq!(
        (&response["kind"], &response["status"]["allowed"]),
        (&review["kind"], &json!(true))
    );
    assert_eq!(response["spec"]["resourceAttributes"]["verb"], "update");
}

pub(super) async fn missing_object_is_404_with_details(server: Server) {
    let response = server.get(&format!("{}/none", server.path("cronjobs"))).await;
    let details = response.json["details"].clone();
    assert_eq!(response.refused(404, "NotFound"), "cronjobs.batch \"none\" not found");
    assert_eq!(details, json!({"name": "none", "group": "batch", "kind": "cronjobs"}));
    let response = server.get(&format!("{}/none", server.path("events"))).await;
    assert_eq!(response.refused(404, "NotFound"), "events \"none\" not found");
}

pub(super) async fn table_is_returned_on_request(server: Server) {
    server.create_config_map("a", json!({})).await;
    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let path = format!("{}/a", server.path("configmaps"));
    let table = server
        .send(Method::GET, &path, "", accept, Vec::new())
        .await
        .expect(200);
    assert_eq!(
        (text(&table["kind"]), text(&table["apiVersion"])),
        ("Table".into(), "meta.k8s.io/v1".into())
    );
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    assert_eq!(table["rows"][0]["cells"][0], "a");
    assert_eq!(table["rows"][0]["object"]["metadata"]["name"], "a");
}

pub(super) async fn unsupported_field_selector_is_refused(server: Server) {
    for (plural, expected) in [
        (
            "cronjobs",
            "\"spec.schedule\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        ("jobs", "field label \"spec.schedule\" not supported for Job"),
        ("events", "field label not supported: spec.schedule"),
    ] {
        let path = format!("{}?fieldSelector=spec.schedule%3D1", server.path(plural));
        let message = server.get(&path).await.refused(400, "BadRequest");
        assert!(message.contains(expected), "{plural}: {message}");
    }
}
