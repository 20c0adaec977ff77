//! Layer 2, pure: one shard's CronJobs and Jobs as data, and the transitions between.
//!
//! Facts come in as [`Input`], decisions go out as [`Effect`]; nothing else crosses. No clock, no network, no log.

mod cron_job;
pub mod custody;
pub mod effect;
pub mod held_shards;
pub mod ids;
mod index;
pub mod input;
pub mod lease;
pub mod naming;
pub mod outcome;
pub mod record;
pub mod shard_state;
pub mod sharding;
pub mod tally;
pub mod template_memory;

pub use custody::{Custody, ListOrder, Moment};
pub use effect::{CronJobEvent, Effect, EventReason, EventType, JobDelete, JobLookUp, JobOrder, StatusWrite};
pub use held_shards::{HeldShards, Listed, Ordered, Partition};
pub use ids::{CronJobIdentity, ResourceVersion, Uid};
pub use input::{Input, Scope};
pub use outcome::{CreateOutcome, DeleteOutcome, LookUpOutcome, StatusOutcome};
pub use record::{
    ActiveJob, ConcurrencyPolicy, CronJobRecord, CronJobSchedule, CronJobStatus, Finish, JobRecord, JobTemplate,
    KeptText,
};
pub use shard_state::{Decided, ShardConfig, ShardState, Sizes, Wakeup};
pub use sharding::{Entry, Mandate, ShardCommand, ShardId, ShardReport, Term};
pub use tally::{InstantOutcome, Tally};
pub use template_memory::{TemplateMemory, TemplateUse};
