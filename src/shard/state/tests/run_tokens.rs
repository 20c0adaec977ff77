//! The ends of runs that users ask for, and the tokens that are answered (O-10).

use super::{
    run_now::{asked, create_line, done, forbid, run_name},
    world::{World, at},
};
use crate::shard::{CreateOutcome, LookUpOutcome};

#[test]
fn o_10_a_run_whose_job_may_not_be_looked_up_is_given_up() {
    let mut world = World::new("10:30:00", vec![forbid(10, &[("run-now", "t1")])], vec![]);
    world.effects();
    world.answer_create(CreateOutcome::Unanswered {
        message: "timeout".into(),
        is_unreachable: false,
    });
    let mut effects = world.effects();
    while world.now < at("10:33:00") {
        if world.look_ups_sent() > 0 {
            world.answer_look_up(LookUpOutcome::NotPermitted { message: "no".into() });
        }
        let next = world.shard.next_wakeup().unwrap_or(at("10:33:00")).min(at("10:33:00"));
        world.advance_to(&next.to_string());
        effects.extend(world.effects());
    }
    let name = run_name("t1");
    effects.retain(|line| !line.starts_with("look up"));
    assert_eq!(
        effects,
        [
            format!("Warning FailedLookUp: Error looking up job {name}: no"),
            format!(
                "Warning RunNowRefused: Gave up looking up job {name}, which has not been permitted for 2 minutes: the run is \
                 lost unless the job exists: no"
            ),
            "status last=10:00:00 successful=- active=[] urgent".to_owned(),
        ]
    );
    assert_eq!(done(&world), Some("t1"));
    world.advance_to("11:00:00");
    world.expect(&["create hello-29632980 for 2026-05-05T11:00:00Z"]);
}

#[test]
fn o_10_a_token_that_comes_back_starts_nothing() {
    let mut world = World::new("10:30:00", vec![asked(10, "t1")], vec![]);
    world.expect(&[&create_line("t1", "10:30:00")]);
    world.created();
    world.effects();
    world.stored("hello");
    let stored = |version, token: &str, done: &[&str]| {
        let mut record = asked(version, token);
        for done in done {
            record.status.set_run_done(done);
        }
        record
    };
    world.apply(stored(200, "t2", &["t1"]));
    let effects = world.effects();
    assert!(effects.contains(&create_line("t2", "10:30:00")), "{effects:?}");
    world.created();
    world.effects();
    world.stored("hello");
    // The commit is reverted, and the Jobs are gone.
    for mut world in [world, World::new("10:31:00", vec![], vec![])] {
        world.apply(stored(300, "t1", &["t1", "t2"]));
        let effects = world.effects();
        assert!(!effects.iter().any(|line| line.starts_with("create")), "{effects:?}");
        // It stays remembered while it is asked for, however many others follow.
        assert_eq!(done(&world), Some("t1"));
    }
}
