//! The `testbed` command.

fn main() {}
