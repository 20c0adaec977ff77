//! Telemetry for operators: metrics, the log, and the endpoints for probes and scrapes.
//!
//! A peer of [`controller`](crate::controller), whose tasks record their metrics here. It uses the clock, the table
//! of permissions and the phases of the shutdown from the controller.

pub mod admin;
pub mod logging;
pub mod metrics;
pub mod panic_log;
