//! Writes: creates, updates, merge patches, status updates, dry runs.

use http::Method;
use serde_json::{Value, json};

use super::server::{Server, cron_job, job, text, uid, version};

pub(super) async fn created_cron_job_has_the_metadata_of_the_server(server: Server) {
    let created = server.create_cron_job("a").await;
    assert_eq!(
        (text(&created["kind"]), text(&created["apiVersion"])),
        ("CronJob".into(), "batch/v1".into())
    );
    let metadata = &created["metadata"];
    assert_eq!(uid(&created).len(), 36);
    assert!(version(&created).parse::<u64>().unwrap() > 0);
    assert_eq!(metadata["generation"], 1);
    assert_eq!(metadata["namespace"], server.namespace.as_str());
    let time = text(&metadata["creationTimestamp"]);
    assert!(time.len() == 20 && time.ends_with('Z'), "{time}");
    let read = server.get(&format!("{}/a", server.path("cronjobs"))).await.expect(200);
    assert_eq!(read, created);
}

pub(super) async fn b_16_3_created_object_has_no_status(server: Server) {
    let mut object = cron_job("a");
    object["status"] = json!({"lastScheduleTime": "2020-01-01T00:00:00Z"});
    object["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z".into();
    let created = server.post(&server.path("cronjobs"), &object).await.expect(201);
    assert_eq!(created["status"], json!({}));
    assert_ne!(created["metadata"]["creationTimestamp"], "2020-01-01T00:00:00Z");
}

pub(super) async fn create_with_a_taken_name_is_already_exists(server: Server) {
    server.create_job("a", json!({})).await;
    let response = server.post(&server.path("jobs"), &job("a")).await;
    let details = response.json["details"].clone();
    assert_eq!(
        response.refused(409, "AlreadyExists"),
        "jobs.batch \"a\" already exists"
    );
    assert_eq!(details, json!({"name": "a", "group": "batch", "kind": "jobs"}));
}

pub(super) async fn generated_name_has_the_requested_prefix(server: Server) {
    let object = json!({"metadata": {"generateName": "made-"}});
    let created = server.post(&server.path("configmaps"), &object).await.expect(201);
    let name = text(&created["metadata"]["name"]);
    assert!(name.starts_with("made-") && name.len() == 10, "{name}");
    assert_eq!(created["metadata"]["generateName"], "made-");
}

pub(super) async fn create_in_a_missing_namespace_is_404(server: Server) {
    let response = server.post("/apis/batch/v1/namespaces/nowhere/jobs", &job("a")).await;
    assert_eq!(response.refused(404, "NotFound"), "namespaces \"nowhere\" not found");
}

pub(super) async fn a_put_of_an_older_version_is_a_conflict(server: Server) {
    let created = server.create_cron_job("a").await;
    let path = format!("{}/a", server.path("cronjobs"));
    let mut changed = created.clone();
    changed["spec"]["schedule"] = "1 1 1 1 *".into();
    let stored = server.put(&path, &changed).await.expect(200);
    assert_ne!(version(&stored), version(&created));
    assert_eq!(
        server.put(&path, &changed).await.refused(409, "Conflict"),
        "Operation cannot be fulfilled on cronjobs.batch \"a\": the object has been modified; please apply your changes to \
         the latest version and try again"
    );
}

pub(super) async fn a_put_of_another_uid_is_a_conflict(server: Server) {
    let mut object = server.create_cron_job("a").await;
    object["metadata"]["uid"] = "00000000-0000-4000-8000-000000000000".into();
    let message = server
        .put(&format!("{}/a/status", server.path("cronjobs")), &object)
        .await
        .refused(409, "Conflict");
    assert!(
        message.contains("Precondition failed: UID in precondition: 0000"),
        "{message}"
    );
}

pub(super) async fn put_without_a_version_is_accepted_except_for_leases(server: Server) {
    server.create_cron_job("a").await;
    server
        .put(&format!("{}/a", server.path("cronjobs")), &cron_job("a"))
        .await
        .expect(200);
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}});
    server.post(&server.path("leases"), &lease).await.expect(201);
    let message = server
        .put(&format!("{}/l", server.path("leases")), &lease)
        .await
        .refused(422, "Invalid");
    assert!(message.contains("metadata.resourceVersion: Invalid value"), "{message}");
}

pub(super) async fn only_spec_changes_raise_the_generation(server: Server) {
    server.create_cron_job("a").await;
    let path = format!("{}/a", server.path("cronjobs"));
    let labelled = server
        .merge_patch(&path, &json!({"metadata": {"labels": {"x": "1"}}}))
        .await
        .expect(200);
    assert_eq!(labelled["metadata"]["generation"], 1);
    let changed = server
        .merge_patch(&path, &json!({"spec": {"schedule": "1 1 1 1 *"}}))
        .await
        .expect(200);
    assert_eq!(changed["metadata"]["generation"], 2);
    let status = json!({"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}});
    let written = server.merge_patch(&format!("{path}/status"), &status).await.expect(200);
    assert_eq!(written["metadata"]["generation"], 2);
}

pub(super) async fn write_without_a_change_keeps_the_version(server: Server) {
    let created = server.create_cron_job("a").await;
    let path = format!("{}/a", server.path("cronjobs"));
    let put = server.put(&path, &created).await.expect(200);
    assert_eq!(version(&put), version(&created));
    let patched = server
        .merge_patch(&path, &json!({"spec": {"schedule": "0 0 1 1 *"}}))
        .await
        .expect(200);
    assert_eq!(version(&patched), version(&created));
    let status = server.put(&format!("{path}/status"), &created).await.expect(200);
    assert_eq!(version(&status), version(&created));
}

pub(super) async fn b_16_4_status_write_changes_only_status_and_metadata(server: Server) {
    let mut object = cron_job("a");
    object["metadata"]["labels"] = json!({"kept": "1", "lost": "1"});
    object["metadata"]["annotations"] = json!({"lost": "1"});
    let created = server.post(&server.path("cronjobs"), &object).await.expect(201);
    let mut write = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "a", "namespace": server.namespace, "uid": uid(&created),
            "resourceVersion": version(&created), "labels": {"kept": "1"}},
        "status": {"lastScheduleTime": "2020-01-01T00:00:00Z",
            "active": [{"kind": "Job", "namespace": server.namespace, "name": "a-1", "apiVersion": "batch/v1"}]},
    });
    let path = format!("{}/a/status", server.path("cronjobs"));
    let stored = server.put(&path, &write).await.expect(200);
    assert_eq!(stored["spec"], created["spec"]);

    write["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"].clone();
    write["spec"] = created["spec"].clone();
    write["spec"]["schedule"] = "0 0 1 1 *".into();
    write["status"]["lastScheduleTime"] = "2020-01-02T00:00:00Z".into();
    let stored = server.put(&path, &write).await.expect(200);
    assert_eq!(stored["spec"], created["spec"]);
    assert_ne!(version(&stored), version(&created));
    assert_eq!(stored["status"], write["status"]);
    assert_eq!(stored["metadata"]["labels"], json!({"kept": "1"}));
    assert_eq!(stored["metadata"]["annotations"], Value::Null);
    assert_eq!(stored["metadata"]["generation"], 1);
    assert_eq!(
        stored["metadata"]["creationTimestamp"],
        created["metadata"]["creationTimestamp"]
    );
}

pub(super) async fn b_16_4_a_status_write_under_an_older_version_is_a_conflict(server: Server) {
    let created = server.create_cron_job("a").await;
    let path = format!("{}/a", server.path("cronjobs"));
    server
        .merge_patch(&path, &json!({"metadata": {"labels": {"x": "1"}}}))
        .await
        .expect(200);
    let mut write = created;
    write["status"] = json!({"lastScheduleTime": "2020-01-01T00:00:00Z"});
    server
        .put(&format!("{path}/status"), &write)
        .await
        .refused(409, "Conflict");
}

pub(super) async fn put_of_the_main_resource_keeps_the_status(server: Server) {
    server.create_cron_job("a").await;
    let path = format!("{}/a", server.path("cronjobs"));
    let status = json!({"status": {"lastScheduleTime": "2020-01-01T00:00:00Z"}});
    let mut written = server.merge_patch(&format!("{path}/status"), &status).await.expect(200);
    written["status"] = json!({});
    written["spec"]["schedule"] = "1 1 1 1 *".into();
    let stored = server.put(&path, &written).await.expect(200);
    assert_eq!(stored["status"], status["status"]);
}

pub(super) async fn merge_patch_changes_only_the_named_fields(server: Server) {
    server.create_config_map("a", json!({"x": "1", "y": "1"})).await;
    let path = format!("{}/a", server.path("configmaps"));
    let change = json!({"metadata": {"labels": {"x": null, "z": "1"}}, "data": {"k": "v"}});
    let stored = server.merge_patch(&path, &change).await.expect(200);
    assert_eq!(stored["metadata"]["labels"], json!({"y": "1", "z": "1"}));
    assert_eq!(stored["data"], json!({"k": "v"}));
    server
        .merge_patch(&format!("{}/none", server.path("configmaps")), &change)
        .await
        .refused(404, "NotFound");
}

pub(super) async fn a_merge_patch_under_an_older_version_is_a_conflict(server: Server) {
    let created = server.create_config_map("a", json!({})).await;
    let path = format!("{}/a", server.path("configmaps"));
    let change = |value: &str| json!({"metadata": {"resourceVersion": version(&created)}, "data": {"k": value}});
    server.merge_patch(&path, &change("1")).await.expect(200);
    server.merge_patch(&path, &change("2")).await.refused(409, "Conflict");
}

pub(super) async fn lease_holder_changes_only_at_the_current_version(server: Server) {
    let lease = json!({"metadata": {"name": "l"},
        "spec": {"holderIdentity": "one", "leaseDurationSeconds": 10, "renewTime": "2026-01-01T00:00:00.123456Z"}});
    let created = server.post(&server.path("leases"), &lease).await.expect(201);
    assert_eq!(created["spec"], lease["spec"]);
    assert_eq!(created["metadata"]["generation"], Value::Null);
    let mut taken = created.clone();
    taken["spec"]["holderIdentity"] = "two".into();
    let path = format!("{}/l", server.path("leases"));
    server.put(&path, &taken).await.expect(200);
    taken["spec"]["holderIdentity"] = "three".into();
    server.put(&path, &taken).await.refused(409, "Conflict");
    assert_eq!(server.get(&path).await.expect(200)["spec"]["holderIdentity"], "two");
}

pub(super) async fn a_dry_run_stores_nothing(server: Server) {
    let path = server.path("configmaps");
    let object = json!({"metadata": {"name": "a"}});
    server.post(&format!("{path}?dryRun=All"), &object).await.expect(201);
    server.get(&format!("{path}/a")).await.refused(404, "NotFound");
    let created = server.create_config_map("a", json!({})).await;
    let change = json!({"metadata": {"labels": {"x": "1"}}});
    server
        .merge_patch(&format!("{path}/a?dryRun=All"), &change)
        .await
        .expect(200);
    server
        .delete(&format!("{path}/a?dryRun=All"), &Value::Null)
        .await
        .expect(200);
    assert_eq!(
        version(&server.get(&format!("{path}/a")).await.expect(200)),
        version(&created)
    );
}

pub(super) async fn an_event_is_stored_and_counted(server: Server) {
    let involved = json!({"kind": "CronJob", "namespace": server.namespace, "name": "a", "apiVersion": "batch/v1"});
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "a.1", "namespace": server.namespace},
        "involvedObject": involved, "reason": "SuccessfulCreate", "message": "Created job a-1",
        "source": {"component": "cronjob-controller"}, "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z", "count": 1, "type": "Normal",
        "reportingComponent": "cronjob-controller", "reportingInstance": ""});
    let path = server.path("events");
    server.post(&path, &event).await.expect(201);
    server.post(&path, &event).await.refused(409, "AlreadyExists");
    let patched = server
        .merge_patch(&format!("{path}/a.1"), &json!({"count": 2}))
        .await
        .expect(200);
    assert_eq!(patched["count"], 2);
    let selected = format!("{path}?fieldSelector=involvedObject.name%3Da,reason%3DSuccessfulCreate");
    assert_eq!(
        server.get(&selected).await.expect(200)["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

pub(super) async fn names_that_do_not_match_are_refused(server: Server) {
    let mut object = server.create_cron_job("a").await;
    object["metadata"]["name"] = "b".into();
    let message = server
        .put(&format!("{}/a", server.path("cronjobs")), &object)
        .await
        .refused(400, "BadRequest");
    assert_eq!(
        message,
        "the name of the object (b) does not match the name on the URL (a)"
    );
    let mut elsewhere = job("x");
    elsewhere["metadata"]["namespace"] = "default".into();
    let message = server
        .post(&server.path("jobs"), &elsewhere)
        .await
        .refused(400, "BadRequest");
    assert_eq!(
        message,
        "the namespace of the provided object does not match the namespace sent on the request"
    );
}

pub(super) async fn patch_with_an_unknown_content_type_is_refused(server: Server) {
    server.create_config_map("a", json!({})).await;
    let path = format!("{}/a", server.path("configmaps"));
    let response = server
        .send(Method::PATCH, &path, "text/plain", "application/json", b"{}".to_vec())
        .await;
    response.refused(415, "UnsupportedMediaType");
}

pub(super) async fn body_with_invalid_json_is_refused(server: Server) {
    let path = server.path("jobs");
    let response = server
        .send(
            Method::POST,
            &path,
            "application/json",
            "application/json",
            b"oops".to_vec(),
        )
        .await;
    response.refused(400, "BadRequest");
}
