//! What is driven and when.

pub(crate) mod minutely;
