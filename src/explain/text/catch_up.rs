//! Several due slots of a CronJob that start one after the other, by `all` of the options `missed-runs` and `on-resume`.

use std::iter::successors;

use jiff::Timestamp;

use crate::{
    schedule::{
        ConcurrencyPolicy, CronJobSchedule,
        options::{CATCH_UP_COUNT_MAX, CatchUp},
    },
    shard::{CronJobRecord, MISSED_RUNS_PER_SECOND_DEFAULT},
};

/// The shard estimates the number of passed slots from here on ([`count_between`]).
///
/// [`count_between`]: crate::schedule::policy::count_between
const N_COUNTED: u64 = 100;

/// Says which slots before the one that starts next are passed over.
pub(super) fn passed_text(n_passed: u64, several: Option<&Several>) -> String {
    let slots = match n_passed {
        1 => "1 slot".to_owned(),
        n_passed @ N_COUNTED.. => format!("about {n_passed} slots"),
        n_passed => format!("{n_passed} slots"),
    };
    let startable = several.map_or_else(|| "latest".to_owned(), |several| format!("last {}", several.count));
    format!("{slots} before it: passed over, only the {startable} can start")
}

/// The number of due slots after this one, at most as many as `all` starts.
pub(super) fn n_due_after(schedule: &CronJobSchedule, slot: Timestamp, now: Timestamp) -> usize {
    let until = schedule.slots_until(now);
    let later = successors(schedule.next_wanted(slot), |slot| schedule.next_wanted(*slot));
    let due = later.take(CATCH_UP_COUNT_MAX.into()).take_while(|slot| *slot <= until);
    due.count()
}

/// The slots that may start.
pub(super) struct Several {
    policy: ConcurrencyPolicy,
    /// The last due slots start, up to this number.
    count: u8,
    /// The number of due slots after the one that starts next.
    n_waiting: usize,
}

impl Several {
    /// `None` if only the latest due slot can start. `slot` is the one that starts next.
    pub(super) fn of(record: &CronJobRecord, slot: Timestamp, now: Timestamp) -> Option<Several> {
        let (schedule, policy) = (&record.schedule, record.concurrency_policy);
        let n_waiting = n_due_after(schedule, slot, now);
        let options = schedule.options();
        let count = match (options.missed_runs, options.on_resume()) {
            _ if policy == ConcurrencyPolicy::Replace => return None,
            (CatchUp::All(count), _) => count,
            // The slots of a suspension or of a freeze, of which the latest is not the next one.
            (_, CatchUp::All(count)) if n_waiting > 0 => count,
            (CatchUp::Latest | CatchUp::Skip, _) => return None,
        };
        (count > 1).then_some(Several {
            policy,
            count,
            n_waiting,
        })
    }

    /// When the next of them starts, after a slot whose Job exists. `None` if no other is due.
    pub(super) fn next_text(&self) -> Option<String> {
        let slots = match self.n_waiting {
            0 => return None,
            1 => "1 more slot is due".to_owned(),
            n_waiting => format!("{n_waiting} more slots are due"),
        };
        Some(match self.policy {
            ConcurrencyPolicy::Forbid => format!("when that Job ends: {slots}"),
            ConcurrencyPolicy::Allow | ConcurrencyPolicy::Replace => format!(
                "at the pace of missed runs, {MISSED_RUNS_PER_SECOND_DEFAULT} a second in the whole installation by default: \
                 {slots}"
            ),
        })
    }
}
