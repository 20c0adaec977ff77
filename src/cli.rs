//! Layer 6, the `cronwheel` command: arguments, configuration, and the commands. It uses the controller, and the layer
//! [`explain`](crate::explain) for answers in words, never the reverse.

pub mod args;
pub mod backfill;
pub mod check;
pub mod commands;
pub mod config;
#[cfg(feature = "dev")]
pub mod dev;
pub mod error;
pub mod explain;
pub mod freeze;
mod listed;
pub mod missed;
pub mod next;
mod object_files;
mod plan;
pub mod report;
pub mod run_args;
pub mod shards;
pub mod trigger;
pub mod ui;
