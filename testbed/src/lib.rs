//! A real Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager (without its CronJob
//! controller), with kwok to complete Jobs. It serves tests, load tests and manual experiments.
//!
//! - [`Testbed::start`] starts a control plane, and [`Drop`] stops it. The next start removes the leftovers of killed
//!   owners.
//! - [`Binaries::find_or_build`] takes the programs from `KUBEBUILDER_ASSETS` or builds them once from pinned Go
//!   modules.
//! - [`Kubectl`] is a client for it.
//!
//! Nothing listens beyond loopback. Only the state folder (on tmpfs if available) and the cache of programs are
//! written. A process is signalled only after its identity is verified.
#![allow(
    clippy::disallowed_methods,
    reason = "waiting for processes is the work of this crate, and that needs a clock"
)]

mod binaries;
mod cargo;
mod certificates;
mod component;
mod instance;
mod kubeconfig;
mod kubectl;
mod ports;
mod process;
mod prometheus;
mod proxy;
mod readiness;
pub mod replica;
mod service_account;
mod state_root;
mod testbed;

pub use binaries::{
    Binaries, BinariesError, find_or_build_clocked_reference, find_or_build_helm, find_or_build_prometheus,
    find_or_build_promtool, find_or_build_schedule_oracle,
};
pub use cargo::cargo;
pub use component::{Autoscaling, Component, JobLife, ReferenceLimits};
pub use instance::{Instance, InstanceError};
pub use kubectl::{Kubectl, KubectlError};
pub use process::{ProcessError, terminate};
pub use prometheus::{Prometheus, PrometheusClient, PrometheusError};
pub use proxy::Proxy;
pub use readiness::http_get;
pub use state_root::{StateRoot, StateRootError};
pub use testbed::{Options, Testbed, TestbedError};
