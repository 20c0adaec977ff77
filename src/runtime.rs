//! Layer 4, the shell: builds and joins every task.

pub mod next;
