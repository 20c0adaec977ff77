//! Scenarios with inputs and the effects as lines of text. Each test names the rule that it checks.

mod world;

pub(crate) use world::cron_job as test_record;

mod accounts;
mod active_list;
mod cold_start;
mod creation;
mod deadlines;
mod gates;
mod history;
mod lost_answers;
mod many_jobs;
mod own_writes;
mod phase;
mod policies;
mod refusals;
mod restarts;
mod schedule_changes;
mod status_writes;
mod template_memory;
mod troubles;
mod unlabelled;
mod withdrawals;
