//! The built-in controller runs at the same time as cronwheel, which detects it, and under the policy that keeps it out
//! of managed namespaces.

use std::{
    pin::Pin,
    rc::Rc,
    time::{Duration, Instant},
};

use jiff::{SignedDuration, Timestamp};
use kube::api::{DynamicObject, ListParams};
use libtest_mimic::Trial;
use serde_json::json;
use testbed::ReferenceLimits;

use crate::{
    account::permit_leases,
    block_on,
    built_in::{LeaseState, Policy},
    control_plane::{Purpose, take},
    controller::Controller,
    kubernetes::{ControlPlane, Namespace, wait},
};

const NOTICED: &str = "beside::a_removed_policy_and_the_built_in_controller_are_noticed";
const SILENCED: &str = "beside::the_built_in_controller_is_silent_until_the_lease_is_stale";

const DURATION_MAX: Duration = Duration::from_mins(6);

/// CronJobs in each namespace of [`is_silenced`].
const N_CRON_JOBS: usize = 20;

/// Time from the last renewal to the first Job of the built-in controller: a minute until the Lease is stale, then at
/// most the pause between two tries of the built-in controller. Pauses double; in the second minute they last 41 s.
const TAKEOVER_MAX: Duration = Duration::from_secs(60 + 41 + 9);

const METRIC: &str = "cronwheel_other_controller_active";

/// Time from the removal of a policy until the metric says so: the interval of reads, and a busy machine. A scrape and an
/// evaluation, of 30 s each, remain of the two minutes within which an alert must fire.
const REMOVAL_NOTICED_MAX: Duration = Duration::from_secs(30);

/// The built-in controller works in all namespaces, so no other case runs at the same time. Unit tests cover the end of
/// the notice, because evidence counts for minutes.
pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let noticed = trial(NOTICED, |namespace| Box::pin(is_noticed(namespace)));
    let silenced = trial(SILENCED, |namespace| Box::pin(is_silenced(namespace)));
    [noticed, silenced].into_iter()
}

/// A case that runs while the built-in controller runs at its default limits.
fn trial(name: &'static str, case: fn(Namespace) -> Pin<Box<dyn Future<Output = ()>>>) -> Trial {
    Trial::test(name, move || {
        take(Purpose::Beside, |testbed, access| {
            testbed.start_reference(ReferenceLimits::default()).expect("a start");
            block_on(DURATION_MAX, async {
                let namespace = Namespace::create_for(name, ControlPlane::connect(access).await).await;
                permit_leases(&namespace).await;
                case(namespace).await;
            });
            testbed.stop_reference().expect("an end");
        });
        Ok(())
    })
}

async fn is_noticed(namespace: Namespace) {
    let managed = json!({"metadata": {"labels": {"cronwheel.dev/managed": "true"}}});
    namespace.patch("Namespace", &namespace.name, managed).await;
    // The account of controllers may read the policies of a release of this name.
    let policy = Policy::apply(&namespace, "cronwheel", &[]).await;
    // Evidence has timestamps of the API server, so this controller's clock is not ahead.
    let reads = ["writes", "deletes"].map(|policy| format!("--built-in-policy=cronwheel-built-in-{policy}"));
    let controller = Controller::start_at(&namespace, Timestamp::now(), &reads.each_ref().map(|read| &**read));
    controller.wait_until_leading().await;
    policy.wait_until_creates_are(&namespace, true).await;
    // Reads count from ten seconds after the start on.
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(controller.metric(METRIC, &[]).await, Some(0));
    let binding = [
        "delete",
        "validatingadmissionpolicybinding",
        "cronwheel-built-in-writes",
    ];
    namespace.kubectl(&binding).await;
    let removed = Instant::now();
    namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
    removal_is_noticed(&controller, removed).await;
    let mut readiness = String::new();
    for _ in 0..8 {
        let is_reported = wait(async || {
            readiness = controller.readiness().await;
            readiness.contains("another controller")
        });
        if is_reported.await {
            break;
        }
    }
    let expected = format!(
        "ok\nanother controller wrote the status of CronJob {}/hello: field manager kube-controller-manager, at ",
        namespace.name
    );
    assert!(readiness.contains(&expected), "{readiness}");
    assert_eq!(
        controller.metric(METRIC, &[("evidence", "status_write")]).await,
        Some(1)
    );
    controller.terminate().await;
    policy.remove().await;
}

/// The metric says in time that the policy is gone, whether or not a CronJob is due.
async fn removal_is_noticed(controller: &Controller, removed: Instant) {
    while controller.metric(METRIC, &[("evidence", "policy")]).await != Some(1) {
        assert!(removed.elapsed() < REMOVAL_NOTICED_MAX, "the removal is not noticed");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    eprintln!("the removal of the binding was noticed after {:.1?}", removed.elapsed());
    let readiness = controller.readiness().await;
    let expected = "the built-in controller is not kept out, since these admission policies or their bindings are missing or \
                    do not deny: cronwheel-built-in-writes;";
    assert!(readiness.contains(expected), "{readiness}");
}

/// No controller but the built-in one runs. A Lease written by hand stands for a replica that acts.
async fn is_silenced(namespace: Namespace) {
    let unmanaged = Namespace::create_for("beside_unmanaged", Rc::clone(&namespace.control_plane)).await;
    let managed = json!({"metadata": {"labels": {"cronwheel.dev/managed": "true"}}});
    namespace.patch("Namespace", &namespace.name, managed).await;
    let policy = Policy::apply(&namespace, "silencing", &[]).await;
    policy.set_lease("a", LeaseState::Acting(0)).await;
    policy.wait_until_creates_are(&namespace, true).await;
    is_silenced_after_the_bindings_return(&namespace, &policy).await;
    // All CronJobs have the same first slot.
    if Timestamp::now().as_second() % 60 > 50 {
        tokio::time::sleep(Duration::from_secs(12)).await;
    }
    for place in [&namespace, &unmanaged] {
        for number in 0..N_CRON_JOBS {
            let name = json!({"metadata": {"name": format!("hello-{number}")}});
            place.create_cron_job(json!({"run-for": "1s"}), name).await;
        }
    }
    let renewed = renew_until(&policy, namespace.minute(0) + SignedDuration::from_secs(18)).await;
    assert_eq!(unmanaged.jobs().await.len(), N_CRON_JOBS, "without the label");
    assert_nothing_stored(&namespace).await;
    takes_over(&namespace, renewed).await;
    is_silent_again(&namespace, &policy).await;
    policy.remove().await;
    // The next case needs a built-in controller that is not busy.
    for place in [&namespace, &unmanaged] {
        place.kubectl(&["delete", "cronjobs", "--all"]).await;
    }
}

/// The policy has the Leases also after nothing was bound to them for longer than the API server takes to notice.
async fn is_silenced_after_the_bindings_return(namespace: &Namespace, policy: &Policy<'_>) {
    policy.unbind().await;
    policy.wait_until_creates_are(namespace, false).await;
    // An API server compiles its policies once a second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    policy.bind().await;
    policy.set_lease("a", LeaseState::Acting(0)).await;
    policy.wait_until_creates_are(namespace, true).await;
}

/// The built-in controller takes over from the last renewal on.
async fn takes_over(namespace: &Namespace, renewed: Instant) {
    while namespace.jobs().await.is_empty() {
        assert!(
            renewed.elapsed() < TAKEOVER_MAX,
            "the built-in controller has not taken over"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let after = renewed.elapsed();
    eprintln!("the first Job of the built-in controller came {after:.1?} after the last renewal");
    // Creation times are whole seconds.
    assert!(after >= Duration::from_secs(59), "{after:?}");
    let mut n_stored = 0;
    let are_stored = async || {
        n_stored = n_with_status(namespace).await;
        n_stored == N_CRON_JOBS
    };
    assert!(wait(are_stored).await, "statuses of {n_stored} CronJobs");
}

/// With a renewed Lease, the built-in controller starts no Job of the next slot.
async fn is_silent_again(namespace: &Namespace, policy: &Policy<'_>) {
    let slot = Timestamp::from_second((Timestamp::now().as_second() / 60 + 1) * 60).expect("an instant");
    renew_until(policy, slot + SignedDuration::from_secs(10)).await;
    let of_slot = format!("-{}", slot.as_second() / 60);
    let names = namespace.job_names().await;
    assert!(names.iter().all(|name| !name.ends_with(&of_slot)), "{names:?}");
}

/// Renews the Lease until this instant. Returns the time of the last renewal.
async fn renew_until(policy: &Policy<'_>, end: Timestamp) -> Instant {
    loop {
        policy.set_lease("a", LeaseState::Acting(0)).await;
        let renewed = Instant::now();
        if Timestamp::now() >= end {
            return renewed;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// Asserts that a namespace has no Job, no status of a CronJob, and no Event about one.
async fn assert_nothing_stored(namespace: &Namespace) {
    assert_eq!(namespace.job_names().await, Vec::<String>::new());
    assert_eq!(n_with_status(namespace).await, 0);
    let events = namespace.events().await;
    let of_cron_jobs = events
        .iter()
        .filter(|event| event["involvedObject"]["kind"] == "CronJob");
    assert_eq!(of_cron_jobs.count(), 0, "{events:?}");
}

/// The number of CronJobs with a `lastScheduleTime`.
async fn n_with_status(namespace: &Namespace) -> usize {
    let list = namespace.api("CronJob").list(&ListParams::default()).await;
    let is_set = |cron_job: &&DynamicObject| !cron_job.data["status"]["lastScheduleTime"].is_null();
    list.expect("CronJobs").items.iter().filter(is_set).count()
}
