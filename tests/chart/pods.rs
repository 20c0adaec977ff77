//! What an organization changes in all objects and Pods: registry, labels, annotations, environment, network.

use serde_json::{Value, json};

use super::{everything, named, objects, objects_of, render};

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
        {"topologyKey": "rack", "maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}, {"topologyKey": "room", "labelSelector": own.clone()},
    ]}));
    let constraints = replica["topologySpreadConstraints"].as_array().unwrap();
    assert_eq!(constraints.len(), 2);
    assert_eq!(
        (&constraints[0]["topologyKey"], &constraints[0]["maxSkew"]),
        (&json!("rack"), &json!(2))
    );
    assert_eq!(constraints[0]["labelSelector"], json!({"matchLabels": labels}));
    assert_eq!(constraints[1]["labelSelector"], own);
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

/// The parser of the tests refuses a key that occurs twice, as strict tools do.
#[test]
fn a_label_that_is_given_twice_has_the_value_of_the_single_object() {
    let label = |team: &str| json!({"team": team, "app.kubernetes.io/name": "other"});
    let mut values = everything();
    values["ui"] = json!({"enabled": true, "podLabels": label("page")});
    values["commonLabels"] = label("platform");
    values["podLabels"] = label("replicas");
    for name in ["podMonitor", "prometheusRule", "dashboards"] {
        values["metrics"][name]["labels"] = label(name);
    }
    let objects = objects(&super::render_all(&values).unwrap());
    let mut teams = Vec::new();
    for object in &objects {
        for metadata in [&object["metadata"], &object["spec"]["template"]["metadata"]] {
            let labels = &metadata["labels"];
            if labels.is_object() {
                let name = labels["app.kubernetes.io/name"].as_str().unwrap();
                assert!(name.starts_with("cronwheel"), "a selector has it: {metadata}");
                teams.push((object["kind"].as_str().unwrap(), labels["team"].as_str().unwrap()));
            }
        }
    }
    for (kind, team) in [
        ("Deployment", "platform"),
        ("Deployment", "replicas"),
        ("Deployment", "page"),
        ("PodMonitor", "podMonitor"),
        ("PrometheusRule", "prometheusRule"),
        ("ConfigMap", "dashboards"),
        ("Pod", "platform"),
    ] {
        assert!(teams.contains(&(kind, team)), "{kind} {team}: {teams:?}");
    }
}

/// Paths of everything in `metadata` and of references that is no text, though names and labels are texts.
fn no_texts(path: &str, value: &Value, found: &mut Vec<String>) {
    const TEXTS: [&str; 8] = [
        "name",
        "namespace",
        "serviceAccountName",
        "policyName",
        "priorityClassName",
        "claimName",
        "storageClassName",
        "app.kubernetes.io/instance",
    ];
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let is_text = TEXTS.contains(&name.as_str()) || path.ends_with("abels");
                if is_text && !member.is_string() && !member.is_object() {
                    found.push(format!("{path}.{name}: {member}"));
                }
                no_texts(&format!("{path}.{name}"), member, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| no_texts(path, item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn names_that_look_like_numbers_and_booleans_are_texts() {
    for word in ["2024", "1e3", "true", "null"] {
        let mut values = everything();
        values["controller"] = json!({"namespaces": [word], "installation": word, "leaseNamespace": word});
        if !word.starts_with(|letter: char| letter.is_ascii_digit()) {
            values["fullnameOverride"] = json!(word);
            values["nameOverride"] = json!(word);
        }
        values["priorityClass"] = json!({"create": true, "name": word});
        values["serviceAccount"] = json!({"name": word});
        values["metrics"]["dashboards"] = json!({"enabled": true, "namespace": word});
        values["tests"] = json!({"namespace": word});
        let claim = json!({"create": true, "storageClass": word});
        let page =
            json!({"enabled": true, "serviceAccount": {"name": word}, "history": {"persistentVolumeClaim": claim}});
        values["ui"] = page.clone();
        let mut with_existing_claim = json!({ "ui": page });
        with_existing_claim["ui"]["history"] = json!({"existingClaim": word});
        for values in [values, with_existing_claim] {
            let text = super::render_all_as(word, &super::chart(), &values, &["--namespace", word]).unwrap();
            let mut found = Vec::new();
            for object in objects(&text) {
                no_texts(object["kind"].as_str().unwrap(), &object, &mut found);
            }
            assert_eq!(found, Vec::<String>::new(), "{word}");
        }
    }
    // YAML 1.1, which helm reads, has more booleans than the parser of the tests.
    let text = render(&json!({"controller": {"namespaces": ["no"], "installation": "on"}})).unwrap();
    for line in ["namespace: \"no\"", "cronwheel.dev/lease: \"on\""] {
        assert!(text.contains(line), "{line}");
    }
    assert!(!text.contains("namespace: no\n"));
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
