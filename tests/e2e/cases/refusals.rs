//! Jobs that the API server refuses, temporarily or in part: quota, policy, a terminating namespace (B-12.2, B-12.4).

use std::{rc::Rc, time::Instant};

use jiff::SignedDuration;
use kube::api::{DeleteParams, PostParams};
use serde_json::{Value, json};

use crate::{
    account::permit_leases,
    controller::Controller,
    kubernetes::{Namespace, from_json, job_name, merge, own_job, wait},
};

pub(super) fn hanging() -> Value {
    json!({"outcome": "hang", "run-for": "0s"})
}

pub(super) const REQUESTS: &str = "cronwheel_api_requests_total";
pub(super) const REFUSED_CREATES: [(&str, &str); 3] = [("verb", "create"), ("resource", "jobs"), ("code", "403")];

pub(super) fn at_most(n_jobs: &str) -> Value {
    json!({"spec": {"hard": {"count/jobs.batch": n_jobs}}})
}

pub(super) async fn allow_no_jobs(namespace: &Namespace) {
    let mut quota = at_most("0");
    let head = json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "jobs"}});
    merge(&mut quota, head);
    namespace.create(quota).await;
    let is_in_force = async || {
        let quota = namespace.find("ResourceQuota", "jobs").await.expect("it");
        quota["status"]["hard"]["count/jobs.batch"] == "0"
    };
    assert!(wait(is_in_force).await, "the quota is not in force");
}

pub(super) async fn raised_quota_starts_the_refused_slot(namespace: Namespace) {
    allow_no_jobs(&namespace).await;
    namespace.create_cron_job(hanging(), json!({})).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;

    let controller = Controller::start_before(&namespace, 0);
    let message = namespace.wait_for_event_on("hello", "FailedCreate").await;
    assert!(message.starts_with("Error creating job: "), "{message}");
    assert!(message.contains("exceeded quota: jobs"), "{message}");
    // It retries with increasing intervals: 0.4 s after the third attempt.
    controller.wait_for_metric(REQUESTS, &REFUSED_CREATES, |n| n >= 3).await;
    assert_eq!(namespace.job_names().await, Vec::<String>::new());
    namespace.patch("ResourceQuota", "jobs", at_most("1")).await;
    controller.wait_for_account(&[("created", 1)]).await;
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    let n_refused = controller.metric(REQUESTS, &REFUSED_CREATES).await;
    assert!(n_refused < Some(10), "{n_refused:?} refusals in seconds");
    controller.terminate().await;
}

/// Slots three seconds apart on both sides of a full minute have different names. The first one never starts.
pub(super) async fn quota_raised_late_starts_only_the_latest_slot(namespace: Namespace) {
    allow_no_jobs(&namespace).await;
    namespace
        .create_cron_job(hanging(), json!({"spec": {"schedule": "@every 3s"}}))
        .await;
    let secs = SignedDuration::from_secs;
    namespace.set_last_run("hello", namespace.minute(0) - secs(6)).await;
    let controller = Controller::start_at(&namespace, namespace.minute(0) - secs(5), &[]);
    let refused = [("outcome", "refused")];
    controller
        .wait_for_metric("cronwheel_instant_outcomes_total", &refused, |n| n >= 1)
        .await;
    namespace.patch("ResourceQuota", "jobs", at_most("5")).await;
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    let first = namespace.minute(0).to_string();
    let is_past = |status: &Value| status["lastScheduleTime"].as_str().is_some_and(|last| *last >= *first);
    namespace.wait_for_status("the cursor is past both", is_past).await;
    controller.terminate().await;
    assert_eq!(namespace.job_names().await, [namespace.job_name(0)]);
}

/// Denies requests for which the expression is false, only in this namespace.
async fn deny(namespace: &Namespace, operation: &str, resource: &str, unless: &str) {
    let metadata = json!({"name": namespace.name});
    let here = json!({"matchLabels": {"kubernetes.io/metadata.name": namespace.name}});
    let rule = json!({
        "apiGroups": ["batch"], "apiVersions": ["v1"], "operations": [operation], "resources": [resource],
    });
    namespace
        .create(json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": metadata,
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {"namespaceSelector": here, "resourceRules": [rule]},
                "validations": [{"expression": unless, "message": "house rules"}],
            },
        }))
        .await;
    namespace
        .create(json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": metadata,
            "spec": {"policyName": namespace.name, "validationActions": ["Deny"]},
        }))
        .await;
}

async fn allow(namespace: &Namespace) {
    for kind in ["ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"] {
        namespace.delete(kind, &namespace.name, DeleteParams::default()).await;
    }
}

pub(super) async fn policy_that_denies_some_jobs_delays_no_other(namespace: Namespace) {
    deny(
        &namespace,
        "CREATE",
        "jobs",
        "!object.metadata.name.startsWith('denied-')",
    )
    .await;
    let is_in_force = async || {
        let dry_run = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let probe = from_json(own_job("denied-probe", hanging()));
        namespace.api("Job").create(&dry_run, &probe).await.is_err()
    };
    assert!(wait(is_in_force).await, "the policy is not in force");
    for name in ["denied", "hello"] {
        let changes = json!({"metadata": {"name": name}});
        namespace.create_cron_job(hanging(), changes).await;
        namespace.set_last_run(name, namespace.minute(-1)).await;
    }

    let controller = Controller::start_before(&namespace, 0);
    let message = namespace.wait_for_event_on("denied", "FailedCreate").await;
    assert!(message.starts_with("Error creating job: "), "{message}");
    assert!(message.ends_with("denied request: house rules"), "{message}");
    namespace.wait_for_jobs(&[namespace.job_name(0)]).await;
    // Policies may change, so denied creates are retried.
    allow(&namespace).await;
    controller.wait_for_account(&[("created", 2)]).await;
    let denied = job_name("denied", namespace.minute(0));
    namespace.wait_for_jobs(&[denied, namespace.job_name(0)]).await;
    assert_eq!(namespace.event_counts("hello", "FailedCreate").await, []);
    controller.terminate().await;
}

/// A policy keeps the CronJob, and with it the namespace, in the terminating state.
pub(super) async fn creates_in_a_terminating_namespace_back_off_without_events(namespace: Namespace) {
    namespace.create_cron_job(hanging(), json!({})).await;
    namespace.set_last_run("hello", namespace.minute(-1)).await;
    deny(&namespace, "DELETE", "cronjobs", "false").await;
    let is_in_force = async || {
        let dry_run = DeleteParams {
            dry_run: true,
            ..DeleteParams::default()
        };
        namespace.api("CronJob").delete("hello", &dry_run).await.is_err()
    };
    assert!(wait(is_in_force).await, "the policy is not in force");
    namespace
        .delete("Namespace", &namespace.name, DeleteParams::default())
        .await;
    let is_going = async || {
        let going = namespace.find("Namespace", &namespace.name).await.expect("it");
        going["status"]["phase"] == "Terminating"
    };
    assert!(wait(is_going).await, "the namespace does not go");

    // A namespace that goes accepts no Leases either.
    let leases = Namespace::create_for("leases_of_another_namespace", Rc::clone(&namespace.control_plane)).await;
    permit_leases(&leases).await;
    let lease_namespace = format!("--lease-namespace={}", leases.name);
    let controller = Controller::start_replica(&namespace, 0, &[&lease_namespace]);
    controller.wait_for_metric(REQUESTS, &REFUSED_CREATES, |n| n >= 1).await;
    let begun = Instant::now();
    controller.wait_for_metric(REQUESTS, &REFUSED_CREATES, |n| n >= 6).await;
    // 0.1 + 0.2 + 0.4 + 0.8 + 1.6 s, minus the time before the first attempt was observed.
    assert!(begun.elapsed().as_secs_f64() > 2.5, "{:?}", begun.elapsed());
    // The controller attempts no Event, because the API server would refuse it too.
    assert_eq!(controller.metric("cronwheel_events_total", &[]).await, Some(0));
    assert_eq!(controller.metric("cronwheel_instants_open", &[]).await, Some(1));
    assert_eq!(namespace.cron_job().await["metadata"]["deletionTimestamp"], Value::Null);
    allow(&namespace).await;
    // The namespace controller retries later, or deletes the namespace first.
    let is_gone = async || {
        let params = DeleteParams::default();
        let deleted = namespace.api("CronJob").delete("hello", &params).await;
        deleted.is_ok() || namespace.find("CronJob", "hello").await.is_none()
    };
    assert!(wait(is_gone).await, "the CronJob cannot be deleted");
    controller.wait_for_account(&[("deleted", 1)]).await;
    controller.terminate().await;
}
