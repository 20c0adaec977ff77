//! What `explain` reads. The body is that of the tests.
#![no_main]

#[path = "../../tests/it/fuzz/explain.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
