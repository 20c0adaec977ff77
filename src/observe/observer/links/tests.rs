//! Orders and state that follow from signals.

use super::*;
use crate::observe::facts::{
    Creator,
    Kind::{CronJob, Job},
    Run, RunResult,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn run(uid: &str) -> Seen {
    let uid = Uid::new(uid);
    let run = Run {
        job_uid: uid.clone(),
        job_name: "job".into(),
        cron_job: Uid::new("cron-job"),
        slot: None,
        created: at(0),
        started: None,
        finished: None,
        result: RunResult::Running,
        creator: Creator::BuiltIn,
        hindrance: None,
    };
    Seen {
        uid: Some(uid),
        object: Ok(Some(Object::Run(Box::new(run)))),
        problems: Vec::new(),
    }
}

fn foreign(uid: &str) -> Seen {
    Seen {
        object: Ok(None),
        ..run(uid)
    }
}

fn undecodable(uid: &str) -> Seen {
    Seen {
        object: Err(()),
        problems: vec![format!("Job a/{uid}: metadata.name: missing")],
        ..run(uid)
    }
}

fn failed(is_forbidden: bool) -> Signal {
    let text = if is_forbidden { "forbidden (403)" } else { "no route" };
    Signal::Failed(Failure {
        text: text.to_owned(),
        is_forbidden,
    })
}

/// The order in a short form.
fn form(order: Order) -> String {
    match order {
        Order::Nothing => "nothing".to_owned(),
        Order::Apply(Object::Run(run)) => format!("apply {}", run.job_uid),
        Order::Apply(Object::CronJob(facts)) => format!("apply {}", facts.uid),
        Order::Apply(Object::Namespace(_) | Object::Calendar(_)) => panic!("not of these watches"),
        Order::Remove(uid) => format!("remove {uid}"),
        Order::Retain(uids) => format!("retain {uids:?}"),
        Order::Forget => "forget".to_owned(),
    }
}

struct Bench(Links);

impl Bench {
    fn cluster() -> Bench {
        Bench(Links::new(&[Scope::Cluster]))
    }

    fn namespaces() -> Bench {
        Bench(Links::new(&[
            Scope::Namespace("a".into()),
            Scope::Namespace("b".into()),
        ]))
    }

    fn take(&mut self, scope: usize, kind: Kind, signal: Signal, seconds: i64) -> String {
        form(self.0.take(LinkId { scope, kind }, signal, at(seconds)))
    }

    fn list(&mut self, scope: usize, kind: Kind) {
        self.take(scope, kind, Signal::ListBegun, 0);
        self.take(scope, kind, Signal::ListDone, 0);
        self.take(scope, kind, Signal::Opened, 0);
    }

    fn list_all(mut self) -> Bench {
        for scope in 0..self.0.n_scopes() {
            self.list(scope, CronJob);
            self.list(scope, Job);
        }
        assert!(self.0.is_current(at(0)) && self.0.is_complete());
        self
    }
}

#[test]
fn list_retains_what_it_has_and_what_it_could_not_decode() {
    let mut bench = Bench::cluster();
    let orders = [
        bench.take(0, Job, Signal::ListBegun, 0),
        bench.take(0, Job, Signal::Listed(run("1")), 0),
        bench.take(0, Job, Signal::Listed(foreign("2")), 0),
        bench.take(0, Job, Signal::Listed(undecodable("3")), 0),
        bench.take(0, Job, Signal::ListDone, 0),
    ];
    assert_eq!(orders, ["nothing", "apply 1", "remove 2", "nothing", "retain {1, 3}"]);
    assert_eq!(bench.0.problems(), (1, Some("Job a/3: metadata.name: missing")));
    assert!(
        !bench.0.is_current(at(0)) && !bench.0.is_complete(),
        "CronJobs are not listed"
    );
    bench.list(0, CronJob);
    assert!(bench.0.is_current(at(0)) && bench.0.is_complete());
}

#[test]
fn broken_list_begins_anew() {
    let mut bench = Bench::cluster();
    bench.take(0, Job, Signal::ListBegun, 0);
    bench.take(0, Job, Signal::Listed(run("1")), 0);
    bench.take(0, Job, failed(false), 0);
    bench.take(0, Job, Signal::ListBegun, 1);
    bench.take(0, Job, Signal::Listed(run("2")), 1);
    assert_eq!(bench.take(0, Job, Signal::ListDone, 1), "retain {2}");
}

#[test]
fn events_apply_and_remove() {
    let mut bench = Bench::cluster().list_all();
    assert_eq!(bench.take(0, Job, Signal::Applied(run("1")), 1), "apply 1");
    assert_eq!(bench.take(0, Job, Signal::Applied(foreign("1")), 1), "remove 1");
    assert_eq!(bench.take(0, Job, Signal::Applied(undecodable("1")), 1), "nothing");
    assert_eq!(bench.take(0, Job, Signal::Deleted(run("1")), 1), "remove 1");
}

#[test]
fn short_failure_is_none_and_a_long_one_has_its_begin() {
    let mut bench = Bench::cluster().list_all();
    bench.take(0, Job, failed(false), 10);
    assert!(bench.0.is_current(at(14)) && bench.0.not_live(at(14)).is_none());
    assert_eq!(bench.0.next_change(at(10)), Some(at(15)));
    bench.take(0, CronJob, failed(false), 12);
    bench.take(0, Job, failed(false), 14);
    assert!(!bench.0.is_current(at(15)));
    let expected = NotLive {
        since: at(10),
        problem: "no route".to_owned(),
    };
    assert_eq!(bench.0.not_live(at(30)), Some(expected));
    bench.take(0, Job, Signal::Opened, 31);
    assert!(!bench.0.is_current(at(31)), "CronJobs still fail");
    bench.take(0, CronJob, Signal::Opened, 32);
    assert!(bench.0.is_current(at(32)) && bench.0.not_live(at(32)).is_none());
    assert_eq!(bench.0.next_change(at(32)), None);
}

#[test]
fn list_that_begins_again_is_not_current_until_it_is_complete() {
    let mut bench = Bench::cluster().list_all();
    bench.take(0, Job, Signal::ListBegun, 10);
    assert!(!bench.0.is_current(at(10)));
    assert_eq!(bench.0.not_live(at(10)), None, "nothing failed");
    bench.take(0, Job, Signal::ListDone, 11);
    assert!(bench.0.is_current(at(11)));
}

#[test]
fn forbidden_namespace_is_left_out_and_the_others_go_on() {
    let mut bench = Bench::namespaces().list_all();
    assert_eq!(bench.take(1, Job, failed(true), 10), "forget");
    assert_eq!(
        bench.take(1, CronJob, failed(true), 10),
        "nothing",
        "it is left out already"
    );
    assert_eq!(bench.take(1, CronJob, Signal::ListBegun, 11), "nothing");
    let unreadable = bench.0.unreadable();
    assert_eq!(unreadable.len(), 1);
    assert_eq!(
        (&*unreadable[0].namespace, &*unreadable[0].problem),
        ("b", "forbidden (403)")
    );
    assert!(bench.0.is_current(at(60)) && bench.0.not_live(at(60)).is_none());
    assert_eq!(bench.take(0, Job, Signal::Applied(run("1")), 61), "apply 1");
    assert_eq!(bench.0.refusal(), None);
}

#[test]
fn without_a_readable_namespace_nothing_is_live() {
    let mut bench = Bench::namespaces().list_all();
    bench.take(0, Job, failed(true), 10);
    assert_eq!(bench.0.not_live(at(60)), None, "the other namespace is live");
    bench.take(1, CronJob, failed(true), 20);
    let expected = NotLive {
        since: at(10),
        problem: "none of the namespaces can be read: forbidden (403)".to_owned(),
    };
    assert_eq!(bench.0.not_live(at(20)), Some(expected));
    bench.list(0, Job);
    bench.list(0, CronJob);
    assert_eq!(bench.0.not_live(at(21)), None);
}

#[test]
fn what_the_other_watch_of_a_forbidden_namespace_delivers_is_ignored_until_both_list_again() {
    let mut bench = Bench::namespaces().list_all();
    bench.take(1, Job, failed(true), 10);
    assert_eq!(bench.take(1, CronJob, Signal::Applied(run("1")), 11), "nothing");
    assert!(bench.0.take_relists().is_empty());
    bench.take(1, Job, Signal::ListBegun, 20);
    assert_eq!(bench.take(1, Job, Signal::Listed(run("2")), 21), "apply 2");
    let other = LinkId {
        scope: 1,
        kind: CronJob,
    };
    assert_eq!(bench.0.take_relists(), [other]);
    assert_eq!(bench.take(1, Job, Signal::ListDone, 21), "retain {2}");
    assert!(bench.0.unreadable().is_empty());
    assert!(!bench.0.is_current(at(21)), "its CronJobs are not listed again");
    bench.list(1, CronJob);
    assert!(bench.0.is_current(at(22)));
}

#[test]
fn refused_list_of_all_namespaces_is_an_error_only_before_the_first_one() {
    let mut bench = Bench::cluster();
    bench.take(0, CronJob, Signal::ListBegun, 0);
    assert_eq!(bench.take(0, CronJob, failed(true), 0), "nothing");
    assert_eq!(bench.0.refusal(), Some("forbidden (403)"));
    assert!(bench.0.unreadable().is_empty());

    let mut bench = Bench::cluster().list_all();
    assert_eq!(
        bench.take(0, CronJob, failed(true), 10),
        "nothing",
        "what was seen stays"
    );
    assert_eq!(bench.0.refusal(), None);
    assert!(!bench.0.is_current(at(20)));
    assert_eq!(bench.0.not_live(at(20)).map(|not_live| not_live.since), Some(at(10)));
}

#[test]
fn all_watches_list_again_after_a_gap() {
    let mut bench = Bench::namespaces().list_all();
    bench.0.relist_all();
    assert_eq!(bench.0.take_relists().len(), 4);
    assert!(!bench.0.is_current(at(1)));
    assert!(!Bench(Links::new(&[])).0.is_current(at(0)), "nothing is watched");
}
