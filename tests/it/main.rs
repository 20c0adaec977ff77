//! One integration crate: what the library promises at its public API.
mod http;
mod vectors;
