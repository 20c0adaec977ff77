//! Layer 2, pure: the CronJobs and Jobs of one shard as data, their transitions, and all shards of an installation.
//!
//! Facts enter as [`Input`], and decisions leave as [`Effect`] and are answered by [`OrderAnswer`]. The election adds
//! commands and receives reports ([`command`]). This layer uses no clock, no network and no log.
//! [`bucket`] maps a CronJob to its shard, [`state`] implements one shard, and [`held_shards`] all of them:
//! it leads, seals and releases them.

mod answer;
pub mod back_off;
pub mod boot_instant;
pub mod bucket;
pub mod calendars;
pub mod catch_up_pace;
pub mod command;
mod cron_job;
pub mod effect;
pub mod hash;
pub mod held_shards;
pub mod ids;
mod index;
pub mod input;
pub mod namespaces;
pub mod naming;
pub mod outcome;
pub mod outcome_counts;
pub mod panics;
pub mod phase;
pub mod record;
mod refused_creates;
pub mod resource_versions;
pub mod run_log;
mod seconds;
pub mod shard_set;
pub mod state;
pub mod template_memory;
pub mod term;
pub mod trouble;

pub use answer::OrderAnswer;
pub use boot_instant::{BootInstant, Clocks};
pub use bucket::{Bucket, ShardCount};
pub use calendars::{CalendarUpdate, Calendars, ReadCalendar};
pub use catch_up_pace::MISSED_RUNS_PER_SECOND_DEFAULT;
pub use command::{Entry, FiredThrough, SealOrder, ShardCommand, ShardReport};
pub use effect::{CronJobEvent, Effect, EventReason, JobCreate, JobDelete, JobLookUp, StatusWrite, Withdrawal};
pub use hash::{HASH_SCHEME, fnv1a_64};
pub use held_shards::{HeldShards, LedFigures, TermedAnswer, TermedEffect, VersionRequest, WATCH_WAIT_MAX};
pub use ids::{CronJobIdentity, ResourceVersion, Uid};
pub use input::{Input, Scope, WatchedResource};
pub use namespaces::{ManagedNamespaces, NamespaceUpdate};
pub use outcome::{CreateOutcome, DeleteOutcome, LookUpOutcome, ReadOutcome, RefusalReason, StatusOutcome};
pub use outcome_counts::{InstantOutcome, OutcomeCounts, RunNowResult};
pub use panics::ContainedPanic;
pub use phase::ShardPhase;
pub use record::{
    ActiveJob, ConcurrencyPolicy, CronJobRecord, CronJobSchedule, CronJobStatus, Finish, JobCreator, JobRecord,
    JobTemplate, KeptText, Owner, RunTokens,
};
pub use resource_versions::ResourceVersions;
pub use run_log::{EndedRun, EndedRuns, LoggedRuns, LostSlots, RunEnd};
pub use shard_set::ShardSet;
pub use state::{ShardConfig, ShardState, Sizes};
pub use template_memory::{TemplateMemory, TemplateUse};
pub use term::{ShardId, ShardTerm, Term};
pub use trouble::{
    ALERTS_ANNOTATION, Threshold, TroubleKind, TroubleThresholds,
    selection::{Trouble, TroubleReport},
};
