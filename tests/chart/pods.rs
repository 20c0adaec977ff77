//! What an organization changes in all objects and Pods: registry, labels, annotations, environment, network.

use serde_json::{Value, json};

use super::{everything, named, objects_of, render};

/// The values with these below the others.
fn with_page(mut values: Value) -> Value {
    values["ui"]["enabled"] = json!(true);
    values
}

/// The specs of the Pods of replicas and page.
fn pods(values: Value) -> [Value; 2] {
    let objects = objects_of(&with_page(values));
    ["cronwheel", "cronwheel-ui"].map(|name| named(&objects, "Deployment", name)["spec"]["template"]["spec"].clone())
}

fn image(values: Value) -> String {
    let [replica, page] = pods(values).map(|pod| pod["containers"][0]["image"].as_str().unwrap().to_owned());
    assert_eq!(replica, page);
    replica
}

#[test]
fn global_registry_takes_precedence_for_tags_and_digests() {
    let image_values = json!({"repository": "team/cronwheel", "tag": "1"});
    assert_eq!(image(json!({ "image": image_values })), "team/cronwheel:1");
    let mut values = json!({"image": image_values});
    values["image"]["registry"] = json!("registry.example");
    assert_eq!(image(values.clone()), "registry.example/team/cronwheel:1");
    values["global"] = json!({"imageRegistry": "mirror.example:5000/"});
    assert_eq!(image(values.clone()), "mirror.example:5000/team/cronwheel:1");
    let digest = format!("sha256:{}", "0".repeat(64));
    values["image"]["digest"] = json!(digest);
    assert_eq!(image(values), format!("mirror.example:5000/team/cronwheel@{digest}"));
}

#[test]
fn both_pods_have_all_pull_secrets_once() {
    let values = json!({
        "imagePullSecrets": [{"name": "own"}, {"name": "both"}],
        "global": {"imagePullSecrets": ["both", {"name": "mirror"}]},
    });
    for pod in pods(values) {
        let expected = json!([{"name": "own"}, {"name": "both"}, {"name": "mirror"}]);
        assert_eq!(pod["imagePullSecrets"], expected);
    }
    let [replica, page] = pods(json!({}));
    assert!(replica.get("imagePullSecrets").is_none() && page.get("imagePullSecrets").is_none());
}

#[test]
fn pods_have_their_own_environment_and_volumes() {
    let extra = |name: &str| {
        json!({
            "extraEnv": [{"name": "HTTPS_PROXY", "value": format!("http://{name}:3128")}],
            "extraEnvFrom": [{"configMapRef": {"name": name}}],
            "extraVolumes": [{"name": name, "configMap": {"name": name}}],
            "extraVolumeMounts": [{"name": name, "mountPath": "/etc/proxy"}],
        })
    };
    let mut values = extra("replicas");
    values["ui"] = extra("page");
    for (pod, name) in pods(values).iter().zip(["replicas", "page"]) {
        let (container, expected) = (&pod["containers"][0], extra(name));
        let last = |list: &Value| json!([list.as_array().unwrap().last().unwrap()]);
        assert_eq!(last(&container["env"]), expected["extraEnv"]);
        assert_eq!(container["envFrom"], expected["extraEnvFrom"]);
        assert_eq!(last(&container["volumeMounts"]), expected["extraVolumeMounts"]);
        assert_eq!(last(&pod["volumes"]), expected["extraVolumes"]);
    }
    let [replica, page] = pods(json!({}));
    assert_eq!(replica["containers"][0]["env"][0]["name"], "POD_REVISION");
    assert_eq!(page["volumes"].as_array().unwrap().len(), 1);
}

#[test]
fn only_replicas_use_the_network_of_their_node() {
    let settings = |values: Value| pods(values).map(|pod| json!([pod["hostNetwork"], pod["dnsPolicy"]]));
    assert_eq!(settings(json!({})), [json!([null, null]), json!([null, null])]);
    let on_node = json!({"hostNetwork": true});
    assert_eq!(
        settings(on_node),
        [json!([true, "ClusterFirstWithHostNet"]), json!([null, null])]
    );
    let both = json!({"hostNetwork": true, "dnsPolicy": "Default"});
    assert_eq!(settings(both), [json!([true, "Default"]), json!([null, "Default"])]);
    let config = json!({"nameservers": ["10.0.0.10"], "options": [{"name": "ndots", "value": "1"}]});
    for pod in pods(json!({"dnsPolicy": "None", "dnsConfig": config})) {
        assert_eq!((&pod["dnsPolicy"], &pod["dnsConfig"]), (&json!("None"), &config));
    }
}

#[test]
fn free_spread_constraints_replace_those_of_the_chart() {
    let labels = json!({"app.kubernetes.io/name": "cronwheel", "app.kubernetes.io/instance": "cronwheel"});
    let own = json!({"matchLabels": {"a": "b"}});
    let [replica, page] = pods(json!({"topologySpreadConstraints": [
        {"topologyKey": "rack", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}, {"topologyKey": "room", "labelSelector": own},
    ]}));
    let constraints = replica["topologySpreadConstraints"].as_array().unwrap();
    assert_eq!(constraints.len(), 2);
    assert_eq!(
        (&constraints[0]["topologyKey"], &constraints[0]["maxSkew"]),
        (&json!("rack"), &json!(2))
    );
    assert_eq!(constraints[0]["labelSelector"], json!({"matchLabels": labels}));
    assert_eq!(constraints[1]["labelSelector"]["matchLabels"]["a"], "b");
    assert!(page.get("topologySpreadConstraints").is_none());
}

#[test]
fn every_object_and_pod_has_the_common_labels_and_annotations() {
    let mut values = everything();
    values["ui"] = json!({"enabled": true, "history": {"persistentVolumeClaim": {"create": true}}});
    values["rbac"] = json!({"aggregateToView": true});
    values["commonLabels"] = json!({"team": "platform"});
    values["commonAnnotations"] = json!({"contact": "platform@example.com", "tier": "1"});
    values["podAnnotations"] = json!({"tier": "2"});
    values["serviceAccount"] = json!({"annotations": {"tier": "3"}});
    let objects = objects_of(&values);
    let templates = objects.iter().map(|object| &object["spec"]["template"]);
    let mut n_metadata = 0;
    for object in objects.iter().chain(templates.filter(|template| template.is_object())) {
        let metadata = &object["metadata"];
        assert_eq!(metadata["labels"]["team"], "platform", "{metadata}");
        assert_eq!(metadata["annotations"]["contact"], "platform@example.com", "{metadata}");
        n_metadata += 1;
    }
    assert!(n_metadata > 30, "{n_metadata}");
    let tier = |object: &Value| object["metadata"]["annotations"]["tier"].clone();
    let deployment = named(&objects, "Deployment", "cronwheel");
    assert_eq!(
        (tier(deployment), tier(&deployment["spec"]["template"])),
        (json!("1"), json!("2"))
    );
    assert_eq!(tier(named(&objects, "ServiceAccount", "cronwheel")), "3");
    let selector = &deployment["spec"]["selector"]["matchLabels"];
    assert!(selector.get("team").is_none(), "a selector is immutable");
}

#[test]
fn deployments_keep_so_many_former_revisions() {
    let objects = objects_of(&with_page(json!({"revisionHistoryLimit": 2})));
    for name in ["cronwheel", "cronwheel-ui"] {
        assert_eq!(named(&objects, "Deployment", name)["spec"]["revisionHistoryLimit"], 2);
    }
}

#[test]
fn extra_objects_are_objects_or_templates() {
    let objects = objects_of(&json!({"extraObjects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-one"}},
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: two\n  labels:\n    {{- include \"cronwheel.labels\" . | nindent 4 }}",
    ]}));
    named(&objects, "ConfigMap", "cronwheel-one");
    let two = named(&objects, "ConfigMap", "two");
    assert_eq!(two["metadata"]["labels"]["app.kubernetes.io/name"], "cronwheel");
}

#[test]
fn view_reads_leases_only_if_told() {
    let name = "cronwheel-view";
    assert!(!render(&json!({})).unwrap().contains(name));
    let values = json!({"rbac": {"aggregateToView": true}});
    let objects = objects_of(&values);
    let role = named(&objects, "ClusterRole", name);
    for of in ["view", "edit", "admin"] {
        let label = format!("rbac.authorization.k8s.io/aggregate-to-{of}");
        assert_eq!(role["metadata"]["labels"][label], "true");
    }
    let expected =
        json!([{"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get", "list", "watch"]}]);
    assert_eq!(role["rules"], expected);
    let without = json!({"rbac": {"aggregateToView": true, "create": false}});
    assert!(!render(&without).unwrap().contains(name));
}
