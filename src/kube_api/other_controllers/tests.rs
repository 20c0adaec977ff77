//! Tests of the evidence of other controllers.

use super::*;
use crate::shard::{NamespaceUpdate, ResourceVersion, Uid};

fn at(text: &str) -> Timestamp {
    format!("2026-03-01T{text}Z").parse().unwrap()
}

fn cron_job() -> CronJobIdentity {
    CronJobIdentity {
        namespace: "shop".into(),
        name: "report".into(),
        uid: Uid::new("0b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"),
    }
}

fn note(others: &OtherControllers, manager: &str, time: &str) {
    if let Some(writer) = StatusWriter::other(manager, at(time)) {
        others.note_status_write(&cron_job(), &writer);
    }
}

fn texts(others: &OtherControllers, now: &str) -> Vec<String> {
    let active = others.active(at(now));
    active.iter().map(ToString::to_string).collect()
}

#[test]
fn a_status_write_of_another_controller_counts_for_ten_minutes() {
    let others = OtherControllers::default();
    note(&others, "kube-controller-manager", "10:00:00");
    others.begin(at("10:00:00"), "kube-system/cronwheel".into());
    note(&others, "kube-controller-manager", "09:59:59");
    note(&others, "kube-controller-manager", "10:00:09");
    note(&others, "cronwheel", "10:01:00");
    note(&others, "kubectl-edit", "10:01:00");
    assert!(texts(&others, "10:01:00").is_empty());
    note(&others, "kube-controller-manager", "10:01:00");
    note(&others, "k3s", "10:00:30");
    let expected = "another controller wrote the status of CronJob shop/report: field manager \
                    kube-controller-manager, at 2026-03-01T10:01:00Z; only one may run these CronJobs: cronwheel \
                    check shows whether the admission policy refuses its writes; without the policy, append \
                    ,-cronjob-controller to --controllers of kube-controller-manager (* if it is not set)";
    assert_eq!(texts(&others, "10:10:59"), [expected]);
    assert!(texts(&others, "10:11:00").is_empty());
}

#[test]
fn a_status_write_in_the_future_is_ignored() {
    let others = OtherControllers::default();
    others.begin(at("10:00:00"), "kube-system/cronwheel".into());
    note(&others, "forger", "23:00:00");
    assert!(texts(&others, "10:00:00").is_empty());
    note(&others, "k3s", "10:00:10");
    assert_eq!(texts(&others, "10:00:10").len(), 1);
}

#[test]
fn a_status_write_at_the_maximum_timestamp_is_ignored() {
    let others = OtherControllers::default();
    others.begin(at("10:00:00"), "kube-system/cronwheel".into());
    for time in [Timestamp::MAX - SignedDuration::from_mins(1), Timestamp::MAX] {
        others.note_status_write(&cron_job(), &StatusWriter::other("forger", time).unwrap());
        assert!(others.active(at("10:00:00")).is_empty());
    }
}

/// A Job without the annotation that cronwheel creates Jobs with.
fn foreign_job(name: &str, scheduled: Option<Timestamp>) -> JobRecord {
    JobRecord {
        uid: Uid::new("1"),
        namespace: "shop".into(),
        name: name.into(),
        resource_version: ResourceVersion(1),
        controller: Some(cron_job().uid),
        scheduled,
        finish: None,
        started: None,
        completed: None,
        creator: JobCreator::Unknown,
        run_token: None,
    }
}

/// The same, with the name of its slot.
fn job_of_slot(slot: Timestamp) -> JobRecord {
    foreign_job(&format!("report-{}", slot.as_second() / 60), Some(slot))
}

#[test]
fn a_job_of_a_slot_is_evidence_unless_cronwheel_created_it() {
    let others = OtherControllers::default();
    others.begin(at("10:00:00"), "kube-system/cronwheel".into());
    let note = |job: &JobRecord| others.note_job(job, at("10:01:00"));
    let slot = at("10:01:00");
    note(&foreign_job("report-manual", None));
    note(&foreign_job("report-7", Some(slot)));
    // The second in the name is not that of the slot.
    note(&foreign_job(&format!("{}-15", job_of_slot(slot).name), Some(slot)));
    note(&JobRecord {
        creator: JobCreator::Cronwheel,
        ..job_of_slot(slot)
    });
    // The Job existed before this process started.
    note(&job_of_slot(at("09:59:00")));
    assert!(texts(&others, "10:01:00").is_empty());
    note(&job_of_slot(slot));
    let name = job_of_slot(slot).name;
    assert_eq!(
        texts(&others, "10:01:00"),
        [format!("another controller created Job shop/{name}; {REMEDY}")]
    );
}

/// The Jobs of a schedule with seconds have the second in their names (O-5.5).
#[test]
fn a_job_of_a_slot_with_a_second_is_evidence() {
    let others = OtherControllers::default();
    others.begin(at("10:00:00"), "kube-system/cronwheel".into());
    let slot = at("10:01:15");
    let job = JobRecord {
        creator: JobCreator::Installation("team/cronwheel".into()),
        ..foreign_job(&format!("{}-15", job_of_slot(slot).name), Some(slot))
    };
    others.note_job(&job, slot);
    let expected = format!(
        "another installation team/cronwheel created Job shop/{}; {REMEDY_INSTALLATION}",
        job.name
    );
    assert_eq!(texts(&others, "10:02:00"), [expected]);
}

#[test]
fn a_job_of_another_installation_is_evidence() {
    let others = OtherControllers::default();
    others.begin(at("10:00:00"), "kube-system/cronwheel".into());
    let note = |installation: &str, slot| {
        let creator = JobCreator::Installation(installation.into());
        let job = JobRecord {
            creator,
            ..job_of_slot(at(slot))
        };
        others.note_job(&job, at("10:01:00"));
    };
    note("kube-system/cronwheel", "10:01:00");
    note("team/cronwheel", "09:59:00");
    note("team/cronwheel", "23:00:00");
    assert!(texts(&others, "10:01:00").is_empty());
    note(&format!("team/\n{}", "a".repeat(1_000)), "10:01:00");
    let name = job_of_slot(at("10:01:00")).name;
    let expected = format!(
        "another installation team/{} created Job shop/{name}; {REMEDY_INSTALLATION}",
        "a".repeat(123)
    );
    assert_eq!(texts(&others, "10:01:00"), [expected]);
}

#[test]
fn only_actions_in_managed_namespaces_are_evidence() {
    let others = OtherControllers::default();
    others.begin(at("10:00:00"), "kube-system/cronwheel".into());
    let namespaces = ManagedNamespaces::selected();
    others.observe_only(namespaces.clone());
    let note = |slot| others.note_job(&job_of_slot(at(slot)), at("10:04:00"));
    note("10:01:00");
    namespaces.apply(NamespaceUpdate::selected("shop".into()), at("10:01:55"));
    // The other controller acted while the namespace was its own, and as it changed hands.
    note("10:01:00");
    note("10:02:00");
    assert!(texts(&others, "10:04:00").is_empty());
    note("10:03:00");
    assert_eq!(texts(&others, "10:04:00").len(), 1);
}

#[test]
fn a_missing_policy_is_evidence_until_it_is_there_again() {
    let others = OtherControllers::default();
    others.note_policies(&["writes"], at("10:00:00"));
    others.begin(at("10:00:00"), "kube-system/cronwheel".into());
    others.note_policies(&["writes"], at("10:00:09"));
    assert!(texts(&others, "10:00:09").is_empty(), "the chart may still install it");
    others.note_policies(&[], at("10:00:20"));
    assert!(texts(&others, "10:00:20").is_empty());
    others.note_policies(&["writes", "deletes"], at("10:00:30"));
    let expected = format!(
        "the built-in controller is not kept out, since these admission policies or their bindings are missing or do \
         not deny: writes, deletes; {REMEDY_POLICY}"
    );
    assert_eq!(texts(&others, "10:00:30"), [expected]);
    others.note_policies(&[], at("10:00:40"));
    assert!(texts(&others, "10:00:40").is_empty());
}

#[test]
fn a_job_of_a_future_slot_hides_no_evidence() {
    let others = OtherControllers::default();
    others.begin(at("10:00:00"), "kube-system/cronwheel".into());
    let note = |slot| others.note_job(&job_of_slot(slot), at("10:01:00"));
    note(at("23:00:00"));
    note(Timestamp::MAX);
    note(at("10:01:00"));
    assert_eq!(texts(&others, "10:01:00").len(), 1);
}

#[test]
fn field_manager_names_are_bounded_and_printable() {
    let writer = StatusWriter::other(&"a\nb".repeat(100), at("10:00:00")).unwrap();
    assert_eq!(&*writer.manager, "ab".repeat(64));
}
