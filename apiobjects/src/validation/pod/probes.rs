//! Validation of probes and lifecycle hooks.

use serde_json::Value;

use super::{PORTS, elements, member_text};
use crate::validation::{field_error::Errors, names, path::Path};

const SCHEMES: [&str; 2] = ["HTTP", "HTTPS"];
const HANDLERS_OF_PROBES: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
const HANDLERS_OF_HOOKS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];
const NON_NEGATIVE: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];

/// Checks the hooks and the probes of a container. `grace_period` is that of the Pod.
pub(super) fn check(container: &Value, grace_period: Option<i64>, path: &Path<'_>, errors: &mut Errors) {
    for hook in ["postStart", "preStop"] {
        let handler = &container["lifecycle"][hook];
        if !handler.is_null() {
            let path = path.child("lifecycle");
            self::handler(handler, &HANDLERS_OF_HOOKS, grace_period, &path.child(hook), errors);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = &container[name];
        if !probe.is_null() {
            self::probe(name, probe, grace_period, &path.child(name), errors);
        }
    }
}

fn probe(name: &str, probe: &Value, grace_period: Option<i64>, path: &Path<'_>, errors: &mut Errors) {
    handler(probe, &HANDLERS_OF_PROBES, grace_period, path, errors);
    for member in NON_NEGATIVE {
        errors.non_negative(&path.child(member), probe.get(member));
    }
    let grace_path = path.child("terminationGracePeriodSeconds");
    let own_grace_period = probe["terminationGracePeriodSeconds"].as_i64();
    if let Some(seconds) = own_grace_period.filter(|seconds| *seconds <= 0) {
        errors.invalid(&grace_path, seconds, "must be greater than 0");
    }
    if name == "readinessProbe" {
        if let Some(seconds) = own_grace_period {
            errors.invalid(&grace_path, seconds, "must not be set for readinessProbes");
        }
    } else if let Some(threshold) = probe["successThreshold"].as_i64().filter(|threshold| *threshold != 1) {
        errors.invalid(&path.child("successThreshold"), threshold, "must be 1");
    }
}

fn handler(handler: &Value, kinds: &[&str], grace_period: Option<i64>, path: &Path<'_>, errors: &mut Errors) {
    let mut has_one = false;
    for kind in kinds.iter().filter(|kind| !handler[**kind].is_null()) {
        let path = path.child(kind);
        if has_one {
            errors.forbidden(&path, "may not specify more than 1 handler type");
            continue;
        }
        has_one = true;
        let action = &handler[*kind];
        match *kind {
            "exec" if elements(&action["command"]).is_empty() => errors.required(&path.child("command"), ""),
            "httpGet" => http_get(action, &path, errors),
            "tcpSocket" | "grpc" => port(&action["port"], &path.child("port"), errors),
            "sleep" => sleep(action, grace_period, &path, errors),
            _ => {}
        }
    }
    if !has_one {
        errors.required(path, "must specify a handler type");
    }
}

fn http_get(action: &Value, path: &Path<'_>, errors: &mut Errors) {
    if member_text(action, "path").is_empty() {
        errors.required(&path.child("path"), "");
    }
    port(&action["port"], &path.child("port"), errors);
    let scheme = member_text(action, "scheme");
    if !SCHEMES.contains(&scheme) {
        errors.unsupported(&path.child("scheme"), scheme, &SCHEMES);
    }
}

fn port(port: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(name) = port.as_str() {
        return errors.invalid_for_each(path, name, names::port(name));
    }
    let number = port.as_i64().unwrap_or_default();
    if !PORTS.contains(&number) {
        errors.invalid(path, number, "must be between 1 and 65535, inclusive");
    }
}

fn sleep(action: &Value, grace_period: Option<i64>, path: &Path<'_>, errors: &mut Errors) {
    let seconds = action["seconds"].as_i64().unwrap_or_default();
    if let Some(grace_period) = grace_period.filter(|grace_period| !(0..=*grace_period).contains(&seconds)) {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace_period})");
        errors.invalid(path, seconds, &detail);
    }
}
