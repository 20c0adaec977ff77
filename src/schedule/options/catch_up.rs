//! `missed-runs` and `on-resume`: which of several due slots start, and in which order.

use jiff::{SignedDuration, Timestamp};

use super::Options;
use crate::schedule::{Exclusion, Schedule, Zone, due};

/// The largest count of `all`.
pub const CATCH_UP_COUNT_MAX: u8 = 100;

/// A slot that has not started so long after its time was missed: six times what the replacement of a dead replica
/// takes.
pub(crate) const MISSED_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// Which missed slots start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// The latest one (B-9.4).
    #[default]
    Latest,
    /// None.
    Skip,
    /// The last ones, up to this number, the oldest first, each as its own Job.
    All(u8),
}

impl CatchUp {
    /// Reads `latest`, `skip`, `all`, or `all` with a count.
    pub(super) fn read(value: &str) -> Result<CatchUp, String> {
        let mut words = value.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("latest"), None, None) => Ok(CatchUp::Latest),
            (Some("skip"), None, None) => Ok(CatchUp::Skip),
            (Some("all"), None, None) => Ok(CatchUp::All(CATCH_UP_COUNT_MAX)),
            (Some("all"), Some(count), None) => match count.parse() {
                Ok(count @ 1..=CATCH_UP_COUNT_MAX) => Ok(CatchUp::All(count)),
                Ok(_) | Err(_) => Err(format!("the count is no number from 1 to {CATCH_UP_COUNT_MAX}")),
            },
            _ => Err("it is none of latest, skip and all".into()),
        }
    }
}

/// The due slots of a CronJob with options, and what is done with them.
pub(in crate::schedule) struct DueSlots<'a> {
    pub(in crate::schedule) schedule: &'a Schedule,
    pub(in crate::schedule) local: &'a Zone,
    /// The slots that do not count, because a calendar excludes them.
    pub(in crate::schedule) exclusion: Option<Exclusion<'a>>,
    /// The cursor, or the creation.
    pub(in crate::schedule) since: Timestamp,
    /// The instant after which slots count: `since`, or later because of a starting deadline.
    pub(in crate::schedule) earliest: Timestamp,
    /// The end of the last suspension or freeze. The slots until then were held back by it.
    pub(in crate::schedule) resumed: Option<Timestamp>,
    /// Whether `all` starts more than the latest slot.
    pub(in crate::schedule) may_start_several: bool,
    pub(in crate::schedule) now: Timestamp,
}

/// The slot that the rules choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::schedule) enum Chosen {
    /// It starts next.
    Start(Timestamp),
    /// It was missed, and `missed-runs` is `skip`.
    SkipMissed(Timestamp),
    /// It passed during a suspension or a freeze, and `on-resume` is `skip`.
    SkipOnResume(Timestamp),
    /// A calendar excludes it, and no other slot is due.
    Exclude(Timestamp),
}

impl DueSlots<'_> {
    /// Chooses among the due slots. `None` if none is due. `missed_until` is the latest slot that counts as missed.
    pub(in crate::schedule) fn choose(&self, options: &Options, missed_until: Timestamp) -> Option<Chosen> {
        let latest = self.last(self.earliest, self.now)?;
        let resumed = self.resumed.unwrap_or(Timestamp::MIN).min(self.now).max(self.earliest);
        let is_held_back = latest <= resumed;
        // Slots that a suspension held back, then those after it.
        let held_back = match self.rule(options.on_resume()) {
            CatchUp::All(count) => self.oldest_of_last(self.earliest, resumed, count),
            CatchUp::Latest if is_held_back => Some(latest),
            CatchUp::Latest | CatchUp::Skip => None,
        };
        let later = match self.rule(options.missed_runs) {
            _ if is_held_back => None,
            CatchUp::All(count) => self.oldest_of_last(resumed, self.now, count),
            CatchUp::Skip if latest <= missed_until => None,
            CatchUp::Latest | CatchUp::Skip => Some(latest),
        };
        let skipped = if is_held_back {
            Chosen::SkipOnResume(latest)
        } else {
            Chosen::SkipMissed(latest)
        };
        Some(held_back.or(later).map_or(skipped, Chosen::Start))
    }

    fn rule(&self, rule: CatchUp) -> CatchUp {
        match rule {
            CatchUp::All(_) if !self.may_start_several => CatchUp::Latest,
            CatchUp::All(_) | CatchUp::Latest | CatchUp::Skip => rule,
        }
    }

    /// The last slot after `after` and not after `until`. The slots of an interval are counted from `since`.
    pub(in crate::schedule) fn last(&self, after: Timestamp, until: Timestamp) -> Option<Timestamp> {
        let anchor = if self.schedule.is_every() { self.since } else { after };
        if let Some(exclusion) = &self.exclusion {
            return exclusion.last_slot(anchor, after, until);
        }
        due::most_recent(self.schedule, self.local, anchor, until).filter(|slot| after < *slot)
    }

    /// The oldest of the last slots after `after` and not after `until`.
    fn oldest_of_last(&self, after: Timestamp, until: Timestamp, count: u8) -> Option<Timestamp> {
        let mut oldest = None;
        let mut before = until;
        for _ in 0..count {
            let Some(slot) = self.last(after, before) else { break };
            oldest = Some(slot);
            before = slot.checked_sub(SignedDuration::from_secs(1)).ok()?;
        }
        oldest
    }
}
