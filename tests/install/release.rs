//! The release of the chart, and its Pods.

use std::{collections::BTreeSet, fs};

use serde_json::Value;

use super::cluster::{Cluster, wait_for};

/// The namespace of the release.
pub(crate) const NAMESPACE: &str = "cronwheel";
/// The chart in this tree.
pub(crate) const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/cronwheel");
/// The chart of 2026-11-24: `git archive --prefix=cronwheel/ 336fbb9:deploy/helm/cronwheel`, without the
/// arguments `--shards` and `--timing`, which the program under test does not have.
pub(crate) const OLD_CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/install/cronwheel-336fbb9.tgz");

impl Cluster {
    /// Creates the namespace of the release, which admits only Pods of the strictest Pod Security Standard.
    pub(crate) fn create_namespace(&self) {
        self.kubectl(&["create", "namespace", NAMESPACE]);
        let label = "pod-security.kubernetes.io/enforce=restricted";
        self.kubectl(&["label", "namespace", NAMESPACE, label]);
    }

    /// Runs a command of helm for the release, and waits until the Deployment is complete.
    pub(crate) fn release(&self, command: &str, arguments: &[&str]) {
        let common = ["--namespace", NAMESPACE, "--wait", "--timeout=4m"];
        self.helm(&[&[command, "cronwheel"], arguments, &common].concat());
    }

    /// The Pods of the release that are not terminating.
    pub(crate) fn pods(&self) -> Vec<Value> {
        let mut pods = self.list(&["pods", "--namespace", NAMESPACE]);
        pods.retain(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        pods
    }

    /// Waits until exactly this many Pods exist and all are ready.
    pub(crate) fn wait_for_pods(&self, n_pods: usize) {
        wait_for("all Pods ready, and no other", || {
            let pods = self.list(&["pods", "--namespace", NAMESPACE]);
            (pods.len() == n_pods && pods.iter().all(is_ready)).then_some(())
        });
    }

    /// Asserts that three Pods become ready, each in another zone, and that each process runs as its Pod specifies.
    pub(crate) fn check_pods(&self) {
        self.wait_for_pods(3);
        let pods = self.pods();
        let zones: BTreeSet<String> = pods.iter().map(|pod| self.zone_of(pod)).collect();
        assert_eq!(zones.len(), 3, "{zones:?}");
        for pod in &pods {
            assert_eq!(pod["status"]["containerStatuses"][0]["restartCount"], 0, "{pod}");
            self.check_process(pod);
        }
    }

    fn zone_of(&self, pod: &Value) -> String {
        let node = self.get(&["node", pod["spec"]["nodeName"].as_str().unwrap()]);
        node["metadata"]["labels"]["topology.kubernetes.io/zone"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Compares the process of a Pod with the Pod.
    fn check_process(&self, pod: &Value) {
        let process = wait_for("the process of a Pod", || self.nodes.process(name_of(pod)));
        let read = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", process.pid)).unwrap();
        let command = read("cmdline");
        let command: Vec<&str> = command.trim_end_matches('\0').split('\0').collect();
        let container = &pod["spec"]["containers"][0];
        let declared = container["args"].as_array().unwrap();
        assert_eq!(command.len(), declared.len() + 1, "{command:?}");
        for (argument, declared) in command[1..].iter().zip(declared) {
            let declared = declared.as_str().unwrap();
            let expected = declared.replace("--listen=0.0.0.0:", &format!("--listen={}:", process.address));
            assert_eq!(*argument, expected);
        }
        let environment = read("environ");
        let names: BTreeSet<&str> = environment
            .split('\0')
            .filter_map(|line| Some(line.split_once('=')?.0))
            .collect();
        assert!(
            names.contains("KUBERNETES_SERVICE_HOST") && !names.contains("KUBECONFIG"),
            "{names:?}"
        );
        let revision = pod["metadata"]["labels"]["pod-template-hash"].as_str().unwrap();
        assert!(
            environment
                .split('\0')
                .any(|line| line == format!("POD_REVISION={revision}"))
        );
        let status = read("status");
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
        assert_eq!(field("Uid:"), ["65532"; 4].join("\t"));
        assert_eq!(field("CapEff:"), "0000000000000000");
        let mounts = read("mountinfo");
        let root: Vec<&str> = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>())
            .find(|mount| mount[4] == "/")
            .unwrap();
        assert!(root[5].split(',').any(|option| option == "ro"), "{root:?}");
    }

    /// Requests the eviction of a Pod. Returns the reason if it is refused.
    pub(crate) fn evict(&self, pod: &str) -> Result<(), String> {
        let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction");
        let metadata = serde_json::json!({"name": pod, "namespace": NAMESPACE});
        let eviction = serde_json::json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata});
        let created = self
            .kubectl
            .run_with_input(&["create", "--raw", &path, "--filename=-"], &eviction.to_string());
        created.map(drop).map_err(|error| error.to_string())
    }
}

pub(crate) fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap()
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
