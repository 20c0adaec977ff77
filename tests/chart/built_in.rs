//! The policy that keeps the built-in controller out of managed namespaces, and the selector that the program gets.

use clap::Parser as _;
use cronwheel::cli::args::Cli;
use serde_json::{Value, json};

use super::{chart, named, objects, objects_of, render, render_as, the};

/// The label selector of the default installation.
const LABEL: &str = "cronwheel.dev/managed=true";

/// The label that the API server sets to the name of a namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

fn policy<'o>(objects: &'o [Value], name: &str) -> &'o Value {
    &named(objects, "ValidatingAdmissionPolicy", name)["spec"]
}

fn binding<'o>(objects: &'o [Value], name: &str) -> &'o Value {
    &named(objects, "ValidatingAdmissionPolicyBinding", name)["spec"]
}

/// The label selector among the arguments of the container.
fn flag(objects: &[Value]) -> Option<&str> {
    let container = &the(objects, "Deployment")["spec"]["template"]["spec"]["containers"][0];
    let mut arguments = container["args"].as_array().unwrap().iter();
    arguments.find_map(|argument| argument.as_str().unwrap().strip_prefix("--namespace-selector="))
}

/// A requirement of a label selector.
fn requirement(key: &str, operator: &str, values: &[&str]) -> Value {
    let mut requirement = json!({"key": key, "operator": operator});
    if !values.is_empty() {
        requirement["values"] = json!(values);
    }
    requirement
}

#[test]
fn policy_and_program_select_the_same_namespaces() {
    let name = NAME_LABEL;
    let managed = requirement("cronwheel.dev/managed", "In", &["true"]);
    for (values, text, expected) in [
        (json!({}), Some(LABEL), vec![managed.clone()]),
        (
            json!({"managedNamespaces": {"exclude": ["a", "b"]}}),
            Some("cronwheel.dev/managed=true,kubernetes.io/metadata.name notin (a,b)"),
            vec![managed, requirement(name, "NotIn", &["a", "b"])],
        ),
        (json!({"managedNamespaces": {"all": true}}), None, vec![]),
        (
            json!({"managedNamespaces": {"all": true, "exclude": ["kube-system"]}}),
            Some("kubernetes.io/metadata.name notin (kube-system)"),
            vec![requirement(name, "NotIn", &["kube-system"])],
        ),
        (
            json!({"controller": {"namespaces": ["team-a", "team-b"]}, "managedNamespaces": {"exclude": ["a"]}}),
            None,
            vec![requirement(name, "In", &["team-a", "team-b"])],
        ),
    ] {
        let objects = objects_of(&values);
        assert_eq!(flag(&objects), text, "{values}");
        for policy in ["cronwheel-built-in-writes", "cronwheel-built-in-deletes"] {
            let selector = &binding(&objects, policy)["matchResources"]["namespaceSelector"];
            let found = selector["matchExpressions"].as_array().cloned().unwrap_or_default();
            assert_eq!(found, expected, "{values}");
            // Without a selector, a binding would also match objects without a namespace.
            assert!(selector.is_object(), "{values}");
        }
    }
}

/// What the chart renders, the program starts with.
#[test]
fn chart_and_program_have_the_same_bound_of_the_selector() {
    let own = "kubernetes.io/metadata.name notin ()".len();
    let names = |n_bytes: usize| -> Vec<String> {
        let n_names = (n_bytes - own) / 64;
        let mut names: Vec<String> = (0..n_names).map(|number| format!("{number:0>63}")).collect();
        // Each name has a comma, apart from the last one.
        names.push("x".repeat((n_bytes - own) % 64));
        names
    };
    for (n_bytes, is_accepted) in [(1_296, true), (16_384, true), (16_385, false)] {
        let values = json!({"managedNamespaces": {"all": true, "exclude": names(n_bytes)}});
        let selector = format!("kubernetes.io/metadata.name notin ({})", names(n_bytes).join(","));
        assert_eq!(selector.len(), n_bytes);
        let is_parsed = Cli::try_parse_from(["cronwheel", "run", "--namespace-selector", &selector]).is_ok();
        let rendered = render(&values);
        assert_eq!((is_parsed, rendered.is_ok()), (is_accepted, is_accepted), "{n_bytes}");
        let error = rendered.err().unwrap_or_default();
        assert!(is_accepted || error.contains("managedNamespaces.exclude"), "{error}");
    }
}

#[test]
fn every_form_of_a_selector_is_translated() {
    for (text, expected) in [
        ("team=a", requirement("team", "In", &["a"])),
        ("team==a", requirement("team", "In", &["a"])),
        ("team = a", requirement("team", "In", &["a"])),
        ("team!=a", requirement("team", "NotIn", &["a"])),
        ("example.com/team", requirement("example.com/team", "Exists", &[])),
        ("!team", requirement("team", "DoesNotExist", &[])),
        ("team in (a)", requirement("team", "In", &["a"])),
        ("team in (a, b.c)", requirement("team", "In", &["a", "b.c"])),
        ("team notin (a,true)", requirement("team", "NotIn", &["a", "true"])),
    ] {
        let translated = |selector: &str| {
            let objects = objects_of(&json!({"managedNamespaces": {"selector": selector}}));
            assert_eq!(flag(&objects), Some(selector));
            let binding = binding(&objects, "cronwheel-built-in-writes");
            binding["matchResources"]["namespaceSelector"]["matchExpressions"].clone()
        };
        assert_eq!(translated(text), json!([expected]), "{text}");
        let all = json!([
            requirement("env", "In", &["x", "y"]),
            expected,
            requirement("z", "Exists", &[])
        ]);
        assert_eq!(translated(&format!("env in (x,y),{text}, z")), all, "{text}");
    }
}

#[test]
fn automatic_fallback_takes_the_leases_of_acting_members_as_parameters() {
    let values = json!({"controller": {"installation": "team", "leaseNamespace": "leases"}});
    let objects = objects_of(&values);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"});
    let parameters = json!({
        "namespace": "leases",
        "parameterNotFoundAction": "Allow",
        "selector": {"matchLabels": {"cronwheel.dev/lease": "team", "cronwheel.dev/acts": "true"}},
    });
    for name in ["cronwheel-built-in-writes", "cronwheel-built-in-deletes"] {
        assert_eq!(policy(&objects, name)["paramKind"], lease);
        // With Fail, an API server that cannot read Leases yet would refuse the writes of all users.
        assert_eq!(policy(&objects, name)["failurePolicy"], "Ignore");
        assert_eq!(binding(&objects, name)["paramRef"], parameters);
        assert_eq!(binding(&objects, name)["validationActions"], json!(["Deny"]));
    }
}

/// The replicas write `created-by`, and `cronwheel backfill` writes `created-under` alone.
#[test]
fn automatic_fallback_keeps_the_jobs_of_every_creator() {
    let objects = objects_of(&json!({}));
    let expression = policy(&objects, "cronwheel-built-in-deletes")["validations"][0]["expression"].clone();
    let expected = "!['cronwheel.dev/created-by', 'cronwheel.dev/created-under'].exists(name, name in \
                    oldObject.metadata.?annotations.orValue({}))";
    assert_eq!(expression, expected);
}

/// An API server ends its watch of Leases with the last binding that uses it, and begins no other.
#[test]
fn a_policy_that_matches_nothing_keeps_the_watch_of_leases_after_the_release() {
    let objects = objects_of(&json!({"commonAnnotations": {"team": "a"}}));
    let name = "cronwheel-built-in-leases";
    assert_eq!(policy(&objects, name)["paramKind"]["kind"], "Lease");
    let rules = &policy(&objects, name)["matchConstraints"]["resourceRules"];
    assert_eq!(rules[0]["apiGroups"], json!(["cronwheel.dev"]));
    assert_eq!(rules.as_array().unwrap().len(), 1);
    assert_eq!(binding(&objects, name)["policyName"], name);
    for kind in ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"] {
        let annotations = &named(&objects, kind, name)["metadata"]["annotations"];
        assert_eq!(annotations, &json!({"helm.sh/resource-policy": "keep", "team": "a"}));
    }
}

#[test]
fn manual_fallback_has_no_parameters_and_fails_closed() {
    let objects = objects_of(&json!({"builtInController": {"fallback": "manual"}}));
    assert!(
        objects
            .iter()
            .all(|object| object["metadata"]["name"] != "cronwheel-built-in-leases")
    );
    for name in ["cronwheel-built-in-writes", "cronwheel-built-in-deletes"] {
        let policy = policy(&objects, name);
        assert_eq!(policy["paramKind"], Value::Null);
        assert_eq!(policy["failurePolicy"], "Fail");
        assert_eq!(policy["validations"][0]["expression"], "false");
        assert_eq!(binding(&objects, name)["paramRef"], Value::Null);
    }
}

#[test]
fn every_policy_is_conditional_on_the_user() {
    let own = "system:serviceaccount:kube-system:cronjob-controller";
    let shared = "system:kube-controller-manager";
    for fallback in ["automatic", "manual"] {
        let objects = objects_of(&json!({"builtInController": {"fallback": fallback}}));
        let condition = |name| {
            policy(&objects, name)["matchConditions"][0]["expression"]
                .as_str()
                .unwrap()
        };
        let writes = condition("cronwheel-built-in-writes");
        assert_eq!(writes, format!("request.userInfo.username in ['{own}', '{shared}']"));
        let deletes = condition("cronwheel-built-in-deletes");
        assert_eq!(deletes, format!("request.userInfo.username == '{own}'"));
    }
}

#[test]
fn refusal_names_the_installation_and_the_way_back() {
    let message = |values: Value| {
        let objects = objects_of(&values);
        let of = |name| policy(&objects, name)["validations"][0]["messageExpression"].clone();
        assert_eq!(of("cronwheel-built-in-writes"), of("cronwheel-built-in-deletes"));
        of("cronwheel-built-in-writes").as_str().unwrap().to_owned()
    };
    let by_default = message(json!({}));
    let expected = "'the CronJobs of namespace ' + request.namespace + ' are run by the installation cronwheel in \
                    kube-system; to give them back to the built-in controller: kubectl label namespace ' + \
                    request.namespace + ' cronwheel.dev/managed-'";
    assert_eq!(by_default, expected);
    let other = message(json!({"managedNamespaces": {"selector": "team notin (a, b)"}}));
    assert!(
        other.ends_with("change the labels of the namespace, which match team notin (a, b)'"),
        "{other}"
    );
    let bare = message(json!({"managedNamespaces": {"selector": "team"}}));
    assert!(
        bare.ends_with("kubectl label namespace ' + request.namespace + ' team-'"),
        "{bare}"
    );
    // The label of its name cannot be taken from a namespace.
    for values in [
        json!({"all": true}),
        json!({"selector": NAME_LABEL}),
        json!({"selector": format!("{NAME_LABEL}=shop")}),
        json!({"selector": format!("{NAME_LABEL} notin (shop)")}),
    ] {
        let message = message(json!({ "managedNamespaces": values }));
        let ending =
            "delete the ValidatingAdmissionPolicyBindings cronwheel-built-in-writes and cronwheel-built-in-deletes'";
        assert!(message.ends_with(ending), "{message}");
    }
}

/// What the guard of an upgrade makes of these labels of a namespace: the label that is looked for, and whether the
/// namespace has it.
fn guarded(selector: &str, labels: &Value) -> (String, bool) {
    let namespaces = json!([{"metadata": {"name": "shop", "labels": labels}}, {"metadata": {"name": "bare"}}]);
    let found = format!(
        r#"{{{{ $label := include "cronwheel.managedLabel" . }}}}
apiVersion: v1
kind: ConfigMap
metadata: {{name: guard}}
data:
  label: {{{{ $label | quote }}}}
  isInUse: {{{{ include "cronwheel.isLabelInUse" (list $label (fromJsonArray `{namespaces}`)) | quote }}}}"#
    );
    let values = json!({"managedNamespaces": {"selector": selector}, "extraObjects": [found]});
    let objects = objects_of(&values);
    let found = &named(&objects, "ConfigMap", "guard")["data"];
    (
        found["label"].as_str().unwrap().to_owned(),
        found["isInUse"].as_str().unwrap().contains("true"),
    )
}

#[test]
fn guard_of_an_upgrade_looks_for_the_label_of_the_selector() {
    for (selector, labels, label, is_in_use) in [
        ("team=a", json!({"team": "a"}), "team=a", true),
        ("team=a", json!({"team": "b"}), "team=a", false),
        ("team=", json!({"team": ""}), "team=", true),
        ("team=", json!({}), "team=", false),
        ("team", json!({"team": "b"}), "team", true),
        ("team", json!({"team": ""}), "team", true),
        ("team", json!({"a": "team"}), "team", false),
        // Every namespace has it, and nobody can set it.
        ("kubernetes.io/metadata.name", json!({}), "", false),
        ("kubernetes.io/metadata.name=shop", json!({}), "", false),
        ("!team", json!({}), "", false),
        ("team in (a,b)", json!({}), "", false),
    ] {
        assert_eq!(guarded(selector, &labels), (label.to_owned(), is_in_use), "{selector}");
    }
}

#[test]
fn two_releases_share_no_name_and_no_lease() {
    let of = |release: &str, installation: &str| {
        let values = json!({"controller": {"installation": installation}});
        let rendered = render_as(
            release,
            &chart(),
            &values,
            &["--show-only=templates/builtinpolicy.yaml"],
        )
        .unwrap();
        let names = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
        let objects = objects(&rendered);
        assert!(rendered.contains(&format!("cronwheel.dev/lease: {installation}\n")));
        objects.iter().map(names).collect::<Vec<_>>()
    };
    let (one, other) = (of("cronwheel", "cronwheel"), of("team-a", "team-a"));
    assert_eq!(one.len(), 4);
    assert!(one.iter().all(|name| !other.contains(name)), "{one:?} {other:?}");
}

#[test]
fn no_policy_is_rendered_without_silence() {
    let objects = objects_of(&json!({"builtInController": {"silence": false}}));
    assert_eq!(flag(&objects), Some(LABEL));
    assert!(
        objects
            .iter()
            .all(|object| object["kind"] != "ValidatingAdmissionPolicy")
    );
    assert!(
        objects
            .iter()
            .all(|object| object["kind"] != "ValidatingAdmissionPolicyBinding")
    );
}
