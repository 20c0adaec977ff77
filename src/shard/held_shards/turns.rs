//! Gives CronJobs whose creates are refused their turns to be tried.

use jiff::Timestamp;

use super::HeldShards;
use crate::shard::{ids::Uid, refused_creates::RefusedFigures};

/// The number of CronJobs that are examined for one turn. Some do not wait for a turn, since their slots were lost to
/// their deadlines.
const CANDIDATES_MAX: usize = 128;

impl HeldShards {
    /// Retries one CronJob for each turn that is due.
    pub(super) fn give_turns(&mut self, now: Timestamp) {
        if self.is_paused() {
            return;
        }
        while let Some(cause) = self.refused_creates.take_turn(now) {
            for _ in 0..CANDIDATES_MAX {
                let next = self.refused_creates.next_of(&cause);
                if next.is_none_or(|cron_job| self.try_refused(&cron_job, now)) {
                    break;
                }
            }
        }
    }

    /// Returns whether the CronJob takes its turn.
    fn try_refused(&mut self, cron_job: &Uid, now: Timestamp) -> bool {
        let mut is_tried = false;
        let shard = self.shard_of(cron_job);
        self.update(shard, |held| is_tried = held.state.try_refused(cron_job, now));
        is_tried
    }

    /// The numbers of CronJobs whose creates are refused.
    pub fn refused_figures(&self) -> RefusedFigures {
        self.refused_creates.figures()
    }
}

#[cfg(test)]
mod tests;
