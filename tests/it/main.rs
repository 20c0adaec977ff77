//! One integration crate: what the library promises at its public API.

#![allow(clippy::unwrap_used, reason = "tests")]

mod cluster;
#[cfg(feature = "dev")]
mod dev;
mod differential;
mod explain;
mod fuzz;
mod http;
mod in_memory;
mod leases;
mod pages;
mod random;
mod rules;
mod selected;
mod sharding;
mod shards;
mod sim;
mod soak;
mod tidy;
mod vectors;
