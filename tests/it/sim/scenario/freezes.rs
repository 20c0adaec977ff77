//! The freezes of the namespace (O-7).

use jiff::{SignedDuration, Timestamp};

use super::{
    edits::{Edit, EditKind},
    pause,
};
use crate::random::Random;

const FREEZES_AN_HOUR: i64 = 4;

/// A freeze of the namespace of the CronJobs.
#[derive(Clone, Copy, Debug)]
pub(in crate::sim) struct Freeze {
    pub(in crate::sim) from: Timestamp,
    /// The value of the annotation.
    pub(in crate::sim) until: Timestamp,
    /// When a user removes the annotation: before the end, after it, or never.
    pub(in crate::sim) removed: Option<Timestamp>,
}

impl Freeze {
    /// The first instant at which runs may start again.
    pub(in crate::sim) fn end(&self) -> Timestamp {
        self.removed.map_or(self.until, |removed| removed.min(self.until))
    }
}

/// Draws freezes that end before `calm_at`. Half of them end at a full minute, when slots start.
pub(super) fn draw(random: &mut Random, start: Timestamp, calm_at: Timestamp) -> Vec<Freeze> {
    let mut freezes = Vec::new();
    let mut at = start;
    loop {
        let from = at + pause(random, FREEZES_AN_HOUR);
        let seconds_max = random.pick(&[20, 90, 240]);
        // The annotation has whole seconds.
        let mut until = from.as_second() + random.between(5, seconds_max);
        if random.is_one_in(2) {
            until = (until / 60 + 1) * 60;
        }
        let until = Timestamp::from_second(until).unwrap();
        let length_millis = until.duration_since(from).as_millis().try_into().unwrap();
        let removed = match random.below(3) {
            0 => None,
            1 => Some(from + SignedDuration::from_millis(random.between(1, length_millis))),
            _ => Some(until + SignedDuration::from_millis(random.between(1, 120_000))),
        };
        let over = removed.map_or(until, |removed| removed.max(until));
        if over >= calm_at {
            return freezes;
        }
        freezes.push(Freeze { from, until, removed });
        at = over;
    }
}

/// The edits of a freeze. They concern no CronJob.
pub(super) fn edits(freeze: &Freeze) -> Vec<Edit> {
    let edit = |at: Timestamp, kind: EditKind| Edit { at, cron_job: 0, kind };
    let removal = freeze.removed.map(|at| edit(at, EditKind::Thaw));
    let begin = edit(freeze.from, EditKind::Freeze(freeze.until));
    std::iter::once(begin).chain(removal).collect()
}
