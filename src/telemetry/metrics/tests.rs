//! Compares the table of metrics with the registered metrics.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::*;
use crate::{
    controller::clock::Clock,
    coordination::{
        Election, ElectionConfig, Incarnation, Installation, MemberSettings, Overview, PROTOCOL_VERSION, Timing,
    },
    shard::{
        CronJobIdentity, InstantOutcome, LedFigures, Scope, ShardCount, ShardId, Trouble, TroubleKind, TroubleReport,
        Uid,
    },
};

/// The value of a series in the text format.
fn value(text: &str, series: &str) -> u64 {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series} is not in\n{text}"))
        .parse()
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn registered_metrics_match_the_table() {
    let metrics = Metrics::register();
    let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
    metrics.watch_health.begin("jobs", Scope::Cluster, clock.clone());
    metrics.election_snapshot.send_replace(Some(figures(&clock)));
    metrics.shard.send_modify(|figures| {
        figures.troubles = troubles();
        figures.n_namespaces = Some(3);
    });
    let text = metrics.text();
    let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    assert!(names.clone().is_sorted(), "{text}");
    let registered: BTreeSet<String> = names.map(str::to_owned).collect();
    let kind = |spec: &table::MetricSpec| format!("{:?}", spec.kind).to_lowercase();
    let expected: BTreeSet<String> = table::ALL
        .iter()
        .map(|spec| format!("{} {}", spec.name, kind(spec)))
        .collect();
    assert_eq!(registered, expected);
}

/// The figures of a replica that acts until seven seconds from now.
fn figures(clock: &Clock) -> ElectionFigures {
    let timing = Timing::DEFAULT;
    let config = ElectionConfig {
        pod_name: "cronwheel-1".into(),
        pod_uid: "uid-1".into(),
        incarnation: Incarnation(1),
        revision: "".into(),
        protocol: PROTOCOL_VERSION,
        installation: Installation::of(ShardCount::default()),
        settings: MemberSettings::of(&[Scope::Cluster], "UTC"),
        timing,
    };
    let now = clock.boot();
    let fence_after = timing.self_fence;
    let overview = Overview {
        act_until: Some(now + fence_after),
        vacant: BTreeMap::from([(ShardId(3), now), (ShardId(5), now)]),
        ..Election::new(config, now).overview(now)
    };
    ElectionFigures {
        overview,
        fence_after,
        clock: clock.clone(),
    }
}

#[tokio::test(start_paused = true)]
async fn ages_grow_between_updates_of_the_election() {
    let metrics = Metrics::register();
    let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
    metrics.election_snapshot.send_replace(Some(figures(&clock)));
    for age in [0, 3, 12] {
        let text = metrics.text();
        assert_eq!(value(&text, "cronwheel_lease_renew_age_seconds"), age);
        assert_eq!(value(&text, "cronwheel_shards_unowned_age_seconds"), age);
        assert_eq!(value(&text, "cronwheel_shards_unowned"), 2);
        tokio::time::sleep(Duration::from_secs(if age == 0 { 3 } else { 9 })).await;
    }
}

/// A report that names one CronJob and omits two.
fn troubles() -> Arc<TroubleReport> {
    let trouble = Trouble {
        since: "2026-11-01T12:00:00Z".parse().unwrap(),
        cron_job: Arc::new(CronJobIdentity {
            namespace: "shop".into(),
            name: "backup".into(),
            uid: Uid::new("1"),
        }),
        kind: TroubleKind::NoSuccess,
        shard: ShardId(0),
        owner: Some("billing".into()),
    };
    Arc::new(TroubleReport {
        named: vec![trouble],
        n_omitted: [0, 2, 0, 0, 0],
    })
}

#[test]
fn a_cron_job_has_a_series_while_it_is_in_trouble() {
    let metrics = Metrics::register();
    let is_any_named = || metrics.text().contains("cronjob=");
    assert!(!is_any_named());
    assert_eq!(
        value(&metrics.text(), "cronwheel_cron_job_trouble_omitted{kind=\"late\"}"),
        0
    );
    metrics.shard.send_modify(|figures| figures.troubles = troubles());
    let text = metrics.text();
    let labels = "{cronjob=\"backup\",kind=\"no_success\",namespace=\"shop\"}";
    let series =
        "cronwheel_cron_job_trouble{cronjob=\"backup\",kind=\"no_success\",namespace=\"shop\",owner=\"billing\"}";
    assert_eq!(value(&text, series), 1);
    let since = format!("cronwheel_cron_job_trouble_since_timestamp_seconds{labels}");
    assert_eq!(value(&text, &since), 1_793_534_400);
    assert_eq!(value(&text, "cronwheel_cron_job_trouble_omitted{kind=\"late\"}"), 2);
    metrics.shard.send_modify(|figures| figures.troubles = Arc::default());
    assert!(!is_any_named());
}

#[test]
fn led_ratio_and_led_cron_jobs_are_exported() {
    let metrics = Metrics::register();
    let has_line = |line: &str| metrics.text().lines().any(|rendered| rendered == line);
    assert!(has_line("cronwheel_led_ratio 0"), "nothing before the first iteration");
    let led = LedFigures {
        cron_jobs: 30,
        shards: 96,
        all_shards: 256,
    };
    metrics.shard.send_modify(|figures| figures.led = led);
    assert!(has_line("cronwheel_led_ratio 0.375"));
    assert!(has_line("cronwheel_cron_jobs_led 30"));
}

#[test]
fn due_instants_equal_outcomes_plus_open_instants() {
    let metrics = Metrics::register();
    metrics.shard.send_modify(|figures| {
        figures.outcome_counts.due_instants = 10;
        figures.outcome_counts.open_instants = 3;
        figures.outcome_counts.outcomes[InstantOutcome::Created as usize] = 5;
        figures.outcome_counts.outcomes[InstantOutcome::HeldByForbid as usize] = 2;
    });
    let text = metrics.text();
    let outcomes = InstantOutcome::ALL.map(|outcome| {
        value(
            &text,
            &format!("cronwheel_instant_outcomes_total{{outcome=\"{}\"}}", outcome.as_str()),
        )
    });
    let ended: u64 = outcomes.iter().sum();
    assert_eq!(
        value(&text, "cronwheel_due_instants_total"),
        ended + value(&text, "cronwheel_instants_open")
    );
    assert_eq!(ended, 7);
}

#[tokio::test(start_paused = true)]
async fn watch_silence_is_the_longest_per_resource() {
    let metrics = Metrics::register();
    let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
    let begin = |resource, namespace: &str| {
        let scope = Scope::Namespace(namespace.into());
        metrics.watch_health.begin(resource, scope, clock.clone())
    };
    let (first, second, third) = (begin("jobs", "a"), begin("jobs", "b"), begin("cronjobs", "a"));
    tokio::time::sleep(Duration::from_secs(30)).await;
    first.note_activity();
    tokio::time::sleep(Duration::from_secs(5)).await;
    third.note_activity();
    let text = metrics.text();
    assert_eq!(value(&text, r#"cronwheel_watch_silence_seconds{resource="jobs"}"#), 35);
    assert_eq!(
        value(&text, r#"cronwheel_watch_silence_seconds{resource="cronjobs"}"#),
        0
    );
    second.note_activity();
    let text = metrics.text();
    assert_eq!(value(&text, r#"cronwheel_watch_silence_seconds{resource="jobs"}"#), 5);
}

#[test]
fn a_request_is_counted_by_verb_resource_and_code() {
    let metrics = Metrics::register();
    metrics
        .dispatch
        .api
        .record(ApiCall::CreateJob, Some(201), Duration::from_millis(4));
    metrics
        .dispatch
        .api
        .record(ApiCall::CreateJob, Some(201), Duration::from_millis(4));
    metrics
        .status
        .api
        .record(ApiCall::WriteStatus, None, Duration::from_secs(1));
    let text = metrics.text();
    for line in [
        r#"cronwheel_api_requests_total{code="201",resource="jobs",verb="create"} 2"#,
        r#"cronwheel_api_requests_total{code="none",resource="cronjobs/status",verb="update"} 1"#,
        r#"cronwheel_api_request_duration_seconds_count{resource="jobs",verb="create"} 2"#,
    ] {
        assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
    }
}

#[test]
fn request_counters_start_at_zero() {
    let text = Metrics::register().text();
    for line in [
        r#"cronwheel_api_requests_total{code="201",resource="jobs",verb="create"} 0"#,
        r#"cronwheel_api_requests_total{code="200",resource="cronjobs/status",verb="update"} 0"#,
        r#"cronwheel_api_requests_total{code="429",resource="jobs",verb="create"} 0"#,
        r#"cronwheel_api_requests_total{code="none",resource="leases",verb="patch"} 0"#,
    ] {
        assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
    }
    assert!(
        !text.contains(r#"code="200",resource="jobs",verb="create""#),
        "a create is answered with 201"
    );
}

#[test]
fn runs_before_the_first_scrape_are_an_increase_two_minutes_later() {
    let metrics = Metrics::register();
    let at = |text: &str| format!("2026-11-01T{text}Z").parse::<Timestamp>().unwrap();
    let lost = |n_lost| {
        metrics.shard.send_modify(|figures| {
            figures.outcome_counts.due_instants = n_lost + 1;
            figures.outcome_counts.outcomes[InstantOutcome::DeadlineExceeded as usize] = n_lost;
            figures.outcome_counts.open_instants = 1;
            figures.n_panics = n_lost;
        });
        metrics.cron_job_watch.undecodable.inc();
    };
    let names = [
        "cronwheel_lateness_seconds_count",
        "cronwheel_lateness_seconds_sum",
        "cronwheel_lateness_seconds_bucket{le=\"3600\"}",
        "cronwheel_lateness_seconds_bucket{le=\"+Inf\"}",
        "cronwheel_instant_outcomes_total{outcome=\"deadline_exceeded\"}",
        "cronwheel_due_instants_total",
        "cronwheel_instants_open",
        "cronwheel_undecodable_objects_total{resource=\"cronjobs\"}",
        "cronwheel_panics_total",
    ];
    let values = |text: String| names.map(|name| value(&text, name));
    let scraped = |now| values(metrics.scrape(at(now)).unwrap());
    metrics.dispatch.lateness.observe(5_400.0);
    lost(3);
    assert_eq!(scraped("12:00:00"), [0, 0, 0, 0, 0, 1, 1, 0, 0]);
    metrics.dispatch.lateness.observe(2.0);
    lost(4);
    assert_eq!(scraped("12:01:59"), [1, 2, 1, 1, 1, 2, 1, 1, 1]);
    let all = [2, 5_402, 1, 2, 4, 5, 1, 2, 4];
    assert_eq!(values(metrics.render(at("12:01:59")).unwrap()), all);
    assert_eq!(scraped("12:02:00"), all);
}
