//! An in-memory Kubernetes API for `batch/v1` CronJobs and Jobs, Leases, Events, Namespaces and ConfigMaps.
//!
//! A tower service in process, and a server on loopback that plain `kubectl` works with. One contract suite runs against
//! it and against a real kube-apiserver, which keeps it honest.

mod clock;
mod failure;
mod random;
mod resource;
mod store;

pub use clock::WallClock;
pub use failure::Failure;
pub use random::Random;
pub use resource::Resource;
