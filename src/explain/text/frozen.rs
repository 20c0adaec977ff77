//! What the built-in controller does otherwise.

use super::Block;
use crate::{
    explain::{calendar::local_text, reason::Reason},
    schedule::thaw::FrozenCronJob,
};

impl Block<'_> {
    /// The behaviour of the built-in controller, if it differs. It ignores a freeze, which changes nothing as long as no
    /// slot is due.
    pub(super) fn difference(&self) -> Option<String> {
        let difference = self.explanation.reason.meaning().difference?;
        if self.explanation.reason != Reason::Frozen {
            return Some(difference.to_owned());
        }
        let frozen = self.subject.frozen(self.now)?;
        if self.has_due_slot(&frozen) {
            return Some(difference.to_owned());
        }
        let since = frozen.last_schedule_time.unwrap_or(frozen.created);
        let next = frozen.schedule.next_run(since, self.now)?;
        let next = Some(next).filter(|next| *next < frozen.until)?;
        let next = local_text(next, frozen.schedule.effective_zone());
        Some(format!("the built-in controller starts the next slot, {next}"))
    }

    /// Whether a slot is due, and may start by its deadline.
    fn has_due_slot(&self, frozen: &FrozenCronJob<'_>) -> bool {
        let since = frozen.last_schedule_time.unwrap_or(frozen.created);
        let due = frozen.schedule.latest_between(since, self.now);
        let age_seconds = due.map(|slot| self.now.duration_since(slot).as_secs());
        age_seconds.is_some_and(|age| frozen.starting_deadline_seconds.is_none_or(|seconds| age <= seconds))
    }
}
