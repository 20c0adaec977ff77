//! What each panel shows, compared with the objects of the API server.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::Visit;

const SLOT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// Name and reason of all that need attention.
const REASONS: &str = "return [...document.querySelectorAll('.attention td.name')].map((cell) => \
                       [...cell.children].map((part) => part.textContent).join(' '))";

/// A Job as the API server has it.
struct Job {
    name: String,
    slot: Timestamp,
    created: Timestamp,
    ended: Option<(bool, Timestamp)>,
}

impl Job {
    fn of(job: &Value) -> Job {
        let time = |value: &Value| value.as_str().expect("a time").parse().expect("a time");
        let condition = job["status"]["conditions"]
            .as_array()
            .and_then(|conditions| conditions.first());
        let ended =
            condition.map(|condition| (condition["type"] == "Complete", time(&condition["lastTransitionTime"])));
        Job {
            name: job["metadata"]["name"].as_str().expect("a name").to_owned(),
            slot: time(&job["metadata"]["annotations"][SLOT]),
            created: time(&job["metadata"]["creationTimestamp"]),
            ended,
        }
    }

    fn lateness(&self) -> SignedDuration {
        self.created.duration_since(self.slot)
    }

    fn is_late(&self) -> bool {
        self.lateness() > SignedDuration::from_secs(5)
    }

    /// The class of its square.
    fn mark(&self) -> &'static str {
        match self.ended {
            Some((false, _)) => "failed",
            _ if self.is_late() => "late",
            Some((true, _)) => "",
            None => "running",
        }
    }
}

/// The Jobs by the namespace and name of their CronJob, the oldest slot first.
fn by_cron_job(jobs: &BTreeMap<String, Value>) -> BTreeMap<String, Vec<Job>> {
    let mut by_cron_job: BTreeMap<String, Vec<Job>> = BTreeMap::new();
    for job in jobs.values() {
        let metadata = &job["metadata"];
        let owner = metadata["ownerReferences"][0]["name"].as_str().expect("a name");
        let namespace = metadata["namespace"].as_str().expect("a namespace");
        by_cron_job
            .entry(format!("{namespace}/{owner}"))
            .or_default()
            .push(Job::of(job));
    }
    for jobs in by_cron_job.values_mut() {
        jobs.sort_by_key(|job| job.slot);
    }
    by_cron_job
}

/// The squares of an hourly CronJob from its first Job to the last slot.
fn marks(cron_job: &Value, jobs: &[Job], last: Timestamp) -> Vec<String> {
    let has_deadline = !cron_job["spec"]["startingDeadlineSeconds"].is_null();
    let without_job = if has_deadline { "lost" } else { "skipped" };
    let Some(first) = jobs.first() else { return Vec::new() };
    let hours = (0..).map(|hour| first.slot + SignedDuration::from_hours(hour));
    let slots = hours.take_while(|slot| *slot <= last);
    let job = |slot: Timestamp| jobs.iter().find(|job| job.slot == slot);
    slots
        .map(|slot| job(slot).map_or(without_job, Job::mark).to_owned())
        .collect()
}

pub(super) async fn panels_show_what_the_api_server_has(visit: &Visit) {
    let page = visit.open("none").await;
    tiles(visit).await;
    attention(visit).await;
    rows(visit).await;
    strip(visit).await;
    page.end().await;
}

async fn tiles(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let (cron_jobs, jobs) = (world.objects("CronJob").await, world.objects("Job").await);
    let by_cron_job = by_cron_job(&jobs);
    let jobs: Vec<Job> = jobs.values().map(Job::of).collect();
    let is_suspended = |cron_job: &&Value| cron_job["spec"]["suspend"] == json!(true);
    let is_hourly = |cron_job: &&Value| {
        cron_job["spec"]["schedule"]
            .as_str()
            .expect("text")
            .ends_with(" * * * *")
    };
    let n_suspended = cron_jobs.values().filter(is_suspended).count();
    let n_never = cron_jobs.values().filter(|one| !is_hourly(one)).count();
    let count = |condition: &dyn Fn(&Job) -> bool| jobs.iter().filter(|job| condition(job)).count();
    let n_running = count(&|job| job.ended.is_none());
    let has_running = |jobs: &&Vec<Job>| jobs.iter().any(|job| job.ended.is_none());
    let running = match by_cron_job.values().filter(has_running).count() {
        n_cron_jobs if n_cron_jobs == n_running => format!("{n_running} running"),
        n_cron_jobs => format!("{n_cron_jobs} running, {n_running} Jobs"),
    };
    let tiles = [
        format!("{} CronJobs, {n_suspended} suspended, {n_never} never", cron_jobs.len()),
        running,
        format!("0 late now, {} in 24 h", count(&Job::is_late)),
        format!("{} failed in 24 h", count(&|job| job.mark() == "failed")),
        "1 lost in 24 h".to_owned(),
        format!("{} due in the next hour", cron_jobs.len() - n_suspended - n_never),
    ];
    assert_eq!(browser.texts(".tile").await, tiles);
    let who = browser.text(".who").await;
    assert!(who.starts_with("run by kube-controller-manager"), "{who}");
}

async fn attention(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let (shop, ops) = (&world.shop.name, &world.ops.name);
    let held = world.objects("Job").await;
    let held = held
        .values()
        .find(|job| !job["metadata"]["deletionTimestamp"].is_null())
        .expect("a Job");
    let held = held["metadata"]["name"].as_str().expect("a name");
    let hour = |n_hours_back| world.slot(n_hours_back).strftime("%H:%M");
    let expected = [
        (
            "lost",
            format!(
                "{shop}/sync lost a run at {} UTC: startingDeadlineSeconds passed",
                hour(1)
            ),
        ),
        (
            "failed",
            format!("{shop}/import last 2 runs failed: BackoffLimitExceeded"),
        ),
        (
            "blocked",
            format!("{ops}/backup Forbid: Job {held} is being deleted and held by finalizer example.com/hold"),
        ),
        ("late", format!("{shop}/invoice the last run started 5 m late")),
        ("never", format!("{ops}/leap ")),
    ];
    let words = browser.texts(".attention .pill").await;
    let reasons = browser.value::<Vec<String>>(REASONS, &[]).await;
    let seen: Vec<_> = words.iter().zip(&reasons).collect();
    let fits = |(word, reason): &(&str, String)| {
        let mut seen = seen.iter();
        seen.any(|(seen_word, seen)| seen_word == word && seen.starts_with(reason))
    };
    assert!(
        expected.iter().all(fits) && seen.len() == expected.len(),
        "{seen:#?}, not {expected:#?}"
    );
    assert_eq!(
        words.last().map(String::as_str),
        Some("never"),
        "those that never run are last"
    );
}

async fn rows(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let (cron_jobs, jobs) = (world.objects("CronJob").await, world.objects("Job").await);
    let jobs = by_cron_job(&jobs);
    assert_eq!(
        browser.texts(".list th a").await,
        cron_jobs.keys().cloned().collect::<Vec<_>>()
    );
    let squares: Vec<Vec<String>> = browser
        .value(
            "return [...document.querySelectorAll('.list tbody tr')].map((row) => \
             [...row.querySelectorAll('.squares i')].map((square) => square.className))",
            &[],
        )
        .await;
    let expected: Vec<Vec<String>> = cron_jobs
        .iter()
        .map(|(name, cron_job)| marks(cron_job, jobs.get(name).map_or(&[], Vec::as_slice), world.slot(0)))
        .collect();
    assert_eq!(squares, expected, "{:?}", cron_jobs.keys());

    let next: Vec<String> = browser
        .value(
            "return [...document.querySelectorAll('.list tbody td:last-child')].map((cell) => \
             cell.querySelector('[data-at]')?.dataset.at || cell.textContent)",
            &[],
        )
        .await;
    let next_slot = world.slot(-1).as_second().to_string();
    let held_slot = world.slot(0).as_second().to_string();
    let expected = [
        &*held_slot,
        "suspended",
        "never",
        &next_slot,
        &next_slot,
        &next_slot,
        &next_slot,
        &next_slot,
    ];
    assert_eq!(next, expected, "{:?}", cron_jobs.keys());
    let report = format!("tr:has(a[href='/cronjobs/{}/nightly-report']) td", world.shop.name);
    assert_eq!(browser.texts(&report).await[2], "42 s · 42 s");
}

async fn strip(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let (shop, ops) = (&world.shop.name, &world.ops.name);
    assert_eq!(browser.texts(".names a").await, [ops.clone(), shop.clone()]);
    let sums: Vec<String> = browser
        .value(
            "return [...document.querySelectorAll('.names a')].map((one) => one.title)",
            &[],
        )
        .await;
    let jobs = world.objects("Job").await;
    let n_jobs = |namespace: &str| jobs.keys().filter(|name| name.starts_with(namespace)).count();
    assert!(sums[0].starts_with(&format!("{} runs; ", n_jobs(ops))), "{sums:?}");
    let outcomes = format!("{} runs, 1 late, 2 failed, 1 lost; ", n_jobs(shop));
    assert!(sums[1].starts_with(&outcomes), "{sums:?}");
    // Two of three that are due in ops, and all four of shop; 24 times each.
    assert!(
        sums[0].ends_with("48 starts ahead") && sums[1].ends_with("96 starts ahead"),
        "{sums:?}"
    );
    assert!(browser.text(".foot p").await.contains("6 starts in one minute"));
}

pub(super) async fn page_of_a_cron_job_shows_its_slots(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let page = visit.open("none").await;
    let name = format!("{}/import", world.shop.name);
    browser.open(&format!("http://{}/cronjobs/{name}", page.address)).await;
    let jobs = by_cron_job(&world.objects("Job").await);
    let jobs = &jobs[&name];
    let rows: Vec<Vec<String>> = browser
        .value(
            "return [...document.querySelectorAll('[data-part=slots] tbody tr')].map((row) => \
             [...row.cells].map((cell) => cell.textContent.trim()))",
            &[],
        )
        .await;
    assert_eq!(rows.len(), jobs.len());
    for (row, job) in rows.iter().zip(jobs.iter().rev()) {
        let (succeeded, ended) = job.ended.expect("an end");
        let ran = ended.duration_since(job.created).as_secs();
        let (outcome, reason) = if succeeded {
            ("succeeded", "")
        } else {
            ("failed", "BackoffLimitExceeded")
        };
        // A slot of another day begins with its weekday.
        assert!(row[0].contains(&job.slot.strftime("%H:%M").to_string()), "{row:?}");
        assert!(row[1].starts_with(outcome) && row[1].contains(reason), "{row:?}");
        assert_eq!(row[2..5], ["< 1 s".to_owned(), format!("{ran} s"), job.name.clone()]);
    }
    assert_eq!(browser.texts(".detail .trouble .pill").await, ["failed"]);
    let next: Vec<String> = browser
        .value(
            "return [...document.querySelectorAll('.next time')].map((time) => time.dateTime)",
            &[],
        )
        .await;
    let expected: Vec<String> = (1..=10).map(|hours| world.slot(-hours).to_string()).collect();
    assert_eq!(next, expected);
    let commands = browser.texts(".commands code").await.join("\n");
    let last = &jobs.last().expect("a Job").name;
    assert!(
        commands.contains(&format!("-n {} logs job/{last}", world.shop.name)),
        "{commands}"
    );
    let explained = browser.text("#explain pre").await;
    assert!(explained.contains("import"), "{explained}");
    assert_eq!(browser.texts(".labels a").await, ["team=green"]);

    let sync = format!("http://{}/cronjobs/{}/sync", page.address, world.shop.name);
    browser.open(&sync).await;
    let differences = browser.texts("[data-part=differences] li").await;
    let sentence = world
        .slot(1)
        .strftime("%H:%M: lost; cronwheel would have started it")
        .to_string();
    assert!(
        differences.len() == 1 && differences[0].starts_with(&sentence),
        "{differences:?}"
    );
    page.end().await;
}
