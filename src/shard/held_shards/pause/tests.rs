//! Pauses: overdue Jobs wait until the watch of CronJobs is open again, but not forever.

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::shard::{
    Effect, Input, JobCreate, LookUpOutcome, ResourceVersion, Scope, SealOrder, ShardCommand, ShardReport,
    TermedAnswer, WatchedResource, held_shards::WHOLE, input::WatchStage, state::test_record,
};

/// The instant this number of seconds after 09:59:30. The CronJobs are due every minute, first at 30 seconds.
fn at(seconds: u64) -> Clocks {
    let start: Timestamp = "2026-05-05T09:59:30Z".parse().unwrap();
    Clocks {
        wall: start + Duration::from_secs(seconds),
        boot: BootInstant::after_boot(Duration::from_secs(seconds)),
    }
}

fn stage_of(kind: WatchedResource, stage: WatchStage) -> Input {
    Input::watch_updated(kind, Scope::Cluster, stage)
}

fn cron_job_watch(stage: WatchStage) -> Input {
    stage_of(WatchedResource::CronJobs, stage)
}

/// A replica that leads one shard, with two minutely CronJobs.
fn replica() -> HeldShards {
    let now = at(0).wall;
    let mut shards = HeldShards::whole(vec![Scope::Cluster], SignedDuration::from_secs(2), now);
    let kinds = [WatchedResource::CronJobs, WatchedResource::Jobs];
    for kind in kinds {
        shards.handle(stage_of(kind, WatchStage::ListBegun), now);
    }
    for name in ["one", "two"] {
        shards.handle(Input::CronJobApplied(Box::new(test_record(name))), now);
    }
    for kind in kinds {
        shards.handle(stage_of(kind, WatchStage::ListDone), now);
        shards.handle(stage_of(kind, WatchStage::Watching(ResourceVersion(10))), now);
    }
    shards
}

fn poll(shards: &mut HeldShards) -> Vec<Effect> {
    let ordered = std::iter::from_fn(|| shards.poll_effect());
    ordered.map(|ordered| ordered.effect).collect()
}

/// The creates that a replica orders at an instant at which it may act.
fn creates(shards: &mut HeldShards, now: Clocks) -> Vec<JobCreate> {
    shards.resume_if_ready(now);
    if !shards.is_paused() {
        shards.handle_timeout(now.wall);
    }
    let effects = poll(shards).into_iter();
    let create = |effect| {
        if let Effect::CreateJob(order) = effect {
            Some(order)
        } else {
            None
        }
    };
    effects.filter_map(create).collect()
}

fn of_whole(answer: OrderAnswer) -> TermedAnswer {
    let shard_term = WHOLE;
    TermedAnswer { shard_term, answer }
}

fn answered(order: &JobCreate, answer: CreateOutcome) -> TermedAnswer {
    of_whole(OrderAnswer::Create {
        cron_job: order.cron_job.uid.clone(),
        slot: order.slot,
        answer,
    })
}

fn lost(order: &JobCreate, is_unreachable: bool) -> TermedAnswer {
    let message = "no answer".to_owned();
    answered(
        order,
        CreateOutcome::Unanswered {
            message,
            is_unreachable,
        },
    )
}

fn unanswered(order: &JobCreate) -> TermedAnswer {
    lost(order, true)
}

#[test]
fn overdue_jobs_wait_for_the_cron_job_watch_after_an_outage() {
    let mut shards = replica();
    shards.pause();
    shards.handle(cron_job_watch(WatchStage::Interrupted), at(20).wall);
    assert!(creates(&mut shards, at(50)).is_empty(), "the watch is interrupted");
    shards.handle(cron_job_watch(WatchStage::Watching(ResourceVersion(10))), at(51).wall);
    assert_eq!(creates(&mut shards, at(51)).len(), 2);
}

#[test]
fn overdue_jobs_wait_for_a_new_list_of_cron_jobs_after_an_outage() {
    let mut shards = replica();
    shards.handle(cron_job_watch(WatchStage::ListBegun), at(15).wall);
    shards.pause();
    assert!(creates(&mut shards, at(50)).is_empty(), "the list is in progress");
    for name in ["one", "two"] {
        shards.handle(Input::CronJobApplied(Box::new(test_record(name))), at(51).wall);
    }
    for stage in [WatchStage::ListDone, WatchStage::Watching(ResourceVersion(10))] {
        shards.handle(cron_job_watch(stage), at(51).wall);
    }
    assert_eq!(creates(&mut shards, at(51)).len(), 2);
}

/// An API server that restarts may answer 403 until it has read the RBAC rules.
#[test]
fn overdue_jobs_wait_for_a_cron_job_watch_that_was_not_permitted_for_a_while() {
    let open = WatchStage::Watching(ResourceVersion(10));
    for stages in [
        vec![WatchStage::NotPermitted, open, WatchStage::Interrupted],
        vec![WatchStage::Interrupted, WatchStage::NotPermitted],
    ] {
        let mut shards = replica();
        shards.pause();
        for stage in &stages {
            shards.handle(cron_job_watch(*stage), at(20).wall);
        }
        assert!(creates(&mut shards, at(50)).is_empty(), "{stages:?}");
        shards.handle(cron_job_watch(open), at(51).wall);
        assert_eq!(creates(&mut shards, at(51)).len(), 2);
    }
}

/// A CronJob may have been suspended during the outage.
#[test]
fn a_shard_sealed_during_a_pause_leaves_its_due_slots_to_the_next_leader() {
    let mut shards = replica();
    shards.pause();
    shards.handle(cron_job_watch(WatchStage::Interrupted), at(20).wall);
    let order = SealOrder {
        shard_term: WHOLE,
        close_by: at(54).boot,
        has_other_taker: true,
    };
    shards.command(ShardCommand::Seal(order), at(50));
    assert!(creates(&mut shards, at(50)).is_empty());
    let mut reports = std::iter::from_fn(|| shards.poll_report());
    let is_sealed = |report| {
        matches!(
            report,
            ShardReport::Sealed {
                fired_through: None,
                ..
            }
        )
    };
    assert!(reports.any(is_sealed));
}

#[test]
fn a_complete_list_ends_the_interruption() {
    let mut shards = replica();
    shards.pause();
    shards.handle(cron_job_watch(WatchStage::Interrupted), at(20).wall);
    shards.handle(cron_job_watch(WatchStage::ListBegun), at(50).wall);
    assert!(creates(&mut shards, at(50)).is_empty());
    for name in ["one", "two"] {
        shards.handle(Input::CronJobApplied(Box::new(test_record(name))), at(51).wall);
    }
    shards.handle(cron_job_watch(WatchStage::ListDone), at(51).wall);
    assert_eq!(creates(&mut shards, at(51)).len(), 2);
}

#[test]
fn an_interrupted_watch_delays_jobs_by_at_most_30_seconds() {
    let mut shards = replica();
    shards.pause();
    shards.handle(cron_job_watch(WatchStage::Interrupted), at(20).wall);
    for seconds in [40, 50, 69] {
        assert!(creates(&mut shards, at(seconds)).is_empty());
    }
    assert_eq!(creates(&mut shards, at(70)).len(), 2);
}

#[test]
fn an_interrupted_watch_of_jobs_delays_nothing() {
    let mut shards = replica();
    shards.pause();
    shards.handle(stage_of(WatchedResource::Jobs, WatchStage::Interrupted), at(20).wall);
    assert_eq!(creates(&mut shards, at(40)).len(), 2);
}

#[test]
fn queued_creates_are_withdrawn_in_an_outage_and_decided_again() {
    let mut shards = replica();
    let ordered = creates(&mut shards, at(30));
    shards.handle(cron_job_watch(WatchStage::Interrupted), at(31).wall);
    shards.handle_answer(unanswered(&ordered[0]), at(31).wall);
    assert!(shards.is_paused());
    let effects = poll(&mut shards);
    let [Effect::LookUpJob(look_up), Effect::Withdraw(withdrawal)] = &effects[..] else {
        panic!("{effects:?}");
    };
    assert_eq!(withdrawal.cron_job.uid, ordered[1].cron_job.uid);
    let gone = of_whole(OrderAnswer::LookUp {
        look_up: look_up.clone(),
        answer: LookUpOutcome::Gone,
    });
    shards.handle_answer(gone, at(31).wall);
    shards.handle_answer(answered(&ordered[1], CreateOutcome::Withdrawn), at(31).wall);
    assert!(creates(&mut shards, at(40)).is_empty());
    shards.handle(cron_job_watch(WatchStage::Watching(ResourceVersion(10))), at(41).wall);
    assert_eq!(creates(&mut shards, at(41)).len(), 2);
}

#[test]
fn an_unanswered_create_alone_is_no_outage() {
    let mut shards = replica();
    let ordered = creates(&mut shards, at(30));
    shards.handle_answer(unanswered(&ordered[0]), at(31).wall);
    assert!(!shards.is_paused());
}

/// The denial of a webhook, and a CronJob that could not be read: neither shows that the API server is down.
#[test]
fn a_failed_create_is_no_outage() {
    for status in [Some(503), None] {
        let mut shards = replica();
        let ordered = creates(&mut shards, at(30));
        shards.handle(cron_job_watch(WatchStage::Interrupted), at(31).wall);
        let failed = CreateOutcome::Failed {
            message: "no".to_owned(),
            status,
            retry_after: None,
        };
        shards.handle_answer(answered(&ordered[0], failed), at(31).wall);
        assert!(!shards.is_paused(), "{status:?}");
    }
}

#[test]
fn a_create_that_a_webhook_delays_is_no_outage_while_cron_jobs_are_listed_again() {
    let mut shards = replica();
    let ordered = creates(&mut shards, at(30));
    shards.handle(cron_job_watch(WatchStage::ListBegun), at(31).wall);
    shards.handle_answer(lost(&ordered[0], false), at(31).wall);
    assert!(!shards.is_paused());
}

/// A replica with two namespaces, one with a CronJob. The watch of the other one is interrupted and then refused.
fn with_revoked_scope(revoked: &str) -> HeldShards {
    let now = at(0).wall;
    let scopes = ["default", "other"].map(|name| Scope::Namespace(name.into()));
    let mut shards = HeldShards::whole(scopes.to_vec(), SignedDuration::from_secs(2), now);
    let mut tell = |resource, scope: &Scope, stage| {
        shards.handle(Input::watch_updated(resource, scope.clone(), stage), now);
    };
    for scope in &scopes {
        for resource in [WatchedResource::CronJobs, WatchedResource::Jobs] {
            for stage in [WatchStage::ListBegun, WatchStage::ListDone] {
                tell(resource, scope, stage);
            }
            tell(resource, scope, WatchStage::Watching(ResourceVersion(10)));
        }
    }
    for stage in [WatchStage::Interrupted, WatchStage::NotPermitted] {
        tell(WatchedResource::CronJobs, &Scope::Namespace(revoked.into()), stage);
    }
    shards.handle(Input::CronJobApplied(Box::new(test_record("one"))), now);
    shards
}

#[test]
fn an_interrupted_scope_is_no_outage_of_another() {
    let mut shards = with_revoked_scope("other");
    let ordered = creates(&mut shards, at(30));
    shards.handle_answer(unanswered(&ordered[0]), at(31).wall);
    assert!(!shards.is_paused());
}

/// An API server that restarts has read its roles within the time of one pause.
#[test]
fn a_scope_that_stays_refused_pauses_the_shards_once() {
    let mut shards = with_revoked_scope("default");
    let ordered = creates(&mut shards, at(30));
    shards.handle_answer(unanswered(&ordered[0]), at(31).wall);
    assert!(shards.is_paused(), "the refusal may be that of a restarting API server");
    assert!(creates(&mut shards, at(32)).is_empty());
    creates(&mut shards, at(62));
    assert!(!shards.is_paused());
    shards.handle_answer(unanswered(&ordered[0]), at(63).wall);
    assert!(!shards.is_paused());
    shards.pause();
    shards.resume_if_ready(at(64));
    assert!(!shards.is_paused(), "a scope that is not permitted is not awaited");
}
