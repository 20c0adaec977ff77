//! The permissions in the chart match the table that the program checks at start.

use std::collections::BTreeSet;

use cronwheel::controller::permissions::{CALENDAR_PERMISSIONS, PERMISSIONS, POLICY_PERMISSIONS, Permission, Place};
use serde_json::{Value, json};

use super::{objects_of, the};

/// Verb, API group, resource.
pub(super) type Grant = (String, String, String);

fn texts(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.map(|text| text.as_str().unwrap().to_owned()).collect()
}

pub(super) fn grants(role: &Value) -> BTreeSet<Grant> {
    let mut grants = BTreeSet::new();
    for rule in role["rules"].as_array().unwrap() {
        for verb in texts(&rule["verbs"]) {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    grants.insert((verb.clone(), group.clone(), resource));
                }
            }
        }
    }
    grants
}

fn needed(is_of: impl Fn(Place) -> bool) -> BTreeSet<Grant> {
    grants_of(PERMISSIONS.iter().filter(|permission| is_of(permission.place)))
}

fn grants_of<'p>(permissions: impl Iterator<Item = &'p Permission>) -> BTreeSet<Grant> {
    let grants = permissions.map(|permission| {
        (
            permission.verb.to_owned(),
            permission.group.to_owned(),
            permission.resource.to_owned(),
        )
    });
    grants.collect()
}

#[test]
fn roles_grant_exactly_the_needed_permissions() {
    let objects = objects_of(&json!({}));
    let mut expected = needed(|place| place != Place::LeaseNamespace);
    expected.extend(grants_of(POLICY_PERMISSIONS.iter()));
    assert_eq!(grants(the(&objects, "ClusterRole")), expected);
    assert_eq!(
        grants(the(&objects, "Role")),
        needed(|place| place == Place::LeaseNamespace)
    );
}

/// A right on all policies of the cluster would show what other teams enforce.
#[test]
fn rights_on_policies_are_for_those_of_the_release_that_the_replicas_read() {
    let arguments =
        |objects: &[Value]| texts(&the(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]);
    let of_policies = |objects: &[Value]| -> Vec<Value> {
        let rules = the(objects, "ClusterRole")["rules"].as_array().unwrap().clone();
        let is_it = |rule: &Value| texts(&rule["apiGroups"]) == ["admissionregistration.k8s.io"];
        rules.into_iter().filter(is_it).collect()
    };
    let objects = objects_of(&json!({"fullnameOverride": "team"}));
    let names = ["team-built-in-writes", "team-built-in-deletes"];
    for kind in ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] {
        let rendered = objects.iter().filter(|object| object["kind"] == kind);
        let rendered = rendered.filter_map(|object| object["metadata"]["name"].as_str());
        let refusing: Vec<&str> = rendered.filter(|name| *name != "team-built-in-leases").collect();
        assert_eq!(refusing, names);
    }
    let rules = of_policies(&objects);
    assert_eq!(rules.len(), 2);
    assert!(
        rules.iter().all(|rule| texts(&rule["resourceNames"]) == names),
        "{rules:?}"
    );
    for name in names {
        assert!(arguments(&objects).contains(&format!("--built-in-policy={name}")));
    }
    // A role in some namespaces cannot grant a right on an object without a namespace.
    for values in [
        json!({"builtInController": {"silence": false}}),
        json!({"controller": {"namespaces": ["team-a"]}}),
    ] {
        let objects = objects_of(&values);
        assert_eq!(of_policies(&objects), Vec::<Value>::new(), "{values}");
        let reads = |argument: &String| argument.starts_with("--built-in-policy");
        assert!(!arguments(&objects).iter().any(reads), "{values}");
    }
}

#[test]
fn namespaces_value_limits_where_cron_job_permissions_are_bound() {
    let objects = objects_of(&json!({"controller": {"namespaces": ["team-a", "team-b"]}}));
    assert_eq!(
        grants(the(&objects, "ClusterRole")),
        needed(|place| place == Place::Watched)
    );
    assert!(objects.iter().all(|object| object["kind"] != "ClusterRoleBinding"));
    let bindings = objects
        .iter()
        .filter(|object| object["kind"] == "RoleBinding" && object["roleRef"]["kind"] == "ClusterRole");
    let namespaces: Vec<&Value> = bindings.map(|binding| &binding["metadata"]["namespace"]).collect();
    assert_eq!(namespaces, ["team-a", "team-b"]);
    let role = grants(the(&objects, "Role"));
    let may_create_events = role
        .iter()
        .any(|(verb, _, resource)| verb == "create" && resource == "events");
    assert!(
        may_create_events,
        "Events about Leases are written in the namespace of the Leases"
    );
}

#[test]
fn rights_on_config_maps_are_granted_only_with_calendars() {
    let of_calendars = grants_of(CALENDAR_PERMISSIONS.iter());
    assert!(of_calendars.is_disjoint(&grants(the(&objects_of(&json!({})), "ClusterRole"))));
    let arguments =
        |objects: &[Value]| the(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"].clone();
    assert!(!texts(&arguments(&objects_of(&json!({})))).contains(&"--calendars".to_owned()));
    for (namespaces, is_of) in [
        (json!([]), (|place| place != Place::LeaseNamespace) as fn(Place) -> bool),
        (json!(["team-a"]), |place| place == Place::Watched),
    ] {
        let values = json!({"calendars": {"enabled": true}, "controller": {"namespaces": namespaces}});
        let objects = objects_of(&values);
        let mut expected = needed(is_of);
        expected.extend(of_calendars.clone());
        if namespaces == json!([]) {
            expected.extend(grants_of(POLICY_PERMISSIONS.iter()));
        }
        assert_eq!(grants(the(&objects, "ClusterRole")), expected, "{namespaces}");
        assert!(texts(&arguments(&objects)).contains(&"--calendars".to_owned()));
    }
}

#[test]
fn a_freeze_is_passed_to_the_replicas() {
    let values = json!({"controller": {"freezeUntil": "2026-12-27T06:00:00Z", "freezeReason": "year: \"end\""}});
    let objects = objects_of(&values);
    let arguments = texts(&the(&objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]);
    let freeze: Vec<&String> = arguments
        .iter()
        .filter(|argument| argument.starts_with("--freeze"))
        .collect();
    assert_eq!(
        freeze,
        ["--freeze-until=2026-12-27T06:00:00Z", "--freeze-reason=year: \"end\""]
    );
}

#[test]
fn every_binding_names_the_service_account_of_the_pods() {
    let values = json!({"serviceAccount": {"name": "other"}, "controller": {"namespaces": ["team-a"]}});
    let objects = objects_of(&values);
    let account = &the(&objects, "Deployment")["spec"]["template"]["spec"]["serviceAccountName"];
    assert_eq!(account, "other");
    let mut n_bindings = 0;
    for binding in objects.iter().filter(|object| object["roleRef"].is_object()) {
        let expected = json!([{"kind": "ServiceAccount", "name": "other", "namespace": "kube-system"}]);
        assert_eq!(binding["subjects"], expected, "{}", binding["metadata"]["name"]);
        n_bindings += 1;
    }
    assert_eq!(n_bindings, 2);
}

#[test]
fn every_verb_has_a_comment_with_its_reason() {
    let read = |file: &str| std::fs::read_to_string(super::chart().join("templates").join(file)).unwrap();
    let files = ["rbac.yaml", "ui-rbac.yaml", "aggregatedrole.yaml", "test.yaml"];
    let text = files.map(read).concat();
    let is_verb = |line: &&str| {
        let verb = line.trim().strip_prefix("- ").unwrap_or_default();
        let verb = verb.split([' ', '#']).next().unwrap_or_default();
        ["get", "list", "watch", "create", "update", "patch", "delete"].contains(&verb)
    };
    let verbs: Vec<&str> = text.lines().filter(is_verb).collect();
    assert!(verbs.len() >= PERMISSIONS.len() + 9);
    for verb in verbs {
        let reason = verb.split_once('#').map(|(_, reason)| reason.trim());
        assert!(reason.is_some_and(|reason| !reason.is_empty()), "{verb}");
    }
}
