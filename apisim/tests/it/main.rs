//! What the library promises beyond the contract that the real server keeps too: front ends, faults, lives of Jobs, sockets.
#![allow(clippy::unwrap_used, reason = "tests")]

mod admission;
mod asking;
mod faults;
mod front_ends;
mod job_runner;
mod malformed;
mod server;
