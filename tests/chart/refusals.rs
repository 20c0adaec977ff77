//! What the API server or the program would refuse, the chart refuses by the name of the value.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{chart, everything, objects, objects_of, render, render_as, schema::values, the, with_page};

#[test]
fn values_that_the_api_server_refuses_are_refused_by_their_names() {
    for (values, name) in [
        (
            json!({"autoscaling": {"enabled": true, "minReplicas": 5, "maxReplicas": 2}}),
            "autoscaling.minReplicas",
        ),
        (
            json!({"podDisruptionBudget": {"maxUnavailable": "150%"}}),
            "podDisruptionBudget/maxUnavailable",
        ),
        (json!({"dnsPolicy": "None"}), "dnsConfig.nameservers"),
        (
            json!({"dnsPolicy": "None", "dnsConfig": {"searches": ["a.example"]}}),
            "dnsConfig.nameservers",
        ),
        (
            json!({"dnsConfig": {"nameservers": ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]}}),
            "dnsConfig/nameservers",
        ),
        (
            json!({"livenessProbe": {"successThreshold": 2}}),
            "livenessProbe/successThreshold",
        ),
        (
            json!({"readinessProbe": {"terminationGracePeriodSeconds": 7}}),
            "terminationGracePeriodSeconds",
        ),
        (json!({"replicaCount": 2_147_483_648_u64}), "replicaCount"),
        (json!({"fullnameOverride": "2024"}), "fullnameOverride"),
        (json!({"nameOverride": "2024"}), "nameOverride"),
    ] {
        let error = render(&values).unwrap_err();
        assert!(error.contains(name), "{values}: {error}");
    }
    for values in [
        json!({"autoscaling": {"enabled": true, "minReplicas": 2, "maxReplicas": 2}}),
        json!({"autoscaling": {"enabled": false, "minReplicas": 5, "maxReplicas": 2}}),
        json!({"podDisruptionBudget": {"maxUnavailable": "100%"}}),
    ] {
        render(&values).unwrap();
    }
}

/// A name of a Service begins with a letter.
#[test]
fn services_of_a_release_whose_name_begins_with_a_digit_have_valid_names() {
    for (release, name) in [("2024", "cronwheel-2024"), ("1-cronwheel", "cronwheel-1-cronwheel")] {
        let objects = objects(&render_as(release, &chart(), &with_page(), &[]).unwrap());
        let services = objects.iter().filter(|object| object["kind"] == "Service");
        let names: BTreeSet<&str> = services
            .map(|service| service["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, BTreeSet::from([name, &format!("{name}-ui")]), "{release}");
        assert_eq!(
            objects
                .iter()
                .find(|object| object["kind"] == "ServiceAccount")
                .unwrap()["metadata"]["name"],
            name
        );
    }
}

/// The flags of the container of the replicas.
fn flags(values: &Value) -> BTreeSet<String> {
    let objects = objects_of(values);
    let arguments = &the(&objects, "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"];
    let flags = arguments.as_array().unwrap().iter().skip(1);
    flags
        .map(|argument| argument.as_str().unwrap().split('=').next().unwrap().to_owned())
        .collect()
}

#[test]
fn more_arguments_cannot_repeat_a_flag_that_a_value_sets() {
    let mut all = flags(&everything());
    let controller = json!({
        "namespaces": ["shop"], "freezeUntil": "2026-12-27T06:00:00Z", "freezeReason": "a", "troubleLabel": "team",
    });
    all.extend(flags(
        &json!({"controller": controller, "calendars": {"enabled": true}}),
    ));
    assert!(all.len() > 20, "{all:?}");
    let arguments: Vec<String> = all.iter().map(|flag| format!("{flag}=a")).collect();
    let error = render(&json!({"controller": {"extraArgs": arguments}})).unwrap_err();
    let (_, listed) = error
        .split_once("controller.extraArgs sets flags of other values: ")
        .unwrap();
    let listed = listed.lines().next().unwrap();
    let listed: BTreeMap<&str, &str> = listed
        .split(", ")
        .map(|one| one.trim_end_matches(')').split_once(" (").unwrap())
        .collect();
    assert_eq!(
        listed.keys().copied().collect::<BTreeSet<_>>(),
        all.iter().map(String::as_str).collect()
    );
    for value in listed.values() {
        let pointer = format!("/{}", value.replace('.', "/"));
        assert!(values().pointer(&pointer).is_some(), "{value}");
    }
    for argument in ["-nshop", "--log-level", "--log-level=debug"] {
        assert!(
            render(&json!({"controller": {"extraArgs": [argument, "a"]}})).is_err(),
            "{argument}"
        );
    }
    render(&json!({"controller": {"extraArgs": ["--pod-name=a", "--log-levels", "--log-level-of=a"]}})).unwrap();
}
