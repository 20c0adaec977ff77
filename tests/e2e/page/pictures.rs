//! The pictures of the page in the docs, of a fleet with troubles.

use std::{fs, path::Path, rc::Rc, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use cronwheel::schedule::{CronJobSchedule, Zone};
use jiff::{SignedDuration, Timestamp};
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{
    browser::Browser,
    world::{self, Life},
};
use crate::{
    block_on,
    cases::viewing::Page,
    control_plane::{Access, Purpose, take},
    kubernetes::{ControlPlane, Namespace},
};

const DURATION_MAX: Duration = Duration::from_mins(3);

const HEIGHT_MAX: u32 = 1_500;

const NAMESPACES: [&str; 6] = ["billing", "catalog", "mail", "payments", "reports", "search"];

/// Names and schedules of the CronJobs of a namespace. One schedule in each namespace makes the peak at two o'clock.
const CRON_JOBS: [(&str, &str); 8] = [
    ("backup", "0 2 * * *"),
    ("cleanup", "*/30 * * * *"),
    ("export", "0 2 * * *"),
    ("import", "7 * * * *"),
    ("index", "*/15 * * * *"),
    ("invoice", "30 6 * * 1-5"),
    ("rotate", "20 */4 * * *"),
    ("sync", "*/20 * * * *"),
];

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let trial = Trial::test("page::pictures::of_the_docs", || {
        take(Purpose::Outages, |_, access| block_on(DURATION_MAX, draw(access)));
        Ok(())
    });
    [trial.with_ignored_flag(true)].into_iter()
}

async fn draw(access: &Access) {
    let control_plane = ControlPlane::connect(access).await;
    for name in NAMESPACES {
        let namespace = Namespace::create_for(name, Rc::clone(&control_plane)).await;
        for (cron_job, schedule) in CRON_JOBS {
            store(&namespace, cron_job, schedule).await;
        }
    }
    let selected: Vec<&str> = NAMESPACES.iter().flat_map(|name| ["-n", name]).collect();
    let arguments = [&["--cluster-name", "production"], &*selected].concat();
    let page = Page::start_with_history(&access.admin_kubeconfig, "none", &arguments).await;
    let browser = Browser::start().await;
    let base = format!("http://{}", page.address);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::create_dir_all(root.join("docs/pictures")).expect("a folder");
    let detail = "/cronjobs/payments/sync";
    for (file, address, width, scheme) in [
        ("docs/pictures/page.png", "/", 1280, "light"),
        ("docs/pictures/page-dark.png", "/", 1280, "dark"),
        ("docs/pictures/page-390.png", "/", 390, "light"),
        ("docs/pictures/cronjob.png", detail, 1280, "light"),
        ("target/cronjob-dark-390.png", detail, 390, "dark"),
    ] {
        let picture = picture(&browser, &[&base, address].concat(), width, scheme).await;
        fs::write(root.join(file), picture).expect("a picture");
    }
    browser.close().await;
    page.end().await;
}

/// A picture of a whole page, at most as high as two screens.
async fn picture(browser: &Browser, address: &str, width: u32, scheme: &str) -> Vec<u8> {
    let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
    browser.devtools("Emulation.setEmulatedMedia", media).await;
    let is_mobile = width < 500;
    let metrics = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": is_mobile});
    browser.devtools("Emulation.setDeviceMetricsOverride", metrics).await;
    browser.open(address).await;
    browser
        .wait_for(
            "return document.querySelector('.live .state').textContent.startsWith('live')",
            &[],
        )
        .await;
    let height: u32 = browser.value("return document.documentElement.scrollHeight", &[]).await;
    let widest: u32 = browser.value("return document.documentElement.scrollWidth", &[]).await;
    assert!(widest <= width, "{address} is {widest} wide at {width}");
    let clip = json!({"x": 0, "y": 0, "width": width, "height": height.min(HEIGHT_MAX), "scale": 1});
    let request = json!({"format": "png", "captureBeyondViewport": true, "clip": clip});
    let taken = browser.devtools("Page.captureScreenshot", request).await;
    BASE64_STANDARD
        .decode(taken["data"].as_str().expect("a picture"))
        .expect("base64")
}

/// Stores a CronJob with the Jobs of its last day.
async fn store(namespace: &Namespace, name: &str, schedule: &str) {
    let now = Timestamp::now();
    let created = now - SignedDuration::from_hours(26);
    let parsed = CronJobSchedule::new(schedule, None, &Zone::utc());
    let mut slots = Vec::new();
    let mut next = parsed.next_run(created, created);
    while let Some(slot) = next.filter(|slot| *slot < now) {
        slots.push(slot);
        next = parsed.next_run(created, slot);
    }
    let key = format!("{}/{name}", namespace.name);
    let n_slots = slots.len();
    let lives = slots.iter().enumerate().filter_map(|(index, slot)| {
        let age = n_slots - index;
        let life = life(&key, age, slot.as_second())?;
        let would_end_later = matches!(life, Life::Ran(seconds) if *slot + SignedDuration::from_secs(seconds) > now);
        Some((*slot, if would_end_later { Life::Running } else { life }))
    });
    let jobs: Vec<(Timestamp, Life<'_>)> = lives.collect();
    let object = json!({
        "metadata": {"name": name, "creationTimestamp": created.to_string(), "labels": {"team": namespace.name}},
        "spec": {"schedule": schedule},
    });
    world::store(namespace, (object, &spec(&key)), &jobs).await;
}

fn spec(key: &str) -> Value {
    match key {
        "catalog/import" => json!({"concurrencyPolicy": "Forbid"}),
        "payments/sync" => json!({"startingDeadlineSeconds": 60}),
        "mail/cleanup" => json!({"suspend": true}),
        "reports/invoice" => json!({"schedule": "0 0 31 2 *"}),
        _ => json!({"concurrencyPolicy": "Forbid", "startingDeadlineSeconds": 600}),
    }
}

/// How a run went; `None` if it was lost or held back. `age` counts the slots from the last one, which has 1.
fn life(key: &str, age: usize, seed: i64) -> Option<Life<'static>> {
    let drawn = (seed / 60 * 7_919 + i64::try_from(key.len()).unwrap_or_default() * 104_729) % 97;
    match (key, age) {
        ("payments/sync", 3..=7) | ("catalog/import", 1 | 2) => None,
        ("catalog/import", 3) => Some(Life::Held("backup.example.com/snapshot")),
        ("billing/export", 1) | ("search/index", 1..=4) => Some(Life::Failed("BackoffLimitExceeded")),
        ("mail/sync", 1..=3) => Some(Life::Late(95 + drawn)),
        ("reports/index" | "billing/sync", 1) => Some(Life::Running),
        _ if drawn == 1 => Some(Life::Failed("DeadlineExceeded")),
        _ if drawn == 2 => Some(Life::Late(31)),
        _ => Some(Life::Ran(20 + drawn)),
    }
}
