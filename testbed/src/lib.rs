//! A real Kubernetes control plane on loopback: etcd, kube-apiserver and kube-controller-manager (without its own
//! `CronJob` controller), with kwok to end Jobs. For tests, load tests and a developer's own eyes.
//!
//! - [`Testbed::start`] starts one and [`Drop`] stops it; what a killed owner leaves behind is swept by the next start.
//! - [`Binaries::find_or_build`] takes the programs from `KUBEBUILDER_ASSETS` or builds them once from pinned Go modules.
//! - [`Kubectl`] speaks to it.
//!
//! Nothing listens beyond loopback, nothing is written but the state folder (a tmpfs where there is one) and the cache
//! of programs, and no process is signalled that was not first verified to be the one that was started.
#![allow(
    clippy::disallowed_methods,
    reason = "waiting for processes is the work of this crate, and that needs a clock"
)]

mod binaries;
mod certificates;
mod component;
mod instance;
mod kubeconfig;
mod kubectl;
mod ports;
mod process;
mod readiness;
pub mod replica;
mod service_account;
mod state_root;
mod testbed;
mod wire;

pub use binaries::{
    Binaries, BinariesError, find_or_build_clocked_reference, find_or_build_helm, find_or_build_prometheus,
    find_or_build_promtool, find_or_build_schedule_oracle,
};
pub use component::{Component, JobLife, ReferenceLimits};
pub use instance::{Instance, InstanceError};
pub use kubectl::{Kubectl, KubectlError};
pub use process::{ProcessError, ask_to_end};
pub use state_root::{StateRoot, StateRootError};
pub use testbed::{Options, Testbed, TestbedError};
pub use wire::Wire;
