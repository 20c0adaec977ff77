//! A namespace in which a quota refuses every Job, next to another namespace (B-12.4).

use std::{collections::BTreeSet, rc::Rc};

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::refusals::{allow_no_jobs, at_most, hanging};
use crate::{
    audit::Audit,
    controller::Controller,
    kubernetes::{Namespace, job_name, wait},
};

const N_REFUSED: usize = 70;

const N_BESIDE: usize = 3;

pub(super) async fn namespace_with_refused_creates_recovers(refused: Namespace) {
    let control_plane = Rc::clone(&refused.control_plane);
    let beside = Namespace::create_for("beside_a_namespace_whose_creates_are_refused", control_plane).await;
    allow_no_jobs(&refused).await;
    create(&refused, N_REFUSED, refused.minute(-1)).await;
    create(&beside, N_BESIDE, refused.minute(-1)).await;

    let controller = Controller::start(&refused, 0, &["--namespace", &beside.name]);
    let are_reported = wait(async || n_reported(&refused).await == N_REFUSED).await;
    assert!(
        are_reported,
        "{} of {N_REFUSED} were reported",
        n_reported(&refused).await
    );
    refused.patch("ResourceQuota", "jobs", at_most("100")).await;
    let n_all = u64::try_from(N_REFUSED + N_BESIDE).expect("few");
    controller.wait_for_account(&[("created", n_all)]).await;
    let slot = refused.minute(0);
    let expected: Vec<String> = names(N_REFUSED).map(|name| job_name(&name, slot)).collect();
    refused.wait_for_jobs(&expected).await;
    controller.terminate().await;
    check_creates(&refused, &beside).await;
}

fn names(n_cron_jobs: usize) -> impl Iterator<Item = String> {
    (0..n_cron_jobs).map(|number| format!("hello-{number:02}"))
}

/// Creates CronJobs that last ran at an instant.
async fn create(namespace: &Namespace, n_cron_jobs: usize, last_run: Timestamp) {
    let all: Vec<String> = names(n_cron_jobs).collect();
    for some in all.chunks(20) {
        join_all(some.iter().map(async |name| {
            let changes = json!({"metadata": {"name": name}});
            namespace.create_cron_job(hanging(), changes).await;
            namespace.set_last_run(name, last_run).await;
        }))
        .await;
    }
}

/// The number of CronJobs with an Event `FailedCreate`.
async fn n_reported(namespace: &Namespace) -> usize {
    let events = namespace.events().await;
    let failed = events.iter().filter(|event| event["reason"] == "FailedCreate");
    let names: BTreeSet<&str> = failed
        .filter_map(|event| event["involvedObject"]["name"].as_str())
        .collect();
    names.len()
}

/// Checks the creates in both namespaces by the audit log.
async fn check_creates(refused: &Namespace, beside: &Namespace) {
    let audit = Audit::read(refused).await;
    audit.assert_no_job_created_twice();
    let (received, _) = audit.received_and_refused(["create", "jobs"]);
    let first = *received.iter().min().expect("creates");
    let created = audit.created_jobs();
    let recovered = *created.values().flatten().min().expect("Jobs");
    // The back-off doubles from 100 ms.
    let n_seconds = usize::try_from(recovered.duration_since(first).as_secs()).expect("some seconds");
    let n_refused = received.len() - created.len();
    let n_each = 10 + n_seconds / 60;
    assert!(n_refused <= n_each * N_REFUSED, "{n_refused} refused in {n_seconds} s");

    let beside = Audit::read(beside).await;
    let created = beside.created_jobs();
    assert_eq!(created.len(), N_BESIDE);
    // Both namespaces are due at the same instant of the controller's clock.
    let last = *created.values().flatten().max().expect("Jobs");
    let lateness = last.duration_since(first);
    assert!(
        lateness < SignedDuration::from_secs(2),
        "{lateness} after the first create"
    );
}
