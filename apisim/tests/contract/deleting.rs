//! Deletion and its consequences: finalizers, propagation, namespaces.

use serde_json::{Value, json};

use super::server::{Server, job, owned_by, uid};

pub(super) async fn deleted_job_is_gone_and_the_response_has_its_uid(server: Server) {
    let job = server.create_job("a", json!({})).await;
    let path = format!("{}/a", server.path("jobs"));
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        "preconditions": {"uid": uid(&job)}});
    let status = server.delete(&path, &options).await.expect(200);
    assert_eq!(status["status"], "Success");
    assert_eq!(
        status["details"],
        json!({"name": "a", "group": "batch", "kind": "jobs", "uid": uid(&job)})
    );
    server.get(&path).await.refused(404, "NotFound");
    server.delete(&path, &options).await.refused(404, "NotFound");
}

pub(super) async fn delete_with_another_uid_is_a_conflict(server: Server) {
    server.create_job("a", json!({})).await;
    let options = json!({"preconditions": {"uid": "00000000-0000-4000-8000-000000000000"}});
    let response = server.delete(&format!("{}/a", server.path("jobs")), &options).await;
    let message = response.refused(409, "Conflict");
    assert!(message.contains("the UID in the precondition (0000"), "{message}");
}

pub(super) async fn delete_with_another_version_is_a_conflict(server: Server) {
    server.create_job("a", json!({})).await;
    let options = json!({"preconditions": {"resourceVersion": "1"}});
    let response = server.delete(&format!("{}/a", server.path("jobs")), &options).await;
    let message = response.refused(409, "Conflict");
    assert!(
        message.contains("the ResourceVersion in the precondition (1)"),
        "{message}"
    );
}

pub(super) async fn object_is_removed_with_its_last_finalizer(server: Server) {
    server
        .create_job("a", json!({"finalizers": ["example.org/wait"]}))
        .await;
    let path = format!("{}/a", server.path("jobs"));
    let options = json!({"propagationPolicy": "Background"});
    let marked = server.delete(&path, &options).await.expect(200);
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(marked["metadata"]["generation"], 2);
    let kept = server.get(&path).await.expect(200);
    assert_eq!(kept["metadata"]["finalizers"], json!(["example.org/wait"]));
    let released = server
        .merge_patch(&path, &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    assert_eq!(released["metadata"]["name"], "a");
    server.get(&path).await.refused(404, "NotFound");
}

pub(super) async fn jobs_of_a_deleted_cron_job_are_deleted(server: Server) {
    let cron_job = server.create_cron_job("a").await;
    server.create_job("a-1", owned_by(&cron_job)).await;
    server.create_job("other", json!({})).await;
    server
        .delete(&format!("{}/a", server.path("cronjobs")), &Value::Null)
        .await
        .expect(200);
    server.wait_for_code(&format!("{}/a-1", server.path("jobs")), 404).await;
    server.get(&format!("{}/other", server.path("jobs"))).await.expect(200);
}

pub(super) async fn foreground_deletion_waits_for_dependents(server: Server) {
    let cron_job = server.create_cron_job("a").await;
    let mut metadata = owned_by(&cron_job);
    metadata["finalizers"] = json!(["example.org/wait"]);
    server.create_job("a-1", metadata).await;
    let (owner, child) = (
        format!("{}/a", server.path("cronjobs")),
        format!("{}/a-1", server.path("jobs")),
    );
    let options = json!({"propagationPolicy": "Foreground"});
    let marked = server.delete(&owner, &options).await.expect(200);
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    while server.get(&child).await.expect(200)["metadata"]["deletionTimestamp"].is_null() {}
    server.get(&owner).await.expect(200);
    server
        .merge_patch(&child, &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    server.wait_for_code(&owner, 404).await;
}

pub(super) async fn orphaned_job_is_kept(server: Server) {
    let cron_job = server.create_cron_job("a").await;
    server.create_job("a-1", owned_by(&cron_job)).await;
    let owner = format!("{}/a", server.path("cronjobs"));
    server
        .delete(&owner, &json!({"propagationPolicy": "Orphan"}))
        .await
        .expect(200);
    server.wait_for_code(&owner, 404).await;
    let child = server.get(&format!("{}/a-1", server.path("jobs"))).await.expect(200);
    assert_eq!(child["metadata"]["ownerReferences"], Value::Null);
}

pub(super) async fn job_deleted_without_options_orphans_its_dependents(server: Server) {
    server
        .create_job("a", json!({"finalizers": ["example.org/wait"]}))
        .await;
    let path = format!("{}/a", server.path("jobs"));
    let marked = server.delete(&path, &Value::Null).await.expect(200);
    assert_eq!(marked["metadata"]["finalizers"], json!(["example.org/wait", "orphan"]));
    server.create_cron_job("b").await;
    let status = server
        .delete(&format!("{}/b", server.path("cronjobs")), &Value::Null)
        .await
        .expect(200);
    assert_eq!(status["status"], "Success");
}

pub(super) async fn a_collection_is_deleted_by_selector(server: Server) {
    for (name, tier) in [("a", "1"), ("b", "2"), ("c", "1")] {
        server.create_config_map(name, json!({"tier": tier})).await;
    }
    let path = server.path("configmaps");
    server
        .delete(&format!("{path}?labelSelector=tier%3D1"), &Value::Null)
        .await
        .expect(200);
    server.get(&format!("{path}/a")).await.refused(404, "NotFound");
    server.get(&format!("{path}/b")).await.expect(200);
    server.get(&format!("{path}/c")).await.refused(404, "NotFound");
}

pub(super) async fn terminating_namespace_refuses_creates(server: Server) {
    server
        .create_job("a", json!({"finalizers": ["example.org/wait"]}))
        .await;
    let namespace = format!("/api/v1/namespaces/{}", server.namespace);
    let marked = server.delete(&namespace, &Value::Null).await.expect(200);
    assert_eq!(marked["status"]["phase"], "Terminating");
    let response = server.post(&server.path("jobs"), &job("b")).await;
    let causes = response.json["details"]["causes"].clone();
    let message = response.refused(403, "Forbidden");
    assert_eq!(
        message,
        format!(
            "jobs.batch \"b\" is forbidden: unable to create new content in namespace {0} because it is being terminated",
            server.namespace
        )
    );
    assert_eq!(causes[0]["reason"], "NamespaceTerminating");
    // The namespace controller marks the Job for deletion. Only then does removing the finalizer delete it.
    let path = format!("{}/a", server.path("jobs"));
    while server.get(&path).await.expect(200)["metadata"]["deletionTimestamp"].is_null() {}
    server
        .merge_patch(&path, &json!({"metadata": {"finalizers": null}}))
        .await
        .expect(200);
    server.wait_for_code(&path, 404).await;
}

pub(super) async fn job_with_a_missing_owner_is_deleted(server: Server) {
    let cron_job = server.create_cron_job("a").await;
    server
        .delete(&format!("{}/a", server.path("cronjobs")), &Value::Null)
        .await
        .expect(200);
    server.create_job("a-1", owned_by(&cron_job)).await;
    server.wait_for_code(&format!("{}/a-1", server.path("jobs")), 404).await;
}
