//! Tests that existing files are kept and that the written file is removed at the end.

use std::{
    fs::Permissions,
    os::unix::fs::{PermissionsExt, symlink},
};

use super::*;

const SERVER: &str = "127.0.0.1:6440";

const FOREIGN: &str = "was not made by `cronwheel dev`";

/// A path in a new folder, without a file.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let folder = std::env::temp_dir().join(format!("cronwheel-kubeconfig-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Place(folder)
    }

    fn path(&self) -> PathBuf {
        self.0.join("kubeconfig")
    }

    fn write(&self) -> Result<KubeconfigFile, CommandError> {
        KubeconfigFile::write(&self.path(), SERVER.parse().unwrap())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _removed = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn kubeconfig_is_private_and_removed_on_drop() {
    let place = Place::new("life");
    let file = place.write().unwrap();
    let mode = fs::metadata(place.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let read = kube::config::Kubeconfig::read_from(place.path()).unwrap();
    let cluster = read.clusters[0].cluster.as_ref().unwrap();
    assert_eq!(cluster.server.as_deref(), Some("http://127.0.0.1:6440"));
    assert_eq!(read.current_context.as_deref(), Some("cronwheel-dev"));
    drop(file);
    assert!(!place.path().exists());
}

#[test]
fn a_kubeconfig_that_was_replaced_or_edited_is_not_removed() {
    let place = Place::new("replaced");
    let edited = format!("{}# a note\n", content(SERVER.parse().unwrap()));
    for text in ["apiVersion: v1\nkind: Config\n", &edited] {
        let file = place.write().unwrap();
        fs::write(place.path(), text).unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(place.path()).unwrap(), text);
        fs::remove_file(place.path()).unwrap();
    }
}

#[test]
fn a_leftover_kubeconfig_is_overwritten() {
    let place = Place::new("left");
    fs::write(place.path(), format!("{MARK}{}", "old: x\n".repeat(200))).unwrap();
    fs::set_permissions(place.path(), Permissions::from_mode(0o644)).unwrap();
    let _file = place.write().unwrap();
    let text = fs::read_to_string(place.path()).unwrap();
    assert!(text.starts_with(MARK) && !text.contains("old"), "{text}");
    let mode = fs::metadata(place.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn a_foreign_file_is_not_overwritten() {
    let place = Place::new("foreign");
    for text in ["apiVersion: v1\nkind: Config\n", "#", "x"] {
        fs::write(place.path(), text).unwrap();
        let error = place.write().unwrap_err();
        assert!(error.to_string().contains(FOREIGN), "{error}");
        assert_eq!(fs::read_to_string(place.path()).unwrap(), text);
    }
}

#[test]
fn symlinks_and_directories_are_not_overwritten() {
    let place = Place::new("kinds");
    let target = place.0.join("target");
    fs::write(&target, "").unwrap();
    symlink(&target, place.path()).unwrap();
    let error = place.write().unwrap_err();
    assert!(error.to_string().contains(FOREIGN), "{error}");
    assert_eq!(fs::read_link(place.path()).unwrap(), target);
    assert_eq!(fs::read_to_string(&target).unwrap(), "");
    fs::remove_file(place.path()).unwrap();
    fs::create_dir(place.path()).unwrap();
    let error = place.write().unwrap_err();
    assert!(error.to_string().contains(FOREIGN), "{error}");
}

#[test]
fn a_kubeconfig_in_use_is_refused() {
    let place = Place::new("shared");
    let file = place.write().unwrap();
    let error = place.write().unwrap_err();
    assert!(error.to_string().contains("another `cronwheel dev` uses it"), "{error}");
    assert!(place.path().exists());
    drop(file);
    drop(place.write().unwrap());
}

#[test]
fn an_unwritable_path_is_reported() {
    let place = Place::new("nowhere");
    let error = KubeconfigFile::write(&place.0.join("no/folder"), SERVER.parse().unwrap()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("--kubeconfig") && text.contains("no/folder"), "{text}");
}
