//! What would start if a suspended CronJob were resumed now.

use jiff::Timestamp;

use super::{Block, catch_up::n_due_after};
use crate::{
    explain::{
        calendar::{Calendar, span_text},
        reason::Decision,
    },
    shard::CronJobRecord,
};

impl Block<'_> {
    /// Describes the next run if `spec.suspend` became false now (B-6.6).
    pub(super) fn resumed_text(&self, calendar: &Calendar<'_>) -> String {
        let Some(resumed) = &self.explanation.resumed else {
            return String::new();
        };
        let in_text = |at: &Timestamp| format!("in {}, {}", span_text(self.now, *at), calendar.local(*at));
        let next = calendar.next.first().map_or_else(|| "never".to_owned(), in_text);
        let slot = resumed.slot.map(|slot| self.slot_text(slot)).unwrap_or_default();
        match resumed.reason.meaning().decision {
            Decision::Fire => {
                let later = resumed.slot.map(|slot| self.later_text(slot)).unwrap_or_default();
                format!("if it were resumed now: at once{slot}{later}; then {next}")
            }
            Decision::Skip => format!(
                "if it were resumed now: not at once, since {}; then {next}",
                resumed.message()
            ),
            Decision::Wait | Decision::Unknown => format!("if it were resumed now: {next}"),
        }
    }

    /// `, and 2 later slots` if slots after this one are due too: the first of those that `all` starts.
    fn later_text(&self, slot: Timestamp) -> String {
        let Ok(CronJobRecord { schedule, .. }) = &self.subject.record else {
            return String::new();
        };
        match n_due_after(schedule, slot, self.now) {
            0 => String::new(),
            1 => ", and 1 later slot".to_owned(),
            n_later => format!(", and {n_later} later slots"),
        }
    }
}
