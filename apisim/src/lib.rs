//! An in-memory Kubernetes API for `batch/v1` CronJobs and Jobs, Leases, Events, Namespaces and `ConfigMaps`.
//!
//! A tower service in process, and a server on loopback that plain `kubectl` works with. One contract suite runs against
//! it and against a real kube-apiserver, which keeps it honest.

pub mod objects;
mod resource;

pub use resource::Resource;
