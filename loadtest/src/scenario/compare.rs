//! `loadtest compare`: controllers in turn on the same load, judged by the audit log of the API server.

mod column;
mod result;
mod slo;
mod statistics;
