//! The `testbed` command: a control plane for manual use.
#![allow(clippy::print_stdout, reason = "a command prints to standard output")]

mod demo;

use std::{
    ffi::OsString,
    process::{ExitCode, Stdio},
};

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand};
use testbed::{
    Binaries, Component, Instance, JobLife, Options, ReferenceLimits, StateRoot, Testbed,
    find_or_build_clocked_reference, find_or_build_helm, find_or_build_schedule_oracle,
};

/// A real Kubernetes control plane on loopback: etcd, kube-apiserver, kube-controller-manager without its CronJob
/// controller, and kwok to complete Jobs.
#[derive(Debug, Parser)]
#[command(name = "testbed", version, propagate_version = true)]
struct Arguments {
    /// Name of the control plane, if you need several.
    #[arg(long, global = true, default_value = "default")]
    name: String,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Builds cronwheel and runs it on its own control plane with one example CronJob, until Ctrl-C.
    Demo {
        /// Address for cronwheel's probes and metrics.
        #[arg(long, default_value = "127.0.0.1:8080")]
        listen: String,
    },
    /// Starts a control plane that runs until `down`.
    Up {
        /// The program that completes Jobs.
        #[arg(long, value_enum, default_value_t)]
        jobs: JobLife,
        /// Write an audit log of Jobs, CronJobs, Events and Leases.
        #[arg(long)]
        audit: bool,
    },
    /// Stops the control plane and removes its state, even after a crash. Also removes the leftovers of killed tests.
    Down,
    /// Shows which processes run. Exits with 1 unless all do.
    Status,
    /// Builds missing programs and prints their paths.
    Build,
    /// Runs helm against the control plane: `testbed helm -- list -A`. `helm template` and `helm lint` need no control
    /// plane.
    Helm {
        /// Arguments for helm.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// Runs kubectl against the control plane: `testbed kubectl -- get jobs -A`.
    Kubectl {
        /// Arguments for kubectl.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    /// The CronJob controller of kube-controller-manager, as a reference for comparison.
    Reference {
        #[command(subcommand)]
        command: ReferenceCommand,
    },
}

#[derive(Debug, Subcommand)]
enum ReferenceCommand {
    /// Starts the reference.
    Up {
        #[command(flatten)]
        limits: ReferenceLimits,
    },
    /// Stops the reference.
    Down,
}

fn main() -> anyhow::Result<ExitCode> {
    let Arguments { name, command } = Arguments::parse();
    match command {
        Command::Demo { listen } => demo::run(name, &listen)?,
        Command::Up { jobs, audit } => up(name, jobs, audit)?,
        Command::Down => down(&name)?,
        Command::Status => return status(&name),
        Command::Build => {
            for folder in Binaries::find_or_build()?.folders() {
                println!("{}", folder.display());
            }
            println!("{}", find_or_build_clocked_reference()?.display());
            println!("{}", find_or_build_schedule_oracle()?.display());
            println!("{}", find_or_build_helm()?.display());
        }
        Command::Helm { arguments } => return helm(&name, &arguments),
        Command::Kubectl { arguments } => return kubectl(&name, &arguments),
        Command::Reference {
            command: ReferenceCommand::Up { limits },
        } => {
            running(&name)?.start_reference(limits)?;
            println!("The built-in CronJob controller runs. No other may run at the same time.");
        }
        Command::Reference {
            command: ReferenceCommand::Down,
        } => running(&name)?.stop(Component::Reference)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn up(name: String, jobs: JobLife, audit: bool) -> anyhow::Result<()> {
    let root = StateRoot::usual()?;
    root.sweep()?;
    if let Some(instance) = root.find(&name)? {
        if !instance.is_complete() {
            bail!("some processes of {name} do not run; `down` removes it");
        }
        println!("Runs already.");
        print_usage(&instance);
        return Ok(());
    }
    let testbed = Testbed::start(Options {
        jobs,
        audit,
        name: Some(name),
        ..Options::default()
    })?;
    print_usage(&testbed.detach()?);
    Ok(())
}

fn down(name: &str) -> anyhow::Result<()> {
    let root = StateRoot::usual()?;
    for swept in root.sweep()? {
        println!("Swept {swept}, whose owner is gone.");
    }
    match root.find(name)? {
        Some(instance) => {
            root.remove(&instance)?;
            println!("Stopped {name}.");
        }
        None => println!("Nothing to stop."),
    }
    Ok(())
}

fn status(name: &str) -> anyhow::Result<ExitCode> {
    let Some(instance) = StateRoot::usual()?.find(name)? else {
        println!("Not started.");
        return Ok(ExitCode::FAILURE);
    };
    for component in Component::ALL {
        match instance.pid(component) {
            Some(pid) => println!("{component:<28} runs, process {pid}"),
            None => println!("{component:<28} does not run"),
        }
    }
    print_usage(&instance);
    Ok(if instance.is_complete() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn helm(name: &str, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut command = std::process::Command::new(find_or_build_helm()?);
    // Without a control plane, helm must not reach the cluster in the user's own kubeconfig.
    let kubeconfig = StateRoot::usual()?
        .find(name)?
        .map_or_else(|| "/dev/null".into(), |instance| instance.kubeconfig());
    command.args(arguments).env("KUBECONFIG", kubeconfig);
    exit_code_of(&mut command).context("cannot run helm")
}

fn kubectl(name: &str, arguments: &[OsString]) -> anyhow::Result<ExitCode> {
    let mut command = running(name)?.kubectl().command();
    exit_code_of(command.args(arguments)).context("cannot run kubectl")
}

fn exit_code_of(command: &mut std::process::Command) -> anyhow::Result<ExitCode> {
    let status = command.stdin(Stdio::inherit()).status()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

fn running(name: &str) -> anyhow::Result<Instance> {
    StateRoot::usual()?
        .find(name)?
        .with_context(|| format!("{name} is not started; `up` starts it"))
}

fn print_usage(instance: &Instance) {
    println!("API server  {}", instance.api_server_url());
    println!("state       {}", instance.folder().display());
    if let Some(path) = instance.audit_log_path() {
        println!("audit log   {}", path.display());
    }
    println!();
    println!("export KUBECONFIG={}", instance.kubeconfig().display());
    println!(
        "{} get cronjobs,jobs --all-namespaces",
        instance.kubectl().program().display()
    );
    println!();
    println!("To stop it: cargo run -q -p testbed -- down");
}
