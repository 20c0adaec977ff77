//! Tests of the Jobs without a label and of their proof.

use jiff::Timestamp;

use super::*;
use crate::shard::{Scope, ShardLabels, ShardSet, WatchedResource};

const AT: &str = "2026-05-05T12:00:00Z";

fn at() -> Timestamp {
    AT.parse().unwrap()
}

fn target(version: u64) -> JobsLabelled {
    let version = ResourceVersion(version);
    JobsLabelled { at: at(), version }
}

fn stage(stage: WatchStage) -> WatchItem {
    WatchItem::Input(Input::WatchUpdated(Box::new(WatchUpdate {
        resource: WatchedResource::Jobs,
        scope: Scope::Cluster,
        shards: ShardSet::EVERY,
        stage,
    })))
}

fn reached(version: u64) -> WatchItem {
    stage(WatchStage::Watching(ResourceVersion(version)))
}

fn job(name: &str, cron_job: Option<&str>) -> WatchItem {
    WatchItem::Input(Input::JobApplied(Box::new(JobRecord {
        uid: Uid::new(name),
        namespace: "default".into(),
        name: name.into(),
        resource_version: ResourceVersion(1),
        controller: cron_job.map(Uid::new),
        scheduled: None,
        finish: None,
        started: None,
        completed: None,
        is_created_by_cronwheel: false,
        shard_labels: ShardLabels::default(),
    })))
}

fn left(name: &str) -> WatchItem {
    WatchItem::Input(Input::JobUnselected(Uid::new(name)))
}

fn boot(millis: u64) -> BootInstant {
    BootInstant::after_boot(Duration::from_millis(millis))
}

fn none() -> UnlabelledJobs {
    UnlabelledJobs::new(IntCounter::new("overflows", "Overflows").unwrap(), boot(0))
}

/// Delivers a Job of a CronJob. Returns whether an attempt begins.
fn deliver(jobs: &mut UnlabelledJobs, name: &str) -> bool {
    let WatchItem::Input(Input::JobApplied(job)) = job(name, Some("hello")) else {
        unreachable!("it is a Job");
    };
    jobs.deliver(&job)
}

/// Begins the next attempt. Returns the name of its Job.
fn begin(jobs: &mut UnlabelledJobs, millis: u64) -> Option<String> {
    jobs.begin_attempt(boot(millis)).map(|job| job.name.to_string())
}

fn observe(jobs: &mut UnlabelledJobs, item: &WatchItem) -> Option<JobsLabelled> {
    if let WatchItem::Input(Input::JobApplied(job)) = item
        && job.controller.is_some()
    {
        jobs.deliver(job);
    }
    jobs.observe(item)
}

/// Observes items. Returns the version of the proof that the last one completes; none before it may.
fn observe_all(jobs: &mut UnlabelledJobs, items: Vec<WatchItem>) -> Option<u64> {
    let mut proofs = items.iter().map(|item| observe(jobs, item)).collect::<Vec<_>>();
    let last = proofs.pop().flatten();
    assert!(proofs.iter().all(Option::is_none), "{proofs:?}");
    last.map(|proof| {
        assert_eq!(proof.at, at());
        proof.version.0
    })
}

#[test]
fn a_proof_has_the_version_that_the_watch_has_reached() {
    let mut jobs = none();
    assert_eq!(observe_all(&mut jobs, vec![reached(10)]), None, "nothing to reach");
    jobs.aim_at(target(20));
    assert_eq!(observe_all(&mut jobs, vec![reached(19)]), None);
    assert_eq!(observe_all(&mut jobs, vec![reached(25)]), Some(25));
    assert_eq!(observe_all(&mut jobs, vec![reached(26)]), None, "once for a target");
    jobs.aim_at(target(26));
    assert_eq!(observe_all(&mut jobs, vec![reached(26)]), Some(26));
}

#[test]
fn nothing_is_proved_before_the_list_is_complete() {
    let mut jobs = none();
    jobs.aim_at(target(5));
    let begun = stage(WatchStage::ListBegun);
    let done = stage(WatchStage::ListDone);
    assert_eq!(observe_all(&mut jobs, vec![begun, job("foreign", None), done]), None);
    assert_eq!(observe_all(&mut jobs, vec![reached(9)]), Some(9));
}

#[test]
fn an_unlabelled_job_prevents_the_proof_until_it_is_gone() {
    let mut jobs = none();
    jobs.aim_at(target(5));
    let items = vec![job("hello-1", Some("hello")), reached(9), reached(10), left("hello-1")];
    assert_eq!(observe_all(&mut jobs, items), None);
    assert_eq!(observe_all(&mut jobs, vec![reached(11)]), Some(11));
    jobs.aim_at(target(12));
    let again = vec![
        stage(WatchStage::ListBegun),
        job("hello-2", Some("hello")),
        stage(WatchStage::ListDone),
        reached(20),
    ];
    assert_eq!(observe_all(&mut jobs, again), None, "a list is as good as an event");
    let relisted = vec![stage(WatchStage::ListBegun), stage(WatchStage::ListDone), reached(30)];
    assert_eq!(observe_all(&mut jobs, relisted), Some(30), "it is gone");
}

#[test]
fn jobs_without_a_cron_job_are_ignored() {
    let mut jobs = none();
    for number in 0..2 * UNLABELLED_MAX {
        assert_eq!(observe(&mut jobs, &job(&number.to_string(), None)), None);
    }
    deliver(&mut jobs, "released");
    jobs.observe(&job("released", None));
    assert_eq!(jobs.jobs.len(), 0);
    jobs.aim_at(target(5));
    assert_eq!(observe_all(&mut jobs, vec![reached(5)]), Some(5));
}

#[test]
fn a_refused_job_is_retried_with_doubling_back_off() {
    let mut jobs = none();
    assert!(deliver(&mut jobs, "a"));
    let mut now = 0;
    for millis in [250, 500, 1_000, 2_000] {
        assert_eq!(jobs.next_attempt(), None, "an attempt is in flight");
        jobs.note_attempt(&Uid::new("a"), false, boot(now));
        assert!(!deliver(&mut jobs, "a"), "a change does not end the pause");
        now += millis;
        assert_eq!(jobs.next_attempt(), Some(boot(now)));
        assert_eq!(begin(&mut jobs, now - 1), None);
        assert_eq!(begin(&mut jobs, now).as_deref(), Some("a"));
    }
    for _ in 0..20 {
        jobs.note_attempt(&Uid::new("a"), false, boot(now));
    }
    assert_eq!(jobs.next_attempt(), Some(boot(now) + PAUSE_MAX));
    assert_eq!(jobs.n_refused(), 1);
    jobs.observe(&left("a"));
    assert_eq!((jobs.next_attempt(), jobs.n_refused()), (None, 0));
}

#[test]
fn the_attempt_that_has_been_due_for_the_longest_time_comes_first() {
    let mut jobs = none();
    for (name, n_failures) in [("a", 3), ("b", 1), ("c", 2)] {
        deliver(&mut jobs, name);
        for _ in 0..n_failures {
            jobs.note_attempt(&Uid::new(name), false, boot(0));
        }
    }
    let order: Vec<String> = std::iter::from_fn(|| begin(&mut jobs, 5_000)).collect();
    assert_eq!(order, ["b", "c", "a"]);
}

#[test]
fn a_labelled_job_prevents_the_proof_until_the_watch_reports_it() {
    let mut jobs = none();
    deliver(&mut jobs, "a");
    jobs.note_attempt(&Uid::new("a"), true, boot(0));
    assert_eq!((jobs.next_attempt(), jobs.n_refused()), (Some(boot(0) + PAUSE_MAX), 0));
    jobs.aim_at(target(5));
    assert_eq!(observe_all(&mut jobs, vec![reached(9)]), None);
    assert_eq!(observe_all(&mut jobs, vec![left("a"), reached(10)]), Some(10));
}

#[test]
fn jobs_beyond_the_maximum_prevent_proofs_and_are_listed_again() {
    let mut jobs = none();
    jobs.aim_at(target(5));
    for number in 0..UNLABELLED_MAX {
        assert!(deliver(&mut jobs, &number.to_string()));
    }
    assert!(deliver(&mut jobs, "one more"), "it gets one attempt");
    assert!(!deliver(&mut jobs, "0"));
    assert_eq!((jobs.jobs.len(), jobs.overflows.get()), (UNLABELLED_MAX, 1));
    jobs.note_attempt(&Uid::new("one more"), false, boot(0));
    assert_eq!(jobs.n_refused(), 0, "it is forgotten");
    assert!(!jobs.needs_list(boot(0) + PAUSE_MAX), "the list is not complete");
    assert_eq!(observe_all(&mut jobs, vec![reached(6)]), None);
    assert!(!jobs.needs_list(boot(0)), "the others are being labelled");
    assert!(jobs.needs_list(boot(0) + PAUSE_MAX), "the others are refused");
    for number in 0..UNLABELLED_MAX {
        jobs.observe(&left(&number.to_string()));
    }
    assert_eq!(observe_all(&mut jobs, vec![reached(7)]), None);
    assert!(jobs.needs_list(boot(0)));
    jobs.observe(&stage(WatchStage::ListBegun));
    assert!(!jobs.needs_list(boot(0)));
    assert_eq!(observe_all(&mut jobs, vec![reached(8)]), Some(8));
}
