//! Checks whose account or API server does not let them read everything.

use apisim::{Fault, Rule};
use cronwheel::{controller::clock::Clock, shard::Term};
use serde_json::json;

use super::{Documents, api, begun, client, cluster, create_job, documents, install, label, policy, run};
use crate::leases::{TIMEOUT, every_server::done, held, leases, shard};

/// A check that could check nothing is no success.
#[tokio::test(start_paused = true)]
async fn without_leases_the_check_fails_with_the_remedy_of_the_cause() {
    let place = "namespace other or kube-system";
    for (fault, reason, mend) in [
        (
            Fault::NotPermitted,
            format!("✗ replicas   not checked: the account may not list leases in {place}\n"),
            format!("repeat the check with an account that may list leases in {place}\n"),
        ),
        (
            Fault::Unavailable,
            format!("✗ replicas   not checked: cannot list leases in {place}: "),
            "repeat the check\n".to_owned(),
        ),
        (
            Fault::Outage,
            format!("✗ API server   not checked: cannot list leases in {place}: the API server cannot be reached"),
            "check --kubeconfig and --context, and kubectl version\n".to_owned(),
        ),
    ] {
        let (api, clock) = cluster().await;
        api.faults().add(Rule::new(fault));
        let (text, error) = run(client(&api, Documents::new()), &[], &clock).await;
        assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
        assert!(text.starts_with(&reason), "{text}");
        assert!(text.contains(&format!("to mend: {mend}")), "{text}");
    }
}

/// The context of a user may be a namespace in which it may not read Leases.
#[tokio::test(start_paused = true)]
async fn leases_are_found_behind_a_namespace_that_may_not_be_read() {
    let (api, clock) = cluster().await;
    install(&api, 256, clock.now()).await;
    api.faults().add(Rule {
        namespace: Some("other".to_owned()),
        ..Rule::new(Fault::NotPermitted)
    });
    let (text, error) = run(client(&api, policy()), &[], &clock).await;
    assert!(
        text.starts_with("✓ replicas            1 replica at work"),
        "{error:?}: {text}"
    );
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_not_accepted_are_the_only_finding() {
    let (api, clock) = cluster().await;
    let status = json!({"kind": "Status", "code": 401, "message": "Unauthorized"});
    for path in ["/version", "/apis/coordination.k8s.io/v1/namespaces/other/leases"] {
        for form in [&["--pre"][..], &["--canary"], &[]] {
            let (text, error) = run(client(&api, [(path, status.clone())].into()), form, &clock).await;
            if form.is_empty() == path.ends_with("leases") {
                assert_eq!(error.as_deref(), Some("1 check failed"), "{form:?}: {text}");
                let expected = "✗ API server   not checked: the API server does not accept the credentials: ";
                assert!(text.starts_with(expected), "{form:?}: {text}");
                assert!(text.contains("kubectl auth whoami"), "{text}");
            }
        }
    }
}

/// The account of a replica may get the policies of its release, and may list none.
#[tokio::test(start_paused = true)]
async fn an_account_that_may_list_no_policy_reads_those_that_its_rights_name() {
    let (api, clock) = (api(), Clock::simulated(begun()));
    install(&api, 256, clock.now()).await;
    let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cronwheel-member-a";
    label(&api, lease, "cronwheel.dev/acts").await;
    let denied = json!({"kind": "Status", "code": 403, "message": "not you"});
    let [writes, deletes] = ["cronwheel-built-in-writes", "cronwheel-built-in-deletes"];
    let rule = |plural: &str, names: &[&str]| json!({"apiGroups": ["admissionregistration.k8s.io"], "resources": [plural], "verbs": ["get"], "resourceNames": names});
    let with_rules = |names: &[&str]| {
        let mut documents = Documents::new();
        for (path, list) in policy() {
            for object in list["items"].as_array().unwrap() {
                let name = object["metadata"]["name"].as_str().unwrap();
                documents.insert(format!("{path}/{name}").leak(), object.clone());
            }
            documents.insert(path, denied.clone());
        }
        let rules =
            ["validatingadmissionpolicies", "validatingadmissionpolicybindings"].map(|plural| rule(plural, names));
        let review = json!({"status": {"resourceRules": rules}});
        documents.insert("/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", review);
        documents
    };
    for (names, expected) in [
        (
            &[writes, deletes][..],
            "✓ admission policy    cronwheel-built-in-writes and cronwheel-built-in-deletes are bound and refuse",
        ),
        (
            &["other"],
            "! admission policy    no ValidatingAdmissionPolicy silences the built-in controller",
        ),
        (
            &[],
            "! admission policy    not checked: the account may not list validatingadmissionpolicies",
        ),
    ] {
        let (text, _) = run(client(&api, with_rules(names)), &[], &clock).await;
        assert!(text.lines().any(|line| line.starts_with(expected)), "{names:?}: {text}");
    }
}

/// No replica says which namespaces it managed.
#[tokio::test(start_paused = true)]
async fn without_settings_of_a_replica_no_namespace_is_called_managed() {
    let (api, clock) = (api(), Clock::simulated(begun()));
    let leases = leases(crate::leases::client(&api), "kube-system");
    let mut take = held(shard(0), "pod-a/a/0000000000000001");
    (take.term, take.is_acquisition) = (Some(Term(1)), true);
    done(leases.create(&take, clock.now(), TIMEOUT).await);
    create_job(&api, "shop", json!({})).await;
    let (text, error) = run(client(&api, policy()), &[], &clock).await;
    assert!(error.is_some(), "{text}");
    let expected =
        "! namespaces         not known, because no replica publishes its settings; runs and options are not checked";
    assert!(text.lines().any(|line| line == expected), "{text}");
    for title in ["lateness", "other controllers", "options  "] {
        assert!(!text.lines().any(|line| line.contains(&format!(" {title}"))), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn pre_checks_the_rights_in_the_namespace_of_the_leases() {
    let (api, clock) = cluster().await;
    let mut documents = documents();
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    documents.insert(reviews, json!({"status": {"allowed": false}}));
    let (text, _) = run(client(&api, documents), &["--pre", "--lease-namespace", "team"], &clock).await;
    let of_install = text.lines().find(|line| line.contains("rights to install")).unwrap();
    assert!(
        of_install.contains("create deployments.apps in namespace team"),
        "{text}"
    );
    assert!(!of_install.contains("kube-system"), "{text}");
}
