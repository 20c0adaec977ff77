//! The scenario of a seed: CronJobs, edits by users, disruptions, and crashes of the controller.

mod disruptions;
mod edits;
mod freezes;
mod rate;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use self::rate::Standstills;
pub(super) use self::{
    disruptions::{Disruption, DisruptionKind},
    edits::{Change, Edit, EditKind},
    freezes::Freeze,
};
use super::{
    calendar::{Calendar, Zone},
    options::Options,
};
use crate::random::Random;

/// The number of CronJobs that users edit.
const N_EDITED: usize = 40;

/// The expected number of runs, and a margin for short simulations, which vary more. CronJobs are added until the
/// estimate reaches the sum. The estimate is one to four percent below the actual number, over fifty seeds of a day.
const N_RUNS_AN_HOUR: u64 = 1_780;
const N_RUNS_MORE: u64 = 160;

/// The time before the end without disruptions and edits.
const CALM_END: SignedDuration = SignedDuration::from_mins(5);

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

    fn draw(random: &mut Random) -> Policy {
        random.pick(&[Policy::Allow, Policy::Allow, Policy::Forbid, Policy::Replace])
    }
}

/// The specification of a CronJob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) calendar: Calendar,
    pub(super) policy: Policy,
    pub(super) deadline_seconds: Option<i64>,
    pub(super) is_suspended: bool,
    /// `spec.successfulJobsHistoryLimit`. With 0, a Job is deleted as soon as it has completed.
    pub(super) complete_max: usize,
    /// `spec.failedJobsHistoryLimit`.
    pub(super) failed_max: usize,
    /// The run time of its Jobs.
    pub(super) run_seconds: i64,
    /// `ttlSecondsAfterFinished` of its Jobs.
    pub(super) ttl_seconds: Option<i64>,
    pub(super) options: Options,
}

/// The maximum run time of a Job.
pub(super) const RUN_SECONDS_MAX: i64 = 200;

impl Spec {
    fn draw(random: &mut Random, calendar: Calendar) -> Spec {
        Spec {
            calendar,
            policy: Policy::draw(random),
            deadline_seconds: draw_deadline(random),
            is_suspended: false,
            complete_max: random.pick(&[0, 0, 1, 3]),
            failed_max: random.pick(&[0, 1]),
            run_seconds: random.pick(&[1, 5, 20, 70, 100, RUN_SECONDS_MAX]),
            ttl_seconds: random.pick(&[None, None, None, None, None, Some(20)]),
            options: Options::default(),
        }
    }

    /// The time from a slot to its start.
    pub(super) fn offset(&self, uid: &str) -> SignedDuration {
        self.options.offset(&self.calendar, uid)
    }

    /// Whether an instant is a slot. Those of `Every` are after `anchor`.
    pub(super) fn is_slot(&self, anchor: Timestamp, instant: Timestamp) -> bool {
        !self
            .slots(anchor, instant, instant + SignedDuration::from_secs(1))
            .is_empty()
    }

    /// The slots from `from` until before `until`, in order, without those that a calendar excludes.
    pub(super) fn slots(&self, anchor: Timestamp, from: Timestamp, until: Timestamp) -> Vec<Timestamp> {
        let mut slots = self.calendar.slots(anchor, from, until);
        slots.retain(|slot| !self.options.excludes(&self.calendar, *slot));
        slots
    }
}

fn draw_deadline(random: &mut Random) -> Option<i64> {
    random.pick(&[None, None, None, Some(0), Some(5), Some(30), Some(600)])
}

/// The end of a controller, and the start of the next one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crash {
    pub(super) at: Timestamp,
    pub(super) back_at: Timestamp,
    /// Whether the controller terminates gracefully, on a signal.
    pub(super) is_graceful: bool,
}

#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    /// The specs of the CronJobs at the beginning.
    pub(super) specs: Vec<Spec>,
    /// In order.
    pub(super) edits: Vec<Edit>,
    /// In order and disjoint.
    pub(super) crashes: Vec<Crash>,
    /// In the order of their beginnings.
    pub(super) disruptions: Vec<Disruption>,
    /// The freezes of the namespace, in order and disjoint.
    pub(super) freezes: Vec<Freeze>,
    /// The date that the calendar excludes, as the number of days since the epoch.
    pub(super) excluded_day: i64,
    /// The loss rate of the messages of the controller in each direction, per million.
    pub(super) lost_per_million: u32,
    /// Whether requests are delayed in steps, so that more responses coincide.
    pub(super) is_delay_in_steps: bool,
    /// The offset of the clock of the controller from the clock of the API server, without clock steps.
    pub(super) clock_offset: SignedDuration,
}

impl Scenario {
    pub(super) fn new(seed: u64, length: Duration) -> Scenario {
        let mut random = Random::new(seed);
        // The options have their own numbers, so that they do not change the rest of a seed.
        let mut of_options = Random::new(!seed);
        let length = SignedDuration::try_from(length).unwrap();
        let zone = Zone::draw(&mut random);
        let start = zone.start(length);
        let end = start + length;
        let calendars = |random: &mut Random| Calendar::draw(random, zone, start, length);
        let mut specs = Vec::new();
        for _ in 0..N_EDITED {
            let calendar = calendars(&mut random);
            specs.push(Spec::draw(&mut random, calendar));
        }
        let calm_at = end - CALM_END;
        // A rough scenario has more disruptions and fewer runs.
        let roughness = random.pick(&[1, 1, 1, 4]);
        let mut scenario = Scenario {
            start,
            end,
            edits: edits::draw(&mut random, roughness, N_EDITED, start..calm_at, calendars),
            crashes: draw_crashes(&mut random, roughness, start, calm_at),
            disruptions: disruptions::draw(&mut random, roughness, start, calm_at),
            freezes: freezes::draw(&mut of_options, start, calm_at),
            excluded_day: zone.day_of_change() - of_options.between(0, 1),
            lost_per_million: random.pick(&[0, 1_000, 5_000, 5_000]),
            clock_offset: SignedDuration::from_millis(random.pick(&[0, 0, -900, -300, 400, 900])),
            specs,
            is_delay_in_steps: false,
        };
        scenario.fill_up(&mut random);
        // This draw is the last one, so that the other draws of a seed do not change.
        scenario.is_delay_in_steps = random.pick(&[true, true, true, false]);
        scenario.add_options(&mut of_options, calm_at);
        scenario
    }

    /// Gives some CronJobs options, and adds the edits that change options, that ask for runs, and that freeze the
    /// namespace.
    fn add_options(&mut self, random: &mut Random, calm_at: Timestamp) {
        let excluded_day = self.excluded_day;
        let add_to = |spec: &mut Spec, random: &mut Random| {
            spec.options = Options::draw(random, spec.calendar, excluded_day);
            spec.calendar.draw_clock_change(random);
        };
        for spec in &mut self.specs {
            add_to(spec, random);
        }
        for edit in &mut self.edits {
            match &mut edit.kind {
                EditKind::Create(spec) => add_to(spec, random),
                EditKind::Change(Change::Calendar(calendar)) => calendar.draw_clock_change(random),
                EditKind::Change(_)
                | EditKind::Delete
                | EditKind::ManualJob
                | EditKind::ForeignJob
                | EditKind::StrangersJob
                | EditKind::DeleteJob { .. }
                | EditKind::Freeze(_)
                | EditKind::Thaw => {}
            }
        }
        let during = self.start..calm_at;
        self.edits
            .extend(edits::draw_asked_runs(random, N_EDITED, during.clone()));
        self.edits
            .extend(edits::draw_rules(random, &self.specs[..N_EDITED], during));
        self.edits.extend(self.freezes.iter().flat_map(freezes::edits));
        self.edits.sort_by_key(|edit| edit.at);
    }

    /// Adds CronJobs without edits until the estimate of runs is high enough.
    fn fill_up(&mut self, random: &mut Random) {
        let still = Standstills::new(&self.crashes, &self.disruptions, &self.freezes);
        let (from, end) = (self.start, self.end);
        let runs = |number: usize, spec: Spec| rate::runs(number, spec, &self.edits, from, end, &still);
        let enough = N_RUNS_AN_HOUR * end.duration_since(from).as_mins().unsigned_abs() / 60 + N_RUNS_MORE;
        let mut n_runs: u64 = self
            .specs
            .iter()
            .enumerate()
            .map(|(number, spec)| runs(number, *spec))
            .sum();
        let mut more = Vec::new();
        while n_runs < enough {
            let spec = Spec::draw(random, Calendar::Minutes(1));
            n_runs += runs(self.specs.len() + more.len(), spec);
            more.push(spec);
        }
        self.specs.append(&mut more);
    }
}

fn draw_crashes(random: &mut Random, roughness: i64, start: Timestamp, calm_at: Timestamp) -> Vec<Crash> {
    const CRASHES_AN_HOUR: i64 = 5;
    let mut crashes = Vec::new();
    let mut at = start;
    loop {
        at += pause(random, roughness * CRASHES_AN_HOUR);
        let away_millis = random.pick(&[50, 700, 5_000, 20_000, 90_000, 200_000]);
        let crash = Crash {
            at,
            back_at: at + SignedDuration::from_millis(away_millis),
            is_graceful: random.is_one_in(4),
        };
        if crash.back_at > calm_at {
            return crashes;
        }
        crashes.push(crash);
        at = crash.back_at;
    }
}

/// Draws the time between events at this rate per hour. Many events are shortly after a full minute, when the
/// controller has work.
fn pause(random: &mut Random, n_an_hour: i64) -> SignedDuration {
    let minutes = random.between(1, 2 * 60 / n_an_hour);
    let millis_max = random.pick(&[400, 2_000, 60_000]);
    let millis = random.between(0, millis_max);
    // A simulation starts at half past a minute. Later events follow the end of the previous event.
    SignedDuration::from_secs(minutes * 60 + 30) + SignedDuration::from_millis(millis)
}
