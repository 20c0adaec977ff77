//! The content of objects: defaults, validation errors, patches, bodies in protobuf.

use http::Method;
use serde_json::{Value, json};

use super::server::{Response, Server, cron_job, job, text, uid, version};

/// The request body of `kubectl create job j2 --from=cronjob/hello2`, in hexadecimal digits.
const CREATE_JOB: &str = include_str!("../../../apiobjects/src/protobuf/create_job.hex");

impl Server {
    async fn patch(&self, form: &str, path: &str, body: &Value) -> Response {
        let content_type = format!("application/{form}");
        let body = serde_json::to_vec(body).unwrap();
        self.send(Method::PATCH, path, &content_type, "application/json", body)
            .await
    }
}

fn warnings(response: &Response) -> Vec<String> {
    let values = response.headers.get_all("warning").iter();
    values.map(|value| value.to_str().unwrap().to_owned()).collect()
}

fn pod(object: &Value) -> &Value {
    &object["spec"]["jobTemplate"]["spec"]["template"]["spec"]
}

/// Wraps a change of a Pod spec in a patch of a CronJob.
fn pod_patch(change: Value) -> Value {
    json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": change}}}}})
}

pub(super) async fn b_16_1_created_cron_job_has_the_defaults_of_the_server(server: Server) {
    let spec = json!({"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "work", "image": "work"}]}}}}});
    let object = json!({"metadata": {"name": "a"}, "spec": spec});
    let created = server.post(&server.path("cronjobs"), &object).await.expect(201);
    let expected = json!({
        "schedule": "0 0 1 1 *", "concurrencyPolicy": "Allow", "suspend": false,
        "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
        "jobTemplate": {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "securityContext": {}, "schedulerName": "default-scheduler",
            "containers": [{"name": "work", "image": "work", "resources": {}, "imagePullPolicy": "Always",
                "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}]}}}},
    });
    assert_eq!(created["spec"], expected);
}

pub(super) async fn b_11_2_created_job_has_labels_with_its_name_and_uid(server: Server) {
    let created = server.create_job("a", json!({})).await;
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid(&created), "batch.kubernetes.io/job-name": "a",
        "controller-uid": uid(&created), "job-name": "a",
    });
    assert_eq!(created["spec"]["template"]["metadata"]["labels"], labels);
    assert_eq!(created["metadata"]["labels"], labels);
    let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid(&created)}});
    assert_eq!(created["spec"]["selector"], selector);
    let spec = &created["spec"];
    for (member, value) in [
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("completions", json!(1)),
        ("manualSelector", json!(false)),
        ("parallelism", json!(1)),
        ("podReplacementPolicy", json!("TerminatingOrFailed")),
    ] {
        assert_eq!(spec[member], value, "{member}");
    }
}

pub(super) async fn b_16_2_invalid_cron_job_error_lists_every_cause(server: Server) {
    let mut object = cron_job("a");
    object["spec"]["concurrencyPolicy"] = "Never".into();
    object["spec"]["startingDeadlineSeconds"] = (-1).into();
    object["spec"]["jobTemplate"]["spec"]["template"]["spec"]["restartPolicy"] = "Always".into();
    let response = server.post(&server.path("cronjobs"), &object).await;
    let details = response.json["details"].clone();
    let causes = [
        (
            "FieldValueInvalid",
            "spec.startingDeadlineSeconds",
            "Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "FieldValueNotSupported",
            "spec.concurrencyPolicy",
            "Unsupported value: \"Never\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
        ),
        (
            "FieldValueRequired",
            "spec.jobTemplate.spec.template.spec.restartPolicy",
            "Required value: valid values: \"OnFailure\", \"Never\"",
        ),
    ];
    let texts: Vec<_> = causes.map(|(_, field, message)| format!("{field}: {message}")).to_vec();
    assert_eq!(
        response.refused(422, "Invalid"),
        format!("CronJob.batch \"a\" is invalid: [{}]", texts.join(", "))
    );
    let expected = causes.map(|(reason, field, message)| json!({"reason": reason, "message": message, "field": field}));
    assert_eq!(
        details,
        json!({"name": "a", "group": "batch", "kind": "CronJob", "causes": expected})
    );
}

pub(super) async fn b_16_2_object_without_a_name_is_invalid(server: Server) {
    let response = server.post(&server.path("configmaps"), &json!({})).await;
    let expected = "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required";
    assert_eq!(response.refused(422, "Invalid"), expected);
}

pub(super) async fn completion_mode_of_a_job_is_immutable(server: Server) {
    let mut object = server.create_job("a", json!({})).await;
    object["spec"]["completionMode"] = "Indexed".into();
    object["spec"]["completions"] = 2.into();
    let path = format!("{}/a", server.path("jobs"));
    let message = server.put(&path, &object).await.refused(422, "Invalid");
    assert!(
        message.contains("spec.completionMode: Invalid value: \"Indexed\": field is immutable"),
        "{message}"
    );
}

pub(super) async fn complete_job_needs_success_criteria_and_stays_complete(server: Server) {
    let created = server.create_job("a", json!({})).await;
    let path = format!("{}/a/status", server.path("jobs"));
    let time = &created["metadata"]["creationTimestamp"];
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": time});
    let mut write = created.clone();
    // Other clients may have written the Job since, so the write has no version.
    write["metadata"]["resourceVersion"].take();
    write["status"] = json!({"startTime": time, "completionTime": time, "conditions": [condition("Complete")]});
    let message = server.put(&path, &write).await.refused(422, "Invalid");
    assert_eq!(
        message,
        "Job.batch \"a\" is invalid: status.conditions: Invalid value: cannot set Complete=True condition without the \
         SuccessCriteriaMet=true condition"
    );
    write["status"]["conditions"] = json!([condition("SuccessCriteriaMet"), condition("Complete")]);
    server.put(&path, &write).await.expect(200);
    write["status"]["conditions"] = json!([]);
    server.put(&path, &write).await.refused(422, "Invalid");
}

pub(super) async fn unknown_fields_are_warned_about_or_refused(server: Server) {
    let mut object = cron_job("a");
    object["spec"]["skedule"] = 1.into();
    let path = server.path("cronjobs");
    let warned = server.post(&format!("{path}?dryRun=All"), &object).await;
    assert_eq!(warnings(&warned), ["299 - \"unknown field \\\"spec.skedule\\\"\""]);
    assert_eq!(warned.expect(201)["spec"]["skedule"], Value::Null);
    let ignored = server
        .post(&format!("{path}?dryRun=All&fieldValidation=Ignore"), &object)
        .await;
    assert_eq!(warnings(&ignored), [""; 0]);
    let strict = server.post(&format!("{path}?fieldValidation=Strict"), &object).await;
    assert_eq!(
        strict.refused(400, "BadRequest"),
        "CronJob in version \"v1\" cannot be handled as a CronJob: strict decoding error: unknown field \"spec.skedule\""
    );
    object["spec"]["skedule"].take();
    object["spec"]["suspend"] = "yes".into();
    assert_eq!(
        server.post(&path, &object).await.refused(400, "BadRequest"),
        "CronJob in version \"v1\" cannot be handled as a CronJob: json: cannot unmarshal string into Go struct field \
         CronJobSpec.spec.suspend of type bool"
    );
}

pub(super) async fn invalid_request_options_are_refused(server: Server) {
    server.create_config_map("a", json!({})).await;
    let path = server.path("configmaps");
    let object = json!({"metadata": {"name": "b"}});
    let mut messages = Vec::new();
    for query in ["dryRun=Some", "fieldValidation=Some"] {
        let response = server.post(&format!("{path}?{query}"), &object).await;
        messages.push(response.refused(422, "Invalid"));
    }
    let one = format!("{path}/a");
    let response = server
        .patch("merge-patch+json", &format!("{one}?force=true"), &json!({}))
        .await;
    messages.push(response.refused(422, "Invalid"));
    let applied = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    let response = server.patch("apply-patch+yaml", &one, &applied).await;
    messages.push(response.refused(422, "Invalid"));
    let response = server.delete(&one, &json!({"propagationPolicy": "Some"})).await;
    messages.push(response.refused(422, "Invalid"));
    let response = server.delete(&one, &json!({"gracePeriodSeconds": "soon"})).await;
    response.refused(400, "BadRequest");
    assert_eq!(
        messages,
        [
            "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"",
            "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Some\": supported values: \
             \"\", \"Ignore\", \"Strict\", \"Warn\"",
            "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch",
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Some\": supported values: \
             \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        ]
    );
}

pub(super) async fn metadata_managed_by_the_server_is_not_taken_from_the_client(server: Server) {
    let mut object = json!({"metadata": {"name": "a", "generateName": "a", "uid": "1", "generation": 7, "selfLink": "x",
        "deletionTimestamp": "2020-01-01T00:00:00Z", "deletionGracePeriodSeconds": 3}});
    let path = server.path("configmaps");
    let created = server.post(&path, &object).await.expect(201);
    for member in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        assert_eq!(created["metadata"][member], Value::Null, "{member}");
    }
    assert_ne!(uid(&created), "1");
    assert_eq!(created["metadata"]["generation"], 7);
    object["metadata"] = json!({"name": "b", "resourceVersion": "1"});
    let response = server.post(&path, &object).await;
    assert_eq!(response.code, 500, "{response:?}");
    assert_eq!(
        response.json["message"],
        "resourceVersion should not be set on objects to be created"
    );
    for (name, version) in [("c", "0"), ("d", "x")] {
        object["metadata"] = json!({"name": name, "resourceVersion": version});
        server.post(&path, &object).await.expect(201);
    }
    let bare = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let stored = server.put(&format!("{path}/a"), &bare).await.expect(200);
    assert_eq!(uid(&stored), uid(&created));
    assert_eq!(stored["metadata"]["generateName"], Value::Null);
    assert_eq!(
        stored["metadata"]["creationTimestamp"],
        created["metadata"]["creationTimestamp"]
    );
    let mut moved = stored.clone();
    moved["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z".into();
    let kept = server.put(&format!("{path}/a"), &moved).await.expect(200);
    assert_eq!(version(&kept), version(&stored));
}

pub(super) async fn strategic_merge_patch_merges_containers_by_name(server: Server) {
    server.create_cron_job("a").await;
    let path = format!("{}/a", server.path("cronjobs"));
    let change = pod_patch(json!({"containers": [
        {"name": "work", "env": [{"name": "A", "value": "1"}]}, {"name": "more", "image": "more"}]}));
    let stored = server
        .patch("strategic-merge-patch+json", &path, &change)
        .await
        .expect(200);
    let containers = pod(&stored)["containers"].as_array().unwrap();
    let names: Vec<_> = containers.iter().map(|container| text(&container["name"])).collect();
    assert_eq!(names, ["work", "more"]);
    assert_eq!(containers[0]["image"], "work");
    assert_eq!(containers[0]["env"], json!([{"name": "A", "value": "1"}]));
    let change = pod_patch(json!({"containers": [{"name": "more", "$patch": "delete"}]}));
    let stored = server
        .patch("strategic-merge-patch+json", &path, &change)
        .await
        .expect(200);
    assert_eq!(pod(&stored)["containers"].as_array().unwrap().len(), 1);
    assert_eq!(stored["metadata"]["generation"], 3);
}

pub(super) async fn json_patch_is_applied_completely_or_not_at_all(server: Server) {
    server.create_cron_job("a").await;
    let path = format!("{}/a", server.path("cronjobs"));
    let failing = json!([{"op": "replace", "path": "/spec/schedule", "value": "1 1 1 1 *"},
        {"op": "test", "path": "/spec/suspend", "value": false}]);
    let message = server
        .patch("json-patch+json", &path, &failing)
        .await
        .refused(422, "Invalid");
    assert_eq!(
        message,
        "the server rejected our request due to an error in our request"
    );
    let change = json!([{"op": "test", "path": "/spec/suspend", "value": true},
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}, {"op": "remove", "path": "/spec/suspend"}]);
    let stored = server.patch("json-patch+json", &path, &change).await.expect(200);
    assert_eq!(stored["spec"]["schedule"], "0 0 1 1 *");
    assert_eq!(stored["spec"]["suspend"], false);
    assert_eq!(stored["metadata"]["labels"], json!({"a": "b"}));
}

pub(super) async fn apply_creates_changes_and_removes_fields(server: Server) {
    let path = format!(
        "{}/a?fieldManager=kubectl&fieldValidation=Strict",
        server.path("cronjobs")
    );
    let mut object = cron_job("a");
    object["metadata"]["labels"] = json!({"mine": "1", "also": "1"});
    let apply = |object: Value, query: &'static str| {
        let (server, path) = (server.clone(), format!("{path}{query}"));
        async move { server.patch("apply-patch+yaml", &path, &object).await }
    };
    let dry = apply(object.clone(), "&dryRun=All").await.expect(201);
    assert_eq!(dry["spec"]["concurrencyPolicy"], "Allow");
    let created = apply(object.clone(), "").await.expect(201);
    assert_eq!(created["metadata"]["labels"], json!({"mine": "1", "also": "1"}));
    let again = apply(object.clone(), "").await.expect(200);
    assert_eq!(version(&again), version(&created));
    let others = json!({"metadata": {"labels": {"other": "1"}}});
    server
        .merge_patch(&format!("{}/a", server.path("cronjobs")), &others)
        .await
        .expect(200);
    object["metadata"]["labels"] = json!({"mine": "2"});
    object["spec"]["schedule"] = "1 1 1 1 *".into();
    let changed = apply(object.clone(), "").await.expect(200);
    assert_eq!(changed["metadata"]["labels"], json!({"mine": "2", "other": "1"}));
    assert_eq!(changed["spec"]["schedule"], "1 1 1 1 *");
    assert_eq!(changed["metadata"]["generation"], 2);
    let entries = changed["metadata"]["managedFields"].as_array().unwrap();
    let own = entries
        .iter()
        .find(|entry| entry["manager"] == "kubectl" && entry["operation"] == "Apply");
    assert_eq!(
        own.unwrap()["fieldsV1"]["f:metadata"],
        json!({"f:labels": {"f:mine": {}}})
    );
    object["spec"]["skedule"] = 1.into();
    let refused = apply(object, "").await;
    assert_eq!(refused.code, 500, "{refused:?}");
    let expected = format!(
        "failed to create typed patch object ({}/a; batch/v1, Kind=CronJob): .spec.skedule: field not declared in schema",
        server.namespace
    );
    let without_namespace = expected.replace(&server.namespace, "");
    let message = text(&refused.json["message"]);
    assert!(message == expected || message == without_namespace, "{message}");
}

pub(super) async fn patch_with_an_invalid_result_is_refused(server: Server) {
    server.create_cron_job("a").await;
    let path = format!("{}/a?fieldValidation=Strict", server.path("cronjobs"));
    let change = json!({"spec": {"skedule": 1}});
    let response = server.patch("strategic-merge-patch+json", &path, &change).await;
    assert_eq!(
        response.refused(422, "Invalid"),
        " \"\" is invalid: patch: Invalid value: \"map[spec:map[skedule:1]]\": strict decoding error: unknown field \
         \"spec.skedule\""
    );
    let response = server
        .patch("merge-patch+json", &path, &json!({"spec": {"schedule": null}}))
        .await;
    assert_eq!(
        response.refused(422, "Invalid"),
        "CronJob.batch \"a\" is invalid: spec.schedule: Required value"
    );
    server
        .patch("json-patch+json", &path, &json!({}))
        .await
        .refused(400, "BadRequest");
}

pub(super) async fn a_job_is_created_from_protobuf(server: Server) {
    let digits: Vec<u8> = CREATE_JOB.bytes().filter(u8::is_ascii_hexdigit).collect();
    let body: Vec<u8> = digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let path = server.path("jobs");
    let send = |method: Method, path: String, body: Vec<u8>| {
        let server = server.clone();
        let content_type = "application/vnd.kubernetes.protobuf";
        async move { server.send(method, &path, content_type, "application/json", body).await }
    };
    let created = send(Method::POST, format!("{path}?dryRun=All"), body).await.expect(201);
    assert_eq!(created["kind"], "Job");
    assert_eq!(
        created["metadata"]["annotations"],
        json!({"cronjob.kubernetes.io/instantiate": "manual"})
    );
    assert_eq!(created["metadata"]["ownerReferences"][0]["controller"], true);
    assert_eq!(created["spec"]["template"]["spec"]["restartPolicy"], "OnFailure");
    send(Method::POST, path.clone(), b"{}".to_vec())
        .await
        .refused(400, "BadRequest");
    // `DeleteOptions` with background propagation.
    let options = [
        b"k8s\0\x0a\x13\x0a\x02v1\x12\x0dDeleteOptions".as_slice(),
        b"\x12\x0c\x22\x0aBackground\x1a\0\x22\0",
    ];
    server.create_job("a", json!({})).await;
    let status = send(Method::DELETE, format!("{path}/a"), options.concat())
        .await
        .expect(200);
    assert_eq!(status["status"], "Success");
}

pub(super) async fn name_that_is_no_dns_label_gets_a_warning(server: Server) {
    let response = server.post(&server.path("jobs"), &job("a.b")).await;
    assert_eq!(
        warnings(&response),
        [
            "299 - \"metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS \
             label is recommended: [must not contain dots]\""
        ]
    );
    response.expect(201);
}
