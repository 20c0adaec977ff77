//! Defaults of Pod templates.

use serde_json::{Map, Value, json};

use super::{elements, set_default, set_text_default};

/// Scalar defaults of volume sources: source, member, value.
const SOURCE_TEXTS: &[(&str, &str, &str)] = &[
    ("hostPath", "type", ""),
    ("iscsi", "iscsiInterface", "default"),
    ("rbd", "pool", "rbd"),
    ("rbd", "user", "admin"),
    ("rbd", "keyring", "/etc/ceph/keyring"),
    ("azureDisk", "cachingMode", "ReadWrite"),
    ("azureDisk", "fsType", "ext4"),
    ("azureDisk", "kind", "Shared"),
    ("scaleIO", "storageMode", "ThinProvisioned"),
    ("scaleIO", "fsType", "xfs"),
];
/// Volume sources whose files have a mode, 0644 by default.
const SOURCES_WITH_MODE: [&str; 4] = ["secret", "configMap", "downwardAPI", "projected"];
const MODE: i32 = 0o644;
const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];
/// The lifetime of a projected token, in seconds.
const TOKEN_LIFETIME_SECS: i32 = 3600;

/// Sets defaults in the spec of a Pod template.
pub(super) fn apply(pod: &mut Map<String, Value>) {
    set_default(pod, "dnsPolicy", "ClusterFirst");
    set_default(pod, "restartPolicy", "Always");
    set_default(pod, "schedulerName", "default-scheduler");
    set_default(pod, "securityContext", json!({}));
    set_default(pod, "terminationGracePeriodSeconds", 30);
    name_service_account(pod);
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        elements(pod.get_mut(list)).for_each(container);
    }
    elements(pod.get_mut("volumes")).for_each(volume);
}

/// The service account is also written under its old field name.
fn name_service_account(pod: &mut Map<String, Value>) {
    let name = ["serviceAccountName", "serviceAccount"]
        .iter()
        .find_map(|member| pod.get(*member));
    if let Some(name) = name.filter(|name| name.is_string()).cloned() {
        pod.insert("serviceAccountName".to_owned(), name.clone());
        pod.insert("serviceAccount".to_owned(), name);
    }
}

fn container(container: &mut Value) {
    let is_latest = container.get("image").and_then(Value::as_str).is_some_and(is_latest);
    set_text_default(
        container,
        "imagePullPolicy",
        if is_latest { "Always" } else { "IfNotPresent" },
    );
    set_text_default(container, "terminationMessagePath", "/dev/termination-log");
    set_text_default(container, "terminationMessagePolicy", "File");
    for port in elements(container.get_mut("ports")) {
        set_text_default(port, "protocol", "TCP");
    }
    for variable in elements(container.get_mut("env")) {
        if let Some(source) = variable.get_mut("valueFrom") {
            field_reference(source);
            if let Some(key) = source.get_mut("fileKeyRef").and_then(Value::as_object_mut) {
                set_default(key, "optional", false);
            }
        }
    }
    for name in PROBES {
        if let Some(members) = container.get_mut(name).and_then(Value::as_object_mut) {
            probe(members);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(hook) = container
            .get_mut("lifecycle")
            .and_then(|lifecycle| lifecycle.get_mut(hook))
        {
            http_get(hook.get_mut("httpGet"));
        }
    }
}

fn probe(probe: &mut Map<String, Value>) {
    for (member, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        set_default(probe, member, value);
    }
    http_get(probe.get_mut("httpGet"));
    if let Some(grpc) = probe.get_mut("grpc").and_then(Value::as_object_mut) {
        set_default(grpc, "service", "");
    }
}

fn http_get(action: Option<&mut Value>) {
    if let Some(action) = action {
        set_text_default(action, "path", "/");
        set_text_default(action, "scheme", "HTTP");
    }
}

fn field_reference(source: &mut Value) {
    if let Some(reference) = source.get_mut("fieldRef") {
        set_text_default(reference, "apiVersion", "v1");
    }
}

fn volume(volume: &mut Value) {
    let Some(members) = volume.as_object_mut() else { return };
    let has_source = members.iter().any(|(name, value)| name != "name" && !value.is_null());
    if !has_source {
        members.insert("emptyDir".to_owned(), json!({}));
    }
    for source in SOURCES_WITH_MODE {
        if let Some(source) = members.get_mut(source).and_then(Value::as_object_mut) {
            set_default(source, "defaultMode", MODE);
        }
    }
    for (source, member, value) in SOURCE_TEXTS {
        if let Some(source) = members.get_mut(*source).and_then(Value::as_object_mut) {
            set_default(source, member, *value);
        }
    }
    if let Some(disk) = members.get_mut("azureDisk").and_then(Value::as_object_mut) {
        set_default(disk, "readOnly", false);
    }
    let items = members
        .get_mut("downwardAPI")
        .and_then(|source| source.get_mut("items"));
    elements(items).for_each(field_reference);
    let sources = members
        .get_mut("projected")
        .and_then(|source| source.get_mut("sources"));
    for source in elements(sources) {
        let items = source.get_mut("downwardAPI").and_then(|source| source.get_mut("items"));
        elements(items).for_each(field_reference);
        if let Some(token) = source.get_mut("serviceAccountToken").and_then(Value::as_object_mut) {
            set_default(token, "expirationSeconds", TOKEN_LIFETIME_SECS);
        }
    }
    let claim = members
        .get_mut("ephemeral")
        .and_then(|source| source.pointer_mut("/volumeClaimTemplate/spec"));
    if let Some(claim) = claim.and_then(Value::as_object_mut) {
        set_default(claim, "volumeMode", "Filesystem");
    }
    if let Some(image) = members.get_mut("image") {
        let is_latest = image.get("reference").and_then(Value::as_str).is_some_and(is_latest);
        set_text_default(image, "pullPolicy", if is_latest { "Always" } else { "IfNotPresent" });
    }
}

/// Returns whether an image reference means the tag `latest`: either by name, or without tag and digest.
fn is_latest(reference: &str) -> bool {
    if reference.contains('@') {
        return false;
    }
    // A colon before a slash belongs to a port.
    let path_begin = reference.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match reference[path_begin..].split_once(':') {
        Some((name, tag)) => (name, tag),
        None => (&reference[path_begin..], "latest"),
    };
    // Malformed references have no tag.
    let is_name = |name: &str| {
        let is_lower = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        name.bytes()
            .all(|byte| is_lower(byte) || matches!(byte, b'.' | b'_' | b'-'))
            && name.bytes().next().is_some_and(is_lower)
            && name.bytes().last().is_some_and(is_lower)
    };
    tag == "latest" && is_name(name)
}

#[cfg(test)]
mod tests {
    use super::is_latest;

    #[test]
    fn image_without_tag_and_digest_is_latest() {
        let cases = [
            ("busybox", true),
            ("busybox:latest", true),
            ("busybox:1.36", false),
            ("registry.example:5000/team/tool", true),
            ("registry.example:5000/team/tool:2", false),
            (
                "tool@sha256:0123456789012345678901234567890123456789012345678901234567890123",
                false,
            ),
            ("", false),
            ("Busybox", false),
            (" ", false),
        ];
        for (image, expected) in cases {
            assert_eq!(is_latest(image), expected, "{image:?}");
        }
    }
}
