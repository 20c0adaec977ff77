//! Features without a counterpart in the real server: front ends, faults, the Job runner. Also sockets and malformed
//! bodies.
#![allow(clippy::unwrap_used, reason = "tests")]

mod admission;
mod faults;
mod front_ends;
mod job_runner;
mod malformed;
mod requests;
mod server;
