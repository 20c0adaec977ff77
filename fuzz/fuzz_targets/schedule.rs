//! The parser of schedules and the computation of activations. The tests share the body.
#![no_main]

#[path = "../../tests/it/fuzz/schedule.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
