//! The parser of the input of `explain`. The tests share the body.
#![no_main]

#[path = "../../tests/it/fuzz/explain.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
