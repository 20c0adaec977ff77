//! cronwheel runs the `batch/v1` CronJobs of a Kubernetes cluster, at the instant.
//!
//! Four layers, each of which may use those before it and none after it; a test over the tree holds this.
//!
//! 1. [`schedule`]: schedule text, activations, the due slot, the decision, the timer wheel. Pure.
//! 2. [`state`]: one shard of CronJobs and their Jobs: facts in, effects out. Pure.
//! 3. [`cluster`]: Kubernetes objects to records, orders to requests, answers to outcomes.
//! 4. [`runtime`]: tasks, queues, clocks, endpoints, the command line.

pub mod cluster;
pub mod runtime;
pub mod schedule;
pub mod state;
