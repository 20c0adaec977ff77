//! Tests of a CronJob whose creates are refused for a long time: the number of requests, and the delay of its Job after
//! the cause is gone.

use jiff::Timestamp;

use super::world::{World, at, cron_job, schedule};
use crate::shard::CronJobRecord;

/// A CronJob, and the instants of its creates.
struct Refused {
    world: World,
    tries: Vec<Timestamp>,
}

impl Refused {
    fn new(record: CronJobRecord) -> Refused {
        Refused {
            world: World::new("09:59:30", vec![record], vec![]),
            tries: Vec::new(),
        }
    }

    /// Refuses every create before this time.
    fn until(mut self, end: &str) -> Refused {
        loop {
            self.world.effects();
            while !self.world.creates.is_empty() {
                self.tries.push(self.world.now);
                self.world.refused("exceeded quota");
                self.world.effects();
            }
            let next = self.world.shard.next_wakeup().filter(|next| *next < at(end));
            let Some(next) = next else { break };
            self.world.advance_to(&next.to_string());
        }
        self.world.advance_to(end);
        self
    }

    fn n_tries_between(&self, from: &str, end: &str) -> usize {
        let is_within = |tried: &&Timestamp| (at(from)..at(end)).contains(*tried);
        self.tries.iter().filter(is_within).count()
    }
}

fn by_schedule(text: &str) -> CronJobRecord {
    CronJobRecord {
        schedule: schedule(text, None),
        ..cron_job("hello")
    }
}

#[test]
fn each_slot_of_a_refused_cron_job_costs_one_request() {
    let refused = Refused::new(cron_job("hello")).until("10:05:00");
    assert!(refused.n_tries_between("10:00:00", "10:01:00") <= 12);
    assert_eq!(refused.n_tries_between("10:02:00", "10:05:00"), 3);
}

#[test]
fn a_refused_cron_job_that_runs_rarely_is_tried_about_once_a_minute() {
    let refused = Refused::new(by_schedule("0 10 * * *")).until("11:00:00");
    let n_tries = refused.n_tries_between("10:10:00", "11:00:00");
    assert!((38..=50).contains(&n_tries), "{n_tries} in fifty minutes");
}

#[test]
fn refused_creates_of_every_second_are_tried_every_nine_seconds() {
    let refused = Refused::new(by_schedule("@every 1s")).until("10:05:00");
    let n_tries = refused.n_tries_between("10:02:00", "10:05:00");
    assert!((16..=21).contains(&n_tries), "{n_tries} in three minutes");
}

#[test]
fn back_off_does_not_starve_slots_with_a_short_deadline() {
    let with_deadline = CronJobRecord {
        starting_deadline_seconds: Some(1),
        ..by_schedule("@every 10s")
    };
    let refused = Refused::new(with_deadline).until("10:05:00");
    for (from, end) in [("10:01:00", "10:02:00"), ("10:04:00", "10:05:00")] {
        let n_tries = refused.n_tries_between(from, end);
        assert!((6..=12).contains(&n_tries), "{n_tries} from {from}");
    }
}

#[test]
fn a_job_starts_within_75_seconds_after_the_cause_is_gone() {
    for record in [cron_job("hello"), by_schedule("0 10 * * *")] {
        let mut refused = Refused::new(record).until("10:20:30");
        assert_eq!(refused.world.shard.refused_creates.n_cron_jobs(), 1);
        refused.world.effects();
        while refused.world.creates.is_empty() && refused.world.now < at("10:21:45") {
            let next = refused.world.shard.next_wakeup().unwrap();
            refused.world.advance_to(&next.to_string());
            refused.world.effects();
        }
        refused.world.created();
        assert!(refused.world.now <= at("10:21:45"), "{}", refused.world.now);
        assert_eq!(refused.world.shard.refused_creates.n_cron_jobs(), 0);
    }
}
