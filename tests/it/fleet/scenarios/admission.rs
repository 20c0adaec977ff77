//! Admission webhooks that delay every create.

use std::time::Duration;

use apisim::{Fault, Resource, Rule, Verb};
use jiff::SignedDuration;

use super::{FOUR, THREE, begin};
use crate::fleet::{
    Size,
    cluster::Fleet,
    load::{Plan, Policy},
    play,
};

/// The maximum delay that the controller adds to the admission time.
const OWN_LATENESS: Duration = Duration::from_secs(2);

/// How long a request for the previous slot may still be in flight, if Forbid held that slot back until shortly before
/// the next one.
const FORMER_SLOT: Duration = Duration::from_secs(9);

/// Delays one in `one_in` creates of Jobs from now on, as if its admission took this much longer.
fn delay_creates(fleet: &Fleet, one_in: u32, seconds: u64) {
    let admission = Duration::from_secs(seconds);
    let fault = Fault::Delay {
        shortest: admission,
        longest: admission,
    };
    fleet.api.faults().add(Rule {
        resource: Some(Resource::Job),
        verbs: vec![Verb::Create],
        per_million: 1_000_000 / one_in,
        ..Rule::new(fault)
    });
}

/// Starts a fleet whose Jobs all have this admission time.
async fn begin_with_admission(fleet: &mut Fleet, seconds: u64) {
    begin(fleet, &FOUR).await;
    delay_creates(fleet, 1, seconds);
    allow_each_late(fleet, seconds);
}

/// Allows every Job to be late by this time plus that of the controller.
fn allow_each_late(fleet: &mut Fleet, seconds: u64) {
    let begun = fleet.now();
    for second in 0..300 {
        let due = begun + SignedDuration::from_secs(second);
        fleet.allow_late(
            due,
            (Duration::from_secs(seconds) + OWN_LATENESS + FORMER_SLOT).as_secs_f64(),
        );
    }
}

/// The maximum lateness of Jobs that only admission delays, for slots from the first minute on.
fn worst_lateness(fleet: &Fleet) -> SignedDuration {
    let (books, from) = (fleet.books(), fleet.instant(1, 0.0));
    let jobs = books
        .jobs
        .values()
        .filter(|job| books.cron_jobs[&job.owner].plan.policy == Policy::Allow);
    let slots = jobs.filter_map(|job| Some((job.slot.filter(|slot| *slot >= from)?, job.created)));
    slots.map(|(slot, created)| created.duration_since(slot)).max().unwrap()
}

#[test]
fn f_29_slow_admission_delays_jobs_and_loses_none() {
    for (seed, seconds) in [(290, 10), (291, 25)] {
        play(seed, Size::default(), async |fleet| {
            begin_with_admission(fleet, seconds).await;
            fleet.at(4, 50.0).await;
            let longest = SignedDuration::try_from(Duration::from_secs(seconds) + OWN_LATENESS).unwrap();
            let worst = worst_lateness(fleet);
            assert!(worst <= longest, "{worst:?}");
        });
    }
}

#[test]
fn f_29_a_replica_that_is_killed_while_admission_is_slow_doubles_nothing() {
    play(292, Size::default(), async |fleet| {
        begin_with_admission(fleet, 25).await;
        fleet.at(1, 3.0).await;
        fleet.kill("b").await;
        fleet.at(4, 50.0).await;
    });
}

#[test]
fn f_29_a_replica_that_is_frozen_while_admission_is_slow_doubles_nothing() {
    play(293, Size::default(), async |fleet| {
        begin_with_admission(fleet, 25).await;
        fleet.at(1, 3.0).await;
        fleet.freeze("b");
        fleet.at(1, 40.0).await;
        fleet.thaw("b");
        fleet.at(4, 50.0).await;
    });
}

#[test]
fn f_29_replicas_that_drain_while_admission_is_slow_lose_and_double_nothing() {
    play(294, Size::default(), async |fleet| {
        begin_with_admission(fleet, 25).await;
        fleet.at(1, 3.0).await;
        fleet.drain("b").await;
        fleet.at(2, 3.0).await;
        fleet.drain("c").await;
        fleet.at(4, 50.0).await;
    });
}

#[test]
fn f_29_many_creates_with_slow_admission_fit_into_their_minute() {
    let size = Size {
        n_cron_jobs: 0,
        n_shards: 16,
    };
    play(295, size, async |fleet| {
        for number in 0..550 {
            fleet.create_cron_job(Plan::plain(&format!("c-{number:03}"))).await;
        }
        begin(fleet, &THREE).await;
        // Ten seconds each, and twenty-five for one in eleven.
        delay_creates(fleet, 1, 10);
        delay_creates(fleet, 11, 15);
        allow_each_late(fleet, 55);
        fleet.at(3, 58.0).await;
    });
}
