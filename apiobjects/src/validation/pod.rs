//! Validation of Pod templates. Left out are rules for rarely used fields: affinity, sources of volumes besides the common
//! ones, Windows, profiles of seccomp and `AppArmor`, and claims of devices.

mod environment;
mod probes;
mod resources;
mod scheduling;
mod volumes;

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    field_error::Errors,
    metadata::{self, elements, member_text},
    names,
    path::Path,
};

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];
const CONTAINER_RESTART_POLICIES: [&str; 3] = ["Always", "Never", "OnFailure"];
const DNS_POLICIES: [&str; 4] = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
const MESSAGE_POLICIES: [&str; 2] = ["File", "FallbackToLogsOnError"];
const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];
const PORTS: std::ops::RangeInclusive<i64> = 1..=65_535;
/// Fields that init containers cannot have if they run to completion.
const NOT_FOR_INIT_CONTAINERS: [&str; 4] = ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"];

/// Checks a pod template.
pub(super) fn template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    metadata::labels(&path.child("labels"), &template["metadata"]["labels"], errors);
    metadata::annotations(&path.child("annotations"), &template["metadata"]["annotations"], errors);
    let pod = &template["spec"];
    let path = path.child("spec");
    if pod["terminationGracePeriodSeconds"].is_null() {
        errors.required(&path.child("terminationGracePeriodSeconds"), "");
    }
    let volumes = volumes::check(pod, &path.child("volumes"), errors);
    let mut names = BTreeSet::new();
    containers(pod, &volumes, &mut names, &path.child("containers"), errors);
    init_containers(pod, &volumes, &mut names, &path.child("initContainers"), errors);
    one_of(pod, "restartPolicy", &RESTART_POLICIES, &path, errors);
    one_of(pod, "dnsPolicy", &DNS_POLICIES, &path, errors);
    metadata::labels(&path.child("nodeSelector"), &pod["nodeSelector"], errors);
    scheduling::security_of_pod(&pod["securityContext"], &path.child("securityContext"), errors);
    if member_text(pod, "dnsPolicy") == "None" {
        dns_config(&pod["dnsConfig"], &path.child("dnsConfig"), errors);
    }
    subdomain_names(pod, &path, errors);
    if let Some(deadline) = pod["activeDeadlineSeconds"].as_i64()
        && !(1..=i64::from(i32::MAX)).contains(&deadline)
    {
        let detail = "must be between 1 and 2147483647, inclusive";
        errors.invalid(&path.child("activeDeadlineSeconds"), deadline, detail);
    }
    for member in ["hostname", "subdomain"] {
        let name = member_text(pod, member);
        if !name.is_empty() {
            errors.invalid_for_each(&path.child(member), name, names::dns_label(name));
        }
    }
    scheduling::tolerations(&pod["tolerations"], &path.child("tolerations"), errors);
}

/// Checks the configuration that the policy `None` needs.
fn dns_config(config: &Value, path: &Path<'_>, errors: &mut Errors) {
    if config.is_null() {
        errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None");
    } else if elements(&config["nameservers"]).is_empty() {
        let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        errors.required(&path.child("nameservers"), detail);
    }
}

fn subdomain_names(pod: &Value, path: &Path<'_>, errors: &mut Errors) {
    for member in ["serviceAccountName", "nodeName", "priorityClassName"] {
        let name = member_text(pod, member);
        if !name.is_empty() {
            errors.invalid_for_each(&path.child(member), name, names::dns_subdomain(name));
        }
    }
}

fn one_of(object: &Value, member: &str, supported: &[&str], path: &Path<'_>, errors: &mut Errors) {
    match member_text(object, member) {
        "" => errors.required(&path.child(member), ""),
        value if supported.contains(&value) => {}
        value => errors.unsupported(&path.child(member), value, supported),
    }
}

fn dns_label_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    match name {
        "" => errors.required(path, ""),
        name => errors.invalid_for_each(path, name, names::dns_label(name)),
    }
}

fn containers<'a>(
    pod: &'a Value,
    volumes: &BTreeSet<&str>,
    names: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let containers = elements(&pod["containers"]);
    if containers.is_empty() {
        return errors.required(path, "");
    }
    for (at, container) in containers.iter().enumerate() {
        let path = path.index(at);
        self::container(container, volumes, &path, errors);
        let name = member_text(container, "name");
        if !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        probes::check(container, grace_period(pod), &path, errors);
        restart_policy(container, &path, errors);
    }
}

fn grace_period(pod: &Value) -> Option<i64> {
    pod["terminationGracePeriodSeconds"].as_i64()
}

/// Checks the policy of a single container. It may be absent.
fn restart_policy(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(policy) = container["restartPolicy"].as_str()
        && !CONTAINER_RESTART_POLICIES.contains(&policy)
    {
        errors.unsupported(&path.child("restartPolicy"), policy, &CONTAINER_RESTART_POLICIES);
    }
}

fn init_containers<'a>(
    pod: &'a Value,
    volumes: &BTreeSet<&str>,
    names: &mut BTreeSet<&'a str>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    for (at, container) in elements(&pod["initContainers"]).iter().enumerate() {
        let path = path.index(at);
        self::container(container, volumes, &path, errors);
        restart_policy(container, &path, errors);
        let name = member_text(container, "name");
        if !name.is_empty() && !names.insert(name) {
            errors.duplicate(&path.child("name"), name);
        }
        if member_text(container, "restartPolicy") == "Always" {
            probes::check(container, grace_period(pod), &path, errors);
            continue;
        }
        for member in NOT_FOR_INIT_CONTAINERS {
            if !container[member].is_null() {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.forbidden(&path.child(member), detail);
            }
        }
    }
}

fn container(container: &Value, volumes: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    dns_label_name(member_text(container, "name"), &path.child("name"), errors);
    if member_text(container, "image").is_empty() {
        errors.required(&path.child("image"), "");
    }
    one_of(container, "terminationMessagePolicy", &MESSAGE_POLICIES, path, errors);
    ports(&container["ports"], &path.child("ports"), errors);
    environment::variables(&container["env"], &path.child("env"), errors);
    environment::sources(&container["envFrom"], &path.child("envFrom"), errors);
    volumes::mounts(container, volumes, &path.child("volumeMounts"), errors);
    one_of(container, "imagePullPolicy", &PULL_POLICIES, path, errors);
    resources::check(&container["resources"], &path.child("resources"), errors);
    scheduling::security_of_container(&container["securityContext"], &path.child("securityContext"), errors);
}

fn ports(ports: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut names = BTreeSet::new();
    for (at, port) in elements(ports).iter().enumerate() {
        let path = path.index(at);
        let name = member_text(port, "name");
        if !name.is_empty() {
            let messages = names::port(name);
            if messages.is_empty() && !names.insert(name) {
                errors.duplicate(&path.child("name"), name);
            }
            errors.invalid_for_each(&path.child("name"), name, messages);
        }
        let number = |member: &str| port[member].as_i64().unwrap_or_default();
        if number("containerPort") == 0 {
            errors.required(&path.child("containerPort"), "");
        }
        for member in ["containerPort", "hostPort"] {
            let number = number(member);
            if number != 0 && !PORTS.contains(&number) {
                errors.invalid(&path.child(member), number, "must be between 1 and 65535, inclusive");
            }
        }
        one_of(port, "protocol", &PROTOCOLS, &path, errors);
    }
}
