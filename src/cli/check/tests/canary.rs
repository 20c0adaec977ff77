//! Tests of what the canary shows.

use std::time::Duration;

use serde_json::{Value, json};

use super::{cron_job, job, line, with};
use crate::{
    cli::check::{
        canary::{Plan, Question, Seen, judge},
        installation::Managed,
    },
    kube_api::NamespaceSelector,
};

const SELECTOR: &str = "cronwheel.dev/managed=true";

fn by(manager: &str, annotations: Value) -> Value {
    let fields = json!([{"manager": manager, "time": "2026-05-05T09:00:01Z", "fieldsV1": {"f:spec": {}}}]);
    let created = json!({"creationTimestamp": "2026-05-05T09:00:01Z", "managedFields": fields});
    job(
        29_632_860,
        json!({"metadata": with(created, json!({"annotations": annotations}))}),
    )
}

fn cronwheel() -> Value {
    by(
        "cronwheel",
        json!({"cronwheel.dev/created-by": "kube-system/cronwheel"}),
    )
}

fn status_of(manager: &str) -> Value {
    let entry = json!({"manager": manager, "subresource": "status", "time": "2026-05-05T09:00:01Z"});
    cron_job(json!({"metadata": {"managedFields": [entry]}}))
}

fn judged(n_replicas: Option<usize>, managed: &Seen, other: Option<&Seen>) -> Vec<String> {
    let question = Question {
        place: format!("in the namespace with {SELECTOR}"),
        wait: Duration::from_secs(15),
        n_replicas,
    };
    let findings = judge(&question, managed, other);
    findings
        .iter()
        .map(|finding| line(finding).split(" -> ").next().unwrap().to_owned())
        .collect()
}

#[test]
fn any_trace_of_the_built_in_controller_fails() {
    let event = |manager: &str, reason: &str| {
        let fields = json!([{"manager": manager, "time": "2026-05-05T09:00:01Z"}]);
        json!({
            "source": {"component": "cronjob-controller"}, "reason": reason, "metadata": {"managedFields": fields},
        })
    };
    let unexpected = event("kube-controller-manager", "UnexpectedJob");
    let ours = event("cronwheel", "SuccessfulCreate");
    for (jobs, cron_job, events, expected) in [
        (
            vec![cronwheel(), by("kube-controller-manager", json!({}))],
            status_of("cronwheel"),
            vec![],
            "✗ managed namespace: kube-controller-manager created Job report-29632860 1s after its slot in the namespace with \
             cronwheel.dev/managed=true: the built-in controller is not stopped there",
        ),
        (
            vec![cronwheel()],
            status_of("kube-controller-manager"),
            vec![ours.clone()],
            "✗ managed namespace: cronwheel, installation kube-system/cronwheel, created Job report-29632860 first in the \
             namespace with cronwheel.dev/managed=true, but kube-controller-manager wrote the status of the CronJob: the \
             built-in controller is not stopped there",
        ),
        (
            vec![],
            status_of("cronwheel"),
            vec![ours.clone(), unexpected],
            "✗ managed namespace: kube-controller-manager emitted the Event UnexpectedJob in the namespace with \
             cronwheel.dev/managed=true: the built-in controller is not stopped there",
        ),
        (
            vec![by("cronwheel", json!({"cronwheel.dev/created-under": "1/2"}))],
            status_of("cronwheel"),
            vec![ours],
            "✓ managed namespace: cronwheel created Job report-29632860 1s after its slot in the namespace with \
             cronwheel.dev/managed=true; no other controller wrote anything there",
        ),
    ] {
        let seen = Seen::of(&jobs, &[cron_job], &events);
        assert_eq!(judged(Some(1), &seen, None), [expected]);
    }
}

#[test]
fn silence_means_something_else_with_and_without_replicas() {
    let silent = Seen::default();
    let place = "nobody created a Job within 15s after its slot in the namespace with cronwheel.dev/managed=true";
    for (n_replicas, expected) in [
        (
            Some(0),
            format!("✓ managed namespace: {place}, and no replica of cronwheel is at work"),
        ),
        (
            None,
            format!("✓ managed namespace: {place}, and it is not known whether a replica of cronwheel is at work"),
        ),
        (
            Some(2),
            format!(
                "! managed namespace: {place}: the built-in controller is stopped, but 2 replicas at work did not run the \
                 CronJob either"
            ),
        ),
    ] {
        assert_eq!(judged(n_replicas, &silent, None), [expected]);
    }
}

#[test]
fn the_namespace_without_the_label_shows_whether_the_built_in_controller_works() {
    let other = |jobs: &[Value]| judged(Some(1), &Seen::default(), Some(&Seen::of(jobs, &[], &[])))[1].clone();
    let built_in = other(&[by("kube-controller-manager", json!({}))]);
    assert!(
        built_in.starts_with("✓ unmanaged namespace: kube-controller-manager created Job"),
        "{built_in}"
    );
    let ours = other(&[cronwheel()]);
    assert!(
        ours.starts_with("! unmanaged namespace: cronwheel, installation kube-system/cronwheel,"),
        "{ours}"
    );
    let nobody = other(&[]);
    assert!(nobody.ends_with("proves nothing about the policy"), "{nobody}");
}

/// The labels of a plan and whether it has another namespace, or why there is none.
fn planned(given: Option<&str>, settings: Option<&str>) -> String {
    let given = given.map(|text| text.parse::<NamespaceSelector>().unwrap());
    let managed = settings.map(|settings| Managed::read(&format!("time-zone=UTC {settings}")));
    match Plan::of(given.as_ref(), managed.as_ref()) {
        Ok(plan) => format!("{} {:?} {}", plan.place, plan.labels, plan.has_other),
        Err(finding) => line(&finding).split(" -> ").next().unwrap().to_owned(),
    }
}

#[test]
fn the_namespaces_are_those_that_the_replicas_manage() {
    let default = r#"in the namespace with cronwheel.dev/managed=true {"cronwheel.dev/managed": "true"} true"#;
    let team = r#"in the namespace with team=a {"team": "a"} true"#;
    for (given, settings, expected) in [
        (None, None, default),
        (
            None,
            Some("namespace-selector=cronwheel.dev/managed=true namespaces=*"),
            default,
        ),
        (None, Some("namespace-selector=team=a namespaces=*"), team),
        (Some("team=a"), Some("namespaces=shop"), team),
        (
            None,
            Some("namespaces=*"),
            "in a new namespace, and the replicas manage all {} false",
        ),
        (
            None,
            Some("namespace-selector=team in (b,a),!x,kubernetes.io/metadata.name notin (a,b) namespaces=*"),
            r#"in the namespace with team in (b,a),!x,kubernetes.io/metadata.name notin (a,b) {"team": "b"} true"#,
        ),
        (Some("!x"), None, "in the namespace with !x {} false"),
        (
            Some("kubernetes.io/metadata.name"),
            None,
            "in the namespace with kubernetes.io/metadata.name {} false",
        ),
        (
            None,
            Some("namespaces=shop,team"),
            "✗ canary: not checked: the replicas manage namespaces by their names (shop, team), and a new namespace is none of \
             them",
        ),
        (
            None,
            Some("namespace-selector=kubernetes.io/metadata.name in (shop,team) namespaces=*"),
            "✗ canary: not checked: kubernetes.io/metadata.name in (shop,team) selects namespaces by \
             kubernetes.io/metadata.name, which cannot be given to a new namespace",
        ),
        (
            Some("a in (x,y),a!=x"),
            None,
            "✗ canary: not checked: no labels are known that a in (x,y),a!=x selects",
        ),
    ] {
        assert_eq!(planned(given, settings), expected);
    }
}
