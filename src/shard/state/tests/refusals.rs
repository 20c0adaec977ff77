//! Tests of requests that are not permitted: an Event reports them, and later slots are delayed only if necessary.

use super::world::{World, at, complete, cron_job, entry, job};
use crate::shard::{ConcurrencyPolicy, CreateOutcome, CronJobRecord, CronJobStatus, InstantOutcome, LookUpOutcome};

/// A CronJob whose create of 10:00 was not answered, with the look-up of its Job in flight.
fn looked_up(concurrency_policy: ConcurrencyPolicy) -> World {
    let record = CronJobRecord {
        concurrency_policy,
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:30", vec![record], vec![]);
    world.advance_to("10:00:00");
    world.effects();
    world.answer_create(CreateOutcome::Unanswered {
        message: "connection reset".into(),
        is_unreachable: true,
    });
    world.expect(&["look up hello-29632920"]);
    world
}

/// Refuses every look-up until the given time. Returns the other effects.
fn refuse_look_ups_until(world: &mut World, text: &str) -> Vec<String> {
    let mut effects = Vec::new();
    let mut is_look_up_sent = true;
    loop {
        if is_look_up_sent {
            let message = "User cannot get jobs".into();
            world.answer_look_up(LookUpOutcome::NotPermitted { message });
        }
        let wakeup = world.shard.next_wakeup();
        let Some(next) = wakeup.filter(|next| *next <= at(text)) else {
            break;
        };
        world.advance_to(&next.to_string());
        let new_effects = world.effects();
        is_look_up_sent = new_effects.iter().any(|line| line.starts_with("look up"));
        effects.extend(new_effects.into_iter().filter(|line| !line.starts_with("look up")));
    }
    world.advance_to(text);
    effects.extend(world.effects());
    effects
}

#[test]
fn a_look_up_that_is_not_permitted_does_not_stop_later_slots_under_allow() {
    let mut world = looked_up(ConcurrencyPolicy::Allow);
    let effects = refuse_look_ups_until(&mut world, "10:01:40");
    let create = "create hello-29632921 for 2026-05-05T10:01:00Z".to_owned();
    assert!(effects.contains(&create), "{effects:#?}");
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::LookUpRefused), 1);
}

#[test]
fn a_look_up_that_is_not_permitted_is_reported_once_per_slot() {
    let mut world = looked_up(ConcurrencyPolicy::Allow);
    let other_effects = refuse_look_ups_until(&mut world, "10:00:59");
    assert_eq!(
        other_effects,
        ["Warning FailedLookUp: Error looking up job hello-29632920: User cannot get jobs"]
    );
}

#[test]
fn forbid_waits_two_minutes_for_a_look_up_that_is_not_permitted() {
    let event = "Warning FailedLookUp: Error looking up job hello-29632920: User cannot get jobs";
    for policy in [ConcurrencyPolicy::Forbid, ConcurrencyPolicy::Replace] {
        let mut world = looked_up(policy);
        assert_eq!(refuse_look_ups_until(&mut world, "10:01:59"), [event]);
        assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::LookUpRefused), 0);
        let mut world = looked_up(policy);
        assert_eq!(
            refuse_look_ups_until(&mut world, "10:02:45"),
            [
                event,
                "Warning FailedLookUp: Gave up looking up job hello-29632920, which has not been permitted for 2 minutes: \
                 the slot is lost unless the job exists: User cannot get jobs",
                "create hello-29632922 for 2026-05-05T10:02:00Z",
            ]
        );
        assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::LookUpRefused), 1);
        // The Job of the lost slot exists after all: it is adopted, and no second one starts.
        world.apply_job(job("hello", "10:00:00"));
        world.created();
        world.advance_to("10:02:59");
        let effects = world.effects();
        assert!(!effects.iter().any(|line| line.starts_with("create")), "{effects:#?}");
    }
}

#[test]
fn a_look_up_that_the_server_refuses_only_at_times_is_not_given_up() {
    let mut world = looked_up(ConcurrencyPolicy::Forbid);
    let answers = [true, false].into_iter().cycle();
    for is_permitted in answers.take(40) {
        world.answer_look_up(if is_permitted {
            LookUpOutcome::Failed {
                message: "down".into(),
                retry_after: None,
            }
        } else {
            LookUpOutcome::NotPermitted { message: "no".into() }
        });
        while world.look_ups_sent() == 0 {
            let next = world.shard.next_wakeup().expect("a retry");
            world.advance_to(&next.to_string());
            world.effects();
        }
    }
    assert_eq!(world.shard.outcome_counts().outcome(InstantOutcome::LookUpRefused), 0);
}

#[test]
fn forbid_waits_two_minutes_for_an_active_entry_that_may_not_be_looked_up() {
    let listed = job("hello", "09:58:00");
    let record = CronJobRecord {
        concurrency_policy: ConcurrencyPolicy::Forbid,
        status: CronJobStatus {
            active: [&listed].map(entry).into(),
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:01", vec![record], vec![]);
    world.effects();
    let event = "Warning FailedLookUp: Error looking up job hello-29632918: User cannot get jobs";
    let effects = refuse_look_ups_until(&mut world, "10:01:50");
    assert_eq!(effects, [event, "create hello-29632921 for 2026-05-05T10:01:00Z"]);
    // The entry stays, and holds back no later slot.
    world.created();
    world.effects();
    world.apply_job(complete(job("hello", "10:01:00"), "10:01:55"));
    world.effects();
    world.advance_to("10:02:00");
    assert_eq!(world.creates.len(), 0);
    let effects = world.effects();
    let create = "create hello-29632922 for 2026-05-05T10:02:00Z".to_owned();
    assert!(effects.contains(&create), "{effects:#?}");
}

#[test]
fn a_forbidden_look_up_of_an_active_entry_is_reported_once() {
    let listed = job("hello", "09:58:00");
    let record = CronJobRecord {
        status: CronJobStatus {
            active: [&listed].map(entry).into(),
            ..cron_job("hello").status
        },
        ..cron_job("hello")
    };
    let mut world = World::new("09:59:01", vec![record], vec![]);
    world.expect(&["look up hello-29632918"]);
    let other_effects = refuse_look_ups_until(&mut world, "09:59:59");
    assert_eq!(
        other_effects,
        ["Warning FailedLookUp: Error looking up job hello-29632918: User cannot get jobs"]
    );
}
