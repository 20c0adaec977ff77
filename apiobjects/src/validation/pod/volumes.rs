//! Validation of volumes and of their mounts.

use std::{cmp::Ordering, collections::BTreeSet};

use serde_json::Value;

use super::{
    dns_label_name, elements,
    environment::{self, Reader},
    member_text,
};
use crate::{
    decoding::compare_quantities,
    validation::{field_error::Errors, metadata::members, path::Path},
};

/// The sources in the server's order, and the name of the field in the error about a second one.
const SOURCES: [(&str, &str); 30] = [
    ("emptyDir", "emptyDir"),
    ("hostPath", "hostPath"),
    ("gitRepo", "gitRepo"),
    ("gcePersistentDisk", "gcePersistentDisk"),
    ("awsElasticBlockStore", "awsElasticBlockStore"),
    ("secret", "secret"),
    ("nfs", "nfs"),
    ("iscsi", "iscsi"),
    ("glusterfs", "glusterfs"),
    ("flocker", "flocker"),
    ("persistentVolumeClaim", "persistentVolumeClaim"),
    ("rbd", "rbd"),
    ("cinder", "cinder"),
    ("cephfs", "cephFS"),
    ("quobyte", "quobyte"),
    // As the server spells it.
    ("downwardAPI", "downwarAPI"),
    ("fc", "fc"),
    ("flexVolume", "flexVolume"),
    ("configMap", "configMap"),
    ("azureFile", "azureFile"),
    ("vsphereVolume", "vsphereVolume"),
    ("photonPersistentDisk", "photonPersistentDisk"),
    ("portworxVolume", "portworxVolume"),
    ("azureDisk", "azureDisk"),
    ("storageos", "storageos"),
    ("projected", "projected"),
    ("scaleIO", "scaleIO"),
    ("csi", "csi"),
    ("ephemeral", "ephemeral"),
    ("image", "image"),
];
const HOST_PATH_TYPES: [&str; 8] = [
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
const PROPAGATIONS: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];
const MODES: std::ops::RangeInclusive<i64> = 0..=0o777;
const MODE_DETAIL: &str = "must be a number between 0 and 0777 (octal), both inclusive";

/// Checks the volumes. Returns the names of the mountable ones.
pub(super) fn check<'a>(pod: &'a Value, path: &Path<'_>, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut mountable = BTreeSet::new();
    for (at, volume) in elements(&pod["volumes"]).iter().enumerate() {
        let n_errors = errors.len();
        let path = path.index(at);
        source(volume, &path, errors);
        let path = path.child("name");
        let name = member_text(volume, "name");
        dns_label_name(name, &path, errors);
        if mountable.contains(name) {
            errors.duplicate(&path, name);
        }
        if errors.len() == n_errors {
            mountable.insert(name);
        }
    }
    mountable
}

fn source(volume: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut has_one = false;
    for (name, name_in_error) in SOURCES.iter().filter(|(name, _)| !volume[*name].is_null()) {
        if has_one {
            errors.forbidden(&path.child(name_in_error), "may not specify more than 1 volume type");
            continue;
        }
        has_one = true;
        let (source, path) = (&volume[*name], path.child(name));
        let required = |errors: &mut Errors, member: &str| {
            if member_text(source, member).is_empty() {
                errors.required(&path.child(member), "");
            }
        };
        match *name {
            "emptyDir" => empty_dir(source, &path, errors),
            "hostPath" => host_path(source, &path, errors),
            "secret" => {
                required(errors, "secretName");
                files(source, &path, errors);
            }
            "configMap" => {
                required(errors, "name");
                files(source, &path, errors);
            }
            "persistentVolumeClaim" => required(errors, "claimName"),
            "nfs" => {
                required(errors, "server");
                required(errors, "path");
                let place = member_text(source, "path");
                if !place.starts_with('/') {
                    errors.invalid(&path.child("path"), place, "must be an absolute path");
                }
            }
            "downwardAPI" => downward(source, &path, errors),
            _ => {}
        }
    }
}

fn empty_dir(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let limit = member_text(source, "sizeLimit");
    if compare_quantities(limit, "0") == Some(Ordering::Less) {
        errors.forbidden(
            &path.child("sizeLimit"),
            "SizeLimit field must be a valid resource quantity",
        );
    }
}

fn host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let place = member_text(source, "path");
    if place.is_empty() {
        return errors.required(&path.child("path"), "");
    }
    no_steps_back(place, &path.child("path"), errors);
    let kind = member_text(source, "type");
    if !HOST_PATH_TYPES.contains(&kind) {
        errors.unsupported(&path.child("type"), kind, &HOST_PATH_TYPES);
    }
}

/// Checks the mode of files and the keys that become files.
fn files(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    mode(source, "defaultMode", path, errors);
    let items = path.child("items");
    for (at, item) in elements(&source["items"]).iter().enumerate() {
        let path = items.index(at);
        for member in ["key", "path"] {
            if member_text(item, member).is_empty() {
                errors.required(&path.child(member), "");
            }
        }
        file_path(member_text(item, "path"), &path.child("path"), errors);
        mode(item, "mode", &path, errors);
    }
}

fn downward(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    mode(source, "defaultMode", path, errors);
    // The server gives no position of an item.
    for item in elements(&source["items"]) {
        if member_text(item, "path").is_empty() {
            errors.required(&path.child("path"), "");
        }
        file_path(member_text(item, "path"), &path.child("path"), errors);
        match (&item["fieldRef"], &item["resourceFieldRef"]) {
            (Value::Null, Value::Null) => errors.required(path, "one of fieldRef and resourceFieldRef is required"),
            (Value::Null, resource) => {
                environment::resource(resource, Reader::File, &path.child("resourceFieldRef"), errors);
            }
            (field, resource) => {
                environment::field(field, Reader::File, &path.child("fieldRef"), errors);
                if !resource.is_null() {
                    let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                    errors.invalid(path, "resource", detail);
                }
            }
        }
        mode(item, "mode", path, errors);
    }
}

fn mode(object: &Value, member: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(mode) = object[member].as_i64().filter(|mode| !MODES.contains(mode)) {
        errors.invalid(&path.child(member), mode, MODE_DETAIL);
    }
}

/// A relative path that stays below its root.
fn descending_path(place: &str, path: &Path<'_>, errors: &mut Errors) {
    if place.starts_with('/') {
        errors.invalid(path, place, "must be a relative path");
    }
    no_steps_back(place, path, errors);
}

/// The same, and without the names that the kubelet uses itself.
fn file_path(place: &str, path: &Path<'_>, errors: &mut Errors) {
    descending_path(place, path, errors);
    if place.starts_with("..") && !place.starts_with("../") {
        errors.invalid(path, place, "must not start with '..'");
    }
}

fn no_steps_back(place: &str, path: &Path<'_>, errors: &mut Errors) {
    if place.split('/').any(|step| step == "..") {
        errors.invalid(path, place, "must not contain '..'");
    }
}

/// Checks the mounts of a container.
pub(super) fn mounts(container: &Value, volumes: &BTreeSet<&str>, path: &Path<'_>, errors: &mut Errors) {
    let mut places = BTreeSet::new();
    for (at, mount) in elements(&container["volumeMounts"]).iter().enumerate() {
        let of_mount = path.index(at);
        let (name, place) = (member_text(mount, "name"), member_text(mount, "mountPath"));
        if name.is_empty() {
            errors.required(&of_mount.child("name"), "");
        }
        if !volumes.contains(name) {
            errors.not_found(&of_mount.child("name"), name);
        }
        if place.is_empty() {
            errors.required(&of_mount.child("mountPath"), "");
        }
        if !places.insert(place) {
            errors.invalid(&of_mount.child("mountPath"), place, "must be unique");
        }
        // The server gives no position for the rest.
        let (part, expression) = (member_text(mount, "subPath"), member_text(mount, "subPathExpr"));
        if !part.is_empty() {
            descending_path(part, &path.child("subPath"), errors);
        }
        if !expression.is_empty() {
            if !part.is_empty() {
                let detail = "subPathExpr and subPath are mutually exclusive";
                errors.invalid(&of_mount.child("subPathExpr"), expression, detail);
            }
            descending_path(expression, &path.child("subPathExpr"), errors);
        }
        propagation(mount, container, &path.child("mountPropagation"), errors);
    }
}

fn propagation(mount: &Value, container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(propagation) = mount["mountPropagation"].as_str() else {
        return;
    };
    if !PROPAGATIONS.contains(&propagation) {
        errors.unsupported(path, propagation, &PROPAGATIONS);
    }
    let is_privileged =
        members(&container["securityContext"]).any(|(name, value)| name == "privileged" && *value == true);
    if propagation == "Bidirectional" && !is_privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.forbidden(path, detail);
    }
}
