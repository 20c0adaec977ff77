//! Tests of the look-up of the admission policy.

use serde_json::{Value, json};

use super::{at, line, with};
use crate::cli::check::{
    policy::{Owner, Parameters, Policies},
    requirements::Requirements,
};

const OWNER: Owner<'static> = Owner {
    installation: "cronwheel",
    lease_namespace: "kube-system",
};

fn policy(name: &str, user: &str, operation: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"app.kubernetes.io/name": "cronwheel"}}, "spec": {
        "matchConditions": [{"name": "other", "expression": "true"}, {"expression": format!("username == '{user}'")}],
        "matchConstraints": {"resourceRules": [{"operations": operation.split('+').collect::<Vec<_>>(), "resources": ["jobs"]}]},
    }})
}

fn binding(changes: Value) -> Value {
    let binding = json!({"metadata": {"name": "b"}, "spec": {
        "policyName": "writes", "validationActions": ["Deny"],
        "paramRef": {
            "namespace": "kube-system",
            "selector": {"matchLabels": {"cronwheel.dev/acts": "true", "cronwheel.dev/lease": "cronwheel"}},
        },
    }});
    with(binding, changes)
}

/// The policies of the chart, of which the second silences the built-in controller.
fn policies(bindings: &[Value]) -> Policies {
    const BUILT_IN: &str = "system:serviceaccount:kube-system:cronjob-controller";
    Policies {
        policies: vec![
            policy("fence", "system:serviceaccount:kube-system:cronwheel", "CREATE"),
            policy("deletes", BUILT_IN, "DELETE"),
            policy("writes", BUILT_IN, "CREATE"),
        ],
        bindings: [bindings, &[binding(json!({"spec": {"policyName": "deletes"}}))]].concat(),
    }
}

fn lease(renewed: &str) -> Value {
    json!({"spec": {"renewTime": at(renewed).to_string()}})
}

#[test]
fn the_policy_must_be_bound_and_have_a_fresh_lease() {
    let other = binding(json!({"spec": {"policyName": "fence"}}));
    let warn = binding(json!({"spec": {"validationActions": ["Warn", "Audit"]}}));
    let always = binding(json!({"spec": {"paramRef": null}}));
    for (bindings, leases, expected) in [
        (
            vec![other.clone(), binding(json!({}))],
            vec![lease("09:59:59"), lease("09:50:00")],
            "✓ admission policy: writes and deletes are bound and refuse the built-in controller's writes: 1 replica with a fresh Lease",
        ),
        (
            vec![binding(json!({}))],
            vec![lease("09:59:00"), lease("09:50:00")],
            "✗ admission policy: writes is bound, and refuses nothing now: none of 2 Leases of replicas that act was renewed \
             within 60 s, so the built-in controller stands in",
        ),
        (
            vec![always],
            vec![],
            "✓ admission policy: writes and deletes are bound and refuse the built-in controller's writes",
        ),
        (
            vec![other],
            vec![],
            "✗ admission policy: writes has no binding, so it refuses nothing",
        ),
        (
            vec![warn],
            vec![],
            "✗ admission policy: the binding of writes does not deny",
        ),
    ] {
        let found = line(&policies(&bindings).finding(OWNER, None, &Ok(leases), at("10:00:00")));
        assert_eq!(found.split(" -> ").next().unwrap(), expected);
    }
    let none = line(&Policies::default().finding(OWNER, None, &Ok(Vec::new()), at("10:00:00")));
    assert!(
        none.starts_with("! admission policy: no ValidatingAdmissionPolicy silences the built-in controller for installation cronwheel in kube-system"),
        "{none}"
    );
}

#[test]
fn parameters_are_those_of_the_binding() {
    let parameters = Parameters {
        namespace: "kube-system".to_owned(),
        selector: "cronwheel.dev/acts=true,cronwheel.dev/lease=cronwheel".to_owned(),
    };
    assert_eq!(policies(&[binding(json!({}))]).parameters(OWNER), Some(parameters));
    assert_eq!(policies(&[]).parameters(OWNER), None);
}

/// A policy of creates without parameters, whose message names this installation, and its binding.
fn manual(name: &str, installation: &str, labels: Value) -> (Value, Value) {
    let message = format!(
        "'the CronJobs of namespace ' + request.namespace + ' are run by the installation {installation} in\n kube-system; to \
         give them back'"
    );
    let changes = json!({"metadata": {"labels": labels}, "spec": {"validations": [{"messageExpression": message}]}});
    let policy = with(
        policy(
            name,
            "system:serviceaccount:kube-system:cronjob-controller",
            "CREATE+DELETE",
        ),
        changes,
    );
    let spec = json!({"policyName": name, "paramRef": null});
    (policy, binding(json!({"spec": spec})))
}

#[test]
fn the_policy_is_that_of_the_installation() {
    const BUILT_IN: &str = "system:serviceaccount:kube-system:cronjob-controller";
    let automatic = |name: &str, namespace: &str, lease: &str| {
        let reference = json!({"namespace": namespace, "selector": {"matchLabels": {"cronwheel.dev/lease": lease}}});
        let bound = binding(json!({"spec": {"policyName": name, "paramRef": reference}}));
        (policy(name, BUILT_IN, "CREATE+DELETE"), bound)
    };
    let unlabelled = json!({"app.kubernetes.io/name": "renamed"});
    let of_team = automatic("team", "kube-system", "team");
    let elsewhere = automatic("elsewhere", "other", "cronwheel");
    let (bare, bare_binding) = manual("bare", "x", json!({}));
    let bare = (with(bare, json!({"spec": {"validations": null}})), bare_binding);
    for (all, expected) in [
        (
            vec![
                of_team.clone(),
                elsewhere.clone(),
                automatic("ours", "kube-system", "cronwheel"),
            ],
            "✗ admission policy: ours is bound",
        ),
        (
            vec![
                of_team.clone(),
                manual("other", "team", json!({})),
                manual("ours", "cronwheel", unlabelled.clone()),
            ],
            "✓ admission policy: ours and ours are bound",
        ),
        (
            vec![manual("other", "cronwheel-2", unlabelled), bare.clone()],
            "✓ admission policy: bare and bare are bound",
        ),
        (
            vec![of_team, elsewhere, manual("other", "team", json!({}))],
            "! admission policy: no ValidatingAdmissionPolicy silences",
        ),
    ] {
        let (policies, bindings) = all.into_iter().unzip();
        let found = line(&Policies { policies, bindings }.finding(OWNER, None, &Ok(Vec::new()), at("10:00:00")));
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn the_policies_must_be_for_the_managed_namespaces() {
    const NAME: &str = "kubernetes.io/metadata.name";
    let selected = |selector: &Value| json!({"spec": {"matchResources": {"namespaceSelector": selector}}});
    let expression = |key: &str, operator: &str, values: Value| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    let label = expression("cronwheel.dev/managed", "In", json!(["true"]));
    for (managed, of_writes, of_deletes, expected) in [
        (
            "cronwheel.dev/managed=true",
            json!({"matchLabels": {"cronwheel.dev/managed": "true"}}),
            label.clone(),
            "✓",
        ),
        ("", json!({}), Value::Null, "✓"),
        (
            "team in (b,a),!x",
            json!({"matchExpressions": [
                {"key": "x", "operator": "DoesNotExist"}, {"key": "team", "operator": "In", "values": ["a", "b"]},
            ]}),
            with(
                expression("x", "DoesNotExist", Value::Null),
                json!({"matchLabels": null}),
            ),
            "! admission policy: deletes is for namespaces with !x, but replicas manage namespaces with !x,team in (a,b): ",
        ),
        (
            "kubernetes.io/metadata.name notin (a)",
            expression(NAME, "NotIn", json!(["a"])),
            expression(NAME, "NotIn", json!(["a"])),
            "✓",
        ),
        (
            "team=a",
            label.clone(),
            label.clone(),
            "! admission policy: writes is for namespaces with cronwheel.dev/managed=true, but replicas manage namespaces with \
             team=a: both controllers or none run",
        ),
        (
            "",
            label.clone(),
            label.clone(),
            "! admission policy: writes is for namespaces with cronwheel.dev/managed=true, but replicas manage all namespaces",
        ),
        (
            "a",
            json!({}),
            json!({}),
            "! admission policy: writes is for all namespaces, but replicas manage namespaces with a",
        ),
    ] {
        let managed = Requirements::of_text(managed).unwrap();
        let mut all = policies(&[binding(selected(&of_writes))]);
        let deletes = all.bindings.pop().unwrap();
        all.bindings.push(with(deletes, selected(&of_deletes)));
        let found = line(&all.finding(OWNER, Some(&managed), &Ok(vec![lease("10:00:00")]), at("10:00:00")));
        assert!(found.starts_with(expected), "{managed}: {found}");
    }
    let names = ["a", "b"].map(str::to_owned).into();
    let of_policy = Requirements::of_objects([&expression(NAME, "In", json!(["b", "a"]))]);
    assert_eq!(of_policy, Some(Requirements::of_names(&names)));
    assert_eq!(
        Requirements::of_objects([&expression(NAME, "Like", json!(["a"]))]),
        None
    );
}

#[test]
fn the_policy_of_deletes_must_be_bound_too() {
    let finding =
        |policies: &Policies| line(&policies.finding(OWNER, None, &Ok(vec![lease("10:00:00")]), at("10:00:00")));
    let mut all = policies(&[binding(json!({}))]);
    let deletes = all.bindings.pop().unwrap();
    let expected = "✗ admission policy: deletes has no binding, so it refuses nothing";
    assert!(finding(&all).starts_with(expected), "{}", finding(&all));
    all.bindings
        .push(with(deletes, json!({"spec": {"validationActions": ["Warn"]}})));
    let expected = "✗ admission policy: the binding of deletes does not deny";
    assert!(finding(&all).starts_with(expected), "{}", finding(&all));
    all.policies.remove(1);
    let expected =
        "✗ admission policy: writes has no counterpart that refuses the built-in controller the deletion of Jobs";
    assert!(finding(&all).starts_with(expected), "{}", finding(&all));
}

/// The policy admits the write.
#[test]
fn a_lease_that_was_never_renewed_is_not_fresh() {
    let never = json!({"spec": {"holderIdentity": "a"}});
    let all = policies(&[binding(json!({}))]);
    let found = line(&all.finding(OWNER, None, &Ok(vec![never]), at("10:00:00")));
    let expected = "✗ admission policy: writes is bound, and refuses nothing now: none of 1 Lease";
    assert!(found.starts_with(expected), "{found}");
}
