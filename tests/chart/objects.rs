//! Properties of the rendered objects.

use std::fs;

use clap::Parser as _;
use cronwheel::cli::{
    args::{Cli, Command},
    run_args::RunArgs,
};
use serde_json::{Value, json};

use super::{chart, everything, named, objects, objects_of, render_as, the};

fn container(objects: &[Value]) -> &Value {
    let containers = &the(objects, "Deployment")["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().unwrap().len(), 1);
    &containers[0]
}

/// The command line of the container, as the program parses it.
fn arguments(values: &Value) -> RunArgs {
    let objects = objects_of(values);
    let arguments = container(&objects)["args"].as_array().unwrap();
    let arguments = arguments.iter().map(|argument| argument.as_str().unwrap());
    read(&arguments.collect::<Vec<_>>())
}

fn read(arguments: &[&str]) -> RunArgs {
    let cli = Cli::try_parse_from([&["cronwheel"], arguments].concat()).unwrap();
    let Command::Run(arguments) = cli.command else {
        panic!("not run: {arguments:?}");
    };
    arguments
}

#[test]
fn default_values_match_the_defaults_of_the_program() {
    let mut from_chart = arguments(&json!({}));
    assert_eq!(from_chart.lease_namespace.take().as_deref(), Some("kube-system"));
    // The chart runs beside the built-in controller, and `cronwheel run` alone takes all namespaces.
    let by_default = RunArgs {
        lease_namespace: None,
        ..read(&[
            "run",
            "--namespace-selector=cronwheel.dev/managed=true",
            "--built-in-policy=cronwheel-built-in-writes",
            "--built-in-policy=cronwheel-built-in-deletes",
        ])
    };
    assert_eq!(format!("{from_chart:#?}"), format!("{by_default:#?}"));
}

#[test]
fn program_accepts_the_arguments_of_the_chart() {
    let controller = json!({
        "namespaces": ["team-a", "team-b"], "defaultTimeZone": "Europe/Berlin", "installation": "team",
        "leaseNamespace": "leases", "maxInflight": 320, "maxTemplateMemory": 2048,
        "statusFlushInterval": "500ms", "events": "none", "maxEventsPerSecond": 1, "cronJobMetrics": "none",
        "troubleLabel": "example.com/team", "logRuns": "all", "maxClockSkew": "1m30s",
        "logFormat": "json", "logLevel": "trace", "listenAddress": "[::]", "port": 9090,
        "extraArgs": ["--pod-name=a"],
    });
    let read = arguments(&json!({"controller": controller}));
    assert_eq!(read.namespaces, ["team-a", "team-b"]);
    assert_eq!(read.lease_namespace.as_deref(), Some("leases"));
    assert_eq!(read.listen.to_string(), "[::]:9090");
    assert_eq!(read.max_template_memory, 2048);
    assert_eq!(read.trouble_label.as_deref(), Some("example.com/team"));
    assert_eq!(read.pod_name.as_deref(), Some("a"));
}

#[test]
fn all_ports_follow_the_port_value() {
    let mut values = everything();
    values["controller"] = json!({"port": 9090});
    let objects = objects_of(&values);
    let container = container(&objects);
    assert_eq!(container["ports"], json!([{"name": "http", "containerPort": 9090}]));
    assert_eq!(the(&objects, "Service")["spec"]["ports"][0]["targetPort"], "http");
    assert_eq!(
        the(&objects, "PodMonitor")["spec"]["podMetricsEndpoints"][0]["port"],
        "http"
    );
    assert_eq!(
        the(&objects, "NetworkPolicy")["spec"]["ingress"][0]["ports"][0]["port"],
        "http"
    );
    for probe in ["livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], "http");
    }
}

#[test]
fn created_priority_class_has_a_name_that_kubernetes_does_not_reserve() {
    let name_of_pods = |objects: &[Value]| {
        let pod = &the(objects, "Deployment")["spec"]["template"]["spec"];
        pod.get("priorityClassName").cloned()
    };
    for (values, expected) in [
        (json!({"create": true}), "cronwheel"),
        (json!({"create": true, "name": ""}), "cronwheel"),
        (json!({"create": true, "name": "jobs"}), "jobs"),
    ] {
        let objects = objects_of(&json!({ "priorityClass": values }));
        assert_eq!(the(&objects, "PriorityClass")["metadata"]["name"], expected, "{values}");
        assert_eq!(name_of_pods(&objects), Some(json!(expected)), "{values}");
    }
    let by_default = objects_of(&json!({}));
    assert_eq!(name_of_pods(&by_default), Some(json!("system-cluster-critical")));
    assert!(by_default.iter().all(|object| object["kind"] != "PriorityClass"));
    assert_eq!(name_of_pods(&objects_of(&json!({"priorityClass": {"name": ""}}))), None);
}

#[test]
fn rolling_update_adds_a_replica_before_it_removes_one() {
    let objects = objects_of(&json!({}));
    let spec = &the(&objects, "Deployment")["spec"];
    let expected = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    assert_eq!(spec["strategy"], expected);
    let budget = &the(&objects, "PodDisruptionBudget")["spec"];
    assert_eq!(budget["unhealthyPodEvictionPolicy"], "AlwaysAllow");
    assert_eq!(budget["maxUnavailable"], 1);
    for selecting in ["Deployment", "PodDisruptionBudget"] {
        let selector = &the(&objects, selecting)["spec"]["selector"]["matchLabels"];
        assert_eq!(*selector, spec["template"]["metadata"]["labels"], "{selecting}");
    }
    assert!(container(&objects)["resources"]["limits"].get("cpu").is_none());
}

#[test]
fn templates_use_no_hooks_but_those_of_tests_and_no_cluster_lookups() {
    assert!(!chart().join("crds").exists());
    for entry in fs::read_dir(chart().join("templates")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        for word in ["helm.sh/hook", "Capabilities", "lookup", "randAlpha", "now"] {
            let is_there = text.split("}}").any(|part| {
                part.split_once("{{")
                    .is_some_and(|(_, action)| action.split_whitespace().any(|found| found.contains(word)))
            });
            // What is rendered depends on nothing in the cluster, but an upgrade may be refused for it.
            let is_guard = word == "lookup" && path.ends_with("_upgrade.tpl");
            let is_allowed = is_guard || word == "helm.sh/hook" && path.ends_with("test.yaml");
            let has_hook = text.contains("helm.sh/hook") && !path.ends_with("test.yaml");
            assert!(!has_hook && (!is_there || is_allowed), "{} has {word}", path.display());
        }
    }
}

#[test]
fn job_creates_have_their_own_priority_level() {
    let names_of = |objects: &[Value], kind: &str| -> Vec<String> {
        let of_kind = objects.iter().filter(|object| object["kind"] == kind);
        of_kind
            .map(|object| object["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let objects = objects_of(&json!({}));
    let level = the(&objects, "PriorityLevelConfiguration");
    let is_of_jobs = |object: &&Value| object["metadata"]["name"] == "cronwheel-jobs" && object["kind"] == "FlowSchema";
    let schema = &objects.iter().find(is_of_jobs).unwrap()["spec"];
    assert_eq!(schema["priorityLevelConfiguration"]["name"], level["metadata"]["name"]);
    assert_eq!(schema["distinguisherMethod"]["type"], "ByNamespace");
    let rule = &schema["rules"][0];
    let account = json!({"name": the(&objects, "ServiceAccount")["metadata"]["name"], "namespace": "kube-system"});
    assert_eq!(
        rule["subjects"],
        json!([{"kind": "ServiceAccount", "serviceAccount": account}])
    );
    assert_eq!(
        rule["resourceRules"],
        json!([{"apiGroups": ["batch"], "resources": ["jobs"], "namespaces": ["*"], "verbs": ["create"]}])
    );
    let without = objects_of(&json!({"flowSchema": {"jobs": {"enabled": false}}}));
    assert_eq!(names_of(&without, "FlowSchema"), ["cronwheel-leases"]);
    assert!(names_of(&without, "PriorityLevelConfiguration").is_empty());
    let none = objects_of(&json!({"flowSchema": {"enabled": false}}));
    assert!(names_of(&none, "FlowSchema").is_empty() && names_of(&none, "PriorityLevelConfiguration").is_empty());
}

#[test]
fn fence_denial_names_the_policy_for_any_release_name() {
    for (release, name) in [("cronwheel", "cronwheel-fence"), ("other", "other-cronwheel-fence")] {
        let rendered = render_as(release, &chart(), &everything(), &[]).unwrap();
        let objects = objects(&rendered);
        let policy = named(&objects, "ValidatingAdmissionPolicy", name);
        let message = policy["spec"]["validations"][0]["messageExpression"].as_str().unwrap();
        // The API server writes the name of the policy in quotes, then the message.
        let refusal = format!("ValidatingAdmissionPolicy '{name}' denied request: {message}");
        assert!(refusal.contains("'cronwheel-fence'"), "{refusal}");
        assert_eq!(
            named(&objects, "ValidatingAdmissionPolicyBinding", name)["spec"]["policyName"],
            name
        );
        let account = &the(&objects, "ServiceAccount")["metadata"]["name"];
        let expected = format!("'system:serviceaccount:kube-system:{}'", account.as_str().unwrap());
        assert!(
            policy["spec"]["matchConditions"][0]["expression"]
                .as_str()
                .unwrap()
                .ends_with(&expected)
        );
    }
}

/// The notes that helm prints after an installation in `kube-system`.
pub(super) fn notes(values: &Value) -> String {
    let file = super::tempfile(&values.to_string());
    let chart = chart();
    let arguments = [
        "install",
        "cronwheel",
        chart.to_str().unwrap(),
        "--dry-run=client",
        "--namespace=kube-system",
        "--values",
    ];
    let output = super::helm(&[&arguments[..], &[file.to_str().unwrap()]].concat()).unwrap();
    fs::remove_file(file).unwrap();
    output.split_once("\nNOTES:\n").unwrap().1.to_owned()
}

#[test]
fn notes_mention_a_missing_fence_and_a_single_replica() {
    let by_default = notes(&json!({}));
    assert!(by_default.contains("no fence"));
    assert!(!by_default.contains("one replica"));
    let complete = notes(&json!({"fencePolicy": {"enabled": true}, "replicaCount": 1}));
    assert!(!complete.contains("no fence"));
    assert!(complete.contains("one replica"));
}

#[test]
fn notes_have_the_commands_that_move_the_first_namespace_there_and_back() {
    let there = "kubectl label namespace NAMESPACE cronwheel.dev/managed=true";
    let back = "kubectl label namespace NAMESPACE cronwheel.dev/managed-";
    let flag = ",-cronjob-controller";
    let by_default = notes(&json!({}));
    assert!(by_default.contains(there) && by_default.contains(back), "{by_default}");
    assert!(!by_default.contains(flag), "{by_default}");
    let team = notes(&json!({"managedNamespaces": {"selector": "env in (prod, staging),team=a"}}));
    assert!(
        team.contains("kubectl get namespaces --selector 'env in (prod, staging),team=a'"),
        "{team}"
    );
    assert!(!team.contains("kubectl label namespace"), "{team}");
    let bare = notes(&json!({"managedNamespaces": {"selector": "team"}}));
    assert!(
        bare.contains("NAMESPACE team=true\n") && bare.contains("NAMESPACE team-\n"),
        "{bare}"
    );
    let by_name = notes(&json!({"managedNamespaces": {"selector": "kubernetes.io/metadata.name"}}));
    assert!(!by_name.contains("kubectl label namespace"), "{by_name}");
    let all = notes(&json!({"managedNamespaces": {"all": true}}));
    assert!(
        all.contains("all namespaces") && !all.contains("kubectl label namespace"),
        "{all}"
    );
    let manual = notes(&json!({"builtInController": {"fallback": "manual"}}));
    assert!(manual.contains("fallback is manual"), "{manual}");
    assert!(!by_default.contains("fallback is manual"), "{by_default}");
    let without = notes(&json!({"builtInController": {"silence": false}}));
    assert!(without.contains(flag), "{without}");
}
