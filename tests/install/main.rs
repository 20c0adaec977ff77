//! The chart in `deploy/helm/cronwheel`, installed, upgraded, rolled back and removed by helm while CronJobs run. Its
//! Pods are made and placed by the controllers and the scheduler of Kubernetes, and run on nodes of the test bed.
//!
//! The cases take minutes and need root: `make install-test` and, with the autoscaler, `make hpa-test`.
//! `make demo-cluster` gives such a cluster to a person who tries the chart.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "a real server keeps real time")]

mod audit;
mod autoscaling;
mod cases;
mod cluster;
mod demo;
mod node;
mod objects;
mod prometheus;
mod release;
mod tenant;
