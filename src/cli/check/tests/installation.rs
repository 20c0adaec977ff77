//! Tests of the checks of a running installation.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{at, cron_job, job, line, with};
use crate::{
    cli::{
        check::{
            finding::Unread,
            installation::{Managed, Runs, leaders, replicas},
        },
        shards::{Known, Listing},
    },
    coordination::{Installation, LeaseKey, LeaseRecord, annotation},
    kube_api::JsonError,
    shard::{ResourceVersion, ShardCount, ShardId},
};

/// The Lease of a member that was renewed at 10:00, with these annotations.
fn member(uid: &str, annotations: &[(&str, &str)]) -> LeaseRecord {
    LeaseRecord {
        holder: format!("pod-{uid}/{uid}/0000000000000001").into(),
        duration_secs: 10,
        renewed_at: Some(at("10:00:00")),
        annotations: annotations
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()))
            .collect(),
        ..LeaseRecord::empty(LeaseKey::Member(uid.into()), ResourceVersion(1))
    }
}

fn taker(uid: &str) -> LeaseRecord {
    member(uid, &[(annotation::ACCEPTS, "now")])
}

/// The Leases of the first shards, which `a` leads.
fn shards(n: u16, annotations: &[(&str, &str)]) -> Vec<LeaseRecord> {
    let lease = |number| LeaseRecord {
        key: LeaseKey::Shard(ShardId(number)),
        ..member("a", annotations)
    };
    (0..n).map(lease).collect()
}

fn listing(leases: Vec<LeaseRecord>) -> Listing {
    let mut known = Known::new("kube-system", Installation::of(ShardCount::default()));
    known.list_leases(leases);
    Listing::of(&known)
}

#[test]
fn replicas_take_shards() {
    let left = LeaseRecord {
        holder: "".into(),
        ..taker("z")
    };
    let settings = |text| [(annotation::SETTINGS, text)];
    let waiting = member("c", &settings("other"));
    for (leases, time, expected) in [
        (
            vec![taker("a"), taker("b")],
            "10:00:01",
            "✓ replicas: 2 replicas at work: pod-a, pod-b",
        ),
        (
            vec![taker("a"), left.clone()],
            "10:00:01",
            "✓ replicas: 1 replica at work: pod-a",
        ),
        (
            vec![taker("a"), waiting],
            "10:00:01",
            "! replicas: 1 replica at work: pod-a; and pod-c takes none: its /readyz says why -> ",
        ),
        (
            vec![taker("a")],
            "10:01:00",
            "✗ replicas: none takes shards: pod-a is silent -> ",
        ),
        (vec![left], "10:00:01", "✗ replicas: none: every replica has left -> "),
    ] {
        let found = line(&replicas(&listing(leases), at(time)));
        assert!(found.starts_with(expected), "{found}");
    }
}

#[test]
fn every_shard_has_a_leader() {
    let with_shards = |shards: Vec<LeaseRecord>| listing([vec![taker("a")], shards].concat());
    let found = |listing: &Listing| line(&leaders(listing));
    assert_eq!(
        found(&with_shards(shards(256, &[]))),
        "✓ leaders: all 256 shards are led"
    );
    assert_eq!(
        found(&with_shards(shards(250, &[]))),
        "✗ leaders: 6 of 256 shards have no leader: 250, 251, 252, 253, 254 and 1 other -> cronwheel shards lists shards in \
         trouble"
    );
}

#[test]
fn managed_namespaces_have_requirements() {
    for (settings, expected) in [
        ("time-zone=UTC namespaces=*", Some("all namespaces")),
        (
            "time-zone=UTC namespaces=b,a",
            Some("namespaces with kubernetes.io/metadata.name in (a,b)"),
        ),
        (
            "time-zone=UTC namespace-selector=team in (b, a),!x namespaces=*",
            Some("namespaces with !x,team in (a,b)"),
        ),
        // Truncated settings, and those of a later version.
        ("time-zone=UTC namespaces=a,b... (300 namespaces, 20000 bytes)", None),
        ("time-zone=UTC namespace-selector=a > 1 namespaces=*", None),
    ] {
        let requirements = Managed::read(settings).requirements();
        assert_eq!(
            requirements.map(|all| all.to_string()).as_deref(),
            expected,
            "{settings}"
        );
    }
    assert_eq!(Managed::of(&listing(vec![taker("a")])), None);
    let settings = [
        (annotation::SETTINGS, "time-zone=UTC namespaces=a"),
        (annotation::ACCEPTS, "now"),
    ];
    let published = listing(vec![taker("a"), member("b", &settings)]);
    assert_eq!(
        Managed::of(&published),
        Some(Managed::read("time-zone=UTC namespaces=a"))
    );
}

#[test]
fn settings_tell_the_managed_namespaces() {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    for (settings, managed, expected) in [
        (
            "time-zone=UTC namespaces=*",
            Managed::All,
            "✓ namespaces: cronwheel runs the CronJobs of all namespaces",
        ),
        (
            "time-zone=UTC namespaces=a,b",
            Managed::Named(names(&["a", "b"])),
            "✓ namespaces: cronwheel runs the CronJobs of 2 namespaces: a, b",
        ),
        (
            "time-zone=UTC namespace-selector=team in (a, b),!x namespaces=*",
            Managed::Selected("team in (a, b),!x".to_owned()),
            "✓ namespaces: cronwheel runs the CronJobs of 1 namespace with team in (a, b),!x: shop",
        ),
        (
            "",
            Managed::All,
            "✓ namespaces: cronwheel runs the CronJobs of all namespaces",
        ),
    ] {
        assert_eq!(Managed::read(settings), managed, "{settings}");
        assert_eq!(line(&managed.finding(&names(&["shop"]))), expected);
    }
}

#[test]
fn the_command_labels_a_namespace() {
    for (selector, expected) in [
        ("a=b", "kubectl label namespace NAME a=b"),
        (
            "a in (b,c),kubernetes.io/metadata.name notin (d)",
            "kubectl label namespace NAME a=b",
        ),
        ("!a", "kubectl label namespace NAME KEY=VALUE"),
        // Of a later version.
        ("a > 1", "label a namespace so that a > 1 selects it"),
    ] {
        assert_eq!(
            line(&Managed::Selected(selector.to_owned()).finding(&BTreeSet::new())),
            format!("! namespaces: no namespace matches {selector}, so cronwheel runs no CronJob -> {expected}")
        );
    }
}

/// A Job of a slot that was created this many seconds after it, with these annotations.
fn created(minutes: i64, seconds: i64, annotations: Value) -> Value {
    let slot = jiff::Timestamp::from_second(minutes * 60).unwrap();
    let created = slot + SignedDuration::from_secs(seconds);
    job(
        minutes,
        json!({"metadata": {"creationTimestamp": created.to_string(), "annotations": annotations}}),
    )
}

fn ours() -> Value {
    json!({"cronwheel.dev/created-by": "kube-system/cronwheel"})
}

fn runs(jobs: &[Value]) -> Runs {
    let mut runs = Runs::new("kube-system/cronwheel".to_owned(), at("10:00:30"));
    for job in jobs {
        runs.add(job);
    }
    runs
}

#[test]
fn lateness_is_that_of_the_last_hour() {
    let nothing = "✓ lateness: no Job of the last hour was created by this installation and still exists";
    assert_eq!(line(&runs(&[created(29_632_850, 0, ours())]).lateness()), nothing);
    let manual = with(
        created(29_632_919, 50, ours()),
        json!({"metadata": {"name": "by-hand"}}),
    );
    assert_eq!(line(&runs(&[manual]).lateness()), nothing);
    let on_time = [created(29_632_919, 1, ours()), created(29_632_920, 0, ours())];
    assert_eq!(
        line(&runs(&on_time).lateness()),
        "✓ lateness: 2 Jobs of the last hour, the latest 1s after its slot: shop/report-29632919"
    );
    let late = [created(29_632_919, 75, ours()), created(29_632_920, 10, ours())];
    let found = line(&runs(&late).lateness());
    assert!(
        found.starts_with(
            "! lateness: created more than 10 s after their slot: 1 of 2 Jobs of the last hour, the latest after 1m 15s: \
             shop/report-29632919. "
        ),
        "{found}"
    );
}

/// The Jobs of a schedule with seconds have the second in their names (O-5.5).
#[test]
fn jobs_of_slots_with_seconds_count() {
    let with_second = |annotations: Value| {
        let slot = "2026-05-05T09:59:15Z";
        let named = json!({"metadata": {
            "name": "report-29632919-15", "creationTimestamp": "2026-05-05T09:59:17Z",
            "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": slot},
        }});
        with(created(29_632_919, 0, annotations), named)
    };
    assert_eq!(
        line(&runs(&[with_second(ours())]).lateness()),
        "✓ lateness: 1 Job of the last hour, the latest 2s after its slot: shop/report-29632919-15"
    );
    let of_other = runs(&[with_second(json!({"cronwheel.dev/created-by": "team/cronwheel"}))]);
    let found = line(&of_other.beside(&Ok(())));
    assert!(
        found.starts_with(
            "! other controllers: 1 Job of the last hour by other installations: shop/report-29632919-15 (team/cronwheel)"
        ),
        "{found}"
    );
    let other_second = with(with_second(ours()), json!({"metadata": {"name": "report-29632919-16"}}));
    assert!(line(&runs(&[other_second]).lateness()).starts_with("✓ lateness: no Job of the last hour"));
}

#[test]
fn jobs_of_a_backfill_are_neither_late_nor_of_another_controller() {
    let backfilled = runs(&[created(
        29_632_890,
        1_800,
        json!({"cronwheel.dev/created-under": "backfill"}),
    )]);
    assert!(line(&backfilled.lateness()).starts_with("✓ lateness: no Job of the last hour"));
    assert_eq!(line(&backfilled.beside(&Ok(()))), NO_OTHERS);
}

const NO_OTHERS: &str = "✓ other controllers: in the last hour, no other controller created a Job or wrote the status of a \
                         CronJob in a managed namespace";

/// If the policy misses the user of the built-in controller and cronwheel wins the creates, only the statuses show it.
#[test]
fn statuses_of_other_controllers_are_found() {
    let written = |manager: &str, time: &str| {
        let entry = json!({"manager": manager, "subresource": "status", "time": at(time).to_string()});
        cron_job(json!({"metadata": {"managedFields": [entry]}}))
    };
    let found = |cron_jobs: &[Value], read: &Result<(), Unread>| {
        let mut runs = runs(&[created(29_632_920, 0, ours())]);
        for cron_job in cron_jobs {
            runs.add_cron_job(cron_job);
        }
        line(&runs.beside(read))
    };
    let theirs = written("kube-controller-manager", "09:58:00");
    for (cron_job, is_other) in [
        (cron_job(json!({})), false),
        (written("cronwheel", "09:58:00"), false),
        (written("kubectl-edit", "09:58:00"), false),
        (written("kube-controller-manager", "08:59:00"), false),
        (theirs.clone(), true),
    ] {
        let expected = if is_other {
            "! other controllers: 1 CronJob in managed namespaces whose status another controller wrote in the last hour: \
             shop/report (kube-controller-manager). The other controller is the built-in one if it stands in, is not \
             silenced, or ran the namespace until it was labelled -> cronwheel check --canary shows whether the built-in \
             controller is silenced now"
        } else {
            NO_OTHERS
        };
        assert_eq!(found(&[cron_job], &Ok(())), expected);
    }
    let refused = JsonError::Refused {
        code: 403,
        message: "no".to_owned(),
    };
    let unread = Err(Unread::new("list cronjobs in all namespaces", &refused));
    let not_checked = "statuses of CronJobs not checked: the account may not list cronjobs in all namespaces";
    let mend = "repeat the check with an account that may list cronjobs in all namespaces";
    assert_eq!(
        found(&[], &unread),
        format!(
            "! other controllers: no Job of the last hour in a managed namespace is of another controller; {not_checked} -> \
             {mend}"
        )
    );
    // Some were read before the list failed.
    let some = found(&[theirs], &unread);
    assert!(
        some.contains("shop/report (kube-controller-manager)") && some.contains(not_checked),
        "{some}"
    );
}

#[test]
fn jobs_of_other_controllers_are_found() {
    let under = json!({"cronwheel.dev/created-under": "3/7"});
    for job in [
        created(29_632_920, 0, ours()),
        created(29_632_920, 0, under),
        created(29_632_850, 0, json!({})),
        with(
            created(29_632_920, 0, json!({})),
            json!({"metadata": {"ownerReferences": []}}),
        ),
    ] {
        assert_eq!(line(&runs(&[job]).beside(&Ok(()))), NO_OTHERS);
    }
    let others = [
        created(29_632_919, 0, json!({})),
        created(29_632_920, 0, json!({"cronwheel.dev/created-by": "team/cronwheel"})),
    ];
    assert_eq!(
        line(&runs(&others).beside(&Ok(()))),
        "! other controllers: 1 Job of the last hour in managed namespaces without the annotation of cronwheel: \
         shop/report-29632919. The other controller is the built-in one if it stands in, is not silenced, or ran the \
         namespace until it was labelled; 1 Job of the last hour by other installations: shop/report-29632920 (team/cronwheel) -> \
         cronwheel check --canary shows whether the built-in controller is silenced now"
    );
}

#[test]
fn a_run_of_a_spread_cron_job_is_late_after_its_offset() {
    let job = created(29_632_920, 300, ours());
    let owner = json!({"metadata": {"uid": job["metadata"]["ownerReferences"][0]["uid"]}});
    for (offset, expected) in [
        (0, "! lateness: "),
        (299, "✓ lateness: 1 Job of the last hour, the latest 1s after"),
    ] {
        let mut runs = Runs::new("kube-system/cronwheel".to_owned(), at("10:10:00"));
        runs.add_offset(&owner, SignedDuration::from_secs(offset));
        runs.add(&job);
        let found = line(&runs.lateness());
        assert!(found.starts_with(expected), "{found}");
    }
}
