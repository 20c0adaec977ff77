//! A controller as a process, whose clock stands shortly before a minute of the case.

use std::{
    net::TcpListener,
    process::{Child, Command, Stdio},
    time::Duration,
};

use jiff::Timestamp;

use super::kubernetes::Namespace;

/// How long before the minute the controller's clock stands when its process starts: time to list.
const LEAD_MILLIS: i64 = 2_500;

/// A running controller; dropping it kills it.
pub(super) struct Controller {
    process: Child,
}

impl Controller {
    /// Starts one whose clock reaches the given minute of the case in a moment.
    pub(super) fn start_before(namespace: &Namespace, minute: i64) -> Controller {
        Controller::start(namespace, minute, &[])
    }

    pub(super) fn start(namespace: &Namespace, minute: i64, arguments: &[&str]) -> Controller {
        let ahead = namespace.minute(minute).as_millisecond() - LEAD_MILLIS - Timestamp::now().as_millisecond();
        let process = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
            .arg("run")
            .arg("--kubeconfig")
            .arg(&namespace.controller_kubeconfig)
            .args(["--namespace", &namespace.name])
            .arg(format!("--clock-offset={ahead}ms"))
            .arg(format!("--listen=127.0.0.1:{}", free_port()))
            .args(["--log-level", "warn"])
            .args(arguments)
            .stdin(Stdio::null())
            .spawn()
            .expect("a process");
        Controller { process }
    }

    /// Ends it as a crash does.
    pub(super) fn kill(mut self) {
        self.process.kill().expect("a kill");
        self.process.wait().expect("an end");
    }

    /// Ends it as a rollout does, and expects that it goes of itself, well.
    pub(super) async fn terminate(mut self) {
        testbed::ask_to_end(&self.process).expect("a signal");
        for _ in 0..150 {
            if let Some(status) = self.process.try_wait().expect("a status") {
                assert!(status.success(), "{status}");
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the controller does not end");
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        // It may have ended already, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}
