//! Layer 6, the `cronwheel` command: arguments, configuration, and the commands. It uses the controller, never the reverse.

mod advice;
pub mod args;
mod calendar;
pub mod commands;
pub mod config;
#[cfg(feature = "dev")]
pub mod dev;
pub mod error;
pub mod explain;
pub mod next;
mod plan;
pub mod shards;
