//! The actions of users.

use std::ops::Range;

use jiff::{SignedDuration, Timestamp};

use super::{Policy, Spec, draw_deadline};
use crate::{
    naive_options::CatchUp,
    random::Random,
    sim::{calendar::Calendar, options},
};

const EDITS_AN_HOUR: i64 = 180;
const ASKED_RUNS_AN_HOUR: i64 = 40;
const CHANGED_RULES_AN_HOUR: i64 = 20;

/// An action of a user on a CronJob or its Jobs.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Edit {
    pub(in crate::sim) at: Timestamp,
    /// The number of the CronJob.
    pub(in crate::sim) cron_job: usize,
    pub(in crate::sim) kind: EditKind,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::sim) enum EditKind {
    Change(Change),
    Delete,
    /// Creates a CronJob of the same name, unless one exists.
    Create(Spec),
    /// Creates a Job like `kubectl create job --from`.
    ManualJob,
    /// Creates a Job without a controller reference that has the name of the Job for the next slot.
    ForeignJob,
    /// Creates a Job in another namespace that names the CronJob as its controller, with a slot in the far future.
    StrangersJob,
    /// Deletes the Job of the CronJob with this number.
    DeleteJob {
        number: usize,
    },
    /// Freezes the namespace until an instant.
    Freeze(Timestamp),
    /// Removes the annotation of the freeze, which may have ended.
    Thaw,
}

/// A change of a CronJob's spec.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) enum Change {
    Suspend(bool),
    Calendar(Calendar),
    Policy(Policy),
    Deadline(Option<i64>),
    History {
        complete_max: usize,
        failed_max: usize,
    },
    /// Asks for a run with a token that was not used before.
    RunNow(u32),
    /// Sets `missed-runs` and `on-resume`.
    Rules {
        missed_runs: CatchUp,
        on_resume: CatchUp,
    },
}

impl Change {
    pub(in crate::sim) fn apply(self, spec: &mut Spec) {
        match self {
            Change::Suspend(is_suspended) => spec.is_suspended = is_suspended,
            Change::Calendar(calendar) => spec.calendar = calendar,
            Change::Policy(policy) => spec.policy = policy,
            Change::Deadline(deadline_seconds) => spec.deadline_seconds = deadline_seconds,
            Change::History {
                complete_max,
                failed_max,
            } => {
                spec.complete_max = complete_max;
                spec.failed_max = failed_max;
            }
            Change::RunNow(token) => spec.options.token = Some(token),
            Change::Rules { missed_runs, on_resume } => {
                spec.options.missed_runs = Some(missed_runs);
                spec.options.on_resume = Some(on_resume);
            }
        }
    }
}

pub(super) fn draw(
    random: &mut Random,
    roughness: i64,
    n_cron_jobs: usize,
    during: Range<Timestamp>,
    calendars: impl Fn(&mut Random) -> Calendar,
) -> Vec<Edit> {
    let mut edits = Vec::new();
    let mut at = during.start;
    loop {
        at += SignedDuration::from_millis(random.between(500, 2 * 3_600_000 / (roughness * EDITS_AN_HOUR)));
        if random.is_one_in(3) {
            at = near_a_minute(random, at);
        }
        if at >= during.end {
            break;
        }
        let cron_job = random.below(n_cron_jobs);
        let kind = draw_kind(random, &calendars);
        edits.push(Edit { at, cron_job, kind });
        let (away, kind) = match kind {
            // Suspended CronJobs are resumed. Otherwise all of them would be suspended after some hours.
            EditKind::Change(Change::Suspend(true)) => {
                let longest = random.pick(&[5_000, 90_000, 600_000]);
                (random.between(500, longest), EditKind::Change(Change::Suspend(false)))
            }
            EditKind::Delete => {
                let calendar = calendars(random);
                let spec = Spec::draw(random, calendar);
                (random.pick(&[0, 10, 300, 4_000, 61_000]), EditKind::Create(spec))
            }
            EditKind::Change(_)
            | EditKind::Create(_)
            | EditKind::ManualJob
            | EditKind::ForeignJob
            | EditKind::StrangersJob
            | EditKind::DeleteJob { .. }
            | EditKind::Freeze(_)
            | EditKind::Thaw => continue,
        };
        let at = (at + SignedDuration::from_millis(away)).min(during.end);
        edits.push(Edit { at, cron_job, kind });
    }
    edits.sort_by_key(|edit| edit.at);
    edits
}

/// Draws the runs that users ask for. Some tokens are soon replaced by another one.
pub(super) fn draw_asked_runs(random: &mut Random, n_cron_jobs: usize, during: Range<Timestamp>) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (mut at, mut token) = (during.start, 0);
    loop {
        at += SignedDuration::from_millis(random.between(500, 2 * 3_600_000 / ASKED_RUNS_AN_HOUR));
        if random.is_one_in(2) {
            at = near_a_minute(random, at);
        }
        let cron_job = random.below(n_cron_jobs);
        let again = random.pick(&[None, None, None, Some(20), Some(1_000), Some(30_000)]);
        let again = again.map(|millis| at + SignedDuration::from_millis(millis));
        for at in std::iter::once(at).chain(again) {
            if at >= during.end {
                return edits;
            }
            token += 1;
            let kind = EditKind::Change(Change::RunNow(token));
            edits.push(Edit { at, cron_job, kind });
        }
    }
}

/// Draws changes of the rules for slots that did not start at their time, of CronJobs that have such rules at the
/// beginning.
pub(super) fn draw_rules(random: &mut Random, specs: &[Spec], during: Range<Timestamp>) -> Vec<Edit> {
    let with_rules: Vec<usize> = (0..specs.len())
        .filter(|number| specs[*number].options.has_rules())
        .collect();
    let mut edits = Vec::new();
    let mut at = during.start;
    while !with_rules.is_empty() {
        at += SignedDuration::from_millis(random.between(500, 2 * 3_600_000 / CHANGED_RULES_AN_HOUR));
        if at >= during.end {
            break;
        }
        let cron_job = random.pick(&with_rules);
        let (missed_runs, on_resume) = options::draw_rules(random);
        let kind = EditKind::Change(Change::Rules { missed_runs, on_resume });
        edits.push(Edit { at, cron_job, kind });
    }
    edits
}

/// Returns an instant shortly before or after the next full minute.
fn near_a_minute(random: &mut Random, at: Timestamp) -> Timestamp {
    let minute = Timestamp::from_second(at.as_second() / 60 * 60 + 60).unwrap();
    minute + SignedDuration::from_millis(random.between(-3_000, 3_000))
}

fn draw_kind(random: &mut Random, calendars: &impl Fn(&mut Random) -> Calendar) -> EditKind {
    match random.below(17) {
        0..=2 => EditKind::Change(Change::Suspend(true)),
        3 | 4 => {
            // A change to `@every` would set an anchor that depends on when the controller observes the change. So only
            // new CronJobs have `@every`.
            let calendar = match calendars(random) {
                Calendar::Every { .. } => Calendar::Minutes(1),
                calendar @ (Calendar::Minutes(_) | Calendar::Hourly { .. } | Calendar::Daily { .. }) => calendar,
            };
            EditKind::Change(Change::Calendar(calendar))
        }
        5 | 6 => EditKind::Change(Change::Policy(Policy::draw(random))),
        7 => EditKind::Change(Change::Deadline(draw_deadline(random))),
        8 => EditKind::Change(Change::History {
            complete_max: random.pick(&[0, 1, 3]),
            failed_max: random.pick(&[0, 1, 2]),
        }),
        9 | 10 => EditKind::Delete,
        11 => EditKind::ManualJob,
        12 | 13 => EditKind::ForeignJob,
        14 => EditKind::StrangersJob,
        _ => EditKind::DeleteJob {
            number: random.below(1_000),
        },
    }
}
