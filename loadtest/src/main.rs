//! The `loadtest` command.

fn main() {}
