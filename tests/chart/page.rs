//! The page of `cronwheel ui` in the chart.

use std::collections::BTreeSet;

use clap::Parser as _;
use cronwheel::cli::args::{Cli, Command};
use serde_json::{Value, json};

use super::{
    named, objects,
    objects::notes,
    objects_of,
    permissions::{Grant, grants},
    render, render_as, with_page,
};

const NAME: &str = "cronwheel-ui";

/// The objects of the page with these values below `ui`.
fn page_of(mut ui: Value) -> Vec<Value> {
    ui["enabled"] = json!(true);
    objects_of(&json!({ "ui": ui }))
}

fn pod(objects: &[Value]) -> &Value {
    &named(objects, "Deployment", NAME)["spec"]["template"]["spec"]
}

fn is_of_page(object: &Value) -> bool {
    object["metadata"]["labels"]["app.kubernetes.io/name"] == NAME
}

fn names(objects: &[Value]) -> BTreeSet<String> {
    let of_page = objects.iter().filter(|object| is_of_page(object));
    of_page
        .map(|object| format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"])))
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn arguments(objects: &[Value]) -> Vec<&str> {
    let arguments = pod(objects)["containers"][0]["args"].as_array().unwrap();
    arguments.iter().map(text).collect()
}

#[test]
fn page_is_not_installed_by_default() {
    let by_default = objects_of(&json!({}));
    assert_eq!(names(&by_default), BTreeSet::new());
    let with_page = page_of(json!({}));
    let expected = [
        "ClusterRole cronwheel-ui",
        "ClusterRoleBinding cronwheel-ui",
        "Deployment cronwheel-ui",
        "NetworkPolicy cronwheel-ui",
        "Service cronwheel-ui",
        "ServiceAccount cronwheel-ui",
    ];
    assert_eq!(names(&with_page), expected.map(str::to_owned).into());
    let others: Vec<&Value> = with_page.iter().filter(|object| !is_of_page(object)).collect();
    assert_eq!(
        others,
        by_default.iter().collect::<Vec<_>>(),
        "the replicas are the same"
    );
}

#[test]
fn page_is_one_process_with_the_restrictions_of_the_replicas() {
    let objects = page_of(json!({}));
    let deployment = &named(&objects, "Deployment", NAME)["spec"];
    assert_eq!(deployment["replicas"], 1);
    assert_eq!(deployment["strategy"], json!({"type": "Recreate"}));
    let (page, replica) = (
        pod(&objects),
        &named(&objects, "Deployment", "cronwheel")["spec"]["template"]["spec"],
    );
    assert_eq!(page["securityContext"], replica["securityContext"]);
    let (page, replica) = (&page["containers"][0], &replica["containers"][0]);
    assert_eq!(page["securityContext"], replica["securityContext"]);
    assert_eq!(page["image"], replica["image"]);
    assert_eq!(page["resources"]["limits"], json!({"memory": "256Mi"}));
    for probe in ["livenessProbe", "readinessProbe"] {
        assert_eq!(page[probe]["httpGet"], json!({"path": "/healthz", "port": "http"}));
        assert_eq!(page[probe]["periodSeconds"], replica[probe]["periodSeconds"]);
    }
}

#[test]
fn objects_of_replicas_and_of_the_page_do_not_select_each_other() {
    let mut values = super::everything();
    values["ui"] = json!({"enabled": true});
    let objects = objects_of(&values);
    let mut n_selectors = 0;
    for object in &objects {
        let spec = &object["spec"];
        let selectors = [
            &spec["selector"]["matchLabels"],
            &spec["selector"],
            &spec["podSelector"]["matchLabels"],
        ];
        let Some(selector) = selectors.iter().find(|one| one["app.kubernetes.io/name"].is_string()) else {
            continue;
        };
        n_selectors += 1;
        let expected = if is_of_page(object) { NAME } else { "cronwheel" };
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        assert_eq!(selector["app.kubernetes.io/name"], expected, "{kind} {name}");
    }
    // Two Deployments, Services and NetworkPolicies; PodMonitor and PodDisruptionBudget.
    assert_eq!(n_selectors, 8);
}

#[test]
fn program_accepts_the_arguments_of_the_page() {
    let ui = json!({
        "clusterName": "production: west", "allowedHosts": ["cronjobs.example.com:8443"], "listenAddress": "[::]",
        "port": 9000, "namespaces": ["a", "b"], "history": {"days": 90},
    });
    let objects = page_of(ui);
    let line = [&["cronwheel"], &arguments(&objects)[..]].concat();
    let Command::Ui(read) = Cli::try_parse_from(line).unwrap().command else {
        panic!("not ui");
    };
    assert_eq!(read.source.cluster_name.as_deref(), Some("production: west"));
    let read = format!("{read:?}");
    for part in [
        r#"namespaces: ["a", "b"]"#,
        "listen: [::]:9000",
        r#"["cronwheel-ui", "cronwheel-ui.kube-system.svc", "cronwheel-ui.kube-system.svc.cluster.local", "cronjobs.example.com:8443"]"#,
        r#"history: Some("/history/runs.sqlite"), history_days: 90"#,
    ] {
        assert!(read.contains(part), "{part} in {read}");
    }
    assert_eq!(pod(&objects)["containers"][0]["ports"][0]["containerPort"], 9000);
    assert_eq!(named(&objects, "Service", NAME)["spec"]["ports"][0]["port"], 9000);
}

#[test]
fn page_has_the_time_zone_and_the_namespaces_of_the_replicas() {
    let controller = json!({"namespaces": ["team-a", "team-b"], "defaultTimeZone": "Europe/Berlin"});
    for (namespaces, expected) in [
        (json!([]), vec!["team-a", "team-b"]),
        (json!(["team-b"]), vec!["team-b"]),
    ] {
        let objects = objects_of(&json!({"controller": controller, "ui": {"enabled": true, "namespaces": namespaces}}));
        let arguments = arguments(&objects);
        let flags = arguments.iter().filter_map(|one| one.strip_prefix("--namespace="));
        assert_eq!(flags.collect::<Vec<_>>(), expected);
        assert!(arguments.contains(&"--default-time-zone=Europe/Berlin"));
        let of_page: Vec<&Value> = objects.iter().filter(|object| is_of_page(object)).collect();
        assert!(of_page.iter().all(|object| object["kind"] != "ClusterRoleBinding"));
        let bindings = of_page.iter().filter(|object| object["kind"] == "RoleBinding");
        let bound: Vec<&str> = bindings.map(|one| text(&one["metadata"]["namespace"])).collect();
        assert_eq!(bound, expected);
    }
}

#[test]
fn account_of_the_page_may_only_read() {
    let all: &[&str] = &["get", "list", "watch"];
    let expected = |of_namespaces: &[&str], of_config_maps: &[&str]| -> BTreeSet<Grant> {
        let rules = [
            ("batch", "cronjobs", all),
            ("batch", "jobs", all),
            ("", "namespaces", of_namespaces),
            ("", "configmaps", of_config_maps),
        ];
        let grants = rules.into_iter().flat_map(|(group, resource, verbs)| {
            let grant = |verb: &&str| ((*verb).to_owned(), group.to_owned(), resource.to_owned());
            verbs.iter().map(grant).collect::<Vec<_>>()
        });
        grants.collect()
    };
    let with_calendars = objects_of(&json!({"ui": {"enabled": true}, "calendars": {"enabled": true}}));
    assert_eq!(grants(named(&with_calendars, "ClusterRole", NAME)), expected(all, all));
    for (namespaces, of_namespaces) in [(json!([]), all), (json!(["team-a"]), &["get"])] {
        let objects = page_of(json!({"namespaces": namespaces, "serviceAccount": {"name": "viewer"}}));
        assert_eq!(
            grants(named(&objects, "ClusterRole", NAME)),
            expected(of_namespaces, &[])
        );
        let of_page = objects.iter().filter(|object| is_of_page(object));
        let bindings: Vec<&Value> = of_page.filter(|object| object["roleRef"].is_object()).collect();
        assert_eq!(bindings.len(), 1);
        let account = json!([{"kind": "ServiceAccount", "name": "viewer", "namespace": "kube-system"}]);
        assert_eq!(bindings[0]["subjects"], account);
        assert_eq!(bindings[0]["roleRef"]["name"], NAME);
        assert_eq!(pod(&objects)["serviceAccountName"], "viewer");
        // Nothing else binds that account.
        let bound = objects.iter().filter(|object| object["subjects"] == account);
        assert_eq!(bound.count(), 1);
    }
    let without = objects_of(&json!({"ui": {"enabled": true}, "rbac": {"create": false}}));
    assert!(without.iter().all(|object| object["roleRef"].is_null()));
}

#[test]
fn network_policy_admits_only_the_given_peers() {
    let spec = |ui: Value| named(&page_of(ui), "NetworkPolicy", NAME)["spec"].clone();
    let by_default = spec(json!({}));
    assert_eq!(by_default["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(by_default["ingress"], json!([]), "no Pod");
    let ports = by_default["egress"].as_array().unwrap().iter();
    let ports = ports.flat_map(|rule| rule["ports"].as_array().unwrap());
    let ports: Vec<String> = ports
        .map(|port| format!("{} {}", port["protocol"], port["port"]))
        .collect();
    assert_eq!(ports, ["\"UDP\" 53", "\"TCP\" 53", "\"TCP\" 443", "\"TCP\" 6443"]);
    let peers = json!([{"namespaceSelector": {"matchLabels": {"team": "a"}}}]);
    let given = spec(json!({"networkPolicy": {"from": peers, "egress": []}}));
    let port = json!([{"protocol": "TCP", "port": "http"}]);
    assert_eq!(given["ingress"], json!([{"from": peers, "ports": port}]));
    assert_eq!(given["policyTypes"], json!(["Ingress"]));
}

#[test]
fn history_is_on_a_volume() {
    let volume = |objects: &[Value]| pod(objects)["volumes"][0].clone();
    let empty = page_of(json!({"history": {"size": "5Gi"}}));
    assert_eq!(
        volume(&empty),
        json!({"name": "history", "emptyDir": {"sizeLimit": "5Gi"}})
    );
    assert_eq!(pod(&empty)["containers"][0]["volumeMounts"][0]["mountPath"], "/history");
    let created = objects_of(&with_page());
    assert_eq!(
        volume(&created),
        json!({"name": "history", "persistentVolumeClaim": {"claimName": NAME}})
    );
    let claim = &named(&created, "PersistentVolumeClaim", NAME)["spec"];
    assert_eq!(
        *claim,
        json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}})
    );
    assert_eq!(
        pod(&created)["securityContext"]["fsGroup"],
        65532,
        "a new volume belongs to root"
    );
    let given = page_of(json!({"history": {"existingClaim": "runs", "persistentVolumeClaim": {"create": true}}}));
    assert_eq!(volume(&given)["persistentVolumeClaim"]["claimName"], "runs");
    assert!(given.iter().all(|object| object["kind"] != "PersistentVolumeClaim"));
    // OpenShift selects the identifiers itself.
    let values = json!({"ui": {"enabled": true, "history": {"existingClaim": "runs"}}, "podSecurityContext": {"runAsUser": null, "runAsGroup": null}});
    let context = &pod(&objects_of(&values))["securityContext"].clone();
    assert!(context.get("fsGroup").is_none(), "{context}");
}

#[test]
fn all_names_follow_the_release() {
    let rendered = render_as("other", &super::chart(), &with_page(), &[]).unwrap();
    let of_page = objects(&rendered);
    let of_page = of_page.iter().filter(|object| is_of_page(object));
    let names: Vec<&str> = of_page.map(|object| text(&object["metadata"]["name"])).collect();
    assert_eq!(names.len(), 7, "{names:?}");
    assert!(names.iter().all(|name| *name == "other-cronwheel-ui"), "{names:?}");
    assert!(rendered.contains("--allowed-host=other-cronwheel-ui.kube-system.svc\n"));
}

#[test]
fn notes_say_how_to_open_the_page() {
    let command = "kubectl -n kube-system port-forward service/cronwheel-ui 8090";
    assert!(!notes(&json!({})).contains("port-forward"));
    let by_default = notes(&json!({"ui": {"enabled": true}}));
    assert!(
        by_default.contains(command) && by_default.contains("http://localhost:8090"),
        "{by_default}"
    );
    assert!(by_default.contains("history ends with the Pod"), "{by_default}");
    assert!(!by_default.contains("no NetworkPolicy"), "{by_default}");
    let open = notes(&json!({"ui": {"enabled": true, "networkPolicy": {"enabled": false}}}));
    assert!(open.contains("no NetworkPolicy"), "{open}");
    assert!(!notes(&with_page()).contains("history ends"));
}

#[test]
fn invalid_values_are_refused_by_name() {
    for (ui, field) in [
        (json!({"enabled": "yes"}), "/ui/enabled"),
        (json!({"namespaces": ["Team A"]}), "/ui/namespaces/0"),
        (
            json!({"allowedHosts": ["http://cronjobs.example.com"]}),
            "/ui/allowedHosts/0",
        ),
        (json!({"allowedHosts": ["*"]}), "/ui/allowedHosts/0"),
        (json!({"listenAddress": "localhost"}), "/ui/listenAddress"),
        (json!({"port": 80}), "/ui/port"),
        (json!({"history": {"days": 0}}), "/ui/history/days"),
        (json!({"history": {"days": 3661}}), "/ui/history/days"),
        (json!({"history": {"size": "3"}}), "/ui/history/size"),
        (
            json!({"history": {"existingClaim": "Runs"}}),
            "/ui/history/existingClaim",
        ),
        (json!({"networkPolicy": {"from": [""]}}), "/ui/networkPolicy/from/0"),
        (json!({"podAnnotations": {"a": 1}}), "/ui/podAnnotations/a"),
    ] {
        let error = render(&json!({ "ui": ui })).unwrap_err();
        assert!(error.contains(&format!("at '{field}'")), "{field}: {error}");
    }
}
