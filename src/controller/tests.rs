//! Test doubles that several tasks share.

pub(super) mod fake_server;
