//! Formats of responses: tables, partial metadata, discovery.

use http::Method;
use serde_json::{Value, json};

use super::server::{Server, text, version};

pub(super) const TABLE: &str =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
const PARTIAL: &str = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json";
pub(super) const PARTIAL_LIST: &str =
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json";
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

impl Server {
    pub(super) async fn get_as(&self, accept: &str, path: &str) -> Value {
        let response = self.send(Method::GET, path, "", accept, Vec::new()).await;
        response.expect(200)
    }
}

fn columns(table: &Value) -> Vec<String> {
    let definitions = table["columnDefinitions"].as_array().unwrap();
    definitions.iter().map(|column| text(&column["name"])).collect()
}

pub(super) async fn tables_have_the_columns_of_cron_jobs_and_jobs(server: Server) {
    server.create_cron_job("a").await;
    server.create_job("b", json!({})).await;
    let table = server.get_as(TABLE, &server.path("cronjobs")).await;
    assert_eq!(
        columns(&table),
        [
            "Name",
            "Schedule",
            "Timezone",
            "Suspend",
            "Active",
            "Last Schedule",
            "Age",
            "Containers",
            "Images",
            "Selector"
        ]
    );
    let mut cells = table["rows"][0]["cells"].clone();
    cells[6].take();
    assert_eq!(
        cells,
        json!([
            "a",
            "0 0 1 1 *",
            "<none>",
            "True",
            0,
            "<none>",
            null,
            "work",
            "work",
            "<none>"
        ])
    );
    let row = &table["rows"][0]["object"];
    assert_eq!(
        (&row["kind"], &row["metadata"]["name"]),
        (&json!("PartialObjectMetadata"), &json!("a"))
    );
    assert_eq!(row["spec"], Value::Null);
    let jobs = server.path("jobs");
    let table = server.get_as(TABLE, &format!("{jobs}?includeObject=Object")).await;
    assert_eq!(table["rows"][0]["cells"][1], "Running");
    assert_eq!(table["rows"][0]["object"]["spec"]["suspend"], true);
    let table = server.get_as(TABLE, &format!("{jobs}?includeObject=None")).await;
    assert_eq!(table["rows"][0]["object"], Value::Null);
    assert_eq!(
        text(&table["metadata"]["resourceVersion"])
            .parse::<u64>()
            .unwrap_or(0)
            .min(1),
        1
    );
}

pub(super) async fn watch_can_return_tables(server: Server) {
    server.create_config_map("a", json!({"x": "1"})).await;
    server.create_config_map("b", json!({"x": "1"})).await;
    let path = server.path("configmaps");
    let query = "watch=1&labelSelector=x%3D1&includeObject=None&allowWatchBookmarks=true&sendInitialEvents=true\
                 &resourceVersionMatch=NotOlderThan";
    let events = server.watch_as(TABLE, &format!("{path}?{query}"), 3).await;
    let kinds: Vec<_> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["ADDED", "ADDED", "BOOKMARK"]);
    for ((_, table), name) in events.iter().zip(["a", "b"]) {
        assert_eq!(table["kind"], "Table");
        assert_eq!(table["rows"][0]["cells"][0], name);
        assert_eq!(table["rows"][0]["object"], Value::Null);
    }
    // Only the first event contains the columns.
    assert_eq!(columns(&events[0].1), ["Name", "Data", "Age"]);
    assert_eq!(events[1].1["columnDefinitions"], Value::Null);
    let bookmark = &events[2].1;
    assert_eq!(bookmark["kind"], "Table", "{bookmark}");
}

pub(super) async fn partial_object_metadata_is_returned_on_request(server: Server) {
    let created = server.create_cron_job("a").await;
    let path = server.path("cronjobs");
    let one = server.get_as(PARTIAL, &format!("{path}/a")).await;
    assert_eq!(
        (text(&one["kind"]), text(&one["apiVersion"])),
        ("PartialObjectMetadata".into(), "meta.k8s.io/v1".into())
    );
    assert_eq!(one["metadata"], created["metadata"]);
    assert_eq!(one["spec"], Value::Null);
    let list = server.get_as(PARTIAL_LIST, &path).await;
    assert_eq!(list["kind"], "PartialObjectMetadataList");
    assert_eq!(list["items"][0]["metadata"]["name"], "a");
    assert_eq!(list["items"][0]["spec"], Value::Null);
    let events = server.watch_as(PARTIAL, &format!("{path}?watch=1"), 1).await;
    assert_eq!(events[0].1["kind"], "PartialObjectMetadata");
    assert_eq!(version(&events[0].1), version(&created));
}

pub(super) async fn served_resources_can_be_discovered(server: Server) {
    let groups = server.get_as("application/json", "/apis").await;
    let names: Vec<_> = groups["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| text(&group["name"]))
        .collect();
    assert!(
        names.contains(&"batch".to_owned()) && names.contains(&"coordination.k8s.io".to_owned()),
        "{names:?}"
    );
    let batch = server.get_as("application/json", "/apis/batch/v1").await;
    let resource = |name: &str| {
        batch["resources"]
            .as_array()
            .unwrap()
            .iter()
            .find(|entry| entry["name"] == name)
            .cloned()
            .unwrap()
    };
    assert_eq!(resource("cronjobs")["shortNames"], json!(["cj"]));
    assert_eq!(resource("cronjobs")["categories"], json!(["all"]));
    assert_eq!(resource("jobs/status")["verbs"], json!(["get", "patch", "update"]));
    let all = server.get_as(AGGREGATED, "/apis").await;
    assert_eq!(
        (text(&all["kind"]), text(&all["apiVersion"])),
        ("APIGroupDiscoveryList".into(), "apidiscovery.k8s.io/v2".into())
    );
    let schema = server.get_as("application/json", "/openapi/v3/apis/batch/v1").await;
    let shapes = schema["components"]["schemas"].as_object().unwrap();
    let cron_job = shapes.values().find(|shape| {
        let kinds = &shape["x-kubernetes-group-version-kind"];
        *kinds == json!([{"group": "batch", "version": "v1", "kind": "CronJob"}])
    });
    assert!(cron_job.unwrap()["properties"]["spec"].is_object());
    // `kubectl apply` needs the merge strategies of lists.
    let pod_spec = shapes.iter().find(|(name, _)| name.ends_with("PodSpec")).unwrap().1;
    let containers = &pod_spec["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(
        pod_spec["properties"]["volumes"]["x-kubernetes-patch-strategy"],
        "merge,retainKeys"
    );
    let version = server.get_as("application/json", "/version").await;
    assert_eq!(
        (text(&version["major"]), text(&version["minor"])),
        ("1".into(), "36".into())
    );
    assert_eq!(server.get("/apis/none.example.org/v1").await.code, 404);
}

/// Uses the same requests as `kubectl wait`.
pub(super) async fn single_object_is_watched_by_its_name(server: Server) {
    let created = server.create_job("a", json!({})).await;
    server.create_job("b", json!({})).await;
    let path = server.path("jobs");
    let listed = server
        .get(&format!("{path}?fieldSelector=metadata.name%3Da&limit=500"))
        .await
        .expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let begun = text(&listed["metadata"]["resourceVersion"]);
    let time = &created["metadata"]["creationTimestamp"];
    let condition = |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": time});
    for name in ["b", "a"] {
        let status = json!({"status": {"startTime": time, "completionTime": time, "succeeded": 1,
            "conditions": [condition("SuccessCriteriaMet"), condition("Complete")]}});
        server
            .merge_patch(&format!("{path}/{name}/status"), &status)
            .await
            .expect(200);
    }
    let query = format!("{path}?watch=1&fieldSelector=metadata.name%3Da&resourceVersion={begun}");
    let events = server.watch(&query, 1).await;
    assert_eq!(events[0].1["metadata"]["name"], "a");
    assert_eq!(events[0].1["status"]["conditions"][1]["type"], "Complete");
    let selected = server
        .get(&format!("{path}?fieldSelector=status.successful%3D1"))
        .await
        .expect(200);
    assert_eq!(selected["items"].as_array().unwrap().len(), 2);
}
