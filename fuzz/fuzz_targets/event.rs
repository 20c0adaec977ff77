//! The decoder of objects and of watch events. The body is that of the tests.
#![no_main]

#[path = "../../tests/it/fuzz/event.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
