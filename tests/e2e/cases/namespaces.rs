//! Two installations with selectors, and namespaces whose labels move between them.

use std::{rc::Rc, time::Duration};

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    controller::Controller,
    kubernetes::{Namespace, job_name, wait},
};

/// The label that selects. Its values are of this case only.
const LABEL: &str = "e2e.cronwheel.dev/installation";

const INSTALLATIONS: [&str; 2] = ["red", "blue"];

/// How long before a slot a namespace loses its label: the time after which nothing is created any more.
const STOP: Duration = Duration::from_secs(2);

/// The cursor of each CronJob is at minute -1 at first.
pub(super) async fn labels_move_namespaces_between_installations(moved: Namespace) {
    let others = ["selected-later", "never-selected", "unlabelled-in-time"];
    let control_plane = &moved.control_plane;
    let create = |name: &'static str| Namespace::create_for(name, Rc::clone(control_plane));
    let others = join_all(others.map(create)).await;
    let [later, never, stopped] = others.try_into().unwrap_or_else(|_| panic!("three"));
    let last_run = moved.minute(-1);
    for namespace in [&moved, &later, &never, &stopped] {
        namespace.create_cron_job(json!({"run-for": "1s"}), json!({})).await;
        namespace.set_last_run("hello", last_run).await;
    }
    label(&moved, Some("red")).await;
    label(&stopped, Some("red")).await;
    let start = |name: &'static str| {
        let installation = format!("--installation={name}");
        let leases = format!("--lease-namespace={}", moved.name);
        let selector = format!("--namespace-selector={LABEL}={name}");
        Controller::start_replica(&moved, 0, &[&installation, &leases, &selector])
    };
    let minute_0 = tokio::time::Instant::now() + Duration::from_millis(2_500);
    let [red, blue] = INSTALLATIONS.map(start);
    for controller in [&red, &blue] {
        controller.wait_until_ready().await;
    }
    expect(&moved, moved.minute(0), Some("red")).await;
    expect(&stopped, moved.minute(0), Some("red")).await;

    // A namespace changes hands, and one is labelled: its slot of minute 0 is caught up.
    label(&moved, Some("blue")).await;
    label(&later, Some("red")).await;
    expect(&later, moved.minute(0), Some("red")).await;
    assert_eq!(red.metric("cronwheel_managed_namespaces", &[]).await, Some(2));
    assert_eq!(blue.metric("cronwheel_managed_namespaces", &[]).await, Some(1));

    // Two seconds before the next slot, a namespace loses its label.
    let minute_1 = minute_0 + Duration::from_mins(1);
    tokio::time::sleep_until(minute_1 - STOP).await;
    label(&stopped, None).await;
    expect(&moved, moved.minute(1), Some("blue")).await;
    expect(&later, moved.minute(1), Some("red")).await;
    tokio::time::sleep_until(minute_1 + Duration::from_secs(5)).await;
    expect(&stopped, moved.minute(1), None).await;
    for (namespace, n_jobs) in [(&moved, 2), (&later, 2), (&never, 0), (&stopped, 1)] {
        assert_eq!(namespace.job_names().await.len(), n_jobs, "{}", namespace.name);
    }
    let untouched = never.status().await;
    assert_eq!(untouched, json!({"lastScheduleTime": last_run.to_string()}));
    assert_eq!(never.events().await, Vec::<Value>::new());
    for controller in [red, blue] {
        for evidence in ["status_write", "job", "installation"] {
            let labels = [("evidence", evidence)];
            let n = controller.metric("cronwheel_other_controller_active", &labels).await;
            assert_eq!(n, Some(0), "{evidence}");
        }
        controller.terminate().await;
    }
}

/// Labels a namespace for an installation, or for none.
async fn label(namespace: &Namespace, installation: Option<&str>) {
    let labels = json!({"metadata": {"labels": {LABEL: installation}}});
    namespace.patch("Namespace", &namespace.name, labels).await;
}

/// Waits for the Job of a slot, and checks that this installation created it. `None`: there is no such Job now.
async fn expect(namespace: &Namespace, slot: Timestamp, installation: Option<&str>) {
    let name = job_name("hello", slot);
    let Some(installation) = installation else {
        assert_eq!(namespace.find("Job", &name).await, None, "{}", namespace.name);
        return;
    };
    let mut creator = Value::Null;
    let is_there = async || {
        let job = namespace.find("Job", &name).await.unwrap_or_default();
        creator = job["metadata"]["annotations"]["cronwheel.dev/created-by"].clone();
        !creator.is_null()
    };
    assert!(wait(is_there).await, "{}: no Job {name} with a creator", namespace.name);
    let creator = creator.as_str().expect("a name");
    assert!(
        creator.ends_with(&format!("/{installation}")),
        "{}: {creator}",
        namespace.name
    );
}
