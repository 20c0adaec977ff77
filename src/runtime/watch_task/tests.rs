//! What the shell makes of a watch, in virtual time.

use std::time::Duration;

use super::*;
use crate::{runtime::metrics::Metrics, state::Scope};

fn clock() -> Clock {
    Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn the_requests_of_a_watch_are_counted_by_verb_resource_and_code_and_timed() {
    let metrics = Metrics::register().unwrap();
    let pulses = &metrics.watch_pulses;
    let observer = |metrics: &WatchMetrics| RequestObserver {
        metrics: metrics.clone(),
        pulse: pulses.begin("jobs", Scope::Cluster, clock()),
        clock: clock(),
    };
    let cron_jobs = observer(&metrics.cron_job_watch);
    for request in [WatchRequest::List, WatchRequest::List, WatchRequest::Watch] {
        let answered = cron_jobs.asked(request);
        tokio::time::sleep(Duration::from_secs(2)).await;
        answered(Some(200));
    }
    cron_jobs.asked(WatchRequest::Watch)(Some(410));
    observer(&metrics.job_watch).asked(WatchRequest::List)(None);
    let text = metrics.render().unwrap();
    for line in [
        r#"cronwheel_api_requests_total{code="200",resource="cronjobs",verb="list"} 2"#,
        r#"cronwheel_api_requests_total{code="200",resource="cronjobs",verb="watch"} 1"#,
        r#"cronwheel_api_requests_total{code="410",resource="cronjobs",verb="watch"} 1"#,
        r#"cronwheel_api_requests_total{code="none",resource="jobs",verb="list"} 1"#,
        r#"cronwheel_api_request_duration_seconds_sum{resource="cronjobs",verb="list"} 4"#,
    ] {
        assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
    }
}
