//! Tests of scenarios, with effects as lines of text. Each test name contains the rule that it checks.

mod world;

pub(crate) use world::cron_job as test_record;

mod accounts;
mod active_list;
mod calendars;
mod cold_start;
mod creation;
mod deadlines;
mod freezes;
mod gates;
mod history_limits;
mod lateness;
mod lost_answers;
mod management;
mod many_jobs;
mod options;
mod own_writes;
mod pace;
mod panics;
mod phase;
mod policies;
mod refusals;
mod refused_creates;
mod restarts;
mod run_log;
mod run_now;
mod run_tokens;
mod schedule_changes;
mod status_writes;
mod template_memory;
mod troubles;
mod withdrawals;
