//! Test doubles that several tasks share.

pub(super) mod captured_log;
pub(super) mod fake_server;
