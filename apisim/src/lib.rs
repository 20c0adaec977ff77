//! An in-memory Kubernetes API for `batch/v1` CronJobs and Jobs, Leases, Events, Namespaces and `ConfigMaps`.
//!
//! Use it as a tower service in process, or as a server on loopback for `kubectl`. The same contract tests run against
//! it and against a real kube-apiserver.

mod api;
mod clock;
mod content;
mod failure;
mod faults;
mod front_end;
mod job_runner;
mod json;
mod random;
mod registry;
mod server;
mod service;
mod service_time;
mod store;
mod verb;

pub use apiobjects::{self as objects, Resource, validation::Checks};

pub use api::{Api, Options, Snapshot};
pub use clock::WallClock;
pub use failure::Failure;
pub use faults::{Fault, Faults, Rule, RuleId};
pub use job_runner::{JobRunner, JobRunnerOptions, check_annotations};
pub use random::Random;
pub use server::{Server, ServerError};
pub use service::{ApiBody, ApiService, ConnectionLost};
pub use service_time::ServiceTimes;
pub use verb::Verb;
