//! Tests of panics on one CronJob, which a test causes at certain places (F18).

use super::world::{World, at, complete, cron_job, job, uid};
use crate::shard::{
    ContainedPanic, CreateOutcome, CronJobRecord, Input, InstantOutcome, OrderAnswer, ResourceVersion, TroubleKind,
    cron_job::Management, state::PanicAt,
};

const REPORT: &str = "Warning InternalError: cronwheel panicked when it handled this CronJob, which is a fault of \
                      cronwheel: no job starts until the CronJob changes; the log of cronwheel has the cause";

/// Two CronJobs, of which the first has a fault.
fn two() -> Vec<CronJobRecord> {
    vec![cron_job("faulty"), cron_job("sound")]
}

/// Only the version of the test world has the fault.
fn is_faulty(record: &CronJobRecord) -> bool {
    &*record.identity.name == "faulty" && record.resource_version == ResourceVersion(10)
}

fn changed() -> CronJobRecord {
    CronJobRecord {
        resource_version: ResourceVersion(11),
        ..cron_job("faulty")
    }
}

fn panics(world: &World) -> Vec<ContainedPanic> {
    world.shard.panics.take()
}

fn panic_at(place: PanicAt) -> ContainedPanic {
    ContainedPanic {
        cron_job: "default/faulty".into(),
        message: format!("panics at {place:?}, as told").into(),
    }
}

#[test]
fn f_18_a_panic_in_the_evaluation_stops_only_its_cron_job_until_it_changes() {
    let mut world = World::new("09:59:30", vec![], vec![]);
    world.shard.panics_on = Some(|record, place| place == PanicAt::Evaluation && is_faulty(record));
    world.list(two(), vec![]);
    world.expect(&[REPORT]);
    assert_eq!(panics(&world), [panic_at(PanicAt::Evaluation)]);
    assert_eq!(world.shard.panics.n_cron_jobs(), 1);
    assert_eq!(world.shard.sizes().wheel_entries, 1);
    world.advance_to("10:00:00");
    world.expect(&["create sound-29632920 for 2026-05-05T10:00:00Z"]);
    world.created();

    // The same version is no change, and neither is one of its Jobs.
    world.apply(cron_job("faulty"));
    world.apply_job(complete(job("faulty", "09:58:00"), "09:58:10"));
    world.advance_to("10:00:30");
    assert_eq!(panics(&world), []);
    assert!(!world.effects().contains(&REPORT.to_owned()));
    assert_eq!(world.shard.panics.n_cron_jobs(), 1);

    world.apply(changed());
    assert_eq!(world.shard.panics.n_cron_jobs(), 0);
    assert!(
        world
            .effects()
            .contains(&"create faulty-29632920 for 2026-05-05T10:00:00Z".to_owned())
    );
}

#[test]
fn f_18_a_panic_cancels_the_timers_of_its_cron_job() {
    let mut world = World::new("09:59:30", two(), vec![]);
    world.shard.panics_on =
        Some(|record, place| place == PanicAt::Evaluation && record.resource_version == ResourceVersion(11));
    world.apply(CronJobRecord {
        is_suspended: true,
        ..changed()
    });
    world.expect(&[REPORT]);
    assert_eq!(panics(&world).len(), 1);
    assert_eq!(world.shard.sizes().wheel_entries, 1);
    world.advance_to("10:00:00");
    world.expect(&["create sound-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn f_18_a_version_that_panics_again_is_reported_again() {
    let mut world = World::new("09:59:30", vec![], vec![]);
    world.shard.panics_on = Some(|record, place| place == PanicAt::Evaluation && &*record.identity.name == "faulty");
    world.list(two(), vec![]);
    world.expect(&[REPORT]);
    world.apply(changed());
    world.expect(&[REPORT]);
    assert_eq!(panics(&world).len(), 2);
}

#[test]
fn f_18_a_panic_before_the_order_leaves_no_slot_that_waits() {
    let mut world = World::new("09:59:30", two(), vec![]);
    world.shard.panics_on = Some(|record, place| place == PanicAt::Start && is_faulty(record));
    world.advance_to("10:00:00");
    world.expect(&[REPORT, "create sound-29632920 for 2026-05-05T10:00:00Z"]);
    assert_eq!(panics(&world), [panic_at(PanicAt::Start)]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Unschedulable), 1);
    world.apply(changed());
    world.expect(&["create faulty-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn f_18_a_panic_after_the_order_withdraws_it() {
    let mut world = World::new("09:59:30", two(), vec![]);
    world.shard.panics_on = Some(|record, place| place == PanicAt::Ordered && is_faulty(record));
    world.advance_to("10:00:00");
    world.expect(&[
        "create faulty-29632920 for 2026-05-05T10:00:00Z",
        "withdraw the create of faulty",
        REPORT,
        "create sound-29632920 for 2026-05-05T10:00:00Z",
    ]);
    assert_eq!(panics(&world), [panic_at(PanicAt::Ordered)]);
    answer(&mut world, CreateOutcome::Withdrawn);
    world.advance_to("10:00:30");
    world.expect(&[]);
    world.apply(changed());
    world.expect(&["create faulty-29632920 for 2026-05-05T10:00:00Z"]);
}

#[test]
fn f_18_a_panic_after_the_order_was_sent_is_followed_by_its_answer() {
    let mut world = World::new("09:59:30", two(), vec![]);
    world.shard.panics_on = Some(|record, place| place == PanicAt::Ordered && is_faulty(record));
    world.advance_to("10:00:00");
    world.effects();
    let created = created();
    answer(&mut world, created);
    panics(&world);
    world.effects();
    world.apply(changed());
    assert!(
        !world.effects().iter().any(|effect| effect.starts_with("create faulty")),
        "the slot has its Job"
    );
    world.advance_to("10:01:00");
    assert!(
        world
            .effects()
            .contains(&"create faulty-29632921 for 2026-05-05T10:01:00Z".to_owned())
    );
}

#[test]
fn f_18_a_slot_whose_answer_is_lost_is_not_started_again() {
    let mut world = World::new("09:59:30", two(), vec![]);
    world.shard.panics_on = Some(|record, place| place == PanicAt::Answered && is_faulty(record));
    world.advance_to("10:00:00");
    world.effects();
    let created = created();
    answer(&mut world, created);
    world.expect(&[REPORT]);
    assert_eq!(panics(&world), [panic_at(PanicAt::Answered)]);
    world.apply(changed());
    world.advance_to("10:00:59");
    assert!(!world.effects().iter().any(|effect| effect.starts_with("create faulty")));
    world.advance_to("10:01:00");
    assert!(
        world
            .effects()
            .contains(&"create faulty-29632921 for 2026-05-05T10:01:00Z".to_owned())
    );
}

/// A world in which a status write and the create of 10:01 of the faulty CronJob are in flight, and the next answer panics.
fn two_in_flight() -> World {
    let mut world = World::new("09:59:30", vec![cron_job("faulty")], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.created();
    world.advance_to("10:01:00");
    world.effects();
    world.shard.panics_on = Some(|_, place| place == PanicAt::Answered);
    world
}

#[test]
fn f_18_the_slot_waits_for_its_own_answer_when_another_one_is_lost() {
    let mut world = two_in_flight();
    world.stored("faulty");
    world.expect(&["withdraw the create of faulty", REPORT]);
    assert_eq!(panics(&world), [panic_at(PanicAt::Answered)]);
    assert_eq!(world.shard.outcome_counts().open_instants, 1);
    world.shard.panics_on = None;
    world.answer_create(CreateOutcome::Withdrawn);
    world.apply(changed());
    assert!(
        world
            .effects()
            .contains(&"create faulty-29632921 for 2026-05-05T10:01:00Z".to_owned())
    );
}

#[test]
fn f_18_a_panic_on_a_slot_that_is_lost_to_its_deadline_leaves_no_slot_that_waits() {
    let deadline = |record| CronJobRecord {
        starting_deadline_seconds: Some(5),
        ..record
    };
    let mut world = World::new("09:59:30", vec![deadline(cron_job("faulty"))], vec![]);
    world.shard.panics_on = Some(|record, place| place == PanicAt::Start && is_faulty(record));
    world.jump_to("10:00:30");
    world.expect(&[REPORT]);
    assert_eq!(panics(&world), [panic_at(PanicAt::Start)]);
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::Unschedulable), 1);
    world.apply(deadline(changed()));
    world.advance_to("10:01:00");
    assert!(
        world
            .effects()
            .contains(&"create faulty-29632921 for 2026-05-05T10:01:00Z".to_owned())
    );
}

#[test]
fn f_18_a_panic_when_a_namespace_is_released_counts_its_cron_job_once() {
    let mut world = World::selecting("09:59:30", two(), vec![]);
    world.select();
    world.shard.panics_on = Some(|record, place| place == PanicAt::Release && is_faulty(record));
    world.release();
    assert_eq!(panics(&world), [panic_at(PanicAt::Release)]);
    world.shard.panics_on = None;
    assert_eq!(world.shard.sizes().cron_jobs, 0);
    world.select();
    assert_eq!(world.shard.sizes().cron_jobs, 2);
    world.release();
    let sizes = world.shard.sizes();
    assert_eq!((sizes.cron_jobs, sizes.wheel_entries), (0, 0));
}

#[test]
fn f_18_a_panic_in_a_released_namespace_is_reported_when_it_is_selected() {
    let mut world = World::selecting("09:59:30", vec![cron_job("faulty")], vec![]);
    world.select();
    world.advance_to("10:00:00");
    world.effects();
    world.created();
    world.advance_to("10:01:00");
    world.effects();
    world.release();
    world.effects();
    world.shard.panics_on = Some(|_, place| place == PanicAt::Answered);
    world.stored("faulty");
    world.expect(&["withdraw the create of faulty"]);
    assert_eq!(panics(&world).len(), 1);
    assert_eq!(world.shard.panics.n_cron_jobs(), 0, "it is not managed");
    world.select();
    assert_eq!(world.shard.panics.n_cron_jobs(), 1);
    world.expect(&[REPORT]);
}

#[test]
fn f_18_a_panic_on_the_last_answer_in_a_released_namespace_ends_its_management() {
    let mut world = World::selecting("09:59:30", vec![cron_job("faulty")], vec![]);
    world.select();
    world.advance_to("10:00:00");
    world.effects();
    world.release();
    world.effects();
    world.shard.panics_on = Some(|_, place| place == PanicAt::Answered);
    let created = created();
    answer(&mut world, created);
    assert_eq!(panics(&world).len(), 1);
    assert_eq!(world.shard.index.cron_job(0).management, Management::Unmanaged);
}

#[test]
fn f_18_a_cron_job_on_which_the_examination_panics_is_invalid_and_goes_on() {
    let mut world = World::new("09:59:30", two(), vec![]);
    world.shard.panics_on = Some(|record, place| place == PanicAt::Examination && is_faulty(record));
    for _ in 0..2 {
        for place in world.shard.places() {
            world.shard.examine(place, world.now);
        }
        // The same version is not tried again.
        world.apply(cron_job("faulty"));
    }
    world.expect(&[
        "Warning InternalError: cronwheel panicked when it examined this CronJob for trouble, which is a fault of \
         cronwheel: its jobs start, and it counts as invalid until it changes; the log of cronwheel has the cause",
    ]);
    assert_eq!(panics(&world), [panic_at(PanicAt::Examination)]);
    assert_eq!(world.shard.panics.n_cron_jobs(), 1);
    let since = world.shard.examine(0, world.now).since;
    assert_eq!(since[TroubleKind::Invalid as usize], Some(at("09:59:00")));
    let since = world.shard.examine(1, world.now).since;
    assert_eq!(since[TroubleKind::Invalid as usize], None);
    world.advance_to("10:00:00");
    world.expect(&[
        "create faulty-29632920 for 2026-05-05T10:00:00Z",
        "create sound-29632920 for 2026-05-05T10:00:00Z",
    ]);
    world.apply(changed());
    assert_eq!(world.shard.panics.n_cron_jobs(), 0);
    let since = world.shard.examine(0, world.now).since;
    assert_eq!(
        since[TroubleKind::Invalid as usize],
        None,
        "the next version is examined"
    );
}

#[test]
fn f_18_the_next_leader_reports_a_panic_of_its_own_term() {
    let mut world = World::new("09:59:30", vec![], vec![]);
    world.shard.panics_on = Some(|record, place| place == PanicAt::Evaluation && is_faulty(record));
    world.list(two(), vec![]);
    world.expect(&[REPORT]);
    world.shard.stand_by(world.now);
    assert_eq!(world.shard.panics.n_cron_jobs(), 1);
    world.input(Input::CronJobApplied(Box::new(cron_job("faulty"))));
    world.expect(&[]);
    world.lead();
    world.expect(&[REPORT]);
    assert_eq!(panics(&world).len(), 1, "it is not tried again");
    world.input(Input::CronJobDeleted(uid("faulty")));
    assert_eq!(world.shard.panics.n_cron_jobs(), 0);
}

/// Answers the create of the faulty CronJob for 10:00.
fn answer(world: &mut World, answer: CreateOutcome) {
    world.answer(OrderAnswer::Create {
        cron_job: uid("faulty"),
        slot: at("10:00:00"),
        answer,
    });
}

fn created() -> CreateOutcome {
    CreateOutcome::Created {
        uid: uid("faulty-29632920"),
        resource_version: "20".into(),
        created: at("10:00:00"),
    }
}
