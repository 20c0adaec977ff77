//! What the tests of several tasks share.

pub(super) mod fake_server;
