//! One integration crate: what the library promises at its public API.

#![allow(clippy::unwrap_used, reason = "tests")]

mod cluster;
mod explain;
mod http;
mod in_memory;
mod pages;
mod rules;
mod tidy;
mod vectors;
