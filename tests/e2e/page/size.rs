//! The page with 20,000 CronJobs, on the API server in memory.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use libtest_mimic::Trial;

use super::browser::Browser;
use crate::{block_on, cases::viewing::Page, kubernetes::wait};

const N_CRON_JOBS: usize = 20_000;

/// To fill the API server takes most of it.
const DURATION_MAX: Duration = Duration::from_mins(5);

/// A page that comes later has stalled. An unoptimised server, beside a controller that is one too, takes longer.
const STALL: Duration = if cfg!(debug_assertions) {
    Duration::from_secs(5)
} else {
    Duration::from_secs(1)
};

/// The last moments of a navigation, in milliseconds after its start.
const LOADED: &str = "return performance.getEntriesByType('navigation')[0].domComplete";

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let trial = Trial::test("page::size::twenty_thousand_rows_do_not_stall", || {
        block_on(DURATION_MAX, twenty_thousand_rows_do_not_stall());
        Ok(())
    });
    // It takes two minutes.
    [trial.with_ignored_flag(true)].into_iter()
}

/// `cronwheel dev` as a process. Dropping it kills it.
struct Cluster {
    process: Child,
    kubeconfig: PathBuf,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.kubeconfig);
    }
}

fn start_cluster(kubeconfig: &Path) -> Cluster {
    let process = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .args([
            "dev",
            "--port",
            "0",
            "--for",
            "5m",
            "--log-level",
            "error",
            "--cronjobs",
        ])
        .arg(N_CRON_JOBS.to_string())
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    Cluster {
        process: process.expect("a process"),
        kubeconfig: kubeconfig.to_owned(),
    }
}

async fn twenty_thousand_rows_do_not_stall() {
    let kubeconfig = std::env::temp_dir().join(format!("cronwheel-size-{}.kubeconfig", std::process::id()));
    let _cluster = start_cluster(&kubeconfig);
    assert!(wait(async || kubeconfig.exists()).await, "no kubeconfig");
    let page = Page::start_with_history(&kubeconfig, "none", &[]).await;
    let browser = Browser::start().await;
    let base = format!("http://{}/", page.address);
    while !browser_shows_all(&browser, &base).await {
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    for address in [
        "",
        "?page=150",
        "?q=0042",
        "?state=due",
        "?q=starts+between+02:00+and+03:00",
    ] {
        browser.open(&format!("{base}{address}")).await;
        let milliseconds: f64 = browser.value(LOADED, &[]).await;
        eprintln!("/{address}: {milliseconds:.0} ms");
        assert!(
            milliseconds < STALL.as_secs_f64() * 1_000.0,
            "/{address}: {milliseconds} ms"
        );
    }
    browser.open(&base).await;
    browser.click("#q").await;
    let begun = tokio::time::Instant::now();
    browser.press("0042").await;
    browser
        .wait_for(
            "return document.querySelector('[data-part=count] small').textContent.includes('match')",
            &[],
        )
        .await;
    eprintln!("typed filter: {:?}", begun.elapsed());
    assert!(begun.elapsed() < STALL, "{:?}", begun.elapsed());
    browser.close().await;
    page.end().await;
}

async fn browser_shows_all(browser: &Browser, base: &str) -> bool {
    browser.open(base).await;
    browser.text(".tile").await.starts_with("20,000 ")
}
