//! Runs kubectl against the in-memory API and against a real kube-apiserver, and compares the output of each command.

#![allow(clippy::unwrap_used, reason = "tests")]

mod alone;
mod masking;
mod script;
mod session;

use std::path::{Path, PathBuf};

use apisim::{Api, Checks, JobRunner, JobRunnerOptions, Options, Server, WallClock};
use jiff::Timestamp;
use session::Session;
use testbed::{Binaries, JobLife, Testbed};
use tokio::{runtime::Runtime, sync::oneshot, task::JoinHandle};

/// Checks for the schedules and time zones of the script.
const CHECKS: Checks = Checks {
    schedule: |schedule| match schedule.split_whitespace().count() {
        1 if !schedule.starts_with('@') => Err(format!("expected exactly 5 fields, found 1: [{schedule}]")),
        _ => Ok(()),
    },
    time_zone: |_| true,
    admission: |_, _| Ok(()),
};

/// A temporary folder for the files of kubectl. It is deleted on drop.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let folder = std::env::temp_dir().join(format!("apisim-kubectl-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Scratch(folder)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // On failure, files remain in the temporary folder of the system.
        let _kept = std::fs::remove_dir_all(&self.0);
    }
}

/// The in-memory API on a port, served by a separate thread.
struct InMemory {
    runtime: Runtime,
    stop: oneshot::Sender<()>,
    running: JoinHandle<()>,
    kubeconfig: PathBuf,
}

impl InMemory {
    #[allow(clippy::disallowed_methods, reason = "kubectl counts ages from the real time")]
    fn start(folder: &Path, runs_jobs: bool) -> InMemory {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (stop, stopped) = oneshot::channel();
        let (address, running) = runtime.block_on(async {
            let options = Options {
                checks: CHECKS,
                ..Options::default()
            };
            let api = Api::new(options, WallClock::new(Timestamp::now));
            let service = api.client("").named_by_user_agent();
            let server = Server::bind("127.0.0.1:0".parse().unwrap(), service).await.unwrap();
            if runs_jobs {
                tokio::spawn(JobRunner::new(api, JobRunnerOptions::default()).run());
            }
            let address = server.address();
            let stopped = async {
                let _stopped = stopped.await;
            };
            (address, tokio::spawn(server.run(stopped)))
        });
        let kubeconfig = folder.join("kubeconfig");
        let text = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "apisim",
            "clusters": [{"name": "apisim", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "apisim", "context": {"cluster": "apisim", "user": ""}}],
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        InMemory {
            runtime,
            stop,
            running,
            kubeconfig,
        }
    }

    fn stop(self) {
        self.stop.send(()).unwrap();
        self.runtime.block_on(self.running).unwrap();
    }
}

fn kubectl() -> PathBuf {
    Binaries::find_or_build().expect("kubectl").kubectl
}

#[test]
fn kubectl_output_matches_a_real_api_server() {
    let scratch = Scratch::new("both");
    let in_memory = InMemory::start(scratch.path(), false);
    let mut session = Session::new(kubectl(), &in_memory.kubeconfig, &scratch.path().join("in-memory"));
    script::run(&mut session);
    let ours = session.transcript;
    in_memory.stop();
    let testbed = Testbed::start(testbed::Options {
        jobs: JobLife::None,
        ..testbed::Options::default()
    });
    let testbed = testbed.expect("the control plane starts");
    let mut session = Session::new(kubectl(), &testbed.kubeconfig(), &scratch.path().join("real"));
    script::run(&mut session);
    let real = session.transcript;
    testbed.stop().expect("everything stops");
    assert_eq!(ours.len(), real.len());
    let differences: Vec<String> = ours
        .iter()
        .zip(&real)
        .filter(|(ours, real)| ours != real)
        .map(|(ours, real)| format!("--- kubectl {}\n{}", ours.command, masking::difference(ours, real)))
        .collect();
    assert!(
        differences.is_empty(),
        "{} of {} commands differ; - is the real server, + is the in-memory API\n{}",
        differences.len(),
        ours.len(),
        differences.join("\n")
    );
}

#[test]
fn kubectl_lists_explains_and_sees_jobs_run() {
    let scratch = Scratch::new("alone");
    let in_memory = InMemory::start(scratch.path(), true);
    let mut session = Session::new(kubectl(), &in_memory.kubeconfig, &scratch.path().join("cache"));
    alone::run(&mut session);
    in_memory.stop();
}
