//! The scenarios: actions of offenders, and faults that affect only them.

use std::time::Duration;

use apisim::{Fault, Resource, Rule, RuleId, Verb};
use cronwheel::shard::Scope;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    Scenario,
    cluster::{Cluster, INNOCENT, OFFENDER},
    compare,
    workload::{cron_job, job_spec, job_template},
};

/// The number of CronJobs in a burst of the offender.
const N_CRON_JOBS: usize = 300;

/// Creates many minutely CronJobs of the offender.
async fn create_many(cluster: &Cluster, policy: &str, template: &Value) {
    let names = (0..N_CRON_JOBS).map(|number| format!("many-{number:03}"));
    let objects: Vec<Value> = names
        .map(|name| cron_job(&name, "* * * * *", policy, template))
        .collect();
    join_all(objects.iter().map(|object| cluster.create_cron_job(OFFENDER, object))).await;
}

/// The number of Events in the namespace of the offender with this type and reason.
async fn n_events(cluster: &Cluster, kind: &str, reason: &str) -> usize {
    let events = cluster.events(OFFENDER, kind).await;
    events.iter().filter(|(of, _)| of == reason).count()
}

/// Returns a Job for the namespace of the offender that names a CronJob as its controller. A finalizer protects the Job
/// from the garbage collector, which deletes dependents of owners in other namespaces.
fn job_of(victim: &Value, slot: Timestamp, outcome: &str) -> Value {
    let name = victim["metadata"]["name"].as_str().unwrap();
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": format!("{name}-{}", slot.as_second() / 60),
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot.to_string()},
            "finalizers": ["example.com/stay"],
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": victim["metadata"]["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": job_spec("1s", outcome),
    })
}

#[test]
fn job_in_another_namespace_does_not_affect_a_cron_job() {
    let scenario = Scenario {
        warnings_allowed: &["UnexpectedJob"],
        ..Scenario::default()
    };
    let outcome = compare(&scenario, async |cluster| {
        let far: Timestamp = "2090-01-01T00:00:00Z".parse().unwrap();
        let past = cluster.start - SignedDuration::from_mins(30);
        for victim in ["allow", "forbid", "replace"] {
            let path = format!("/apis/batch/v1/namespaces/{}/cronjobs/{victim}", INNOCENT[0]);
            let victim = cluster.request("GET", &path, &Value::Null).await;
            cluster.create_job(OFFENDER, &job_of(&victim, far, "succeed")).await;
            cluster.create_job(OFFENDER, &job_of(&victim, past, "hang")).await;
            for minutes in 1..=3 {
                let slot = past - SignedDuration::from_mins(minutes);
                cluster.create_job(OFFENDER, &job_of(&victim, slot, "succeed")).await;
            }
        }
    });
    assert!(outcome.metric("cronwheel_unexpected_jobs_total") >= 6.0);
}

#[test]
fn creates_refused_by_admission_do_not_affect_other_tenants() {
    let scenario = Scenario::default();
    compare(&scenario, async |cluster| {
        cluster.add_offender_fault(Rule {
            resource: Some(Resource::Job),
            verbs: vec![Verb::Create],
            ..Rule::new(Fault::Forbid("exceeded quota: jobs".to_owned()))
        });
        create_many(cluster, "Allow", &job_template("1s", "succeed")).await;
        cluster.until(cluster.start + SignedDuration::from_mins(9)).await;
        assert!(n_events(cluster, "Warning", "FailedCreate").await >= N_CRON_JOBS / 2);
    });
}

/// Creates many minutely CronJobs of the offender, whose creates of Jobs are slow.
async fn create_many_slow(cluster: &Cluster, admission: Duration) {
    cluster.add_offender_fault(Rule {
        resource: Some(Resource::Job),
        verbs: vec![Verb::Create],
        ..Rule::new(Fault::Delay {
            shortest: admission,
            longest: admission,
        })
    });
    create_many(cluster, "Allow", &job_template("1s", "succeed")).await;
}

#[test]
fn creates_delayed_by_half_a_minute_do_not_delay_other_tenants() {
    let outcome = compare(&Scenario::default(), async |cluster| {
        create_many_slow(cluster, Duration::from_secs(29)).await;
    });
    let n_created = outcome.metric(r#"cronwheel_api_requests_total{code="201",resource="jobs",verb="create"}"#);
    // The limit admits 32 creates of the offender at a time, twice a minute, beside the creates of innocent tenants.
    assert!(n_created >= 600.0, "{n_created}");
}

#[test]
fn creates_delayed_by_less_than_a_second_do_not_delay_other_tenants() {
    compare(&Scenario::default(), async |cluster| {
        create_many_slow(cluster, Duration::from_millis(600)).await;
    });
}

#[test]
fn refused_creates_are_tried_once_a_minute_and_recover_at_the_next_slot() {
    let outcome = compare(&Scenario::default(), async |cluster| {
        let quota = cluster.add_offender_fault(Rule {
            resource: Some(Resource::Job),
            verbs: vec![Verb::Create],
            ..Rule::new(Fault::Forbid("exceeded quota: jobs".to_owned()))
        });
        create_many(cluster, "Allow", &job_template("1s", "succeed")).await;
        let quota_removed_at = cluster.start + SignedDuration::from_secs(8 * 60 + 50);
        cluster.until(quota_removed_at).await;
        cluster.api.faults().remove(quota);
        // Each CronJob has one slot in this minute, which waits for nine seconds of the back-off at most.
        cluster.until(quota_removed_at + SignedDuration::from_mins(1)).await;
        let path = format!("/apis/batch/v1/namespaces/{OFFENDER}/jobs");
        let jobs = cluster.request("GET", &path, &Value::Null).await;
        assert_eq!(jobs["items"].as_array().unwrap().len(), N_CRON_JOBS);
    });
    // In its first minute each CronJob is tried up to twelve times, and afterwards about once a minute.
    let n_refused = outcome.metric(r#"cronwheel_api_requests_total{code="403",resource="jobs",verb="create"}"#);
    let per_cron_job = n_refused / f64::from(u32::try_from(N_CRON_JOBS).unwrap());
    assert!(
        (8.0..=12.0 + 2.0 * 8.0).contains(&per_cron_job),
        "{per_cron_job} refusals each"
    );
    assert!(outcome.metric("cronwheel_cron_jobs_refused") < 1.0);
}

#[test]
fn extreme_schedules_do_not_delay_other_tenants() {
    compare(&Scenario::default(), async |cluster| {
        let template = job_template("1s", "succeed");
        let schedules = ["0 0 30 2 *", "0 0 29 2 1", "@every 1s", "*/1 */1 */1 */1 */1"];
        let objects = (0..N_CRON_JOBS).map(|number| {
            let schedule = schedules[number % schedules.len()];
            cron_job(&format!("hostile-{number:03}"), schedule, "Replace", &template)
        });
        let objects: Vec<Value> = objects.collect();
        join_all(objects.iter().map(|object| cluster.create_cron_job(OFFENDER, object))).await;
    });
}

#[test]
fn forbidden_status_write_is_reported_only_to_its_owner() {
    let scenario = Scenario::default();
    compare(&scenario, async |cluster| {
        cluster.add_offender_fault(Rule {
            resource: Some(Resource::CronJob),
            verbs: vec![Verb::Update],
            ..Rule::new(Fault::Forbid("no status".to_owned()))
        });
        let offender = cron_job("offender", "* * * * *", "Allow", &job_template("1s", "succeed"));
        cluster.create_cron_job(OFFENDER, &offender).await;
        cluster.until(cluster.start + SignedDuration::from_mins(9)).await;
        let warnings = cluster.events(OFFENDER, "Warning").await;
        assert!(
            warnings.iter().any(|(_, message)| message.contains("no status")),
            "{warnings:?}"
        );
    });
}

#[test]
fn large_cron_jobs_use_at_most_half_of_the_template_memory() {
    const N_LARGE: usize = 32;
    let scenario = Scenario {
        configure: |settings| settings.template_memory_mib = 1,
        ..Scenario::default()
    };
    let outcome = compare(&scenario, async |cluster| {
        let bulk = "x".repeat(64 << 10);
        let large = (0..N_LARGE).map(|number| {
            let mut template = job_template("1s", "succeed");
            let mut cron_job = cron_job(&format!("large-{number:02}"), "* * * * *", "Allow", &json!(null));
            if number % 2 == 0 {
                template["spec"]["template"]["metadata"]["annotations"]["bulk"] = json!(bulk);
            } else {
                cron_job["metadata"]["annotations"] = json!({ "bulk": bulk });
            }
            cron_job["spec"]["jobTemplate"] = template;
            cron_job
        });
        let large: Vec<Value> = large.collect();
        join_all(large.iter().map(|object| cluster.create_cron_job(OFFENDER, object))).await;
        let end = cluster.start + SignedDuration::from_mins(9);
        cluster.until(end).await;
        assert!(n_events(cluster, "Warning", "TemplateNotKept").await >= N_LARGE / 2);
        for object in &large {
            let name = object["metadata"]["name"].as_str().unwrap();
            let path = format!("/apis/batch/v1/namespaces/{OFFENDER}/cronjobs/{name}");
            let stored = cluster.request("GET", &path, &Value::Null).await;
            let last: Timestamp = stored["status"]["lastScheduleTime"].as_str().unwrap().parse().unwrap();
            assert!(
                end.duration_since(last) <= SignedDuration::from_mins(1),
                "{name}: {last}"
            );
            assert_eq!(
                stored["metadata"]["annotations"], object["metadata"]["annotations"],
                "{name}"
            );
        }
    });
    let n_bytes = outcome.metric("cronwheel_template_bytes");
    assert!((300_000.0..=600_000.0).contains(&n_bytes), "{n_bytes} bytes of 1 MiB");
    assert!(outcome.metric("cronwheel_templates_not_kept") >= 20.0);
}

#[test]
fn forbidden_namespace_does_not_stop_other_namespaces() {
    let scenario = Scenario {
        configure: |settings| {
            let namespaces = INNOCENT.into_iter().chain([OFFENDER]);
            settings.scopes = namespaces.map(|name| Scope::Namespace(name.into())).collect();
        },
        ..Scenario::default()
    };
    compare(&scenario, async |cluster| {
        let rules = forbid_lists(cluster);
        let object = cron_job("late", "* * * * *", "Allow", &job_template("1s", "succeed"));
        cluster.create_cron_job(OFFENDER, &object).await;
        cluster.until(cluster.start + SignedDuration::from_mins(4)).await;
        let path = format!("/apis/batch/v1/namespaces/{OFFENDER}/jobs");
        let jobs = async || {
            cluster.request("GET", &path, &Value::Null).await["items"]
                .as_array()
                .unwrap()
                .len()
        };
        assert_eq!(jobs().await, 0);
        for rule in rules {
            cluster.api.faults().remove(rule);
        }
        cluster.until(cluster.start + SignedDuration::from_mins(8)).await;
        assert!(jobs().await > 0, "the namespace is listed once lists are permitted");
    });
}

/// Denies lists and watches in the namespace of the offender.
fn forbid_lists(cluster: &Cluster) -> [RuleId; 2] {
    [Resource::CronJob, Resource::Job].map(|resource| {
        cluster.add_offender_fault(Rule {
            resource: Some(resource),
            verbs: vec![Verb::List, Verb::Watch],
            ..Rule::new(Fault::NotPermitted)
        })
    })
}
