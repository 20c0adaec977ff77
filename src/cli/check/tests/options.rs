//! CronJobs whose options somebody may ignore.

use serde_json::{Value, json};

use super::{at, cron_job, line, with};
use crate::cli::check::{
    installation::Managed,
    options::{Known, TimedCronJobs, is_run_by_cronwheel},
};

fn with_annotations(annotations: Value) -> Value {
    cron_job(json!({"metadata": {"annotations": annotations}}))
}

/// The CronJob after a write of its status by this field manager.
fn written_by(cron_job: Value, manager: &str, time: &str) -> Value {
    let entry = json!({"manager": manager, "subresource": "status", "time": at(time).to_string()});
    with(cron_job, json!({"metadata": {"managedFields": [entry]}}))
}

fn finding(managed: &Managed, known: &Known, cron_jobs: &[Value]) -> String {
    let mut timed = TimedCronJobs::default();
    for cron_job in cron_jobs {
        timed.add(cron_job, known, at("10:00:00"));
    }
    line(&timed.finding(managed))
}

#[test]
fn options_that_nobody_follows_are_named_with_the_command_that_mends_it() {
    let spread = with_annotations(json!({"cronwheel.dev/spread": "10m", "cronwheel.dev/not-on": "holidays"}));
    let plain = cron_job(json!({}));
    let invalid = with_annotations(json!({"cronwheel.dev/spread": "2h", "cronwheel.dev/pass-scheduled-time": "true"}));
    let known = |is_managed, has_job_of_other| Known {
        is_managed,
        has_job_of_other,
    };
    let selected = Managed::Selected("cronwheel.dev/managed=true".to_owned());
    let none = "✓ options: no CronJob has an option that changes when something starts";
    assert_eq!(finding(&selected, &known(false, false), &[plain, invalid]), none);
    let managed = "✓ options: 1 CronJob with options that change when something starts, which cronwheel alone runs";
    let long_ago = written_by(spread.clone(), "kube-controller-manager", "08:59:00");
    for cron_job in [&spread, &written_by(spread.clone(), "cronwheel", "09:59:00"), &long_ago] {
        assert_eq!(
            finding(&selected, &known(true, false), std::slice::from_ref(cron_job)),
            managed
        );
    }
    let named = "1 CronJob with options that change when something starts; 1 of them in namespaces that are not managed, \
                 where nobody follows these options: shop/report (cronwheel.dev/spread, cronwheel.dev/not-on)";
    for (managed, mend) in [
        (
            selected.clone(),
            "kubectl label namespace shop cronwheel.dev/managed=true",
        ),
        (
            Managed::Named(["a".to_owned()].into()),
            "give the replicas --namespace shop",
        ),
    ] {
        let expected = format!("! options: {named} -> {mend}");
        assert_eq!(
            finding(&managed, &known(false, false), std::slice::from_ref(&spread)),
            expected
        );
    }
    let beside = "! options: 1 CronJob with options that change when something starts; another controller, which ignores \
                  these options, wrote the status or created a Job of 1 in the last hour: shop/report \
                  (cronwheel.dev/spread, cronwheel.dev/not-on). It is the built-in one if it stands in, is not silenced, or \
                  ran the namespace until it was labelled -> cronwheel check --canary shows whether the built-in \
                  controller is silenced now";
    assert_eq!(
        finding(&selected, &known(true, true), std::slice::from_ref(&spread)),
        beside
    );
    let written = written_by(spread, "kube-controller-manager", "09:01:00");
    assert_eq!(finding(&selected, &known(true, false), &[written]), beside);
}

#[test]
fn before_the_switch_options_are_named_that_the_built_in_controller_ignores() {
    let spread = with_annotations(json!({"cronwheel.dev/spread": "10m"}));
    let finding = |cron_job: &Value| {
        let mut timed = TimedCronJobs::default();
        let known = Known {
            is_managed: is_run_by_cronwheel(cron_job),
            has_job_of_other: false,
        };
        timed.add(cron_job, &known, at("10:00:00"));
        line(&timed.finding_before_switch())
    };
    let expected = "! options: 1 CronJob with options that change when something starts, which the built-in controller \
                    ignores until cronwheel manages their namespaces: shop/report (cronwheel.dev/spread) -> install \
                    cronwheel, and kubectl label namespace shop cronwheel.dev/managed=true";
    assert_eq!(finding(&spread), expected);
    assert!(finding(&written_by(spread, "cronwheel", "09:59:00")).starts_with("✓ options: no CronJob"));
}
