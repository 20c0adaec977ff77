//! The simulation alone, which builds in a part of the time that all tests take: what `make simulate` runs.

#![allow(clippy::unwrap_used, reason = "tests")]

/// As the command has it.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[allow(dead_code, reason = "shared with tests that draw more")]
mod random;
mod sim;
