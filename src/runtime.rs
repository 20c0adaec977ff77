//! Layer 4, the shell: builds and joins every task.

pub mod admin;
pub mod clock;
pub mod clock_task;
pub mod dispatcher;
pub mod event_task;
pub mod metrics;
pub mod next;
pub mod pacing;
pub mod shutdown;
pub mod status_batcher;
pub mod watch_task;
