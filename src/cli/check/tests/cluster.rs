//! Tests of the checks of the API server and of rights.

use serde_json::json;

use super::{at, line};
use crate::{
    cli::check::{
        cluster::{DateAnswer, access_text, clock, fairness, granted, installs, policies, rights, version},
        finding::{Severity, Unread},
    },
    kube_api::JsonError,
};

fn denied(what: &str) -> Unread {
    let error = JsonError::Refused {
        code: 403,
        message: "forbidden".to_owned(),
    };
    Unread::new(what, &error)
}

#[test]
fn the_version_must_have_admission_policies() {
    let document = |minor: &str, git: &str| Ok(json!({"major": "1", "minor": minor, "gitVersion": git}));
    for (document, expected) in [
        (document("36", "v1.36.3"), "✓ server version: v1.36.3, at least v1.30"),
        (
            document("30+", "v1.30.4-eks-a737599"),
            "✓ server version: v1.30.4-eks-a737599, at least v1.30",
        ),
        (
            document("29", "v1.29.9"),
            "✗ server version: v1.29.9 is older than v1.30 -> update the control plane to v1.30 or newer",
        ),
        (
            Ok(json!({})),
            "! server version: cannot be read from \"\" -> kubectl version: the server must be v1.30 or newer",
        ),
        (
            Err(denied("get /version")),
            "! server version: not checked: the account may not get /version -> repeat the check with an account that may \
             get /version",
        ),
    ] {
        assert_eq!(line(&version(&document)), expected);
    }
}

#[test]
fn api_groups_must_serve_policies_and_flow_schemas() {
    let group = |plural: &str| Ok(Some(json!({"resources": [{"name": "other"}, {"name": plural}]})));
    assert_eq!(policies(&group("validatingadmissionpolicies")).severity, Severity::Fine);
    assert_eq!(policies(&group("webhooks")).severity, Severity::Failed);
    assert_eq!(policies(&Ok(None)).severity, Severity::Failed);
    assert_eq!(policies(&Err(denied("get it"))).severity, Severity::Warning);
    assert_eq!(fairness(&group("flowschemas")).severity, Severity::Fine);
    assert_eq!(fairness(&Ok(None)).severity, Severity::Warning);
}

#[test]
fn the_clock_may_differ_by_two_seconds() {
    let difference = |sent: &str, received: &str, date: &str| DateAnswer {
        sent: at(sent),
        received: at(received),
        date: at(date),
    };
    for (answer, ahead) in [
        (difference("10:00:05.2", "10:00:05.3", "10:00:05"), 0),
        // The request took long.
        (difference("10:00:05", "10:00:20", "10:00:12"), 0),
        (difference("10:00:15", "10:00:16", "10:00:10"), 4),
        (difference("10:00:00", "10:00:01", "10:00:10"), -9),
    ] {
        assert_eq!(answer.ahead().as_secs(), ahead, "{answer:?}");
    }
    let text = |answer| line(&clock(Some(answer)));
    assert_eq!(
        text(difference("10:00:05", "10:00:05", "10:00:05")),
        "✓ clock: this machine's clock agrees with the API server's"
    );
    let ahead = text(difference("10:00:15", "10:00:16", "10:00:10"));
    assert!(
        ahead.starts_with("! clock: this machine's clock is at least 4 s ahead of"),
        "{ahead}"
    );
    let behind = text(difference("10:00:00", "10:00:01", "10:00:10"));
    assert!(
        behind.starts_with("! clock: this machine's clock is at least 9 s behind"),
        "{behind}"
    );
    assert_eq!(clock(None).severity, Severity::Warning);
}

#[test]
fn missing_rights_are_named() {
    let all = |allowed: bool| {
        granted("kube-system")
            .into_iter()
            .map(move |access| (access, Ok(allowed)))
    };
    let fine = rights(
        "rights to grant",
        "that the chart grants",
        &all(true).collect::<Vec<_>>(),
    );
    assert_eq!(
        line(&fine),
        "✓ rights to grant: the account has the 22 rights that the chart grants"
    );
    let mut some: Vec<_> = all(true).collect();
    some[3].1 = Ok(false);
    some[19].1 = Ok(false);
    assert_eq!(
        line(&rights("rights to grant", "that the chart grants", &some)),
        "! rights to grant: the account lacks 2 rights that the chart grants: update cronjobs/status.batch in all \
         namespaces, delete leases.coordination.k8s.io in namespace kube-system -> install with an account of the \
         ClusterRole cluster-admin"
    );
    let none: Vec<_> = all(false).collect();
    let text = line(&rights("rights to grant", "that the chart grants", &none));
    assert!(text.contains("and 17 others"), "{text}");
    some[0].1 = Err(denied("create reviews"));
    let unread = rights("rights to grant", "that the chart grants", &some);
    assert!(
        line(&unread).contains("not checked: the account may not create reviews"),
        "{unread:?}"
    );
}

#[test]
fn an_installation_needs_more_than_the_objects_of_the_namespace() {
    let needed: Vec<String> = installs("kube-system").iter().map(access_text).collect();
    for right in [
        "create secrets in namespace kube-system",
        "create deployments.apps in namespace kube-system",
        "create prioritylevelconfigurations.flowcontrol.apiserver.k8s.io in all namespaces",
        "get leases.coordination.k8s.io in all namespaces",
    ] {
        assert!(needed.iter().any(|found| found == right), "{needed:#?}");
    }
}
