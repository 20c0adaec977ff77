//! The `cronwheel` command.

fn main() {}
