//! The objects of `helm test`.

use std::collections::BTreeSet;

use clap::Parser as _;
use cronwheel::cli::args::{Cli, Command};
use serde_json::{Value, json};

use super::{named, objects, permissions::grants, render_all};

const NAME: &str = "cronwheel-test";

/// The hooks that the chart renders with these values.
fn hooks(values: &Value) -> Vec<Value> {
    let mut objects = objects(&render_all(values).unwrap());
    objects.retain(|object| object["metadata"]["annotations"]["helm.sh/hook"].is_string());
    objects
}

#[test]
fn objects_of_the_test_are_created_and_deleted_by_it() {
    let hooks_of_test = hooks(&json!({"commonAnnotations": {"a": "b"}}));
    let kinds: BTreeSet<&str> = hooks_of_test
        .iter()
        .map(|hook| hook["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, BTreeSet::from(["Pod", "Role", "RoleBinding", "ServiceAccount"]));
    for hook in &hooks_of_test {
        let annotations = &hook["metadata"]["annotations"];
        assert_eq!(hook["metadata"]["name"], NAME);
        assert_eq!(annotations["helm.sh/hook"], "test");
        let policy = "before-hook-creation,hook-succeeded";
        assert_eq!(annotations["helm.sh/hook-delete-policy"], policy);
        assert_eq!(annotations["a"], "b");
        // helm creates the objects with the least weight first.
        assert_eq!(annotations["helm.sh/hook-weight"].is_string(), hook["kind"] != "Pod");
        let label = &hook["metadata"]["labels"]["app.kubernetes.io/name"];
        assert_eq!(label, NAME, "no selector of the replicas matches");
    }
    assert!(hooks(&json!({"tests": {"enabled": false}})).is_empty());
}

#[test]
fn test_has_no_account_and_no_role_that_the_release_may_not_create() {
    for (values, kinds, account) in [
        (json!({"rbac": {"create": false}}), "Pod ServiceAccount", NAME),
        (
            json!({"serviceAccount": {"create": false}}),
            "Pod Role RoleBinding",
            "default",
        ),
        (
            json!({"serviceAccount": {"create": false, "name": "replicas"}}),
            "Pod Role RoleBinding",
            "default",
        ),
        (
            json!({"tests": {"serviceAccountName": "ours"}}),
            "Pod Role RoleBinding",
            "ours",
        ),
        (
            json!({"rbac": {"create": false}, "tests": {"serviceAccountName": "ours"}}),
            "Pod",
            "ours",
        ),
    ] {
        let hooks = hooks(&values);
        let in_hooks: BTreeSet<&str> = hooks.iter().map(|hook| hook["kind"].as_str().unwrap()).collect();
        assert_eq!(in_hooks, kinds.split(' ').collect(), "{values}");
        assert_eq!(
            named(&hooks, "Pod", NAME)["spec"]["serviceAccountName"],
            account,
            "{values}"
        );
        for binding in hooks.iter().filter(|hook| hook["kind"] == "RoleBinding") {
            assert_eq!(binding["subjects"][0]["name"], account, "{values}");
        }
    }
}

#[test]
fn account_of_the_test_may_only_create_and_delete_cron_jobs_and_list_jobs() {
    for (values, namespace) in [
        (json!({}), "kube-system"),
        (json!({"tests": {"namespace": "shop"}}), "shop"),
    ] {
        let hooks = hooks(&values);
        let role = named(&hooks, "Role", NAME);
        let grant = |verb: &str, resource: &str| (verb.to_owned(), "batch".to_owned(), resource.to_owned());
        let expected = [
            grant("create", "cronjobs"),
            grant("delete", "cronjobs"),
            grant("list", "jobs"),
        ];
        assert_eq!(grants(role), BTreeSet::from(expected));
        let binding = named(&hooks, "RoleBinding", NAME);
        for object in [role, binding] {
            assert_eq!(object["metadata"]["namespace"], namespace);
        }
        let account = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": "kube-system"}]);
        assert_eq!(binding["subjects"], account);
        let pod = &named(&hooks, "Pod", NAME)["spec"];
        assert_eq!(pod["serviceAccountName"], NAME);
        let arguments = pod["containers"][0]["args"].as_array().unwrap().iter();
        let arguments: Vec<&str> = arguments.map(|argument| argument.as_str().unwrap()).collect();
        assert_eq!(arguments, ["check".to_owned(), format!("--canary={namespace}")]);
        let command = Cli::try_parse_from([&["cronwheel"], &arguments[..]].concat())
            .unwrap()
            .command;
        assert!(matches!(command, Command::Check(_)));
    }
}

#[test]
fn pod_of_the_test_has_the_settings_of_the_replicas() {
    let values = json!({
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}], "nodeSelector": {"a": "b"},
        "extraEnvFrom": [{"configMapRef": {"name": "proxy"}}], "imagePullSecrets": [{"name": "mirror"}],
        "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}], "tolerations": [{"operator": "Exists"}],
        "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}], "affinity": {"nodeAffinity": {}}, "dnsPolicy": "Default",
    });
    let all = objects(&render_all(&values).unwrap());
    let pod = &named(&all, "Pod", NAME)["spec"];
    let replica = &named(&all, "Deployment", "cronwheel")["spec"]["template"]["spec"];
    for name in [
        "imagePullSecrets",
        "volumes",
        "nodeSelector",
        "affinity",
        "tolerations",
        "dnsPolicy",
        "securityContext",
    ] {
        assert_eq!(pod[name], replica[name], "{name}");
    }
    let (pod, replica) = (&pod["containers"][0], &replica["containers"][0]);
    for name in ["image", "imagePullPolicy", "envFrom", "volumeMounts", "securityContext"] {
        assert_eq!(pod[name], replica[name], "{name}");
    }
    assert_eq!(pod["env"], values["extraEnv"]);
}
