//! `--canary`, with tasks that stand for the controllers.

use std::time::Duration;

use apisim::{Api, Fault, Resource, Rule};
use cronwheel::controller::clock::Clock;
use http::Request;
use jiff::SignedDuration;
use kube::Client;
use serde_json::{Value, json};

use super::{Documents, api, begun, client, create, install, install_with, run, run_until};

const SLOT: &str = "2026-01-02T03:05:00Z";

/// Returns the items of a list.
async fn list(api: &Api, path: &str) -> Vec<Value> {
    let request = Request::get(path).body(Vec::new()).unwrap();
    let mut list: Value = Client::new(api.client("user"), "default")
        .request(request)
        .await
        .unwrap();
    serde_json::from_value(list["items"].take()).unwrap()
}

/// Creates the Jobs of 03:05 two seconds later, in namespaces with the label or in the others.
async fn controller(api: &Api, is_managed: bool, manager: &str, annotation: Option<&str>) {
    tokio::time::sleep(Duration::from_secs(32)).await;
    for cron_job in list(api, "/apis/batch/v1/cronjobs").await {
        let namespace = cron_job["metadata"]["namespace"].as_str().unwrap();
        if is_managed == namespace.ends_with("-unlabelled") {
            continue;
        }
        let mut annotations = json!({"batch.kubernetes.io/cronjob-scheduled-timestamp": SLOT});
        if let Some(annotation) = annotation {
            annotations["cronwheel.dev/created-by"] = annotation.into();
        }
        let owner = json!({
            "apiVersion": "batch/v1", "kind": "CronJob", "name": "canary", "uid": cron_job["metadata"]["uid"],
            "controller": true,
        });
        let entry = json!({
            "manager": manager, "operation": "Update", "apiVersion": "batch/v1", "time": "2026-01-02T03:05:02Z",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {}},
        });
        let job = json!({
            "metadata": {
                "name": "canary-29455385", "namespace": namespace, "annotations": annotations,
                "ownerReferences": [owner], "managedFields": [entry],
            },
            "spec": cron_job["spec"]["jobTemplate"]["spec"],
        });
        create(api, "jobs", job).await;
    }
}

async fn built_in(api: &Api, is_managed: bool) {
    controller(api, is_managed, "kube-controller-manager", None).await;
}

async fn cronwheel(api: &Api) {
    controller(api, true, "cronwheel", Some("kube-system/cronwheel")).await;
}

/// Asserts that no namespace of a canary is left.
async fn assert_removed(api: &Api) {
    let namespaces = list(api, "/api/v1/namespaces?labelSelector=cronwheel.dev/canary").await;
    let left = namespaces
        .iter()
        .filter(|namespace| namespace["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(left.count(), 0, "{namespaces:#?}");
}

async fn run_canary(api: &Api) -> (String, Option<String>) {
    run_canary_by(&Clock::simulated(begun()), api).await
}

async fn run_canary_by(clock: &Clock, api: &Api) -> (String, Option<String>) {
    run(client(api, Documents::new()), &["--canary"], clock).await
}

#[tokio::test(start_paused = true)]
async fn canary_shows_that_only_the_label_stops_the_built_in_controller() {
    let api = api();
    let ((text, error), (), ()) = tokio::join!(run_canary(&api), built_in(&api, false), cronwheel(&api));
    assert!(error.is_none(), "{error:?}: {text}");
    let expected = "\
✓ managed namespace     cronwheel, installation kube-system/cronwheel, created Job canary-29455385 2s after its slot in the namespace with cronwheel.dev/managed=true; no other controller wrote anything there
✓ unmanaged namespace   kube-controller-manager created Job canary-29455385 2s after its slot in the namespace without the label: the built-in controller works, and only the label stops it
✓ removed               the namespaces of the canary are deleted

3 fine, 0 to read (!), 0 failed (✗)
";
    assert_eq!(text, expected, "{text}");
    assert_removed(&api).await;
}

#[tokio::test(start_paused = true)]
async fn canary_fails_at_the_first_job_of_the_built_in_controller() {
    let api = api();
    let clock = Clock::simulated(begun());
    let ((text, error), ()) = tokio::join!(run_canary_by(&clock, &api), built_in(&api, true));
    assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
    let expected = "✗ managed namespace   kube-controller-manager created Job canary-29455385 2s after its slot in the \
                    namespace with cronwheel.dev/managed=true: the built-in controller is not stopped there";
    assert_eq!(text.lines().next(), Some(expected));
    assert!(
        !text.contains("unmanaged namespace"),
        "it was not observed for 15 s: {text}"
    );
    assert!(clock.now().duration_since(begun()).as_secs() < 35, "{}", clock.now());
    assert_removed(&api).await;
}

#[tokio::test(start_paused = true)]
async fn canary_without_any_controller_says_that_it_proves_nothing() {
    let api = api();
    let clock = Clock::simulated(begun());
    let (text, error) = run_canary_by(&clock, &api).await;
    assert!(error.is_none(), "{error:?}: {text}");
    let expected = "\
✓ managed namespace     nobody created a Job within 15s after its slot in the namespace with cronwheel.dev/managed=true, and no replica of cronwheel is at work
! unmanaged namespace   nobody created a Job within 15s after its slot in the namespace without the label either: the built-in controller is switched off by its flag, or it is more than 15s late. The silence in the managed namespace proves nothing about the policy
                        to mend: repeat the check with --wait 60s; cronwheel check --pre says when the built-in controller was last seen
✓ removed               the namespaces of the canary are deleted

2 fine, 1 to read (!), 0 failed (✗)
";
    assert_eq!(text, expected, "{text}");
    assert!(clock.now().duration_since(begun()).as_secs() <= 75, "{}", clock.now());
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_canary_is_removed() {
    let api = api();
    let clock = Clock::simulated(begun());
    let interrupted = tokio::time::sleep(Duration::from_secs(5));
    let (text, error) = run_until(client(&api, Documents::new()), &["--canary"], &clock, interrupted).await;
    assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
    assert!(
        text.starts_with("✗ canary    interrupted before it showed anything"),
        "{text}"
    );
    assert!(
        text.contains("✓ removed   the namespaces of the canary are deleted"),
        "{text}"
    );
    assert_removed(&api).await;
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_cannot_be_created_is_removed() {
    let api = api();
    api.faults().add(Rule {
        resource: Some(Resource::CronJob),
        ..Rule::new(Fault::Forbid("no CronJobs here".to_owned()))
    });
    let (text, error) = run_canary(&api).await;
    assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
    assert!(
        text.starts_with("✗ canary    not checked: cannot create a CronJob in namespace cronwheel-canary-"),
        "{text}"
    );
    assert!(text.contains("no CronJobs here"), "{text}");
    assert_removed(&api).await;
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_cannot_be_deleted_fails_with_the_command() {
    let api = api();
    api.faults().add(Rule {
        resource: Some(Resource::Namespace),
        verbs: vec![apisim::Verb::Delete],
        ..Rule::new(Fault::InternalError)
    });
    let (text, error) = run_canary(&api).await;
    assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
    assert!(
        text.contains("to mend: kubectl delete namespace cronwheel-canary-1767323070000-"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn canary_counts_replicas_by_the_time_of_the_api_server() {
    let api = api();
    install(&api, 256, begun() + SignedDuration::from_secs(45)).await;
    let clock = Clock::simulated(begun() + SignedDuration::from_hours(1));
    let (text, error) = run_canary_by(&clock, &api).await;
    assert!(error.is_none(), "{error:?}: {text}");
    assert!(
        text.contains("but 1 replica at work did not run the CronJob either"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_create_without_an_answer_is_not_called_removed() {
    for (fault, expected) in [
        (
            Fault::DropBefore,
            "! removed   namespace cronwheel-canary-1767323070000-",
        ),
        (Fault::DropAfter, "✓ removed   the namespaces of the canary are deleted"),
        (
            Fault::Forbid("no".to_owned()),
            "✓ removed   the namespaces of the canary are deleted",
        ),
    ] {
        let api = api();
        api.faults().add(Rule {
            resource: Some(Resource::Namespace),
            verbs: vec![apisim::Verb::Create],
            ..Rule::new(fault)
        });
        let (text, error) = run_canary(&api).await;
        assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
        assert!(text.contains(expected), "{text}");
        assert_eq!(
            text.contains("to mend: kubectl delete namespace cronwheel-canary-1767323070000-"),
            expected.starts_with('!'),
            "{text}"
        );
        assert_removed(&api).await;
    }
}

/// The replicas say which namespaces they manage.
#[tokio::test(start_paused = true)]
async fn canary_creates_nothing_for_named_namespaces() {
    let api = api();
    install_with(&api, 1, begun(), "namespaces=shop").await;
    let version = api.version();
    let (text, error) = run_canary(&api).await;
    assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
    assert!(
        text.starts_with("✗ canary   not checked: the replicas manage namespaces by their names (shop)"),
        "{text}"
    );
    assert_eq!(api.version(), version, "nothing is written");
}

/// The only CronJobs left in a namespace.
async fn assert_no_cron_job(api: &Api) {
    assert!(list(api, "/apis/batch/v1/cronjobs").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn canary_in_an_existing_namespace_awaits_the_job_of_cronwheel() {
    let api = api();
    let clock = Clock::simulated(begun());
    let canary = run(client(&api, Documents::new()), &["--canary=shop"], &clock);
    let ((text, error), ()) = tokio::join!(canary, cronwheel(&api));
    assert!(error.is_none(), "{error:?}: {text}");
    let expected = "\
✓ canary    cronwheel, installation kube-system/cronwheel, created Job canary-29455385 in namespace shop 2s after its slot
✓ removed   the CronJob of the canary is deleted

2 fine, 0 to read (!), 0 failed (✗)
";
    assert_eq!(text, expected, "{text}");
    assert!(clock.now().duration_since(begun()).as_secs() < 35, "{}", clock.now());
    assert_no_cron_job(&api).await;
}

#[tokio::test(start_paused = true)]
async fn canary_in_an_existing_namespace_fails_without_a_job_of_cronwheel() {
    for (is_created, expected) in [
        (
            true,
            "✗ canary    kube-controller-manager created Job canary-29455385 in namespace shop, and not cronwheel",
        ),
        (
            false,
            "✗ canary    nobody created a Job of the CronJob in namespace shop in time",
        ),
    ] {
        let api = api();
        let clock = Clock::simulated(begun());
        let canary = run(client(&api, Documents::new()), &["--canary=shop"], &clock);
        let other = async {
            if is_created {
                built_in(&api, true).await;
            }
        };
        let ((text, error), ()) = tokio::join!(canary, other);
        assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
        assert_eq!(text.lines().next(), Some(expected));
        assert_no_cron_job(&api).await;
    }
}

/// The namespace is given, so no selector selects it.
#[tokio::test(start_paused = true)]
async fn canary_in_an_existing_namespace_takes_no_selector() {
    let api = api();
    let version = api.version();
    let arguments = ["--canary=shop", "--namespace-selector", "a=b"];
    let (text, error) = run(client(&api, Documents::new()), &arguments, &Clock::simulated(begun())).await;
    let expected = "--namespace-selector has no effect with --canary=shop; leave one of them out";
    assert_eq!((text.as_str(), error.as_deref()), ("", Some(expected)));
    assert_eq!(api.version(), version, "nothing is written");
}

#[tokio::test(start_paused = true)]
async fn canary_in_an_existing_namespace_fails_without_its_rights() {
    for (resource, expected) in [
        (
            Resource::CronJob,
            "✗ canary    not checked: cannot create a CronJob in namespace shop: ",
        ),
        (
            Resource::Job,
            "✗ canary    not checked: the account may not list jobs in namespace shop",
        ),
    ] {
        let api = api();
        api.faults().add(Rule {
            resource: Some(resource),
            verbs: vec![apisim::Verb::Create, apisim::Verb::List],
            ..Rule::new(Fault::Forbid("not here".to_owned()))
        });
        let clock = Clock::simulated(begun());
        let (text, error) = run(client(&api, Documents::new()), &["--canary=shop"], &clock).await;
        assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
        assert!(text.starts_with(expected), "{text}");
    }
}

/// Fails the lists of Jobs, so many of them or all.
fn without_jobs(api: &Api, times_max: Option<u32>) {
    api.faults().add(Rule {
        resource: Some(Resource::Job),
        verbs: vec![apisim::Verb::List],
        times_max,
        ..Rule::new(Fault::Unavailable)
    });
}

/// An API server that restarts answers 503 for some seconds.
#[tokio::test(start_paused = true)]
async fn canary_outlasts_looks_that_fail() {
    for form in ["--canary", "--canary=shop"] {
        let api = api();
        without_jobs(&api, Some(5));
        let clock = Clock::simulated(begun());
        let arguments = [form];
        let canary = run(client(&api, Documents::new()), &arguments, &clock);
        let ((text, error), ()) = tokio::join!(canary, cronwheel(&api));
        assert!(error.is_none(), "{form}: {error:?}: {text}");
        assert!(
            text.contains("✓ ") && text.contains("created Job canary-29455385"),
            "{form}: {text}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn canary_that_sees_nothing_fails() {
    for form in ["--canary", "--canary=shop"] {
        let api = api();
        without_jobs(&api, None);
        let clock = Clock::simulated(begun());
        let (text, error) = run(client(&api, Documents::new()), &[form], &clock).await;
        assert_eq!(error.as_deref(), Some("1 check failed"), "{form}: {text}");
        assert!(
            text.starts_with("✗ canary    not checked: cannot list jobs in namespace "),
            "{text}"
        );
        let seconds = clock.now().duration_since(begun()).as_secs();
        assert!((45..70).contains(&seconds), "{form}: {seconds}");
    }
}

/// The message says who refuses it, and another account would not help.
#[tokio::test(start_paused = true)]
async fn canary_refused_by_admission_names_the_refusal_and_not_the_account() {
    let message = "admission webhook \"policy\" denied the request: label team is required";
    for (resource, form) in [
        (Resource::Namespace, "--canary"),
        (Resource::CronJob, "--canary"),
        (Resource::CronJob, "--canary=shop"),
    ] {
        for (fault, is_of_account) in [(Fault::Forbid(message.to_owned()), false), (Fault::NotPermitted, true)] {
            let api = api();
            api.faults().add(Rule {
                resource: Some(resource),
                verbs: vec![apisim::Verb::Create],
                ..Rule::new(fault)
            });
            let clock = Clock::simulated(begun());
            let (text, error) = run(client(&api, Documents::new()), &[form], &clock).await;
            assert_eq!(error.as_deref(), Some("1 check failed"), "{form}: {text}");
            assert!(text.starts_with("✗ canary    not checked: cannot create "), "{text}");
            assert_eq!(text.contains(message), !is_of_account, "{text}");
            assert_eq!(
                text.contains("with an account that may create"),
                is_of_account,
                "{text}"
            );
            assert_eq!(text.contains("--canary=NAMESPACE"), !is_of_account, "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn canary_without_an_api_server_creates_nothing() {
    let api = api();
    api.faults().add(Rule::new(Fault::Outage));
    let (text, error) = run_canary(&api).await;
    assert_eq!(error.as_deref(), Some("1 check failed"), "{text}");
    assert!(
        text.starts_with("✗ API server   not checked: cannot reach the API server: "),
        "{text}"
    );
    assert_eq!(text.lines().count(), 4, "{text}");
}
