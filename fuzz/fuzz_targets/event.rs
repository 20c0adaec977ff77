//! The decoder of objects and of watch events. The tests share the body.
#![no_main]

#[path = "../../tests/it/fuzz/event.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|data: &[u8]| body::run(data));
