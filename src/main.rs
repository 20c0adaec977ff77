//! The `cronwheel` command.

use std::process::ExitCode;

use cronwheel::{
    cli::{args::Cli, commands::execute},
    kube_api::objects::classify::error_text,
    telemetry::logging::escaped,
};

/// The controller allocates many short-lived buffers on several threads, which jemalloc does faster than the system.
/// Its background threads return freed memory to the system, also while the process is idle.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    match execute(Cli::of_process()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cronwheel: {}", escaped(&error_text(&error)));
            ExitCode::FAILURE
        }
    }
}
