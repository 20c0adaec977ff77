//! cronwheel runs the `batch/v1` CronJobs of a Kubernetes cluster and creates each Job at its scheduled time.
//!
//! Six layers. Each may use only itself and the layers before it; a test over the source tree checks this. What stands
//! beside a layer has its own rules, in ARCHITECTURE.md.
//!
//! 1. [`schedule`]: schedule text, activations, the due slot, the decision, the timer wheel. Pure.
//! 2. [`shard`]: one shard of CronJobs and their Jobs: facts in, effects out; the shards of a replica. Pure.
//! 3. [`coordination`]: the leaders of the shards: placement, Leases, election. Pure.
//! 4. [`kube_api`]: Kubernetes objects to records, orders to requests, answers to outcomes.
//! 5. [`controller`]: tasks, queues, clocks. Beside it: [`telemetry`]: metrics, log, endpoints; [`explain`]: objects in,
//!    the answer in plain words out, pure; [`observe`]: a read-only view of any cluster.
//! 6. [`cli`]: the command line.

pub mod cli;
pub mod controller;
pub mod coordination;
pub mod explain;
pub mod kube_api;
pub mod observe;
pub mod schedule;
pub mod shard;
pub mod telemetry;
