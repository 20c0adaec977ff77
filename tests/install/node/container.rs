//! The command, environment and user of a container, derived from its Pod as a kubelet does.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::{Container, EnvVar, Pod, Volume};
use serde_json::Value;

/// The entry point of the image.
const ENTRY_POINT: &str = "/cronwheel";
/// The value of the environment variable `PATH` that container runtimes set.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The command, environment and user of a container.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContainerSpec {
    pub(super) command: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) user: i64,
    pub(super) group: i64,
    pub(super) has_read_only_root: bool,
    /// Each `emptyDir` with its folder in the container.
    pub(super) empty_folders: Vec<(String, String)>,
}

impl ContainerSpec {
    /// Derives the specification from a Pod. The container listens on `address`, and reaches the API server on this
    /// port. Fails if the Pod has fields that these nodes do not support.
    pub(super) fn of(pod: &Pod, address: Ipv4Addr, api_server_port: u16) -> Result<ContainerSpec, String> {
        let container = only_container(pod)?;
        let mut command = container
            .command
            .clone()
            .unwrap_or_else(|| vec![ENTRY_POINT.to_owned()]);
        let arguments = container.args.iter().flatten();
        command.extend(arguments.map(|argument| on_address(argument, address)));
        let (pod_user, pod_group) = match pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref()) {
            Some(context) => (context.run_as_user, context.run_as_group),
            None => (None, None),
        };
        let context = container.security_context.clone().unwrap_or_default();
        Ok(ContainerSpec {
            command,
            environment: environment(pod, container, api_server_port)?,
            user: context.run_as_user.or(pod_user).unwrap_or(0),
            group: context.run_as_group.or(pod_group).unwrap_or(0),
            has_read_only_root: context.read_only_root_filesystem.unwrap_or(false),
            empty_folders: empty_folders(pod, container),
        })
    }
}

/// The container of a Pod with one container and no volume other than its token and `emptyDir`.
pub(super) fn only_container(pod: &Pod) -> Result<&Container, String> {
    let spec = pod.spec.as_ref().ok_or("no spec")?;
    let [container] = spec.containers.as_slice() else {
        return Err("more than one container".to_owned());
    };
    let mut volumes = spec.volumes.iter().flatten();
    let is_unknown = |volume: &&Volume| !volume.name.starts_with("kube-api-access-") && volume.empty_dir.is_none();
    if let Some(volume) = volumes.find(is_unknown) {
        return Err(format!("volume {}", volume.name));
    }
    let is_plain = spec.init_containers.is_none() && container.lifecycle.is_none() && container.env_from.is_none();
    if !is_plain || container.startup_probe.is_some() {
        return Err("init containers, hooks, startup probes or envFrom".to_owned());
    }
    Ok(container)
}

fn empty_folders(pod: &Pod, container: &Container) -> Vec<(String, String)> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    let empty: Vec<&str> = volumes
        .filter(|volume| volume.empty_dir.is_some())
        .map(|volume| volume.name.as_str())
        .collect();
    let mounts = container.volume_mounts.iter().flatten();
    let mounts = mounts.filter(|mount| empty.contains(&mount.name.as_str()));
    mounts
        .map(|mount| (mount.name.clone(), mount.mount_path.clone()))
        .collect()
}

/// Replaces the address to listen on, because all Pods share the network of this machine.
fn on_address(argument: &str, address: Ipv4Addr) -> String {
    let listen = argument.strip_prefix("--listen=").and_then(|all| all.rsplit_once(':'));
    listen.map_or_else(|| argument.to_owned(), |(_, port)| format!("--listen={address}:{port}"))
}

fn environment(pod: &Pod, container: &Container, api_server_port: u16) -> Result<Vec<(String, String)>, String> {
    let port = api_server_port.to_string();
    let given = [
        ("PATH", PATH),
        ("HOSTNAME", pod.metadata.name.as_deref().unwrap_or_default()),
        ("KUBERNETES_SERVICE_HOST", "127.0.0.1"),
        ("KUBERNETES_SERVICE_PORT", &port),
    ];
    let given = given.map(|(name, value)| Ok((name.to_owned(), value.to_owned())));
    let json = serde_json::to_value(pod).map_err(|error| error.to_string())?;
    let own = container.env.iter().flatten();
    let own = own.map(|variable| Ok((variable.name.clone(), value_of(variable, &json)?)));
    given.into_iter().chain(own).collect()
}

/// The value of a variable, which may be a field of the Pod.
fn value_of(variable: &EnvVar, pod: &Value) -> Result<String, String> {
    let Some(source) = &variable.value_from else {
        return Ok(variable.value.clone().unwrap_or_default());
    };
    let path = source.field_ref.as_ref().map(|field| field.field_path.as_str());
    let path = path.ok_or_else(|| format!("source of the variable {}", variable.name))?;
    let found = match path.strip_suffix("']").and_then(|path| path.split_once("['")) {
        Some((map, key)) => &field(pod, map)[key],
        None => field(pod, path),
    };
    // A missing label is an empty string.
    Ok(found.as_str().unwrap_or_default().to_owned())
}

fn field<'p>(pod: &'p Value, path: &str) -> &'p Value {
    path.split('.').fold(pod, |inner, name| &inner[name])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 1, 2, 3);

    fn pod() -> Value {
        json!({
            "metadata": {"name": "cronwheel-1", "labels": {"pod-template-hash": "abc"}},
            "spec": {
                "securityContext": {"runAsUser": 65532, "runAsGroup": 65533},
                "volumes": [{"name": "kube-api-access-x", "projected": {"sources": []}}],
                "containers": [{
                    "name": "cronwheel",
                    "args": ["run", "--listen=0.0.0.0:8080"],
                    "env": [
                        {"name": "PLAIN", "value": "1"},
                        {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                        {"name": "REVISION", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['pod-template-hash']"}}},
                    ],
                    "securityContext": {"readOnlyRootFilesystem": true},
                }],
            },
        })
    }

    fn spec_of(pod: Value) -> Result<ContainerSpec, String> {
        ContainerSpec::of(&serde_json::from_value(pod).unwrap(), ADDRESS, 6443)
    }

    #[test]
    fn container_runs_as_specified_except_for_its_address() {
        let spec = spec_of(pod()).unwrap();
        assert_eq!(spec.command, ["/cronwheel", "run", "--listen=127.1.2.3:8080"]);
        assert_eq!((spec.user, spec.group, spec.has_read_only_root), (65532, 65533, true));
        let value = |name: &str| {
            let found = spec.environment.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str())
        };
        assert_eq!(value("PLAIN"), Some("1"));
        assert_eq!(value("NAME"), Some("cronwheel-1"));
        assert_eq!(value("REVISION"), Some("abc"));
        assert_eq!(value("KUBERNETES_SERVICE_PORT"), Some("6443"));
        assert_eq!(value("KUBECONFIG"), None);
    }

    #[test]
    fn container_settings_override_those_of_pod_and_image() {
        let mut pod = pod();
        let container = &mut pod["spec"]["containers"][0];
        container["command"] = json!(["/other"]);
        container["securityContext"] = json!({"runAsUser": 7});
        let spec = spec_of(pod).unwrap();
        assert_eq!(spec.command[..2], ["/other", "run"]);
        assert_eq!((spec.user, spec.group, spec.has_read_only_root), (7, 65533, false));
    }

    #[test]
    fn empty_volumes_have_their_folders() {
        let mut pod = pod();
        pod["spec"]["volumes"] = json!([{"name": "history", "emptyDir": {"sizeLimit": "3Gi"}}]);
        pod["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "history", "mountPath": "/history"}]);
        let expected = [("history".to_owned(), "/history".to_owned())];
        assert_eq!(spec_of(pod).unwrap().empty_folders, expected);
    }

    #[test]
    fn unsupported_pod_fields_are_refused() {
        let refused = |path: &str, value: Value| {
            let mut pod = pod();
            *pod.pointer_mut(path).unwrap() = value;
            spec_of(pod).unwrap_err()
        };
        let secret = json!([{"name": "key", "secret": {}}]);
        assert_eq!(refused("/spec/volumes", secret), "volume key");
        let two = json!([{"name": "a"}, {"name": "b"}]);
        assert_eq!(refused("/spec/containers", two), "more than one container");
        let from_a_secret = json!([{"name": "KEY", "valueFrom": {"secretKeyRef": {"key": "a"}}}]);
        let found = refused("/spec/containers/0/env", from_a_secret);
        assert_eq!(found, "source of the variable KEY");
    }
}
