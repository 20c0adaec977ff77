//! helm installs, upgrades, rolls back and removes the chart in `deploy/helm/cronwheel` while CronJobs run. Kubernetes'
//! controllers create the Pods, its scheduler places them, and nodes of the test bed run them.
//!
//! The cases take minutes and need root: `make install-test` and, with the autoscaler, `make hpa-test`.
//! `make demo-cluster` starts such a cluster to try the chart by hand.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "a real server keeps real time")]

mod audit;
mod autoscaling;
mod cases;
mod cluster;
mod demo;
mod helm_test;
mod node;
mod objects;
mod page;
mod prometheus;
mod release;
mod tenant;
