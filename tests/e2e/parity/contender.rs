//! One of the two controllers as a process, in one namespace, with a clock that runs ahead.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use jiff::SignedDuration;

use crate::controller::free_port;

/// A running controller. Dropping it kills it.
pub(super) struct Contender {
    process: Child,
}

impl Contender {
    pub(super) fn reference(program: &Path, kubeconfig: &Path, namespace: &str, offset: SignedDuration) -> Contender {
        let mut command = Command::new(program);
        // The built-in controller uses its local zone for schedules without a zone (B-7.2). Its log is discarded,
        // because it reports every failed request.
        command.env("TZ", "UTC").stderr(Stdio::null());
        Contender::start(command, kubeconfig, namespace, offset)
    }

    pub(super) fn ours(kubeconfig: &Path, namespace: &str, offset: SignedDuration) -> Contender {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cronwheel"));
        command.args(["run", "--log-level=error"]);
        command.arg(format!("--lease-namespace={namespace}"));
        command.arg(format!("--listen=127.0.0.1:{}", free_port()));
        Contender::start(command, kubeconfig, namespace, offset)
    }

    fn start(mut command: Command, kubeconfig: &Path, namespace: &str, offset: SignedDuration) -> Contender {
        let process = command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--namespace={namespace}"))
            .arg(format!("--clock-offset={}ms", offset.as_millis()))
            .stdin(Stdio::null())
            .spawn()
            .expect("a process");
        Contender { process }
    }

    /// Terminates the controller as a rollout does.
    pub(super) async fn end(mut self) {
        testbed::terminate(&self.process).expect("it runs");
        for _ in 0..150 {
            if self.process.try_wait().expect("a status").is_some() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("a controller does not end");
    }
}

impl Drop for Contender {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
