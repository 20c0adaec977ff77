//! CronJobs whose options somebody may ignore.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{at, cron_job, line, with};
use crate::{
    cli::check::{
        finding::Unread,
        installation::Managed,
        options::{Defaults, Known, TimedCronJobs, is_run_by_cronwheel},
    },
    explain::Survey,
    kube_api::JsonError,
    schedule::Zone,
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
    finding_with(&Defaults::default(), managed, known, cron_jobs)
}

fn finding_with(defaults: &Defaults, managed: &Managed, known: &Known, cron_jobs: &[Value]) -> String {
    let timed = timed(defaults, known, cron_jobs);
    line(&timed.finding(managed, defaults))
}

fn timed(defaults: &Defaults, known: &Known, cron_jobs: &[Value]) -> TimedCronJobs {
    let mut timed = TimedCronJobs::default();
    for cron_job in cron_jobs.iter().filter_map(|cron_job| defaults.read(cron_job)) {
        timed.add(&cron_job, known, at("10:00:00"));
    }
    timed
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
        let known = Known {
            is_managed: is_run_by_cronwheel(cron_job),
            has_job_of_other: false,
        };
        let defaults = Defaults::default();
        line(&timed(&defaults, &known, std::slice::from_ref(cron_job)).finding_before_switch(&defaults))
    };
    let expected = "! options: 1 CronJob with options that change when something starts, which the built-in controller \
                    ignores until cronwheel manages their namespaces: shop/report (cronwheel.dev/spread) -> install \
                    cronwheel, and kubectl label namespace shop cronwheel.dev/managed=true";
    assert_eq!(finding(&spread), expected);
    assert!(finding(&written_by(spread, "cronwheel", "09:59:00")).starts_with("✓ options: no CronJob"));
}

/// The namespace `shop` with these annotations.
fn namespace(annotations: Value) -> Value {
    json!({"metadata": {"name": "shop", "annotations": annotations}})
}

const UNMANAGED: Known = Known {
    is_managed: false,
    has_job_of_other: false,
};

#[test]
fn the_defaults_of_a_namespace_are_options_of_its_cron_jobs() {
    let shop = namespace(json!({"cronwheel.dev/spread": "10m", "cronwheel.dev/missed-runs": "skip"}));
    let defaults = Defaults::new(&Ok(vec![shop, json!({"metadata": {"name": "empty"}})]));
    // One has a value of its own that is invalid.
    let inheriting = with_annotations(json!({"cronwheel.dev/missed-runs": "All 3"}));
    let switched_off = with_annotations(json!({
        "cronwheel.dev/spread": "none", "cronwheel.dev/missed-runs": "none", "cronwheel.dev/not-on": "holidays",
    }));
    let elsewhere = with(inheriting.clone(), json!({"metadata": {"namespace": "empty"}}));
    let selected = Managed::Selected("cronwheel.dev/managed=true".to_owned());
    let expected = "! options: 2 CronJobs with options that change when something starts; 2 of them in namespaces that are \
                    not managed, where nobody follows these options: shop/report (cronwheel.dev/spread of the namespace, \
                    cronwheel.dev/missed-runs of the namespace), shop/report (cronwheel.dev/not-on) -> kubectl label \
                    namespace shop cronwheel.dev/managed=true";
    let cron_jobs = [inheriting.clone(), switched_off, elsewhere];
    assert_eq!(finding_with(&defaults, &selected, &UNMANAGED, &cron_jobs), expected);
    // A late start that the default asks for is not late.
    let offset = defaults.read(&inheriting).unwrap().offset;
    assert!(
        SignedDuration::ZERO < offset && offset < SignedDuration::from_mins(10),
        "{offset}"
    );
}

#[test]
fn defaults_of_namespaces_that_cannot_be_read_are_said_to_be_unknown() {
    let denied = Unread::new(
        "list namespaces",
        &JsonError::Refused {
            code: 403,
            message: String::new(),
        },
    );
    let defaults = Defaults::new(&Err(denied));
    let spread = with_annotations(json!({"cronwheel.dev/spread": "10m"}));
    let unknown = "; defaults and freezes of namespaces not checked: the account may not list namespaces -> ";
    let mend = "repeat the check with an account that may list namespaces";
    let managed = Known {
        is_managed: true,
        has_job_of_other: false,
    };
    for (cron_jobs, said) in [
        (&[][..], "no CronJob has an option that changes when something starts"),
        (
            std::slice::from_ref(&spread),
            "1 CronJob with options that change when something starts, which cronwheel alone runs",
        ),
    ] {
        assert_eq!(
            finding_with(&defaults, &Managed::All, &managed, cron_jobs),
            format!("! options: {said}{unknown}{mend}")
        );
    }
    let before = line(&timed(&defaults, &UNMANAGED, &[spread]).finding_before_switch(&defaults));
    let install = "install cronwheel, and kubectl label namespace shop cronwheel.dev/managed=true; ";
    assert!(
        before.contains("shop/report (cronwheel.dev/spread)") && before.ends_with(&format!("{unknown}{install}{mend}")),
        "{before}"
    );
}

#[test]
fn the_first_starts_after_the_switch_follow_the_defaults_of_namespaces() {
    // The run of 09:00 is the last one, and it is 10:30.
    let page = || json!({"kind": "CronJobList", "items": [cron_job(json!({}))]});
    let start = |annotations: Value| {
        let mut survey = Survey::new(&Zone::utc(), at("10:30:00"));
        survey.take_namespace(&namespace(annotations));
        survey.outlooks(page())[0].start
    };
    for (annotations, expected) in [
        (json!({}), Some("10:00:00")),
        (json!({"cronwheel.dev/missed-runs": "skip"}), None),
        (json!({"cronwheel.dev/freeze-until": "2026-05-06T00:00:00Z"}), None),
    ] {
        assert_eq!(start(annotations.clone()), expected.map(at), "{annotations}");
    }
}
