//! The single integration test crate for the library's public API.

#![allow(clippy::unwrap_used, reason = "tests")]

/// The allocator of the `cronwheel` command.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[cfg(feature = "dev")]
mod dev;
mod differential;
mod explain;
mod fleet;
mod fuzz;
mod http;
mod in_memory;
mod leases;
mod links;
mod outputs;
mod pages;
mod random;
mod restores;
mod rules;
mod selected;
mod sharding;
mod shards;
mod sim;
mod soak;
mod tenants;
mod tidy;
mod vectors;
