//! Only the simulation, which builds much faster than all tests. `make simulate` runs it.

#![allow(clippy::unwrap_used, reason = "tests")]

/// The allocator of the `cronwheel` command.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

mod naive_options;
#[allow(dead_code, reason = "shared with tests that draw more")]
mod random;
mod sim;
