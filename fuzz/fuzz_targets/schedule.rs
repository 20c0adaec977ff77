//! The parser of schedules and what follows from a schedule. The body is that of the tests.
#![no_main]

#[path = "../../tests/it/fuzz/schedule.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
