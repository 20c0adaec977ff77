//! Tests of the passes over the CronJobs of a replica, and of their reports.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::{
    schedule::Zone,
    shard::{
        ActiveJob, Bucket, CronJobRecord, CronJobSchedule, Effect, EventReason, Input, Scope, SealOrder, ShardCommand,
        ShardCount, ShardTerm, Term, TermedEffect, Uid, WatchedResource,
        state::{PanicAt, test_record},
    },
};

fn now(seconds: u64) -> Clocks {
    let wall: Timestamp = "2026-05-05T09:59:00Z".parse().unwrap();
    Clocks {
        wall: wall + Duration::from_secs(seconds),
        boot: BootInstant::after_boot(Duration::from_secs(seconds)),
    }
}

fn count() -> ShardCount {
    ShardCount::new(16).unwrap()
}

/// A CronJob whose schedule is invalid.
fn invalid(number: usize) -> CronJobRecord {
    CronJobRecord {
        schedule: CronJobSchedule::new("nonsense", None, &Zone::utc()),
        ..test_record(&format!("hello-{number}"))
    }
}

fn healthy(number: usize) -> CronJobRecord {
    let mut record = test_record(&format!("hello-{number}"));
    record.status.last_successful_time = record.status.last_schedule_time;
    record
}

/// The first CronJobs of a shard.
fn of_shard(shard: ShardId, n_cron_jobs: usize) -> Vec<CronJobRecord> {
    let all = (0..).map(invalid);
    let of_shard = all.filter(|record| Bucket::of(&record.identity.uid).shard(count()) == shard);
    of_shard.take(n_cron_jobs).collect()
}

fn list(shards: &mut HeldShards, records: Vec<CronJobRecord>) {
    let now = now(0).wall;
    for kind in [WatchedResource::CronJobs, WatchedResource::Jobs] {
        shards.handle(Input::list_begun(kind, Scope::Cluster), now);
    }
    for record in records {
        shards.handle(Input::CronJobApplied(Box::new(record)), now);
    }
    for kind in [WatchedResource::CronJobs, WatchedResource::Jobs] {
        shards.handle(Input::list_done(kind, Scope::Cluster), now);
    }
}

/// A replica that leads one shard with these CronJobs.
fn whole(records: Vec<CronJobRecord>) -> HeldShards {
    let mut shards = HeldShards::whole(vec![Scope::Cluster], SignedDuration::from_secs(2), now(0).wall);
    shards.survey_cron_jobs(true);
    list(&mut shards, records);
    shards
}

/// A replica that leads some of sixteen shards.
fn leading(led: &[u16], records: Vec<CronJobRecord>) -> HeldShards {
    let scopes = vec![Scope::Cluster];
    let mut shards = HeldShards::new(count(), scopes, SignedDuration::from_secs(2), now(0).wall);
    shards.survey_cron_jobs(true);
    list(&mut shards, records);
    for &shard in led {
        let (shard, term) = (ShardId(shard), Term(1));
        shards.lead(ShardTerm { shard, term }, now(0).wall);
    }
    shards
}

fn n_named(shards: &mut HeldShards) -> usize {
    shards.trouble_report().named.len()
}

fn n_omitted(shards: &mut HeldShards) -> u64 {
    shards.trouble_report().n_omitted.iter().sum()
}

#[test]
fn each_survey_pass_replaces_the_report() {
    let mut shards = whole(vec![invalid(1), healthy(2)]);
    assert_eq!(n_named(&mut shards), 0, "before the first pass");
    shards.survey(now(1));
    let report = shards.trouble_report();
    let names: Vec<(&str, TroubleKind)> = report
        .named
        .iter()
        .map(|trouble| (&*trouble.cron_job.name, trouble.kind))
        .collect();
    assert_eq!(names, [("hello-1", TroubleKind::Invalid)]);
    let repaired = CronJobRecord {
        resource_version: crate::shard::ResourceVersion(99),
        ..healthy(1)
    };
    shards.handle(Input::CronJobApplied(Box::new(repaired)), now(2).wall);
    shards.survey(now(10));
    assert_eq!(
        n_named(&mut shards),
        1,
        "the next pass begins ten seconds after the last"
    );
    shards.survey(now(11));
    assert_eq!(n_named(&mut shards), 0);
    assert_eq!(shards.next_survey(), None);
}

#[test]
fn survey_pass_runs_in_steps() {
    const N_CRON_JOBS: usize = 2 * STEP_MAX + 1;
    let mut shards = whole((0..N_CRON_JOBS).map(invalid).collect());
    let mut n_steps = 0;
    let mut time = now(1);
    loop {
        shards.survey(time);
        n_steps += 1;
        let Some(next) = shards.next_survey() else { break };
        assert_eq!(n_named(&mut shards), 0, "a pass is reported when it is complete");
        assert_eq!(next, time.boot + STEP_INTERVAL);
        shards.survey(time);
        assert_eq!(shards.next_survey(), Some(next), "no step before its time");
        time.boot = next;
    }
    assert_eq!(n_steps, 3);
    assert_eq!(n_named(&mut shards), NAMED_MAX);
    assert_eq!(n_omitted(&mut shards), (N_CRON_JOBS - NAMED_MAX) as u64);
}

#[test]
fn entries_of_the_active_list_count_towards_a_step() {
    let active = |number: usize| ActiveJob {
        name: format!("job-{number}").into(),
        namespace: "default".into(),
        uid: Uid::new(&format!("job-{number}")),
        resource_version: "1".into(),
    };
    let with_active = |number: usize| {
        let mut record = healthy(number);
        record.status.active = (0..STEP_MAX / 2).map(active).collect();
        record
    };
    let mut shards = whole((0..3).map(with_active).collect());
    let mut time = now(1);
    shards.survey(time);
    time.boot = shards.next_survey().expect("a second step, for the third CronJob");
    shards.survey(time);
    assert_eq!(shards.next_survey(), None);
}

#[test]
fn replica_names_its_share_of_troubles() {
    let records = [
        of_shard(ShardId(0), 40),
        of_shard(ShardId(1), 40),
        of_shard(ShardId(2), 40),
    ]
    .concat();
    let mut shards = leading(&[0, 1], records);
    shards.survey(now(1));
    // Two of sixteen shards may name 62 of 500.
    assert_eq!((n_named(&mut shards), n_omitted(&mut shards)), (62, 18));
    let report = shards.trouble_report();
    assert!(report.named.iter().all(|trouble| trouble.shard < ShardId(2)));
}

#[test]
fn sealed_and_released_shards_leave_the_report_at_once() {
    let records = [of_shard(ShardId(0), 40), of_shard(ShardId(1), 3)].concat();
    let mut shards = leading(&[0, 1], records);
    shards.survey(now(1));
    assert_eq!(n_named(&mut shards), 43);
    shards.command(
        ShardCommand::Seal(SealOrder {
            shard_term: ShardTerm {
                shard: ShardId(1),
                term: Term(1),
            },
            close_by: now(0).boot,
            has_other_taker: false,
        }),
        now(2),
    );
    let report = shards.trouble_report();
    assert!(report.named.iter().all(|trouble| trouble.shard == ShardId(0)));
    // One of sixteen shards may name 31 of 500.
    assert_eq!((report.named.len(), report.n_omitted.iter().sum::<u64>()), (31, 9));
    shards.command(ShardCommand::Release(ShardId(0)), now(3));
    assert_eq!(n_named(&mut shards), 0);
}

#[test]
fn paused_replica_reports_no_troubles() {
    let mut shards = whole(vec![invalid(1)]);
    shards.survey(now(1));
    assert_eq!(n_named(&mut shards), 1);
    shards.pause();
    shards.survey(now(2));
    assert_eq!(n_named(&mut shards), 0);
    shards.resume_if_ready(now(3));
    shards.survey(now(3));
    assert_eq!(n_named(&mut shards), 1, "a pass begins at once");
}

#[test]
fn disabled_survey_reports_nothing() {
    let mut shards = whole(vec![invalid(1)]);
    shards.survey_cron_jobs(false);
    shards.survey(now(1));
    assert_eq!((n_named(&mut shards), shards.next_survey()), (0, None));
}

#[test]
fn f_18_a_panic_in_the_examination_is_reported_and_the_pass_goes_on() {
    let mut shards = whole(vec![healthy(1), invalid(2)]);
    while shards.poll_effect().is_some() {}
    shards.panic_on(|record, place| place == PanicAt::Examination && &*record.identity.name == "hello-1");
    shards.survey(now(1));
    let reason = |ordered: TermedEffect| match ordered.effect {
        Effect::EmitEvent(event) => Some(event.reason),
        Effect::CreateJob(_)
        | Effect::DeleteJob(_)
        | Effect::LookUpJob(_)
        | Effect::Withdraw(_)
        | Effect::WriteStatus(_) => None,
    };
    let event = std::iter::from_fn(|| shards.poll_effect()).find_map(reason);
    assert_eq!(event, Some(EventReason::InternalError));
    assert_eq!(shards.take_panics().len(), 1);
    let in_trouble = shards.trouble_report();
    assert!(
        in_trouble
            .named
            .iter()
            .any(|trouble| &*trouble.cron_job.name == "hello-2")
    );
}
