//! The single integration test crate for the library's public API.

#![allow(clippy::unwrap_used, reason = "tests")]

/// The allocator of the `cronwheel` command.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

mod advice;
mod backfill;
mod check;
#[cfg(feature = "dev")]
mod commands;
#[cfg(feature = "dev")]
mod dev;
mod differential;
mod explain;
mod fleet;
mod freezing;
mod fuzz;
mod http;
mod in_memory;
mod leases;
mod links;
mod naive_options;
mod namespaces;
mod observe;
mod outputs;
mod pages;
mod random;
mod restores;
mod rules;
mod sharding;
mod shards;
mod sim;
mod soak;
mod tenants;
mod tidy;
mod ui;
mod vectors;
mod watches;
