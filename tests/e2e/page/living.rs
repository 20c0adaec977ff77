//! Changes while the page is open: live updates, restarts, outages and permissions.

use kube::api::DeleteParams;
use serde_json::json;

use super::{
    Visit,
    browser::ESCAPE,
    world::{Life, World, job, uid},
};
use crate::kubernetes::wait;

/// Lets the account get one of the two namespaces.
async fn permit_to_get_namespace(world: &World) {
    let account = format!("--serviceaccount=cronwheel:{}", world.account);
    let name = "namespace-viewer";
    let role = ["create", "role", name, "--verb=get", "--resource=namespaces"];
    world.ops.kubectl(&role).await;
    let binding = ["create", "rolebinding", name, "--role=namespace-viewer", &account];
    world.ops.kubectl(&binding).await;
}

/// Freezes that namespace. Of the other one, the page says that it does not know.
async fn freeze(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let unknown = format!(
        "Freezes and defaults of namespaces in {} are not known here",
        world.shop.name
    );
    let notes = browser.text(".notes").await;
    assert!(notes.starts_with(&unknown), "{notes}");
    // A single namespace is read every 15 seconds. What follows fills the time.
    let freeze = "cronwheel.dev/freeze-until=2099-12-27T06:00:00Z";
    let reason = "cronwheel.dev/freeze-reason=<b>year end</b>";
    world
        .ops
        .kubectl(&["annotate", "namespace", &world.ops.name, freeze, reason])
        .await;
}

pub(super) async fn change_appears_without_a_reload(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    permit_to_get_namespace(world).await;
    let page = visit.open("none").await;
    freeze(visit).await;
    browser.value::<bool>("return window.isSame = true", &[]).await;
    browser.click("#q").await;
    browser.press("report").await;
    browser
        .wait_for("return document.querySelectorAll('.list th a').length === 1", &[])
        .await;
    browser.press(ESCAPE).await;
    browser.click(".list th a").await;
    browser
        .wait_for(
            "return document.querySelectorAll('dialog[open] [data-part=slots] tbody tr').length === 4",
            &[],
        )
        .await;

    let cron_jobs = world.objects("CronJob").await;
    let cron_job = &cron_jobs[&format!("{}/nightly-report", world.shop.name)];
    let owner = uid(&[&world.shop.name, "nightly-report"]);
    world
        .shop
        .store(
            "jobs",
            &job((cron_job, &owner), world.slot(4), Life::Failed("DeadlineExceeded")),
        )
        .await;
    browser
        .wait_for(
            "return document.querySelectorAll('dialog[open] [data-part=slots] tbody tr').length === 5",
            &[],
        )
        .await;
    browser
        .wait_for(
            "return document.querySelectorAll('.list .squares .failed').length === 1",
            &[],
        )
        .await;
    browser
        .wait_for(
            "return [...document.querySelectorAll('.tile')].some((one) => one.textContent === '3 failed in 24 h')",
            &[],
        )
        .await;
    assert!(
        browser
            .value::<bool>(
                "return window.isSame === true && document.querySelector('#q').value === 'report'",
                &[]
            )
            .await
    );
    let frozen = format!("Frozen: {} until 27 Dec 06:00 UTC (<b>year end</b>).", world.ops.name);
    browser
        .wait_for(
            "return document.querySelector('.notes').textContent.includes(arguments[0])",
            &[&frozen],
        )
        .await;
    page.end().await;
}

pub(super) async fn runs_outlive_their_jobs_and_a_kill(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let history = world.kubeconfig.with_extension("sqlite");
    let history = history.to_str().expect("a path");
    let page = visit.open(history).await;
    let path = format!("/cronjobs/{}/import", world.shop.name);
    browser.open(&format!("http://{}{path}", page.address)).await;
    let before = browser.texts("[data-part=slots] tbody td.job").await;
    assert_eq!(before.len(), 4);
    // The history is written once a second.
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    page.kill();
    for name in &before {
        world.shop.delete("Job", name, DeleteParams::background()).await;
    }

    let page = visit.open(history).await;
    browser.open(&format!("http://{}{path}", page.address)).await;
    assert_eq!(browser.texts("[data-part=slots] tbody td.job").await, before);
    browser.open(&format!("http://{}/", page.address)).await;
    let tiles = browser.texts(".tile").await;
    assert_eq!(tiles[3], "2 failed in 24 h");
    page.end().await;
}

pub(super) async fn outage_is_named_and_leaves_no_gap(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let page = visit.open("none").await;
    world.proxy.hold();
    world.proxy.cut();
    browser
        .wait_for("return !!document.querySelector('.live.stale')", &[])
        .await;
    browser
        .wait_for(
            "return document.querySelector('.banners').textContent.includes('Not live since')",
            &[],
        )
        .await;
    // What the page had is still there, and this Job comes during the outage.
    assert_eq!(browser.texts(".list tbody tr").await.len(), 8);
    let cron_jobs = world.objects("CronJob").await;
    let cron_job = &cron_jobs[&format!("{}/rotate", world.ops.name)];
    let owner = uid(&[&world.ops.name, "rotate"]);
    world
        .ops
        .store("jobs", &job((cron_job, &owner), world.slot(2), Life::Ran(7)))
        .await;

    world.proxy.release();
    world.proxy.cut();
    visit.wait_until_live().await;
    let squares = "return document.querySelectorAll(`.list tr:has(a[href='${arguments[0]}']) .squares i`).length === 3";
    browser
        .wait_for(squares, &[&format!("/cronjobs/{}/rotate", world.ops.name)])
        .await;
    assert_eq!(browser.text(".banners").await, "");
    page.end().await;
}

pub(super) async fn namespace_without_permission_is_named(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let page = visit.open("none").await;
    world.ops.kubectl(&["delete", "rolebinding", "viewer"]).await;
    // A watch that is under way goes on until it ends.
    let is_named = wait(async || {
        world.proxy.cut();
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        browser.text(".banners").await.contains(&world.ops.name)
    });
    assert!(is_named.await, "{}", browser.text("body").await);
    browser
        .wait_for("return document.querySelectorAll('.list tbody tr').length === 4", &[])
        .await;
    visit.wait_until_live().await;
    let suspended = json!({"spec": {"suspend": true}});
    world.shop.patch("CronJob", "sync", suspended).await;
    browser
        .wait_for(
            "return document.querySelector('.tile').textContent.includes('1 suspended')",
            &[],
        )
        .await;

    let account = format!("--serviceaccount=cronwheel:{}", world.account);
    world
        .ops
        .kubectl(&["create", "rolebinding", "viewer", "--role=viewer", &account])
        .await;
    browser
        .wait_for("return document.querySelectorAll('.list tbody tr').length === 8", &[])
        .await;
    page.end().await;
}
