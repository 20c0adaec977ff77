//! Nodes of the test bed. Like a kubelet and a container runtime, they run the Pods that are bound to them: with the
//! command, environment, user and token of the Pod, and with its probes and its grace period. A container is a process.
//!
//! One thread serves three nodes in three zones. All containers share the network of this machine, so each gets another
//! listen address.

mod container;
mod pod;
mod probe;
mod sandbox;

use std::{
    collections::BTreeMap,
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{ListParams, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use testbed::{Instance, Testbed};
use tokio::{
    select,
    sync::oneshot,
    time::{Instant, sleep},
};

use self::pod::PodRun;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Each node is in the zone with the same letter.
const LETTERS: [char; 3] = ['a', 'b', 'c'];
/// The interval between polls of Pods and processes.
const TICK: Duration = Duration::from_millis(200);
/// The interval between heartbeats of a node, as a kubelet sends them.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(10);

/// Whether this process may run nodes.
pub(crate) fn is_permitted() -> bool {
    sandbox::is_permitted()
}

/// The settings that all Pods share.
#[derive(Debug)]
struct Settings {
    instance: Instance,
    /// The program that runs in place of the image.
    program: PathBuf,
    folder: PathBuf,
    api_server_port: u16,
}

impl Settings {
    fn log_path(&self, pod: &str) -> PathBuf {
        self.folder.join(format!("{pod}.log"))
    }
}

/// A running container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) address: Ipv4Addr,
    /// The namespace of its Pod.
    pub(crate) namespace: String,
}

/// The processes by the names of their Pods.
pub(crate) type Processes = Arc<Mutex<BTreeMap<String, Process>>>;

/// The nodes of a control plane. Dropping them kills all containers.
#[derive(Debug)]
pub(crate) struct Nodes {
    processes: Processes,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Nodes {
    /// Creates the nodes and runs the Pods that are bound to them. `program` runs in place of the image.
    pub(crate) fn start(testbed: &Testbed, program: &Path) -> Nodes {
        let instance = Instance::clone(testbed);
        let folder = instance.folder().join("pods");
        fs::create_dir_all(&folder).expect("a folder for Pods");
        let port = instance
            .api_server_url()
            .rsplit(':')
            .next()
            .and_then(|port| port.parse().ok());
        let settings = Settings {
            program: program.to_owned(),
            folder,
            api_server_port: port.expect("a port"),
            instance,
        };
        let processes = Processes::default();
        let (stop, stopped) = oneshot::channel();
        let shared = Arc::clone(&processes);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(run(settings, shared, stopped));
        });
        Nodes {
            processes,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// The current processes of all Pods.
    pub(crate) fn processes(&self) -> Processes {
        Arc::clone(&self.processes)
    }

    /// The process of a Pod.
    pub(crate) fn process(&self, pod: &str) -> Option<Process> {
        self.processes.lock().expect("no panic").get(pod).cloned()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn run(settings: Settings, processes: Processes, mut stopped: oneshot::Receiver<()>) {
    let kubeconfig = Kubeconfig::read_from(settings.instance.kubeconfig()).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    let mut kubelet = Kubelet {
        client: Client::try_from(config.expect("a configuration")).expect("a client"),
        settings,
        processes,
        pods: BTreeMap::new(),
        n_addresses: 0,
        beat_at: Instant::now(),
    };
    loop {
        if let Err(error) = kubelet.tick().await {
            eprintln!("nodes: {error}");
        }
        select! {
            _ = &mut stopped => return,
            () = sleep(TICK) => {}
        }
    }
}

/// The kubelet of all nodes.
struct Kubelet {
    client: Client,
    settings: Settings,
    processes: Processes,
    /// By uid.
    pods: BTreeMap<String, PodRun>,
    n_addresses: u8,
    beat_at: Instant,
}

impl Kubelet {
    async fn tick(&mut self) -> Result<()> {
        if Instant::now() >= self.beat_at {
            self.beat().await?;
            self.beat_at = Instant::now() + HEARTBEAT_INTERVAL;
        }
        let all = Api::<Pod>::all(self.client.clone())
            .list(&ListParams::default())
            .await?;
        let is_here = |pod: &Pod| {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
            node.is_some_and(|node| LETTERS.iter().any(|letter| node == format!("node-{letter}")))
        };
        let present: BTreeMap<String, Pod> = all
            .items
            .into_iter()
            .filter(is_here)
            .filter_map(|pod| Some((pod.uid()?, pod)))
            .collect();
        // Removes Pods that were deleted without a grace period.
        self.pods.retain(|uid, _| present.contains_key(uid));
        for (uid, pod) in present {
            // An error of one Pod does not affect the others.
            if let Err(error) = self.follow(uid, pod).await {
                eprintln!("nodes: {error}");
            }
        }
        self.publish()
    }

    async fn follow(&mut self, uid: String, pod: Pod) -> Result<()> {
        let Some(run) = self.pods.get_mut(&uid) else {
            let address = self.next_address();
            let run = PodRun::start(&self.client, &self.settings, pod, address).await?;
            self.pods.insert(uid, run);
            return Ok(());
        };
        if run.advance(&self.settings, &pod).await? {
            self.pods.remove(&uid);
        }
        Ok(())
    }

    /// An address in 127.0.0.0/8 that no other Pod on this machine has, because it contains the port of the API server.
    fn next_address(&mut self) -> Ipv4Addr {
        self.n_addresses = self.n_addresses % 250 + 1;
        let [high, low] = self.settings.api_server_port.to_be_bytes();
        Ipv4Addr::new(127, high, low, self.n_addresses)
    }

    /// Publishes the processes to the test, and to the instance, which ends them when it stops.
    fn publish(&self) -> Result<()> {
        let now: BTreeMap<String, Process> = self.pods.values().filter_map(PodRun::process).collect();
        let mut processes = self.processes.lock().expect("no panic");
        for (name, process) in &now {
            if processes.get(name) != Some(process) {
                self.settings.instance.attach(name, process.pid)?;
            }
        }
        *processes = now;
        Ok(())
    }

    async fn beat(&self) -> Result<()> {
        let api = Api::<Node>::all(self.client.clone());
        for letter in LETTERS {
            let name = format!("node-{letter}");
            let labels =
                json!({"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": format!("zone-{letter}")});
            let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
            let parameters = PatchParams::apply("kubelet");
            api.patch(&name, &parameters, &Patch::Apply(node)).await?;
            let size = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
            let now = Timestamp::now().to_string();
            let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now});
            let status = json!({"status": {"capacity": size, "allocatable": size, "conditions": [ready]}});
            api.patch_status(&name, &PatchParams::default(), &Patch::Strategic(status))
                .await?;
        }
        Ok(())
    }
}
