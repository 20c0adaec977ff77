//! Installations with overlapping scopes report each other, even if their Leases are in different namespaces.

use std::time::Duration;

use apisim::{Api, Fault, Rule};
use cronwheel::{
    controller::{clock::Clock, overlap_task::OverlapTask},
    coordination::{InstallationName, Leadership, MemberSettings, annotation},
    shard::{Scope, held_shards::WHOLE},
};
use http::Request;
use jiff::Timestamp;
use prometheus::IntGauge;
use serde_json::Value;
use tokio::sync::watch;

use super::{BEGUN, TIMEOUT, api, client, every_server::done, held, leases, member};

fn settings(namespace: &str) -> MemberSettings {
    MemberSettings::of(&[Scope::Namespace(namespace.into())], "UTC")
}

fn now(seconds: i64) -> Timestamp {
    BEGUN.parse::<Timestamp>().unwrap() + jiff::SignedDuration::from_secs(seconds)
}

/// Creates the Lease of a member that accepts shards, renewed at this second.
async fn create_member(api: &Api, namespace: &str, installation: &str, settings: &MemberSettings, second: i64) {
    let leases = leases(client(api), namespace).of_installation(InstallationName::new(installation).unwrap());
    let mut write = held(member(installation), "pod/uid/0000000000000001");
    write.is_renewal = true;
    write.annotations.insert(annotation::ACCEPTS, Some("now".into()));
    write
        .annotations
        .insert(annotation::SETTINGS, Some(settings.to_string().into()));
    done(leases.create(&write, now(second), TIMEOUT).await);
}

/// Runs the overlap check of the installation `cronwheel` in namespace `a` for 61 seconds. Returns the number of overlaps
/// and the messages of the Events.
async fn detect(api: &Api) -> (i64, Vec<String>) {
    let overlapping = IntGauge::new("overlapping", "Installations").unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(61), check_overlaps(client(api), &overlapping)).await;
    assert!(ended.is_err(), "the task never ends");
    let request = Request::get("/api/v1/namespaces/a/events").body(Vec::new()).unwrap();
    let events: Value = client(api).request(request).await.unwrap();
    let messages = events["items"].as_array().unwrap().iter();
    let messages = messages.map(|event| event["message"].as_str().unwrap().to_owned());
    (overlapping.get(), messages.collect())
}

/// Checks every minute; never returns.
async fn check_overlaps(client: kube::Client, overlapping: &IntGauge) {
    let leadership = watch::Sender::new(Leadership::of_one(WHOLE));
    let task = OverlapTask {
        api: leases(client, "a"),
        settings: settings("shop"),
        pod_uid: "cronwheel".into(),
        clock: Clock::simulated(now(0)),
        leadership: leadership.subscribe(),
        overlapping: overlapping.clone(),
    };
    task.run().await;
}

#[tokio::test(start_paused = true)]
async fn overlapping_installation_in_another_namespace_is_reported() {
    let api = api();
    api.create_namespace("a");
    api.create_namespace("b");
    create_member(&api, "a", "cronwheel", &settings("shop"), 50).await;
    create_member(&api, "a", "other", &settings("books"), 50).await;
    create_member(&api, "a", "silent", &settings("shop"), -60).await;
    assert_eq!(detect(&api).await, (0, vec![]));
    create_member(
        &api,
        "b",
        "cronwheel",
        &MemberSettings::of(&[Scope::Cluster], "UTC"),
        50,
    )
    .await;
    let (n_overlapping, events) = detect(&api).await;
    assert_eq!(n_overlapping, 1);
    let [event] = events.as_slice() else {
        panic!("{events:?}");
    };
    for part in ["installation cronwheel", "namespace b", "--namespace"] {
        assert!(event.contains(part), "{event}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_check_for_overlaps_changes_only_its_own_result() {
    let refused = || Some(Rule::new(Fault::NotPermitted));
    let unavailable = || Some(Rule::new(Fault::Unavailable));
    for (first, after_first, second) in [(refused(), 0, None), (None, 1, refused()), (None, 1, unavailable())] {
        let api = api();
        api.create_namespace("a");
        api.create_namespace("b");
        // Live at both checks.
        create_member(&api, "b", "cronwheel", &settings("shop"), 90).await;
        let overlapping = IntGauge::new("overlapping", "Installations").unwrap();
        let checks = check_overlaps(client(&api), &overlapping);
        let observations = async {
            first.map(|rule| api.faults().add(rule));
            tokio::time::sleep(Duration::from_secs(61)).await;
            assert_eq!(overlapping.get(), after_first, "one check");
            api.faults().clear();
            second.map(|rule| api.faults().add(rule));
            tokio::time::sleep(Duration::from_mins(1)).await;
            assert_eq!(overlapping.get(), 1, "two checks");
        };
        tokio::select! {
            () = checks => unreachable!("the task never ends"),
            () = observations => {}
        }
    }
}
