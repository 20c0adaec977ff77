//! A control plane with nodes, and the commands that tests run on it.

use std::{
    path::Path,
    process::Command,
    thread::sleep,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use serde_json::Value;
use testbed::{Autoscaling, Kubectl, Options, Testbed};

use super::node::{self, Nodes};

/// The limit of waits for events that take seconds, such as the replacement of a Pod.
const WAIT_MAX: Duration = Duration::from_mins(2);
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Cluster {
    // Dropped in this order: containers before the control plane.
    pub(crate) nodes: Nodes,
    pub(crate) kubectl: Kubectl,
    pub(crate) testbed: Testbed,
}

impl Cluster {
    /// Starts a control plane with nodes that run the binary of this build in place of the image.
    pub(crate) fn start() -> Cluster {
        Cluster::start_with(Autoscaling::Off)
    }

    /// Like [`Cluster::start`], with autoscalers at this pace.
    pub(crate) fn start_with(autoscaling: Autoscaling) -> Cluster {
        Cluster::of(Options {
            autoscaling,
            audit: true,
            ..Options::default()
        })
    }

    /// Like [`Cluster::start`], without an audit log, and with a name that commands of the test bed accept.
    pub(crate) fn start_named(name: &str) -> Cluster {
        Cluster::of(Options {
            name: Some(name.to_owned()),
            ..Options::default()
        })
    }

    fn of(options: Options) -> Cluster {
        let testbed = Testbed::start(Options {
            workloads: true,
            ..options
        });
        let testbed = testbed.unwrap();
        Cluster {
            nodes: Nodes::start(&testbed, Path::new(env!("CARGO_BIN_EXE_cronwheel"))),
            kubectl: testbed.kubectl(),
            testbed,
        }
    }

    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        self.kubectl.run(arguments).unwrap()
    }

    /// The JSON output of `kubectl get`.
    pub(crate) fn get(&self, arguments: &[&str]) -> Value {
        let text = self.kubectl(&[&["get", "--output=json"], arguments].concat());
        serde_json::from_str(&text).unwrap()
    }

    /// The items of a list.
    pub(crate) fn list(&self, arguments: &[&str]) -> Vec<Value> {
        self.get(arguments)["items"].as_array().unwrap().clone()
    }

    /// Runs helm as an administrator. Returns its output.
    pub(crate) fn helm(&self, arguments: &[&str]) -> String {
        let folder = self.testbed.folder().join("helm");
        let output = Command::new(testbed::find_or_build_helm().unwrap())
            .args(arguments)
            .env("KUBECONFIG", self.testbed.kubeconfig())
            .env("HELM_CACHE_HOME", &folder)
            .env("HELM_CONFIG_HOME", &folder)
            .env("HELM_DATA_HOME", &folder)
            .output()
            .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "helm {arguments:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// Waits until the condition returns something.
pub(crate) fn wait_for<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = condition() {
            return found;
        }
        assert!(begin.elapsed() < WAIT_MAX, "not within {WAIT_MAX:?}: {what}");
        sleep(POLL);
    }
}

/// The time in seconds.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// Whether this environment variable enables the cases. Prints the reason if they are enabled and cannot run.
pub(crate) fn is_wanted(variable: &str) -> bool {
    let is_wanted = std::env::var_os(variable).is_some();
    if is_wanted && !node::is_permitted() {
        eprintln!(
            "Not started: nodes of the test bed need root, to mount the root of a container and to change the user."
        );
        return false;
    }
    is_wanted
}

/// The first slot that a ready release must not miss.
pub(crate) fn next_minute() -> u64 {
    now() / 60 + 1
}

/// The latest slot whose Job must exist.
pub(crate) fn last_minute() -> u64 {
    (now() - 10) / 60
}

/// Waits until this second of a minute.
pub(crate) fn wait_for_second(second: u64) {
    sleep(Duration::from_secs((60 + second - now() % 60) % 60));
}
