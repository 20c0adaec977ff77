//! The controller as a process on a real kube-apiserver, which the test bed starts.
//!
//! Cases do not wait for full minutes: the clock of their controller runs ahead (`--clock-offset`), so that the minute
//! comes at once. To show that something does not happen, cases check the counts of due instants, or an effect that
//! would come later.
//!
//! `cargo test --test e2e -- NAME` runs the cases with NAME in their names, and `-- --list` lists them. Cases that take
//! many minutes run only with `--ignored` or `--include-ignored`.

#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "a real server keeps real time")]

mod account;
mod audit;
mod backfill;
mod beside;
mod built_in;
mod canary;
mod cases;
mod control_plane;
mod controller;
mod dashboards;
mod etcd;
#[path = "../it/leases/every_server.rs"]
mod every_server;
mod exchange;
mod kubernetes;
mod outages;
mod page;
mod parity;
#[path = "../it/random.rs"]
#[allow(dead_code, reason = "the cases need a part of it")]
mod random;
mod replicas;

use std::{process::ExitCode, time::Duration};

use libtest_mimic::{Arguments, Trial};

/// Cases mostly wait, but each has a process.
const N_AT_ONCE: usize = 6;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Those that run beside the others must not keep the threads of the others.
    let (beside, others) = (trials_beside(), trials());
    arguments.test_threads.get_or_insert(N_AT_ONCE + beside.len());
    let conclusion = libtest_mimic::run(&arguments, beside.into_iter().chain(others).collect());
    control_plane::stop().expect("everything stops");
    conclusion.exit_code()
}

/// Cases of the second lane of control planes.
fn trials_beside() -> Vec<Trial> {
    beside::trials()
        .chain(canary::trials())
        .chain(page::trials_beside())
        .chain(parity::trials())
        .collect()
}

/// Cases that share a control plane are adjacent. The longest come first.
fn trials() -> Vec<Trial> {
    backfill::trials()
        .chain(cases::trials())
        .chain(outages::trials())
        .chain(page::trials())
        .chain(replicas::trials())
        .chain(dashboards::trials())
        .collect()
}

/// Runs a case to its end.
fn block_on(duration_max: Duration, case: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime.expect("a runtime"), async {
        let ended = tokio::time::timeout(duration_max, case).await;
        assert!(ended.is_ok(), "not done after {duration_max:?}");
    });
}

/// A check that needs no control plane.
fn check(name: &'static str, run: fn()) -> Trial {
    Trial::test(name, move || {
        run();
        Ok(())
    })
}
