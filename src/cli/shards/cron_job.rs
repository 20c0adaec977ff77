//! `--cronjob`: the shard of one CronJob, its leader and the next run.

use jiff::Timestamp;
use serde_json::json;

use super::{
    cron_job_name::CronJobName,
    json::{identity, time},
    known::Known,
    listing::{Listing, ShardRow},
};
use crate::{
    explain::calendar::{local_text, span_text},
    shard::ShardId,
};

/// Returns a sentence for people; `None` if there is no such CronJob.
pub(super) fn text(known: &Known, wanted: &CronJobName, now: Timestamp) -> Option<String> {
    let (shard, plan) = known.place_of(wanted)?;
    let view = Listing::of(known);
    let CronJobName { namespace, name } = wanted;
    let (number, count) = (shard.0, known.installation.shard_count.get());
    let next = match plan.next_run(now) {
        Some(at) => {
            let span = span_text(now, at);
            format!(
                "next run due in {span}, {}",
                local_text(at, plan.schedule.effective_zone())
            )
        }
        None => "no run is due: cronwheel explain says why".to_owned(),
    };
    let leader = leader(&view, shard);
    Some(format!(
        "CronJob {namespace}/{name}: shard {number} of {count}, {leader}; {next}\n"
    ))
}

fn leader(view: &Listing, shard: ShardId) -> String {
    let Some(row) = row(view, shard) else {
        return "without a leader".to_owned();
    };
    let state = row.state();
    match row.lease.as_ref().and_then(|lease| lease.holder.member()) {
        Some(holder) if row.is_holder_member => {
            let more = state.strip_prefix("led").unwrap_or_default();
            format!("led by {}{more}", holder.pod_name)
        }
        _ => format!("without a leader ({state})"),
    }
}

fn row(view: &Listing, shard: ShardId) -> Option<&ShardRow> {
    view.shards.iter().find(|row| row.shard == shard)
}

/// Returns an object for programs; `None` if there is no such CronJob.
pub(super) fn document(known: &Known, wanted: &CronJobName, now: Timestamp) -> Option<String> {
    let (shard, plan) = known.place_of(wanted)?;
    let view = Listing::of(known);
    let row = row(&view, shard);
    let holder = row.and_then(|row| row.lease.as_ref()?.holder.member());
    let document = json!({
        "at": now.to_string(),
        "namespace": wanted.namespace,
        "name": wanted.name,
        "shard": shard.0,
        "holder": identity(holder),
        "isLed": row.is_some_and(|row| row.is_holder_member),
        "nextRun": time(plan.next_run(now)),
    });
    Some(format!("{document}\n"))
}
