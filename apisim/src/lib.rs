//! An in-memory Kubernetes API for `batch/v1` CronJobs and Jobs, Leases, Events, Namespaces and `ConfigMaps`.
//!
//! It is a tower service in process, and a server on loopback that plain `kubectl` can use. The same contract tests run
//! against it and against a real kube-apiserver, so that both behave alike.

mod api;
mod clock;
mod failure;
mod faults;
mod fnv;
mod front_end;
mod job_runner;
mod json;
pub mod objects;
mod random;
mod registry;
mod resource;
mod rules;
mod server;
mod service;
mod service_time;
mod store;
mod times;
mod verb;

pub use api::{Api, Options, Snapshot};
pub use clock::WallClock;
pub use failure::Failure;
pub use faults::{Fault, Faults, Rule, RuleId};
pub use job_runner::{JobRunner, JobRunnerOptions, check_annotations};
pub use objects::validation::Checks;
pub use random::Random;
pub use resource::Resource;
pub use server::{Server, ServerError};
pub use service::{ApiBody, ApiService, ConnectionLost};
pub use service_time::ServiceTimes;
pub use verb::Verb;
