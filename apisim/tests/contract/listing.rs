//! Lists: pages, selectors, namespaces.

use serde_json::{Value, json};

use super::server::{Server, text, version};

fn names(list: &Value) -> Vec<String> {
    list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| text(&item["metadata"]["name"]))
        .collect()
}

pub(super) async fn pages_of_a_list_have_one_version(server: Server) {
    for name in ["a", "b", "c", "d"] {
        server.create_job(name, json!({})).await;
    }
    let path = server.path("jobs");
    let first = server.get(&format!("{path}?&limit=2")).await.expect(200);
    assert_eq!(
        (text(&first["kind"]), names(&first)),
        ("JobList".into(), vec!["a".into(), "b".into()])
    );
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    server
        .delete(&format!("{path}/c"), &json!({"propagationPolicy": "Background"}))
        .await
        .expect(200);
    server.create_job("bb", json!({})).await;
    let token = text(&first["metadata"]["continue"]);
    let second = server
        .get(&format!("{path}?&limit=1&continue={token}"))
        .await
        .expect(200);
    assert_eq!(names(&second), ["c"]);
    assert_eq!(version(&second), version(&first));
    let token = text(&second["metadata"]["continue"]);
    let third = server
        .get(&format!("{path}?&limit=2&continue={token}"))
        .await
        .expect(200);
    assert_eq!(names(&third), ["d"]);
    assert_eq!(third["metadata"]["continue"].as_str().unwrap_or_default(), "");
    assert_eq!(names(&server.get(&path).await.expect(200)), ["a", "b", "bb", "d"]);
}

pub(super) async fn label_and_field_selectors_filter_lists(server: Server) {
    for (name, tier) in [("a", "1"), ("b", "2"), ("c", "3")] {
        server.create_config_map(name, json!({"tier": tier})).await;
    }
    for (selector, expected) in [
        ("tier%3D2", vec!["b"]),
        ("tier!%3D2,tier", vec!["a", "c"]),
        ("tier+in+(1,3)", vec!["a", "c"]),
        ("tier+notin+(1,3),tier", vec!["b"]),
    ] {
        let path = format!("{}?labelSelector={selector}", server.path("configmaps"));
        assert_eq!(names(&server.get(&path).await.expect(200)), expected, "{selector}");
    }
    let path = format!("{}?fieldSelector=metadata.name%3Dc", server.path("configmaps"));
    assert_eq!(names(&server.get(&path).await.expect(200)), ["c"]);
}

pub(super) async fn list_of_a_namespace_contains_no_other(server: Server) {
    let mut other = server.clone();
    // The name of this namespace begins with that of the other.
    other.namespace.push_str("-2");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other.namespace}});
    server.post("/api/v1/namespaces", &namespace).await.expect(201);
    server.create_cron_job("a").await;
    other.create_cron_job("b").await;
    assert_eq!(names(&server.get(&server.path("cronjobs")).await.expect(200)), ["a"]);
    assert_eq!(names(&other.get(&other.path("cronjobs")).await.expect(200)), ["b"]);
    let mut all = server.get("/apis/batch/v1/cronjobs").await.expect(200);
    // Other cases have CronJobs in their namespaces.
    let namespaces = [&server.namespace, &other.namespace];
    let items = all["items"].as_array_mut().unwrap();
    items.retain(|item| namespaces.contains(&&text(&item["metadata"]["namespace"])));
    let mut names_of_all = names(&all);
    names_of_all.sort();
    assert_eq!(names_of_all, ["a", "b"]);
    let all = server
        .get("/apis/batch/v1/cronjobs?resourceVersion=0")
        .await
        .expect(200);
    assert_eq!(all["kind"], "CronJobList");
}
