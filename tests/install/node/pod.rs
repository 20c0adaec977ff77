//! One Pod on a node: its container, probes, status and termination.

use std::{
    fs,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, Preconditions},
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    Process, Result, Settings,
    container::{ContainerSpec, only_container},
    probe::Probe,
    sandbox,
};

/// The lifetime that a kubelet requests. No test lasts until a kubelet would renew the token, at four fifths of it.
const TOKEN_SECONDS: u32 = 3607;

/// The content of a Pod's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Report {
    Running { is_ready: bool, n_restarts: u32 },
    Ended { code: i32 },
}

impl Report {
    /// The end of a container. One that was killed has no exit code of its own.
    fn ended(status: ExitStatus) -> Report {
        Report::Ended {
            code: status.code().unwrap_or(128 + 9),
        }
    }
}

/// A Pod whose container runs. Dropping it kills the container.
#[derive(Debug)]
pub(super) struct PodRun {
    api: Api<Pod>,
    pod: Pod,
    address: Ipv4Addr,
    spec: ContainerSpec,
    folder: PathBuf,
    child: Child,
    started_at: Timestamp,
    n_restarts: u32,
    readiness: Option<Probe>,
    liveness: Option<Probe>,
    /// When the container is killed. Set when it receives SIGTERM.
    kill_at: Option<Instant>,
    reported: Option<Report>,
}

impl PodRun {
    /// Starts the container of a Pod.
    pub(super) async fn start(client: &Client, settings: &Settings, pod: Pod, address: Ipv4Addr) -> Result<PodRun> {
        let spec = ContainerSpec::of(&pod, address, settings.api_server_port)?;
        let folder = settings.folder.join(pod.name_any());
        let namespace = pod.namespace().unwrap_or_default();
        write_secrets(client, &pod, &namespace, &folder.join("secrets")).await?;
        let child = sandbox::start(&spec, &settings.program, &folder, &settings.log_path(&pod.name_any()))?;
        let (readiness, liveness) = probes(&pod)?;
        Ok(PodRun {
            api: Api::namespaced(client.clone(), &namespace),
            pod,
            address,
            spec,
            folder,
            child,
            started_at: Timestamp::now(),
            n_restarts: 0,
            readiness,
            liveness,
            kill_at: None,
            reported: None,
        })
    }

    /// The name of the Pod and its process. None while the process still prepares the container.
    pub(super) fn process(&self) -> Option<(String, Process)> {
        let pid = self.child.id();
        let program = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
        let process = Process {
            pid,
            address: self.address,
            namespace: self.pod.namespace().unwrap_or_default(),
        };
        program.ends_with("cronwheel").then(|| (self.pod.name_any(), process))
    }

    /// Handles changes of the Pod and of the container. Returns whether the Pod is gone.
    pub(super) async fn advance(&mut self, settings: &Settings, now: &Pod) -> Result<bool> {
        let is_deleted = now.metadata.deletion_timestamp.is_some();
        if let Some(status) = self.child.try_wait()? {
            if is_deleted {
                self.leave(status).await?;
                return Ok(true);
            }
            if self.is_never_restarted() {
                return self.report(Report::ended(status)).await;
            }
            self.restart(settings)?;
        }
        if is_deleted {
            self.end_within(now.metadata.deletion_grace_period_seconds)?;
        }
        let is_ready = poll(&mut self.readiness, self.address).await;
        if !poll(&mut self.liveness, self.address).await {
            let grace = self
                .pod
                .spec
                .as_ref()
                .and_then(|spec| spec.termination_grace_period_seconds);
            self.end_within(grace)?;
        }
        if self.kill_at.is_some_and(|at| Instant::now() >= at) {
            self.child.kill()?;
        }
        let n_restarts = self.n_restarts;
        self.report(Report::Running { is_ready, n_restarts }).await
    }

    /// Sends SIGTERM, and SIGKILL after the grace period.
    fn end_within(&mut self, grace_seconds: Option<i64>) -> Result<()> {
        if self.kill_at.is_some() {
            return Ok(());
        }
        let grace = grace_seconds
            .and_then(|seconds| u64::try_from(seconds).ok())
            .unwrap_or(30);
        self.kill_at = Some(Instant::now() + Duration::from_secs(grace));
        Ok(kill_process(Pid::from_child(&self.child), Signal::TERM)?)
    }

    fn is_never_restarted(&self) -> bool {
        let spec = self.pod.spec.as_ref();
        spec.is_some_and(|spec| spec.restart_policy.as_deref() == Some("Never"))
    }

    /// Restarts the container in the same Pod.
    fn restart(&mut self, settings: &Settings) -> Result<()> {
        self.child = sandbox::start(
            &self.spec,
            &settings.program,
            &self.folder,
            &settings.log_path(&self.pod.name_any()),
        )?;
        self.started_at = Timestamp::now();
        self.n_restarts += 1;
        self.kill_at = None;
        (self.readiness, self.liveness) = probes(&self.pod)?;
        Ok(())
    }

    /// Reports the end of the container and removes the Pod, as a kubelet does after all containers have ended.
    async fn leave(&mut self, status: ExitStatus) -> Result<()> {
        self.report(Report::ended(status)).await?;
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: self.pod.uid(),
                resource_version: None,
            }),
            ..DeleteParams::default().grace_period(0)
        };
        self.api.delete(&self.pod.name_any(), &parameters).await?;
        Ok(())
    }

    /// Writes the status if it has changed. Returns false: the Pod is not gone.
    async fn report(&mut self, report: Report) -> Result<bool> {
        if self.reported == Some(report) {
            return Ok(false);
        }
        let status = json!({"status": self.status(report)});
        let name = self.pod.name_any();
        self.api
            .patch_status(&name, &PatchParams::default(), &Patch::Strategic(status))
            .await?;
        self.reported = Some(report);
        Ok(false)
    }

    fn status(&self, report: Report) -> Value {
        let now = Timestamp::now().to_string();
        let started_at = self.started_at.to_string();
        let (is_ready, phase, state) = match report {
            Report::Running { is_ready, .. } => (is_ready, "Running", json!({"running": {"startedAt": started_at}})),
            Report::Ended { code } => {
                let phase = if code == 0 { "Succeeded" } else { "Failed" };
                let state = json!({"exitCode": code, "startedAt": started_at, "finishedAt": now});
                (false, phase, json!({"terminated": state}))
            }
        };
        let condition = |kind: &str, is_true: bool| {
            let status = if is_true { "True" } else { "False" };
            json!({"type": kind, "status": status, "lastTransitionTime": now})
        };
        let container = only_container(&self.pod);
        let named = container.map_or(("", None), |container| (&*container.name, container.image.as_deref()));
        json!({
            "phase": phase,
            "startTime": started_at,
            "hostIP": "127.0.0.1",
            "podIP": self.address,
            "podIPs": [{"ip": self.address}],
            "conditions": [
                condition("Initialized", true),
                condition("Ready", is_ready),
                condition("ContainersReady", is_ready),
            ],
            "containerStatuses": [{
                "name": named.0,
                "image": named.1,
                "imageID": "",
                "ready": is_ready,
                "restartCount": self.n_restarts,
                "state": state,
            }],
        })
    }
}

impl Drop for PodRun {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A container without a probe is ready and alive.
async fn poll(probe: &mut Option<Probe>, address: Ipv4Addr) -> bool {
    match probe {
        Some(probe) => probe.poll(address).await,
        None => true,
    }
}

/// The readiness probe and the liveness probe.
fn probes(pod: &Pod) -> std::result::Result<(Option<Probe>, Option<Probe>), String> {
    let container = only_container(pod)?;
    let probe = |declared: Option<&_>, is_positive| {
        declared
            .map(|declared| Probe::new(declared, container, is_positive))
            .transpose()
    };
    Ok((
        probe(container.readiness_probe.as_ref(), false)?,
        probe(container.liveness_probe.as_ref(), true)?,
    ))
}

/// Writes the files that a kubelet mounts: a token that is bound to the Pod, the CA and the namespace.
async fn write_secrets(client: &Client, pod: &Pod, namespace: &str, folder: &Path) -> Result<()> {
    let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
    let path = format!(
        "/api/v1/namespaces/{namespace}/serviceaccounts/{}/token",
        account.unwrap_or("default")
    );
    let bound = json!({"kind": "Pod", "apiVersion": "v1", "name": pod.name_any(), "uid": pod.uid()});
    let request = json!({"spec": {"audiences": [], "expirationSeconds": TOKEN_SECONDS, "boundObjectRef": bound}});
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(request.to_string().into_bytes())?;
    let response: Value = client.request(request).await?;
    let token = response["status"]["token"].as_str().ok_or("no token")?;
    let authority = Api::<ConfigMap>::namespaced(client.clone(), namespace)
        .get("kube-root-ca.crt")
        .await?;
    let authority = authority
        .data
        .and_then(|data| data.get("ca.crt").cloned())
        .ok_or("no CA")?;
    fs::create_dir_all(folder)?;
    for (file, text) in [
        ("token", token),
        ("ca.crt", authority.as_str()),
        ("namespace", namespace),
    ] {
        fs::write(folder.join(file), text)?;
    }
    Ok(())
}
