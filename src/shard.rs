//! Layer 2, pure: the CronJobs and Jobs of one shard as data, their transitions, and the set of shards of a replica.
//!
//! Facts enter as [`Input`] and decisions leave as [`Effect`]. The election adds commands and receives reports
//! ([`command`]). This layer uses no clock, no network and no log.
//! [`bucket`] maps a CronJob to its shard, [`state`] implements one shard, and [`held_shards`] the shards of a replica:
//! it loads, leads, seals and releases them.

pub mod back_off;
pub mod boot_instant;
pub mod bucket;
pub mod command;
mod cron_job;
pub mod effect;
pub mod hash;
pub mod held_shards;
pub mod ids;
mod index;
pub mod input;
pub mod labels;
pub mod naming;
pub mod outcome;
pub mod outcome_counts;
pub mod phase;
pub mod record;
mod refused_creates;
pub mod resource_versions;
mod seconds;
pub mod shard_set;
pub mod state;
pub mod template_memory;
pub mod term;
pub mod trouble;

pub use boot_instant::{BootInstant, Clocks};
pub use bucket::{Bucket, HashRange, ShardCount, ShardCountError};
pub use command::{Entry, SealOrder, ShardCommand, ShardReport};
pub use effect::{CronJobEvent, Effect, EventReason, JobCreate, JobDelete, JobLookUp, StatusWrite, Withdrawal};
pub use hash::{HASH_SCHEME, fnv1a_64};
pub use held_shards::{HeldShards, LedFigures, ListRequest, TermedEffect};
pub use ids::{CronJobIdentity, ResourceVersion, Uid};
pub use input::{Input, Scope, WatchedResource};
pub use labels::{SHARD_LABEL_PREFIX, ShardLabels};
pub use outcome::{CreateOutcome, DeleteOutcome, LookUpOutcome, ReadOutcome, RefusalReason, StatusOutcome};
pub use outcome_counts::{InstantOutcome, OutcomeCounts};
pub use phase::ShardPhase;
pub use record::{
    ActiveJob, ConcurrencyPolicy, CronJobRecord, CronJobSchedule, CronJobStatus, Finish, JobRecord, JobTemplate,
    KeptText,
};
pub use refused_creates::RefusedFigures;
pub use resource_versions::ResourceVersions;
pub use shard_set::ShardSet;
pub use state::{ShardConfig, ShardState, Sizes};
pub use template_memory::{TemplateMemory, TemplateUse};
pub use term::{ShardId, ShardTerm, Term};
pub use trouble::{
    Threshold, TroubleKind, TroubleThresholds,
    selection::{Trouble, TroubleReport},
};
