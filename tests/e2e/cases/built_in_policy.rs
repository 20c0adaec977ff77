//! What the policy against the built-in controller refuses: whose requests, which, where, and beside which Lease.

use std::rc::Rc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    built_in::{LeaseState, OWN, Policy, SHARED, job_of_cron_job},
    kubernetes::{Namespace, own_job, wait},
};

/// Users whom the policy never refuses: controllers of the control plane, cronwheel, people and their accounts.
const OTHERS: [&str; 7] = [
    "system:serviceaccount:kube-system:job-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    "system:serviceaccount:kube-system:ttl-after-finished-controller",
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:cronwheel",
    "system:serviceaccount:tenant:cronjob-controller",
    "alice",
];

/// A request in a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    /// Creates a Job whose controller is a CronJob.
    CreateJobOfCronJob,
    /// Creates a Job without a controller.
    CreateOwnJob,
    /// Replaces the status of a CronJob.
    PutStatus,
    /// Patches the status of a CronJob.
    PatchStatus,
    /// Creates an Event of the built-in controller.
    CreateEvent,
    /// The same in the API group `events.k8s.io`.
    CreateEventOfItsGroup,
    /// Counts an Event of the built-in controller.
    PatchEvent,
    /// Creates an Event of another controller.
    CreateOtherEvent,
    /// Deletes a Job that cronwheel created.
    DeleteJobOfCronwheel,
    /// Deletes a Job that `cronwheel backfill` created.
    DeleteJobOfBackfill,
    /// Deletes a Job that the built-in controller created.
    DeleteOtherJob,
    /// Changes a Job, as the Job controller and the garbage collector do.
    PatchJob,
    /// Changes the schedule of a CronJob.
    PatchCronJob,
}

const ACTIONS: [Action; 13] = [
    Action::CreateJobOfCronJob,
    Action::CreateOwnJob,
    Action::PutStatus,
    Action::PatchStatus,
    Action::CreateEvent,
    Action::CreateEventOfItsGroup,
    Action::PatchEvent,
    Action::CreateOtherEvent,
    Action::DeleteJobOfCronwheel,
    Action::DeleteJobOfBackfill,
    Action::DeleteOtherJob,
    Action::PatchJob,
    Action::PatchCronJob,
];

impl Action {
    /// Method, path and body of the request in a namespace that [`prepare`] filled.
    async fn request(self, policy: &Policy<'_>, namespace: &str) -> (&'static str, String, Value) {
        let batch = format!("/apis/batch/v1/namespaces/{namespace}");
        let events = format!("/api/v1/namespaces/{namespace}/events");
        let now = Timestamp::now().to_string();
        let event = |component: &str| event("new", namespace, component);
        match self {
            Action::CreateJobOfCronJob => ("POST", format!("{batch}/jobs"), job_of_cron_job("new", json!({}))),
            Action::CreateOwnJob => ("POST", format!("{batch}/jobs"), own_job("new", json!({}))),
            Action::PutStatus => {
                let path = format!("{batch}/cronjobs/hello");
                let mut cron_job = policy.read(&path).await;
                cron_job["status"] = json!({"lastScheduleTime": now});
                ("PUT", format!("{path}/status"), cron_job)
            }
            Action::PatchStatus => {
                let path = format!("{batch}/cronjobs/hello/status");
                ("PATCH", path, json!({"status": {"lastSuccessfulTime": now}}))
            }
            Action::CreateEvent => ("POST", events, event("cronjob-controller")),
            Action::CreateOtherEvent => ("POST", events, event("job-controller")),
            Action::CreateEventOfItsGroup => {
                let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
                ("POST", path, event_of_its_group(namespace))
            }
            Action::PatchEvent => ("PATCH", format!("{events}/present"), json!({"count": 2})),
            Action::DeleteJobOfCronwheel => ("DELETE", format!("{batch}/jobs/ours"), Value::Null),
            Action::DeleteJobOfBackfill => ("DELETE", format!("{batch}/jobs/backfilled"), Value::Null),
            Action::DeleteOtherJob => ("DELETE", format!("{batch}/jobs/theirs"), Value::Null),
            Action::PatchJob => {
                let labels = json!({"metadata": {"labels": {"changed-at": "now"}}});
                ("PATCH", format!("{batch}/jobs/ours"), labels)
            }
            Action::PatchCronJob => {
                let path = format!("{batch}/cronjobs/hello");
                ("PATCH", path, json!({"spec": {"schedule": "1 1 1 1 *"}}))
            }
        }
    }
}

/// Whether it is one of the writes of the built-in controller, by a user that it can be.
fn is_write(user: &str, action: Action) -> bool {
    let writes = [
        Action::CreateJobOfCronJob,
        Action::PutStatus,
        Action::PatchStatus,
        Action::CreateEvent,
        Action::CreateEventOfItsGroup,
        Action::PatchEvent,
    ];
    [OWN, SHARED].contains(&user) && writes.contains(&action)
}

/// An Event about the CronJob `hello` of a namespace.
fn event(name: &str, namespace: &str, component: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {"kind": "CronJob", "namespace": namespace, "name": "hello"},
        "reason": "FailedCreate", "message": "-", "type": "Warning", "count": 1,
        "source": {"component": component},
    })
}

fn event_of_its_group(namespace: &str) -> Value {
    json!({
        "metadata": {"name": "new", "namespace": namespace},
        "regarding": {"kind": "CronJob", "namespace": namespace, "name": "hello"},
        "reason": "FailedCreate", "note": "-", "type": "Warning", "action": "Create",
        "eventTime": format!("{:.6}", Timestamp::now()),
        "reportingController": "cronjob-controller", "reportingInstance": "here",
    })
}

/// Creates what the actions change, in a namespace.
async fn prepare(policy: &Policy<'_>, namespace: &Namespace) {
    let rare = json!({"spec": {"schedule": "0 0 29 2 *", "suspend": true}});
    namespace.create_cron_job(json!({}), rare).await;
    let jobs = format!("/apis/batch/v1/namespaces/{}/jobs", namespace.name);
    let ours = own_job("ours", json!({"outcome": "hang", "run-for": "0s"}));
    let mut theirs = ours.clone();
    theirs["metadata"]["name"] = json!("theirs");
    let mut backfilled = ours.clone();
    backfilled["metadata"]["name"] = json!("backfilled");
    backfilled["metadata"]["annotations"] = json!({"cronwheel.dev/created-under": "backfill"});
    let mut ours = ours;
    ours["metadata"]["annotations"] = json!({"cronwheel.dev/created-by": "kube-system/cronwheel"});
    policy.create(&jobs, ours).await;
    policy.create(&jobs, backfilled).await;
    policy.create(&jobs, theirs).await;
    let events = format!("/api/v1/namespaces/{}/events", namespace.name);
    let present = event("present", &namespace.name, "cronjob-controller");
    policy.create(&events, present).await;
}

/// Sets a label of a namespace.
async fn label(namespace: &Namespace, key: &str, value: &str) {
    let patch = json!({"metadata": {"labels": {key: value}}});
    namespace.patch("Namespace", &namespace.name, patch).await;
}

/// Sends every action in the name of every user. Asserts that exactly the expected ones are refused.
async fn check(policy: &Policy<'_>, namespace: &Namespace, is_refused: impl Fn(&str, Action) -> bool) {
    for user in OTHERS.into_iter().chain([OWN, SHARED]) {
        for action in ACTIONS {
            let (method, path, body) = action.request(policy, &namespace.name).await;
            let response = policy.try_as(user, method, &path, body).await;
            let expected = is_refused(user, action);
            let place = &namespace.name;
            assert_eq!(policy.has_refused(&response), expected, "{user}: {action:?} in {place}");
        }
    }
}

pub(super) async fn only_writes_of_the_built_in_controller_are_refused(namespace: Namespace) {
    let elsewhere = Namespace::create_for("built_in_policy_elsewhere", Rc::clone(&namespace.control_plane)).await;
    // The default selector.
    label(&namespace, "cronwheel.dev/managed", "true").await;
    label(&elsewhere, "cronwheel.dev/managed", "false").await;
    let policy = Policy::apply(&namespace, "refusing", &[]).await;
    policy.set_lease("a", LeaseState::Acting(0)).await;
    policy.wait_until_creates_are(&namespace, true).await;
    policy.assert_stored_as_rendered().await;
    for place in [&namespace, &elsewhere] {
        prepare(&policy, place).await;
    }
    for state in [
        LeaseState::Acting(0),
        LeaseState::Acting(61),
        LeaseState::NotActing,
        LeaseState::Absent,
    ] {
        let is_fresh = state == LeaseState::Acting(0);
        let acts = matches!(state, LeaseState::Acting(_));
        policy.set_lease("a", state).await;
        policy.wait_until_creates_are(&namespace, is_fresh).await;
        check(&policy, &elsewhere, |_, _| false).await;
        // Time passes: a fresh Lease is renewed.
        policy.set_lease("a", state).await;
        check(&policy, &namespace, |user, action| {
            let is_of_cronwheel = [Action::DeleteJobOfCronwheel, Action::DeleteJobOfBackfill].contains(&action);
            let is_delete = user == OWN && is_of_cronwheel;
            is_delete && acts || is_write(user, action) && is_fresh
        })
        .await;
    }
    policy.set_lease("a", LeaseState::Acting(0)).await;
    policy.wait_until_creates_are(&namespace, true).await;
    refusal_says_what_to_do(&policy, &namespace).await;
    // The way back.
    label(&namespace, "cronwheel.dev/managed", "other").await;
    policy.wait_until_creates_are(&namespace, false).await;
    policy.remove().await;
}

async fn refusal_says_what_to_do(policy: &Policy<'_>, namespace: &Namespace) {
    let (method, path, body) = Action::PutStatus.request(policy, &namespace.name).await;
    let response = policy.try_as(OWN, method, &path, body).await;
    let message = response.body["message"].as_str().expect("a message");
    let name = &namespace.name;
    let expected = format!(
        "ValidatingAdmissionPolicy 'refusing-built-in-writes' with binding 'refusing-built-in-writes' denied request: \
         the CronJobs of namespace {name} are run by the installation refusing in {name}; to give them back to the \
         built-in controller: kubectl label namespace {name} cronwheel.dev/managed-"
    );
    assert!(message.ends_with(&expected), "{message}");
}

pub(super) async fn a_lease_silences_while_it_acts_and_is_younger_than_a_minute(namespace: Namespace) {
    label(&namespace, "managed-by", "leasing").await;
    let policy = Policy::apply(
        &namespace,
        "leasing",
        &["managedNamespaces.selector=managed-by=leasing"],
    )
    .await;
    policy.set_lease("a", LeaseState::Acting(0)).await;
    policy.wait_until_creates_are(&namespace, true).await;
    let (fresh, stale) = (LeaseState::Acting(0), LeaseState::Acting(61));
    for (a, b, refused) in [
        (LeaseState::Acting(50), LeaseState::Absent, true),
        (stale, LeaseState::Absent, false),
        (stale, fresh, true),
        (stale, LeaseState::NotActing, false),
        (fresh, stale, true),
        (fresh, LeaseState::NotActing, true),
        (stale, stale, false),
        (LeaseState::Absent, fresh, true),
        (LeaseState::Absent, LeaseState::Absent, false),
    ] {
        policy.set_lease("a", a).await;
        policy.set_lease("b", b).await;
        policy.wait_until_creates_are(&namespace, refused).await;
    }
    policy.remove().await;
}

pub(super) async fn manual_fallback_refuses_without_a_lease(namespace: Namespace) {
    label(&namespace, "managed-by", "manual").await;
    let values = [
        "managedNamespaces.selector=managed-by in (manual)",
        "builtInController.fallback=manual",
    ];
    let policy = Policy::apply(&namespace, "manual", &values).await;
    policy.wait_until_creates_are(&namespace, true).await;
    prepare(&policy, &namespace).await;
    check(&policy, &namespace, |user, action| {
        let deletes = [
            Action::DeleteJobOfCronwheel,
            Action::DeleteJobOfBackfill,
            Action::DeleteOtherJob,
        ];
        let is_delete = deletes.contains(&action);
        is_delete && user == OWN || is_write(user, action)
    })
    .await;
    // Without the binding, the built-in controller works again.
    let bindings = ["manual-built-in-writes", "manual-built-in-deletes"];
    let delete = ["delete", "validatingadmissionpolicybinding"];
    namespace.kubectl(&[&delete[..], &bindings[..]].concat()).await;
    policy.wait_until_creates_are(&namespace, false).await;
    namespace
        .kubectl(&[&["delete", "validatingadmissionpolicy"][..], &bindings[..]].concat())
        .await;
}

/// The rights in docs/start/built-in-controller.md suffice to install and remove the policy, and all of those
/// on Leases are necessary.
pub(super) async fn rights_on_policies_and_leases_suffice_to_install(namespace: Namespace) {
    let file = Policy::render(&namespace, "installing", &[]);
    let apply = ["--as=installer", "apply", "-f", &file];
    let policies = "validatingadmissionpolicies,validatingadmissionpolicybindings";
    let grant = async |name: &str, verbs: &str, resources: &str, is_namespaced: bool| {
        let (role, binding) = if is_namespaced {
            ("role", "rolebinding")
        } else {
            ("clusterrole", "clusterrolebinding")
        };
        let [verbs, resources] = [format!("--verb={verbs}"), format!("--resource={resources}")];
        namespace.kubectl(&["create", role, name, &verbs, &resources]).await;
        let role = format!("--{role}={name}");
        namespace
            .kubectl(&["create", binding, name, &role, "--user=installer"])
            .await;
    };
    grant("installer-policies", "get,create,patch,delete", policies, false).await;
    for (name, verb, is_namespaced) in [("installer-get", "get", false), ("installer-list", "list", true)] {
        assert!(namespace.try_kubectl(&apply).await.is_err(), "without {verb}");
        grant(name, verb, "leases.coordination.k8s.io", is_namespaced).await;
    }
    let is_installed = wait(async || namespace.try_kubectl(&apply).await.is_ok()).await;
    assert!(is_installed, "the rights do not suffice");
    namespace.kubectl(&["--as=installer", "delete", "-f", &file]).await;
}

pub(super) async fn two_installations_refuse_only_in_their_own_namespaces(namespace: Namespace) {
    let other = Namespace::create_for("built_in_policy_of_another", Rc::clone(&namespace.control_plane)).await;
    label(&namespace, "managed-by", "first").await;
    label(&other, "managed-by", "second").await;
    let first = Policy::apply(&namespace, "first", &["managedNamespaces.selector=managed-by=first"]).await;
    let second = Policy::apply(&namespace, "second", &["managedNamespaces.selector=managed-by=second"]).await;
    for state in [LeaseState::Acting(0), LeaseState::Absent, LeaseState::Acting(0)] {
        let is_fresh = state == LeaseState::Acting(0);
        first.set_lease("a", state).await;
        second.set_lease("a", LeaseState::Acting(0)).await;
        first.wait_until_creates_are(&namespace, is_fresh).await;
        second.wait_until_creates_are(&other, true).await;
    }
    // Moved from one installation to the other.
    label(&namespace, "managed-by", "second").await;
    second.wait_until_creates_are(&namespace, true).await;
    first.remove().await;
    second.remove().await;
}
