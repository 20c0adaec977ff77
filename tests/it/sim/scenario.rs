//! What a seed stands for: CronJobs, how long their Jobs run, when the controller crashes.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::random::Random;

/// The simulated time at which everything begins.
pub(super) fn start() -> Timestamp {
    "2026-05-05T11:57:30Z".parse().unwrap()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    Allow,
    Forbid,
    Replace,
}

impl Policy {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Policy::Allow => "Allow",
            Policy::Forbid => "Forbid",
            Policy::Replace => "Replace",
        }
    }
}

/// A CronJob that runs every `period_minutes` minutes, at minutes of the epoch that this divides.
#[derive(Clone, Debug)]
pub(super) struct CronJob {
    pub(super) name: String,
    pub(super) period_minutes: i64,
    pub(super) policy: Policy,
    pub(super) deadline_seconds: Option<i64>,
    /// How long its Jobs run.
    pub(super) run_seconds: i64,
    /// Every so many Jobs one fails.
    pub(super) fails_one_in: u64,
    /// `spec.successfulJobsHistoryLimit`; with 0 a Job goes as soon as it has ended.
    pub(super) complete_max: usize,
    /// `spec.failedJobsHistoryLimit`.
    pub(super) failed_max: usize,
}

impl CronJob {
    fn new(number: usize, random: &mut Random) -> CronJob {
        CronJob {
            name: format!("job-{number:02}"),
            // Mostly every minute, so that something is always going on.
            period_minutes: random.pick(&[1, 1, 1, 1, 2, 5, 10, 30]),
            policy: random.pick(&[Policy::Allow, Policy::Allow, Policy::Forbid, Policy::Replace]),
            deadline_seconds: random.pick(&[None, None, None, Some(0), Some(30), Some(600)]),
            run_seconds: random.pick(&[1, 5, 20, 70, 100, 200]),
            fails_one_in: random.pick(&[3, 20, 1_000]),
            complete_max: random.pick(&[0, 0, 1, 3]),
            failed_max: random.pick(&[0, 1]),
        }
    }

    /// `spec.schedule`.
    pub(super) fn schedule(&self) -> String {
        if self.period_minutes == 1 {
            "* * * * *".to_owned()
        } else {
            format!("*/{} * * * *", self.period_minutes)
        }
    }

    /// The activations after an instant and before another.
    pub(super) fn slots(&self, after: Timestamp, before: Timestamp) -> impl Iterator<Item = Timestamp> + use<> {
        let period = self.period_minutes * 60;
        let first = after.as_second().div_euclid(period) + 1;
        (first..)
            .map(move |number| Timestamp::from_second(number * period).unwrap())
            .take_while(move |slot| *slot < before)
    }

    /// The activation after one.
    pub(super) fn next(&self, slot: Timestamp) -> Timestamp {
        slot + SignedDuration::from_mins(self.period_minutes)
    }
}

/// The controller dies, and another comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crash {
    pub(super) at: Timestamp,
    pub(super) back_at: Timestamp,
}

#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) length: Duration,
    pub(super) cron_jobs: Vec<CronJob>,
    /// In order; none begins before the one before is over.
    pub(super) crashes: Vec<Crash>,
    /// Whether messages to the API server get lost.
    pub(super) is_lossy: bool,
}

/// Crashes an hour, about.
const CRASHES_AN_HOUR: u64 = 6;

impl Scenario {
    pub(super) fn new(seed: u64, length: Duration) -> Scenario {
        let mut random = Random::new(seed);
        let cron_jobs = (0..45).map(|number| CronJob::new(number, &mut random)).collect();
        let is_lossy = !random.is_one_in(4);
        let mut scenario = Scenario {
            length,
            cron_jobs,
            crashes: Vec::new(),
            is_lossy,
        };
        let end = scenario.end();
        let mut at = start();
        loop {
            at += pause(&mut random);
            let crash = Crash {
                at,
                back_at: at + SignedDuration::from_millis(random.pick(&[50, 700, 5_000, 20_000, 90_000, 200_000])),
            };
            // Enough is left to make up for it.
            if crash.back_at > end - SignedDuration::from_mins(5) {
                return scenario;
            }
            scenario.crashes.push(crash);
            at = crash.back_at;
        }
    }

    pub(super) fn end(&self) -> Timestamp {
        start() + self.length
    }

    /// Whether a controller ran from an instant to another without a break.
    pub(super) fn was_up(&self, from: Timestamp, to: Timestamp) -> bool {
        from >= start() && to <= self.end() && !self.crashes.iter().any(|crash| crash.at <= to && from <= crash.back_at)
    }
}

/// From one crash's end to the next crash: as often as not just behind a whole minute, when there is something to break.
fn pause(random: &mut Random) -> SignedDuration {
    let minutes = random.between(1, i64::try_from(2 * 60 / CRASHES_AN_HOUR).unwrap());
    let millis_max = random.pick(&[400, 60_000]);
    let millis = random.between(0, millis_max);
    // Starts are half past a minute; pauses that follow a crash are wherever they are.
    SignedDuration::from_secs(minutes * 60 + 30) + SignedDuration::from_millis(millis)
}
