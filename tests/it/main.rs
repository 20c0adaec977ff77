//! One integration crate: what the library promises at its public API.
mod cluster;
mod http;
mod vectors;
