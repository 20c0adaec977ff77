//! Nothing from objects is markup, nothing comes from elsewhere, and nothing is written.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use super::{
    Visit,
    world::{ACCOUNTS, Life},
};
use crate::kubernetes::{merge, wait};

/// Elements that no page has, in each field that the page shows.
const MARKUP: [&str; 6] = [
    "x-name",
    "x-label",
    "x-schedule",
    "x-reason",
    "x-manager",
    "x-finalizer",
];

pub(super) async fn markup_is_text(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let element = |name: &str| format!("<{name} onclick=\"owned=1\"><img src=x onerror=\"owned=1\"></{name}>");
    let none = json!({});
    let invalid = json!({"schedule": element("x-schedule")});
    // A name cannot have the end of an element, because a slash would be part of its key.
    world
        .hourly(&world.shop, "<x-name onclick=owned=1>", &none, &[(0, Life::Ran(1))])
        .await;
    world.hourly(&world.shop, "invalid", &invalid, &[]).await;
    let reason = element("x-reason");
    world
        .hourly(
            &world.shop,
            "failing",
            &none,
            &[(1, Life::Failed(&reason)), (0, Life::Failed(&reason))],
        )
        .await;
    let forbid = json!({"concurrencyPolicy": "Forbid"});
    let finalizer = element("x-finalizer");
    world
        .hourly(&world.shop, "held", &forbid, &[(2, Life::Held(&finalizer))])
        .await;
    change(
        visit,
        "cronjobs",
        "failing",
        json!({"metadata": {"labels": {"label": element("x-label")}}}),
    )
    .await;
    let manager = json!([{"manager": element("x-manager"), "operation": "Update", "apiVersion": "batch/v1",
        "time": world.slot(0).to_string(), "fieldsType": "FieldsV1", "fieldsV1": {}}]);
    let job = crate::kubernetes::job_name("failing", world.slot(0));
    change(visit, "jobs", &job, json!({"metadata": {"managedFields": manager}})).await;

    let page = visit.open("none").await;
    let mut text = shown(visit).await;
    browser
        .open(&format!("http://{}/cronjobs/{}/failing", page.address, world.shop.name))
        .await;
    text += &shown(visit).await;
    for name in MARKUP {
        assert!(text.contains(&format!("<{name}")), "{name} is not in:\n{text}");
    }
    // Neither in an address is it.
    for address in [
        "/?q=%3Cx-name%3E%3Cimg+src%3Dx+onerror%3Downed%3D1%3E",
        "/?state=%3Cx-name%3E",
        "/%3Cx-name%3E",
    ] {
        browser.open(&format!("http://{}{address}", page.address)).await;
        shown(visit).await;
    }
    page.end().await;
}

/// Changes a stored object of the first namespace.
async fn change(visit: &Visit, resource: &str, name: &str, changes: Value) {
    let kind = if resource == "jobs" { "Job" } else { "CronJob" };
    let namespace = &visit.world.shop;
    let mut object = namespace.find(kind, name).await.expect("an object");
    merge(&mut object, changes);
    namespace.store(resource, &object).await;
}

/// The text of the page with its titles. Asserts that no markup became an element.
async fn shown(visit: &Visit) -> String {
    let n_elements: usize = visit
        .browser
        .value(
            "return [...document.querySelectorAll('*')].filter((one) => one.localName.startsWith('x-')).length + \
             document.images.length + (window.owned || 0)",
            &[],
        )
        .await;
    assert_eq!(n_elements, 0);
    let titles =
        "return document.body.textContent + [...document.querySelectorAll('[title]')].map((one) => one.title).join()";
    visit.browser.value(titles, &[]).await
}

pub(super) async fn nothing_is_written_and_nothing_comes_from_elsewhere(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    browser.log("performance").await;
    let page = visit.open("none").await;
    browser.click(".list tbody tr:nth-child(2) th a").await;
    browser
        .wait_for("return !!document.querySelector('dialog[open] #explain pre')", &[])
        .await;
    browser.press(super::browser::ESCAPE).await;
    browser.wait_for("return location.pathname === '/'", &[]).await;
    browser.click("#q").await;
    browser.press("import").await;
    browser
        .wait_for("return document.querySelectorAll('.list th a').length === 1", &[])
        .await;
    let token = fs::read_to_string(&world.kubeconfig).expect("a kubeconfig");
    let token: Value = serde_json::from_str(&token).expect("JSON");
    let token = token["users"][0]["user"]["token"].as_str().expect("a token");
    let markup: String = browser.value("return document.documentElement.outerHTML", &[]).await;
    assert!(!markup.contains(token));

    assert_eq!(
        browser.log("browser").await,
        Vec::<Value>::new(),
        "errors or violations of the policy"
    );
    let requested = requested(&browser.log("performance").await);
    let own = format!("http://{}/", page.address);
    let is_own = |url: &&String| url.starts_with(&own);
    assert!(
        requested.len() > 4 && requested.iter().all(|url| is_own(&url)),
        "{requested:#?}"
    );

    let status: u16 = browser
        .value(
            "return fetch('/', { method: 'POST' }).then((answer) => answer.status)",
            &[],
        )
        .await;
    assert_eq!(status, 405);
    assert_eq!(page.send("GET", "/", "rebound.example.com").await.0, 421);
    page.end().await;

    let sent = sent_by(visit).await;
    let reads: BTreeSet<String> = ["cronjobs", "jobs"]
        .iter()
        .flat_map(|resource| ["get", "list", "watch"].map(|verb| format!("{verb} {resource}")))
        // The account may not get them: the page does without, and says so.
        .chain(["get namespaces".to_owned()])
        .collect();
    assert!(sent.contains("watch jobs") && sent.is_subset(&reads), "{sent:?}");
}

/// The addresses in the log of requests, without those that the browser's own first page makes to itself.
fn requested(log: &[Value]) -> BTreeSet<String> {
    let message = |entry: &Value| serde_json::from_str::<Value>(entry["message"].as_str()?).ok();
    let messages = log.iter().filter_map(message).map(|mut entry| entry["message"].take());
    let sent = messages.filter(|message| message["method"] == "Network.requestWillBeSent");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let pairs = sent.map(|sent| {
        (
            word(&sent["params"]["documentURL"]),
            word(&sent["params"]["request"]["url"]),
        )
    });
    let is_http = |url: &str| url.starts_with("http");
    pairs
        .filter(|(document, url)| is_http(document) || is_http(url))
        .map(|(_, url)| url)
        .collect()
}

/// Verbs and resources of all requests of the page's account in the audit log.
async fn sent_by(visit: &Visit) -> BTreeSet<String> {
    let path = visit.world.shop.control_plane.audit_log.as_ref().expect("an audit log");
    let user = format!("system:serviceaccount:{ACCOUNTS}:{}", visit.world.account);
    let mut sent = BTreeSet::new();
    // A watch is logged when it ends; the page has ended.
    let is_complete = wait(async || {
        let text = fs::read_to_string(path).expect("the audit log");
        let requests = text.lines().filter(|line| line.contains(&user));
        let requests = requests.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let word = |value: &Value| value.as_str().unwrap_or("nothing").to_owned();
        sent = requests
            .filter(|request| request["user"]["username"] == *user)
            .map(|request| format!("{} {}", word(&request["verb"]), word(&request["objectRef"]["resource"])))
            .collect();
        sent.contains("watch jobs") && sent.contains("watch cronjobs")
    });
    assert!(is_complete.await, "{sent:?}");
    sent
}
