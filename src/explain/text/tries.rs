//! Until when a create is retried.

use jiff::Timestamp;

use crate::{
    schedule::{
        after,
        options::{CatchUp, MISSED_AFTER},
        policy::order_expiry,
    },
    shard::CronJobRecord,
};

/// Returns the instant until which the create of a slot is retried: the next slot, an earlier deadline (B-12.4 and its
/// difference), or that at which `missed-runs: skip` gives the slot up (O-2).
pub(super) fn end_of_tries(
    record: Option<&CronJobRecord>,
    (slot, next): (Option<Timestamp>, Option<Timestamp>),
    now: Timestamp,
) -> String {
    let deadline_secs = record.and_then(|record| record.starting_deadline_seconds);
    let deadline = slot.and_then(|slot| order_expiry(slot, deadline_secs));
    let skipping = record.filter(|record| record.schedule.options().missed_runs == CatchUp::Skip);
    let skipped = skipping
        .zip(slot)
        .map(|(record, slot)| after(record.schedule.start_of(slot), MISSED_AFTER));
    let ends = [
        (next, "the next slot"),
        (deadline, "the end of its deadline"),
        (skipped.filter(|at| now < *at), "missed-runs gives it up"),
    ];
    let ends = ends.into_iter().filter_map(|(at, what)| Some((at?, what)));
    let first = ends.min_by_key(|(at, _)| *at);
    first.map_or_else(String::new, |(at, what)| format!(", until {what} at {at}"))
}
